//! The programs that run the program among their arguments, such as `sudo`, `timeout` and `xargs`.

use std::borrow::Cow;

use crate::call::{Call, name};
use crate::path::Path;
use crate::shell::Word;

use super::unwrap::{Inner, SHELLS, is_assignment, line_option, words};

/// A program that runs another one. Options that are not listed make the command ask, because it is unknown whether they have a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wrapper {
    names: &'static [&'static str],
    /// The letters of the options that have a value.
    letters: &'static str,
    /// The long options that have a value.
    longs: &'static [&'static str],
    /// The letters of the options whose value can only be in the same word.
    attached: &'static str,
    /// The letters of the options without a value.
    flags: &'static str,
    /// The long options whose value, if they have one, is in the same word.
    long_flags: &'static [&'static str],
    /// The number of operands before the program.
    operands: usize,
}

/// A wrapper without options.
const BARE: Wrapper = Wrapper {
    names: &[],
    letters: "",
    longs: &[],
    attached: "",
    flags: "",
    long_flags: &[],
    operands: 0,
};

pub(super) static ENV: Wrapper = Wrapper {
    names: &["env", "genv"],
    letters: "uCSa",
    longs: &["unset", "chdir", "split-string", "argv0"],
    flags: "i0v",
    long_flags: &[
        "ignore-environment",
        "null",
        "debug",
        "block-signal",
        "default-signal",
        "ignore-signal",
        "list-signal-handling",
    ],
    ..BARE
};

/// What follows `perf stat` and its like.
static PERF: Wrapper = Wrapper { letters: "erIoCpGFcmjx", flags: "advBgASzqn", ..BARE };

static WRAPPERS: [Wrapper; 33] = [
    Wrapper {
        names: &["sudo"],
        letters: "aCcDghpRrTtUu",
        longs: &[
            "user",
            "group",
            "host",
            "chdir",
            "chroot",
            "prompt",
            "role",
            "type",
            "close-from",
            "command-timeout",
            "other-user",
        ],
        flags: "ABbEeHiKklNnPSsVv",
        long_flags: &["preserve-env", "login", "shell", "non-interactive", "stdin", "set-home"],
        ..BARE
    },
    Wrapper { names: &["doas"], letters: "uC", flags: "nsL", ..BARE },
    Wrapper { names: &["pkexec"], longs: &["user"], long_flags: &["keep-cwd"], ..BARE },
    Wrapper { names: &["gosu", "su-exec"], operands: 1, ..BARE },
    Wrapper {
        names: &["nohup", "builtin", "chronic", "catchsegv", "and", "or", "not", "begin"],
        ..BARE
    },
    Wrapper { names: &["busybox", "toybox"], long_flags: &["list", "install"], ..BARE },
    Wrapper { names: &["disown"], flags: "ahr", ..BARE },
    Wrapper {
        names: &["fakeroot"],
        letters: "lfsib",
        longs: &["lib", "faked"],
        flags: "uhv",
        long_flags: &["unknown-is-real"],
        ..BARE
    },
    Wrapper { names: &["setsid"], flags: "cfw", long_flags: &["ctty", "fork", "wait"], ..BARE },
    Wrapper { names: &["command"], flags: "pvV", ..BARE },
    Wrapper { names: &["tini"], letters: "ep", flags: "sgvwlh", ..BARE },
    Wrapper {
        names: &["dumb-init"],
        letters: "r",
        longs: &["rewrite"],
        flags: "cvV",
        long_flags: &["single-child", "verbose"],
        ..BARE
    },
    Wrapper {
        names: &["npx", "bunx", "pnpx", "uvx"],
        letters: "pcw",
        longs: &["package", "call", "workspace", "from", "with", "python"],
        flags: "yqs",
        long_flags: &[
            "yes",
            "no",
            "no-install",
            "quiet",
            "silent",
            "ignore-existing",
            "prefer-offline",
            "offline",
            "bun",
            "verbose",
            "isolated",
        ],
        ..BARE
    },
    Wrapper { names: &["nice"], letters: "n", longs: &["adjustment"], flags: "0123456789", ..BARE },
    Wrapper {
        names: &["timeout", "gtimeout"],
        letters: "ks",
        longs: &["kill-after", "signal"],
        flags: "vfp",
        long_flags: &["foreground", "preserve-status", "verbose"],
        operands: 1,
        ..BARE
    },
    Wrapper {
        names: &["time"],
        letters: "fo",
        longs: &["format", "output"],
        flags: "apqvlh",
        long_flags: &["append", "portability", "quiet", "verbose"],
        ..BARE
    },
    Wrapper { names: &["stdbuf"], letters: "ioe", longs: &["input", "output", "error"], ..BARE },
    Wrapper {
        names: &["ionice"],
        letters: "cnpPu",
        longs: &["class", "classdata"],
        flags: "t",
        long_flags: &["ignore"],
        ..BARE
    },
    Wrapper { names: &["chrt"], letters: "TPD", flags: "abdefimorRGv", operands: 1, ..BARE },
    Wrapper {
        names: &["taskset"],
        flags: "acp",
        long_flags: &["all-tasks", "cpu-list"],
        operands: 1,
        ..BARE
    },
    Wrapper {
        names: &["chroot"],
        long_flags: &["userspec", "groups", "skip-chdir"],
        operands: 1,
        ..BARE
    },
    Wrapper {
        names: &["unshare"],
        letters: "RwSG",
        longs: &["root", "wd", "setuid", "setgid"],
        flags: "imnpuUCTrcf",
        long_flags: &["mount", "pid", "net", "user", "ipc", "uts", "fork", "mount-proc"],
        ..BARE
    },
    Wrapper {
        names: &["nsenter"],
        letters: "tSG",
        longs: &["target", "setuid", "setgid"],
        attached: "rwmuinpCUT",
        flags: "aFZe",
        long_flags: &["all", "mount", "pid", "net", "user", "ipc", "uts", "root", "wd"],
        ..BARE
    },
    Wrapper { names: &["exec"], letters: "a", flags: "cl", ..BARE },
    Wrapper {
        names: &["xargs", "gxargs"],
        letters: "IndLPsaEJR",
        longs: &["max-args", "delimiter", "max-procs", "max-chars", "arg-file"],
        attached: "iel",
        flags: "0rtxop",
        long_flags: &[
            "null",
            "no-run-if-empty",
            "verbose",
            "interactive",
            "exit",
            "open-tty",
            "replace",
            "eof",
            "max-lines",
        ],
        ..BARE
    },
    Wrapper {
        names: &["strace"],
        letters: "abeEIoOpPsSuUX",
        flags: "cCdDfFhiknNqrtTvVwxyYzZA",
        ..BARE
    },
    Wrapper { names: &["ltrace"], letters: "aADeFlnopsuwxX", flags: "bcCfhiLrStTV", ..BARE },
    Wrapper {
        names: &["flock"],
        letters: "wE",
        longs: &["timeout", "wait", "conflict-exit-code"],
        flags: "sxeunoFv",
        long_flags: &["shared", "exclusive", "nonblock", "nb", "close", "no-fork", "verbose"],
        operands: 1,
        ..BARE
    },
    Wrapper {
        names: &["setpriv"],
        longs: &[
            "ruid",
            "euid",
            "reuid",
            "rgid",
            "egid",
            "regid",
            "groups",
            "inh-caps",
            "ambient-caps",
            "bounding-set",
            "securebits",
            "pdeathsig",
        ],
        flags: "d",
        long_flags: &["nnp", "no-new-privs", "clear-groups", "keep-groups", "init-groups"],
        ..BARE
    },
    Wrapper {
        names: &["prlimit"],
        letters: "po",
        longs: &["pid", "output"],
        attached: "cdefilmnqrstuvxy",
        long_flags: &["as", "core", "cpu", "data", "fsize", "nofile", "nproc", "stack", "rss"],
        ..BARE
    },
    Wrapper {
        names: &[
            "setarch",
            "linux32",
            "linux64",
            "i386",
            "x86_64",
            "cgexec",
            "dbus-run-session",
            "firejail",
        ],
        letters: "g",
        longs: &["config-file", "dbus-daemon"],
        flags: "BFILRSTXZ3v",
        long_flags: &["addr-no-randomize", "noprofile", "quiet", "sticky"],
        ..BARE
    },
    Wrapper {
        names: &["proot", "xvfb-run", "systemd-run"],
        letters: "rbwqkiefnpsEMH",
        longs: &["unit", "property", "setenv", "uid", "gid", "working-directory", "server-args"],
        flags: "aldPtSG0",
        long_flags: &["auto-servernum", "user", "scope", "pty", "pipe", "wait", "quiet"],
        ..BARE
    },
    Wrapper {
        names: &["runuser"],
        letters: "ugGcsw",
        longs: &["user", "group", "supp-group", "shell", "command"],
        flags: "lmpfP",
        long_flags: &["login", "preserve-environment"],
        ..BARE
    },
];

impl Wrapper {
    /// Returns whether the value of an option is the next word. `None` if the option is unknown.
    fn takes_next(&self, option: &str) -> Option<bool> {
        if let Some(long) = option.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or(long);
            if self.longs.contains(&name) {
                return Some(!long.contains('='));
            }
            let is_flag = self.long_flags.contains(&name) || ["help", "version"].contains(&name);
            return is_flag.then_some(false);
        }
        for (at, letter) in option.char_indices().skip(1) {
            if self.letters.contains(letter) {
                return Some(at + letter.len_utf8() == option.len());
            }
            if self.attached.contains(letter) {
                return Some(false);
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(false)
    }

    /// Returns the number of words of the options, and whether all of them are known. `is_more` is whether another word belongs to them.
    pub(super) fn options(&self, args: &[Word], is_more: impl Fn(&str) -> bool) -> (usize, bool) {
        let (mut at, mut is_known) = (0, true);
        while let Some(arg) = args.get(at) {
            let text = arg.known.as_str();
            if text == "--" {
                at += 1;
                break;
            }
            let is_option = text.len() > 1 && text.starts_with('-');
            if !is_option && !is_more(text) {
                break;
            }
            let takes_next = if is_option { self.takes_next(text) } else { Some(false) };
            is_known &= takes_next.is_some();
            at += 1 + usize::from(takes_next == Some(true));
        }
        (at.min(args.len()), is_known)
    }

    /// Returns the value of an option.
    pub(super) fn value(&self, options: &[Word], letter: char, long: &str) -> Option<String> {
        options.iter().enumerate().find_map(|(at, arg)| {
            let next = || options.get(at + 1).map(|it| it.text.clone());
            let text = arg.text.as_str();
            if let Some(option) = text.strip_prefix("--") {
                let (name, value) =
                    option.split_once('=').map_or((option, None), |it| (it.0, Some(it.1)));
                let value = value.map(str::to_owned);
                return if name == long { value.or_else(next) } else { None };
            }
            let (before, value) = text.strip_prefix('-')?.split_once(letter)?;
            let has_other = before.contains(|it: char| self.letters.contains(it));
            match value {
                _ if has_other => None,
                "" => next(),
                value => Some(value.to_owned()),
            }
        })
    }
}

/// Returns the command that a wrapper runs.
pub(super) fn wrapped(call: Call<'_>) -> Vec<Inner<'_>> {
    let Some(wrapper) = WRAPPERS.iter().find(|it| call.is(it.names)) else {
        return Vec::new();
    };
    let sets = |it: &str| call.is(&["sudo", "doas"]) && is_assignment(it);
    let (count, is_known) = wrapper.options(call.args, sets);
    let (options, rest) = call.args.split_at(count);
    let is_query = |it: &Word| it.known.starts_with('-') && it.known.contains(['v', 'V']);
    if call.is(&["command"]) && options.iter().any(is_query) {
        return Vec::new();
    }
    let directory = match call.name {
        "sudo" => wrapper.value(options, 'D', "chdir"),
        "unshare" => wrapper.value(options, 'w', "wd"),
        _ => None,
    };
    let mut all =
        placed(call, directory.as_deref(), rest.get(wrapper.operands..).unwrap_or_default());
    match call.name {
        "npx" | "bunx" | "pnpx" => all.extend(wrapper.value(options, 'c', "call").map(line)),
        "xargs" | "gxargs" if is_replaced(wrapper, options, rest) => all.push(Inner::Unknown),
        "setarch" => all.extend(after_machine(rest)),
        "flock" | "runuser" => all.extend(line_option(call)),
        _ => (),
    }
    all.extend((!is_known).then_some(Inner::Unlisted));
    all
}

fn line(text: String) -> Inner<'static> {
    Inner::Line(Cow::Owned(Word::literal(&text)))
}

/// Returns a program that starts in a directory, if one is given.
pub(super) fn placed<'a>(
    call: Call<'_>,
    directory: Option<&str>,
    inner: &'a [Word],
) -> Vec<Inner<'a>> {
    match directory {
        None => words(inner, 0),
        Some(_) if inner.is_empty() => Vec::new(),
        Some(directory) => {
            let is_unknown = directory.contains(['$', '`']);
            let path = if is_unknown { Path::chosen() } else { call.path(directory) };
            vec![Inner::In(path, Cow::Borrowed(inner))]
        }
    }
}

/// `setarch` has the name of a machine before or between its options.
fn after_machine(rest: &[Word]) -> Vec<Inner<'_>> {
    let inner = rest.get(1..).unwrap_or_default();
    let (count, is_known) = BARE.options(inner, |_| false);
    let mut all = words(inner, count);
    // Most options of `setarch` have no value.
    all.extend((!is_known && count > 1).then_some(Inner::Unlisted));
    all
}

/// Returns whether xargs replaces a part of a line for a shell, or of the text of a program: what runs is known only then.
fn is_replaced(wrapper: &Wrapper, options: &[Word], rest: &[Word]) -> bool {
    let is_default = |it: &Word| it.text == "--replace" || it.text.ends_with('i');
    let default = || options.iter().any(is_default).then(|| "{}".to_owned());
    let value = ['I', 'J', 'i'].iter().find_map(|it| wrapper.value(options, *it, "replace"));
    let Some(replaced) = default().or(value).filter(|it| !it.is_empty()) else {
        return false;
    };
    let has = |it: &Word| it.text.contains(&replaced);
    let is_interpreter = |it: &Word| {
        let name = name(&it.text);
        SHELLS.contains(&name)
            || ["eval", "python", "perl", "ruby", "node", "php", "awk"].contains(&name)
    };
    let is_text = |it: &Word| it.text.starts_with('-') && it.text.contains(['c', 'e', 'E', 'r']);
    let runs_text = rest.iter().any(is_interpreter) && rest.iter().any(is_text);
    rest.first().is_some_and(has) || (runs_text && rest.iter().any(has))
}

/// Reads `perf stat CMD` and its like.
pub(super) fn perf(call: Call<'_>) -> Vec<Inner<'_>> {
    let Some(inner) = call.subcommand().filter(|it| it.is(&["stat", "record", "trace", "mem"]))
    else {
        return Vec::new();
    };
    let (count, is_known) = PERF.options(inner.args, |_| false);
    let mut all = words(inner.args, count);
    all.extend((!is_known).then_some(Inner::Unlisted));
    all
}
