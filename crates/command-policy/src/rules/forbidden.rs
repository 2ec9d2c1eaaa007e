//! The commands of the rules that forbid.

use crate::call::Call;
use crate::path::Path;
use crate::shell::Word;
use crate::walk::inner_commands;

use super::{Found, How};

/// Returns whether a word names a directory of the system, or perhaps does.
fn root(call: Call<'_>, word: &Word) -> Found {
    let path = call.path(&word.text);
    if path.is_root_like() {
        return Found::Yes;
    }
    if path.is_chosen() {
        return Found::Perhaps;
    }
    let is_open = word.known.is_empty() || call.path(&word.known).is_root_like();
    if word.is_unknown && is_open { Found::Perhaps } else { Found::No }
}

/// Returns the strictest answer about the operands.
fn any_root(call: Call<'_>) -> Found {
    let found: Vec<Found> = call.operands().map(|it| root(call, it)).collect();
    let has = |it| found.contains(&it);
    if has(Found::Yes) {
        Found::Yes
    } else if has(Found::Perhaps) {
        Found::Perhaps
    } else {
        Found::No
    }
}

pub(super) fn deletes_root(call: Call<'_>) -> Found {
    match call.name {
        "rm" | "srm" if call.has("rR", &["recursive"]) => any_root(call),
        "rimraf" => any_root(call),
        "mv" => moved(call).iter().any(|it| root(call, it) == Found::Yes).into(),
        _ => Found::No,
    }
}

/// Returns the files that `mv` moves.
fn moved(call: Call<'_>) -> Vec<&Word> {
    let is_long = |it: &str| it.len() > 3 && "--target-directory".starts_with(it);
    let is_short = |it: &str| it.starts_with('-') && !it.starts_with("--") && it.ends_with('t');
    let has_value = |it: &Word| is_short(&it.known) || is_long(&it.known);
    let names_target = |it: &Word| {
        let name = it.known.split('=').next().unwrap_or_default();
        let is_cluster = it.known.starts_with('-') && !it.known.starts_with("--");
        is_long(name) || (is_cluster && it.known.contains('t'))
    };
    let values = call.args.windows(2).filter(|it| has_value(&it[0])).map(|it| &it[1]);
    let values: Vec<&Word> = values.collect();
    let is_value = |it: &&Word| values.iter().any(|value| std::ptr::eq(*value, *it));
    let mut all: Vec<&Word> = call.operands().filter(|it| !is_value(it)).collect();
    if !call.args.iter().any(names_target) {
        all.pop();
    }
    all
}

pub(super) fn changes_root(call: Call<'_>) -> Found {
    let is_recursive = call.has("R", &["recursive"]);
    if is_recursive && call.is(&["chmod", "chown", "chgrp", "chattr", "setfacl", "chcon"]) {
        any_root(call)
    } else {
        Found::No
    }
}

pub(super) fn reverse_shell(call: Call<'_>) -> Found {
    match call.name {
        "nc" | "ncat" | "netcat" | "nc.traditional" | "nc.openbsd" => {
            let executes = call.has_before("pswXxTiIqGgmNOPV", "ec", &[]);
            let long = ["--exec", "--sh-exec", "--lua-exec"];
            let has_long = call.options().any(|it| long.iter().any(|long| it.starts_with(long)));
            let scans = call.has_before("pswX", "z", &[]);
            ((executes || has_long) && !scans).into()
        }
        "socat" => {
            let executes = |it: &Word| {
                let text = it.text.to_ascii_lowercase();
                ["exec:", "system:", "shell:"].iter().any(|it| text.contains(it))
            };
            call.args.iter().any(executes).into()
        }
        _ => Found::No,
    }
}

pub(super) fn formats(call: Call<'_>) -> Found {
    let on_disk = |it: &Word| call.path(&it.text).is_disk();
    let formats = call.name.starts_with("mkfs.")
        || call.is(&["mkfs", "mke2fs", "mkdosfs", "mkntfs", "newfs", "wipefs", "blkdiscard"]);
    let erases = call.is(&["shred", "wipe", "mkswap"]) && call.operands().any(on_disk);
    let encrypts = call.name == "cryptsetup" && call.operands().any(|it| it.text == "luksFormat");
    (formats || erases || encrypts).into()
}

pub(super) fn partitions(call: Call<'_>) -> Found {
    let edits = call.is(&["fdisk", "sfdisk", "cfdisk", "gdisk", "sgdisk", "parted"]);
    let lists = call.has("ldVvh", &["list", "dump", "version", "help", "print"])
        || call.operands().any(|it| it.text == "print");
    let others = ["partprobe", "lvremove", "vgremove", "pvremove", "pvcreate", "mdadm"];
    ((edits && !lists) || call.is(&others)).into()
}

pub(super) fn shuts_down(call: Call<'_>) -> Found {
    match call.name {
        "shutdown" | "reboot" | "halt" | "poweroff" => Found::Yes,
        "init" | "telinit" => call.operands().any(|it| it.text == "0" || it.text == "6").into(),
        "systemctl" | "loginctl" => {
            let verbs =
                ["reboot", "poweroff", "halt", "kexec", "soft-reboot", "rescue", "emergency"];
            verbs.contains(&call.verb()).into()
        }
        _ => Found::No,
    }
}

pub(super) fn kernel_module(call: Call<'_>) -> Found {
    let queries =
        ["dry-run", "show-depends", "show", "version", "help", "showconfig", "resolve-alias"];
    match call.name {
        "insmod" | "rmmod" => Found::Yes,
        "modprobe" | "depmod" => (!call.has("nDRcVh", &queries)).into(),
        "kmod" => ["insert", "remove"].contains(&call.verb()).into(),
        _ => Found::No,
    }
}

pub(super) fn history(call: Call<'_>) -> Found {
    let repeats = call.name == "fc" && call.args.iter().any(|it| it.text == "-s" || it.text == "-");
    (repeats || call.name.starts_with("!!")).into()
}

/// The programs that delete or change the files among their arguments.
const DELETERS: [&str; 9] =
    ["rm", "rmdir", "unlink", "shred", "mv", "chmod", "chown", "truncate", "rimraf"];
/// The maximum depth of commands in a command that are looked at.
const MAX_DEPTH: usize = 16;

/// Returns whether a command is one of these programs, or runs one.
fn runs(words: &[Word], names: &[&str], depth: usize) -> bool {
    let Some(call) = Call::of(words, None).filter(|_| depth < MAX_DEPTH) else {
        return false;
    };
    let has = |it: &[Word]| runs(it, names, depth + 1);
    call.is(names) || inner_commands(call).iter().any(|it| it.words().is_some_and(has))
}

pub(super) fn find(call: Call<'_>) -> Found {
    let is_fd = call.is(&["fd", "fdfind"]);
    if !is_fd && !call.is(&["find", "gfind", "bfs"]) {
        return Found::No;
    }
    let inner = inner_commands(call);
    let is_line = |it: &[Word]| it.iter().skip(1).any(|it| it.text.contains("rm "));
    let deletes = (!is_fd && call.args.iter().any(|it| it.known == "-delete"))
        || inner.iter().filter_map(|it| it.words()).any(|it| runs(it, &DELETERS, 0) || is_line(it));
    if !deletes && inner.is_empty() {
        return Found::No;
    }
    let here = [Word::literal(".")];
    let starts = if is_fd { fd_starts(call) } else { starts(call) };
    let starts = if starts.is_empty() { here.as_slice() } else { starts.as_slice() };
    let is_small = starts.iter().all(|it| call.path(&it.text).is_home()) && has_name(call);
    match any_root(Call { args: starts, ..call }) {
        // What a program does with each file of the system is known only when it runs.
        Found::Yes if !deletes || is_small => Found::Perhaps,
        Found::Perhaps if !deletes => Found::No,
        found => found,
    }
}

/// Returns the directories in which `find` begins.
fn starts(call: Call<'_>) -> Vec<Word> {
    let mut args = call.args;
    while let Some((first, rest)) = args.split_first() {
        let is_option = |it: &str| ["-H", "-L", "-P"].contains(&it) || it.starts_with("-O");
        args = match first.known.as_str() {
            "-D" => rest.get(1..).unwrap_or_default(),
            option if is_option(option) => rest,
            _ => break,
        };
    }
    let is_start = |it: &&Word| !it.known.starts_with(['-', '(', '!']);
    args.iter().take_while(is_start).cloned().collect()
}

/// Returns what can be a directory in which `fd` begins: the words before the program, and the values of options.
fn fd_starts(call: Call<'_>) -> Vec<Word> {
    let is_program = |it: &str| {
        let is_cluster = it.starts_with('-') && !it.starts_with("--");
        it.starts_with("--exec") || (is_cluster && it.contains(['x', 'X']))
    };
    let options = call.args.iter().take_while(|it| !is_program(&it.known));
    let directory = |it: &Word| {
        let value = ["--base-directory=", "--search-path="]
            .iter()
            .find_map(|option| it.text.strip_prefix(option));
        value.map(Word::literal)
    };
    let word = |it: &Word| (!it.known.starts_with('-')).then(|| it.clone());
    options.filter_map(|it| directory(it).or_else(|| word(it))).collect()
}

/// Returns whether `find` looks only for files with names that it is given.
fn has_name(call: Call<'_>) -> bool {
    let is_test = |it: &Word| ["-name", "-iname", "-path"].contains(&it.known.as_str());
    let says = |it: &Word| !it.text.trim_matches(['*', '?', '.', '/']).is_empty();
    let is_or = |it: &Word| ["!", "-not", "-o", "-or", ","].contains(&it.known.as_str());
    let has_name = call.args.windows(2).any(|it| is_test(&it[0]) && says(&it[1]));
    has_name && !call.args.iter().any(is_or)
}

/// `xargs rm`: what it deletes is known only when it runs.
pub(super) fn xargs(call: Call<'_>) -> Found {
    let deletes = |it: &[Word]| runs(it, &["rm", "srm", "rimraf"], 0);
    let is_xargs = call.is(&["xargs", "gxargs"]);
    if is_xargs && inner_commands(call).iter().any(|it| it.words().is_some_and(deletes)) {
        Found::Perhaps
    } else {
        Found::No
    }
}

pub(super) fn disk(path: &Path, _how: How) -> Found {
    path.is_disk().into()
}

pub(super) fn system(path: &Path, how: How) -> Found {
    match how {
        _ if !path.is_write_protected() => Found::No,
        How::Direct => Found::Yes,
        How::Indirect => Found::Perhaps,
    }
}

pub(super) fn hook(path: &Path, how: How) -> Found {
    match how {
        _ if !path.is_hook() => Found::No,
        // The directory itself is made, or copied from another place.
        How::Indirect if !path.is_in_hooks() => Found::Perhaps,
        How::Direct | How::Indirect => Found::Yes,
    }
}

pub(super) fn windows_delete(call: Call<'_>) -> Found {
    (is_windows(call, &["rd", "rmdir"]) && has_switch(call, "/s")).into()
}

pub(super) fn windows_files(call: Call<'_>) -> Found {
    (is_windows(call, &["del", "erase"]) && has_switch(call, "/s")).into()
}

pub(super) fn windows_format(call: Call<'_>) -> Found {
    let is_drive = |it: &Word| is_drive(&it.text);
    (is_windows(call, &["format"]) && call.args.iter().any(is_drive)).into()
}

fn is_windows(call: Call<'_>, names: &[&str]) -> bool {
    names.iter().any(|it| it.eq_ignore_ascii_case(call.name))
}

fn has_switch(call: Call<'_>, switch: &str) -> bool {
    call.args.iter().any(|it| it.text.eq_ignore_ascii_case(switch))
}

/// Returns whether a text begins with a drive, such as `c:`.
fn is_drive(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|it| it.is_ascii_alphabetic()) && chars.next() == Some(':')
}

pub(super) fn powershell(call: Call<'_>) -> Found {
    if !is_windows(call, &["powershell", "pwsh", "remove-item"]) {
        return Found::No;
    }
    let texts = [call.name].into_iter().chain(call.args.iter().map(|it| it.text.as_str()));
    let text = texts.collect::<Vec<_>>().join(" ").to_ascii_lowercase();
    let words: Vec<&str> = text.split([' ', '"', '\'', ';', ',', '{', '}', '|', '\n']).collect();
    let has = |names: &[&str]| words.iter().any(|it| names.contains(it));
    let is_recursive = has(&["-recurse", "-r"]) && has(&["-force", "-fo"]);
    let is_root = |it: &&str| {
        let is_drive = is_drive(it) && it.len() <= 4;
        is_drive || ["/", "\\", "~", "$home", "*"].contains(it) || it.starts_with("$env:system")
    };
    let deletes = is_recursive && has(&["remove-item", "ri", "rm", "del"]);
    let formats = has(&["format-volume", "clear-disk", "initialize-disk"]);
    (formats || (deletes && words.iter().any(is_root))).into()
}
