"""A hostile box, as root of the guest: what it tries to make in the repository, and what it leaves in the project."""
import ctypes
import errno
import os
import socket
import stat
import subprocess

OUT = "@OUT@"
RAN = OUT + "/ran/"
os.chdir("/home/me/page")
os.environ["HOME"] = "/tmp"


def attempt(name, act):
    try:
        act()
        print("done", name)
    except OSError as error:
        print(errno.errorcode[error.errno], name)


def git(*words):
    subprocess.run(["git", *words], check=True)


def write(path, text):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def in_place(path, make):
    """Puts something in the place of a file of git."""
    def act():
        had = os.path.lexists(path)
        if had:
            os.rename(path, path + ".old")
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            make(path)
        finally:
            if had:
                os.rename(path + ".old", path)
    return act


def exchange(a, b):
    if ctypes.CDLL(None, use_errno=True).renameat2(-100, a.encode(), -100, b.encode(), 2):
        raise OSError(ctypes.get_errno(), "exchange")


FILES = [
    "logs/HEAD", "logs/refs/heads/main", "logs/refs/stash", "FETCH_HEAD", "COMMIT_EDITMSG", "MERGE_MSG", "ORIG_HEAD", "index",
    "index.lock", "HEAD.lock", "packed-refs", "refs/heads/linked", "info/exclude", "objects/ab", "objects/info/commit-graph",
    "objects/pack/pack-0.idx", "rr-cache", "sequencer/todo", "modules/lib/logs/HEAD", "modules/lib/index", "modules/new",
    "worktrees/new/HEAD", "lfs", "gc.log",
]
git("pack-refs", "--all")
for name in FILES:
    attempt(f"link {name}", in_place(".git/" + name, lambda it: os.symlink(OUT + "/file", it)))
for name in ["FETCH_HEAD", "index", "COMMIT_EDITMSG", "modules/lib/index"]:
    attempt(f"pipe {name}", in_place(".git/" + name, os.mkfifo))
    attempt(f"socket {name}", in_place(".git/" + name, lambda it: socket.socket(socket.AF_UNIX).bind(it)))
    attempt(f"device {name}", in_place(".git/" + name, lambda it: os.mknod(it, stat.S_IFCHR | 0o666, 0x103)))
os.symlink(OUT + "/file", "moving")
os.mkfifo("pipe")
os.mkdir("with")
os.symlink(OUT + "/file", "with/HEAD")
attempt("move a link", lambda: os.rename("moving", ".git/FETCH_HEAD"))
attempt("move a pipe", lambda: os.rename("pipe", ".git/FETCH_HEAD"))
attempt("move a directory", lambda: os.rename("with", ".git/logs/with"))
attempt("link a link", lambda: os.link("moving", ".git/linked", follow_symlinks=False))
attempt("exchange directories", lambda: exchange("with", ".git/logs"))
attempt("exchange the repository", lambda: exchange("with", ".git"))
attempt("move the repository", lambda: os.rename(".git", "old"))
attempt("move modules", lambda: os.rename(".git/modules", ".git/old"))
attempt("write a hook", lambda: write(".git/hooks/post-checkout", "touch " + RAN + "hook"))
attempt("write the settings", lambda: write(".git/config", "[core]\n\tfsmonitor = touch " + RAN + "config"))
attempt("test for links", lambda: os.symlink("testing", ".git/tAbCd12"))
attempt("move that link", lambda: os.rename(".git/tAbCd12", ".git/FETCH_HEAD"))
print(os.readlink(".git/FETCH_HEAD"))

# What no rule forbids.
write(".git/info/attributes", "* filter=evil diff=evil merge=evil\n")
write(".gitattributes", "* filter=evil diff=evil merge=evil\n")
write(".git/remotes/origin", "URL: ext::touch " + RAN + "remote\nPull: refs/heads/*:refs/heads/*\n")
write(".git/branches/origin", "ext::touch " + RAN + "branch\n")
write(".git/objects/info/alternates", OUT + "/secret/.git/objects\n")
write(".git/worktrees/evil/gitdir", OUT + "/secret/.git\n")
write(".git/worktrees/evil/commondir", "../../../evil/.git\n")
write(".git/worktrees/evil/HEAD", "ref: refs/heads/main\n")
write(".git/modules/lib/rebase-merge/git-rebase-todo", "exec touch " + RAN + "rebase\n")
write(".git/modules/new/hooks/post-checkout", "touch " + RAN + "module")
write(".git/info/e/.git/config", "[core]\n\tfsmonitor = touch " + RAN + "inner")
write(".git/MERGE_MSG", "$(touch " + RAN + "message)\n")
git("init", "-q", "evil")
write("evil/file", "x")
git("-C", "evil", "add", ".")
git("-C", "evil", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "evil")
git("add", "evil")
write(".gitmodules", open(".gitmodules").read() + '[submodule "evil"]\n\tpath = evil\n\turl = ./evil\n\tignore = none\n')
git("-C", "evil", "config", "core.fsmonitor", "touch " + RAN + "fsmonitor; false")
# A branch cannot have a blank, and may have a slash.
git("branch", "fix$(touch${IFS}" + RAN + "branch)")
write("Makefile", "all:\n\ttouch " + RAN + "make\n")
write("package.json", '{"scripts":{"prepare":"touch ' + RAN + 'npm"}}')
write(".exrc", "!touch " + RAN + "exrc\n")
write(".vimrc", "!touch " + RAN + "vimrc\n")
write("modeline.c", "/* vim: set foldmethod=expr foldexpr=system('touch\\ " + RAN + "modeline'): */\n")
write("modeline2.c", "// vim: set makeprg=touch\\ x shell=/bin/false exrc:\n")
write(".ripgreprc", "--pre=touch\n")
write(".ignore", "!**\n")
write(".editorconfig", "root = true\n[*]\nindent_style = $(touch " + RAN + "editor)\n")
write("bare/HEAD", "ref: refs/heads/main\n")
write("bare/config", "[core]\n\tfsmonitor = touch " + RAN + "bare\n")
os.makedirs("bare/objects")
os.makedirs("bare/refs")
write(".GIT/config", "[core]\n\tfsmonitor = touch " + RAN + "case\n")
for number, name in enumerate([
    "$(touch x)", "`touch x`", "two\nlines", "-rf", "--checkpoint=1", "--checkpoint-action=exec=touch x", "\x1b]0;x\x07", " ", "a;touch x",
]):
    write("names/" + name, str(number))
for name in [".mailmap", "out", "names/link"]:
    os.symlink(OUT + "/file", name)
os.symlink(OUT + "/dir", "dir-out")
os.rename("docs", "docs.old")
os.symlink(OUT + "/dir", "docs")
os.link("README", "hard")
socket.socket(socket.AF_UNIX).bind("socket")
