//! The commands that git runs.

use std::borrow::Cow;

use crate::call::{Call, skip_options};
use crate::shell::Word;

use super::unwrap::{Inner, join, words};

/// The subcommands of git. Another one is an alias, or a program that git finds.
const SUBCOMMANDS: &str = " add am annotate apply archive bisect blame branch bugreport bundle \
    cat-file check-attr check-ignore check-mailmap check-ref-format checkout checkout-index cherry \
    cherry-pick citool clean clone column commit commit-graph commit-tree config count-objects \
    credential daemon describe diagnose diff diff-files diff-index diff-tree difftool fast-export \
    fast-import fetch fetch-pack filter-branch fmt-merge-msg for-each-ref for-each-repo \
    format-patch fsck fsck-objects gc get-tar-commit-id grep gui hash-object help hook \
    http-fetch http-push index-pack init init-db instaweb interpret-trailers lfs log ls-files \
    ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base merge-file merge-index \
    merge-one-file merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes \
    pack-objects pack-redundant pack-refs patch-id prune prune-packed pull push range-diff \
    read-tree rebase receive-pack reflog refs remote repack replace replay request-pull rerere \
    reset restore rev-list rev-parse revert rm send-email send-pack shortlog show show-branch \
    show-index show-ref sparse-checkout stage stash status stripspace submodule switch \
    symbolic-ref tag unpack-file unpack-objects update-index update-ref update-server-info \
    upload-archive upload-pack var verify-commit verify-pack verify-tag version whatchanged \
    worktree write-tree ";
/// The ends of the names of settings that are commands.
const COMMANDS: [&str; 16] = [
    "pager",
    "editor",
    "sshcommand",
    "fsmonitor",
    "askpass",
    "hookspath",
    ".external",
    ".command",
    ".cmd",
    ".clean",
    ".smudge",
    ".process",
    ".textconv",
    ".driver",
    ".helper",
    ".program",
];

/// Returns the commands of a call of git: those of its settings, and those that its subcommand runs.
pub(super) fn git(call: Call<'_>) -> Vec<Inner<'_>> {
    let mut all = settings(call.args);
    let Some(inner) = call.subcommand() else {
        return all;
    };
    match inner.name {
        "config" => all.extend(configured(inner)),
        "bisect" if inner.verb() == "run" => {
            let at = inner.args.iter().position(|it| it.known == "run").map_or(0, |it| it + 1);
            all.extend(words(inner.args, at));
        }
        "submodule" => all.extend(each(inner)),
        "rebase" => all.extend(executed(inner.args)),
        name if !is_known(name) => all.push(Inner::Unlisted),
        _ => (),
    }
    all
}

fn is_known(subcommand: &str) -> bool {
    let is_word = !subcommand.is_empty() && !subcommand.contains(char::is_whitespace);
    is_word && SUBCOMMANDS.split_whitespace().any(|it| it == subcommand)
}

/// Reads `git -c alias.NAME=!LINE`, and other settings that are commands.
fn settings(args: &[Word]) -> Vec<Inner<'_>> {
    let settings = args.windows(2).filter(|it| it[0].known == "-c");
    let lines = settings.filter_map(|it| {
        let (name, value) = it[1].text.split_once('=')?;
        match value.strip_prefix('!') {
            Some(line) => Some(line),
            None => is_command(name).then_some(value),
        }
    });
    lines.map(line).collect()
}

/// Returns whether a setting is a command.
fn is_command(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    COMMANDS.iter().any(|it| name.ends_with(it))
}

fn line(text: &str) -> Inner<'static> {
    Inner::Line(Cow::Owned(Word::literal(text)))
}

/// Reads `git config NAME VALUE`. A setting that is a command runs later, with whatever the caller then does.
fn configured(inner: Call<'_>) -> Vec<Inner<'_>> {
    let all: Vec<&Word> = inner.operands().filter(|it| it.text != "set").collect();
    let [name, value, ..] = all.as_slice() else {
        return Vec::new();
    };
    let alias = name.text.to_ascii_lowercase().starts_with("alias.");
    match value.text.strip_prefix('!') {
        Some(text) if alias => vec![line(text), Inner::Unknown],
        _ if is_command(&name.text) || (alias && value.is_unknown) => vec![Inner::Unknown],
        _ => Vec::new(),
    }
}

/// Reads `git submodule foreach LINE`.
fn each(inner: Call<'_>) -> Option<Inner<'_>> {
    let at = inner.args.iter().position(|it| it.known == "foreach")? + 1;
    let rest = inner.args.get(at..).unwrap_or_default();
    let count = skip_options(rest, "", &[]);
    join(rest.get(count..).unwrap_or_default())
}

/// Reads `git rebase --exec LINE`.
fn executed(args: &[Word]) -> Vec<Inner<'_>> {
    let is_option = |it: &Word| it.known == "-x" || it.known == "--exec";
    let next = args.windows(2).filter(|it| is_option(&it[0])).map(|it| it[1].text.as_str());
    let same = args.iter().filter_map(|it| it.text.strip_prefix("--exec="));
    next.chain(same).map(line).collect()
}
