//! Formats the report of a collection.

use std::collections::BTreeMap;
use std::path::Path;

use box_cache::Label;
use box_cache::collect::{Report, Reported, Why};
use box_digest::Digest;
use safe_text::{counted, readable, shown};
use serde_json::{Value, json};

/// Formats a report for a terminal, line by line.
pub fn lines(report: &Report, dry_run: bool) -> Vec<String> {
    let removed = if dry_run { "would remove" } else { "removed" };
    let mut lines: Vec<_> = report.removed.iter().map(|it| removed_line(removed, it)).collect();
    let of_boxes: usize = report.removed.iter().map(|it| it.names.len()).sum();
    if report.removed.is_empty() && of_boxes < report.removed_names.len() {
        lines.push(format!("{removed} {}", names(&report.removed_names)));
    }
    if report.removed_records > 0 {
        let records = counted(report.removed_records, "cached build step", "cached build steps");
        lines.push(format!("{removed} {records}"));
    }
    let stays = if dry_run { "would keep" } else { "kept" };
    for kept in &report.kept {
        let line = |why| format!("{stays} {}: {}", called(kept), reason(why, kept));
        lines.extend(kept.reason.map(line));
    }
    if report.foreign > 0 {
        let files = counted(report.foreign, "file or directory", "files and directories");
        lines.push(format!("left {files} that no build made"));
    }
    lines.push(size_line(report, dry_run));
    lines
}

/// Formats the report of `boxlaunch rmi`: which of the names in `asked` were removed, and which boxes are kept.
pub fn asked_lines(report: &Report, asked: &BTreeMap<Label, Digest>) -> Vec<String> {
    let mut lines: Vec<_> = report.removed.iter().map(|it| removed_line("removed", it)).collect();
    for (label, digest) in asked {
        let name = label.text();
        let is_gone = report.removed_names.iter().any(|it| it == name);
        let mut with_box = report.kept.iter().chain(&report.removed);
        if is_gone && !with_box.any(|it| it.digest == *digest) {
            lines.push(format!("removed the name {name}, which had no box"));
        }
        let stays = report.kept.iter().find(|it| it.digest == *digest && is_gone);
        lines.extend(
            stays.map(|it| format!("removed the name {name}; the box stays as {}", called(it))),
        );
    }
    if !report.removed.is_empty() || lines.is_empty() {
        let mut line = size_line(report, false);
        let freed = report.before.saturating_sub(report.after);
        let all: u64 = report.removed.iter().map(|it| it.bytes).sum();
        if freed > 0 && freed < all / 10 * 9 {
            line += &format!("; other boxes or builds use the rest of {}", readable(all));
        }
        lines.push(line);
    }
    lines
}

/// Formats how much space was freed, and the size of the store.
pub fn size_line(report: &Report, dry_run: bool) -> String {
    let freed = report.before.saturating_sub(report.after);
    let freed = match (freed, dry_run) {
        (0, _) if report.removed.is_empty() => "nothing to remove".to_owned(),
        (0, _) => "freed nothing: other boxes or builds use the same files".to_owned(),
        (bytes, true) => format!("would free {}", readable(bytes)),
        (bytes, false) => format!("freed {}", readable(bytes)),
    };
    let most = report.cap.map_or_else(String::new, |cap| format!(" of {}", readable(cap)));
    format!("{freed}; the store has {}{most}", readable(report.after))
}

/// Formats the warning that the store is still too large after a collection, because everything in it is kept. Returns `None` if
/// it is small enough. `with_advice` is for callers that do not print the reasons.
pub fn over(report: &Report, store: &Path, with_advice: bool) -> Option<String> {
    let cap = report.cap.filter(|_| report.is_over())?;
    let store = shown(&store.display().to_string());
    let used = match report.used_bytes {
        0 => String::new(),
        bytes => format!(", {} of it only while commands use the store", readable(bytes)),
    };
    let advice = if with_advice { "; `boxlaunch prune --dry-run` says why" } else { "" };
    Some(format!(
        "the store {store} has {}, but its maximum is {}: {} must be kept{used}{advice}",
        readable(report.after),
        readable(cap),
        readable(report.kept_bytes),
    ))
}

fn removed_line(removed: &str, gone: &Reported) -> String {
    let mut line = format!("{removed} {}", called(gone));
    if !gone.directories.is_empty() {
        line += &format!(", which {} needs", directories(gone));
    }
    line
}

/// Returns the names of a box, or its digest if it has none.
pub fn called(of: &Reported) -> String {
    if of.names.is_empty() { of.digest.to_string() } else { names(&of.names) }
}

fn names(names: &[String]) -> String {
    names.join(", ")
}

fn directories(of: &Reported) -> String {
    let paths = of.directories.iter().map(|it| shown(&it.display().to_string()));
    paths.collect::<Vec<_>>().join(", ")
}

fn reason(why: Why, kept: &Reported) -> String {
    match why {
        Why::Running => "it runs".to_owned(),
        Why::Tagged => {
            "`boxlaunch rmi` removes a box that was pulled, loaded or named by `build --name`"
                .to_owned()
        }
        Why::Thin => format!("{} needs it", directories(kept)),
        Why::Used => "a command uses it".to_owned(),
        Why::Young => "it was used within the last hour".to_owned(),
        Why::Foreign => "its directory contains something that no build put there".to_owned(),
    }
}

const fn word(why: Why) -> &'static str {
    match why {
        Why::Running => "running",
        Why::Tagged => "tagged",
        Why::Thin => "directory",
        Why::Used => "used",
        Why::Young => "young",
        Why::Foreign => "foreign",
    }
}

/// Returns the report as JSON.
pub fn json(report: &Report, dry_run: bool) -> Value {
    json!({
        "dry_run": dry_run,
        "before_bytes": report.before,
        "after_bytes": report.after,
        "max_bytes": report.cap,
        "removed": report.removed.iter().map(|it| reported(it, false)).collect::<Vec<_>>(),
        "removed_names": report.removed_names,
        "removed_records": report.removed_records,
        "removed_blobs": report.removed_blobs,
        "kept": report.kept.iter().map(|it| reported(it, true)).collect::<Vec<_>>(),
        "kept_bytes": report.kept_bytes,
        "used_bytes": report.used_bytes,
        "foreign": report.foreign,
    })
}

fn reported(of: &Reported, is_kept: bool) -> Value {
    let directories: Vec<_> = of.directories.iter().map(|it| it.display().to_string()).collect();
    let mut value = json!({
        "box": of.digest,
        "names": of.names,
        "directories": directories,
        "bytes": of.bytes,
    });
    if is_kept {
        value["why"] = json!(of.reason.map(word));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn box_of(number: u8, names: &[&str], why: Option<Why>) -> Reported {
        Reported {
            digest: Digest::from_bytes([number; 32]),
            names: names.iter().map(|it| (*it).to_owned()).collect(),
            directories: Vec::new(),
            reason: why,
            bytes: u64::from(number) << 20,
        }
    }

    fn report() -> Report {
        let thin = |it: Reported| Reported { directories: vec!["/work/a.box".into()], ..it };
        Report {
            before: 90 << 20,
            after: 20 << 20,
            cap: Some(10 << 20),
            removed: vec![box_of(1, &["old"], None), thin(box_of(2, &[], None))],
            removed_names: vec!["old".to_owned()],
            removed_records: 3,
            removed_blobs: 7,
            kept: vec![
                box_of(3, &["a", "b"], Some(Why::Running)),
                thin(box_of(4, &["c"], Some(Why::Thin))),
                box_of(5, &["d"], None),
            ],
            kept_bytes: 20 << 20,
            used_bytes: 1 << 20,
            foreign: 1,
        }
    }

    #[test]
    fn a_report_says_what_went_and_why_the_rest_is_kept() {
        insta::assert_snapshot!(lines(&report(), false).join("\n"), @"
        removed old
        removed sha256:0202020202020202020202020202020202020202020202020202020202020202, which /work/a.box needs
        removed 3 cached build steps
        kept a, b: it runs
        kept c: /work/a.box needs it
        left 1 file or directory that no build made
        freed 70.0 MiB; the store has 20.0 MiB of 10.0 MiB
        ");
        insta::assert_snapshot!(over(&report(), Path::new("/store"), true).unwrap(), @"the store /store has 20.0 MiB, but its maximum is 10.0 MiB: 20.0 MiB must be kept, 1.0 MiB of it only while commands use the store; `boxlaunch prune --dry-run` says why");
        let fits = Report { cap: None, ..report() };
        assert_eq!(over(&fits, Path::new("/store"), true), None);
        let nothing = Report { before: fits.after, removed: vec![], removed_records: 0, ..fits };
        assert!(lines(&nothing, true).last().unwrap().starts_with("nothing to remove; "));
    }

    #[test]
    fn programs_get_the_same() {
        let value = json(&report(), true);
        assert_eq!((&value["dry_run"], &value["max_bytes"]), (&json!(true), &json!(10 << 20)));
        assert_eq!(value["kept"][0]["why"], "running");
        assert_eq!(value["kept"][2]["why"], Value::Null);
        assert_eq!(value["removed"][0].get("why"), None);
    }
}
