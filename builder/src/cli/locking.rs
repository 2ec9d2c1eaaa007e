//! Messages about a lock: its changes, and why `--locked` refuses it.

use box_contract::ErrorCode;
use box_contract::Platform;
use box_digest::{AnyDigest, Digest};
use boxbuild::project::lock::Lock;
use boxbuild::project::lock::{Change, LockEntry};
use boxbuild::project::{LockFile, Mismatch};
use safe_text::bytes;
use serde_json::{Value, json};

use super::failure::Failure;
use super::loaded::Loaded;

/// The lock of a command that must not change it.
pub(crate) struct Fixed<'a> {
    pub(crate) file: &'a LockFile,
    /// The option that forbids changes: `--locked` or `--check`. Empty for a command that never changes the lock.
    pub(crate) option: &'static str,
    /// The command that writes the correct lock.
    pub(crate) command: &'a str,
}

impl Fixed<'_> {
    /// Refuses a lock that is missing, or that does not match the declarations of the Boxfile.
    /// Resolves nothing.
    pub(crate) fn check_declared(
        &self,
        loaded: &Loaded,
        platform: Platform,
    ) -> Result<(), Failure> {
        let Some(lock) = &self.file.lock else {
            let help = format!("run `{}`, and check the lock in", self.command);
            let message = format!("there is no {}{}", self.file.path().display(), self.forbids());
            return Err(Failure::new((ErrorCode::LockMissing, help), message));
        };
        let found = loaded.declarations().mismatches(lock, loaded.target(platform));
        self.refuse(found.iter().map(of_mismatch).collect())
    }

    /// Refuses a lock that differs from `new`, the lock of the resolved inputs.
    pub(crate) fn check_resolved(&self, new: &Lock) -> Result<(), Failure> {
        self.refuse(changes(self.file.lock.as_ref(), new).iter().map(of_change).collect())
    }

    /// Returns the end of a message: the option that forbids the command to write the lock. Empty for a command that would not
    /// write it without the option, either.
    fn forbids(&self) -> String {
        match self.option {
            "" | "--check" => String::new(),
            option => format!(", but {option} was given"),
        }
    }

    /// Fails if there are outdated entries.
    fn refuse(&self, entries: Vec<Outdated>) -> Result<(), Failure> {
        if entries.is_empty() {
            return Ok(());
        }
        let help = format!(
            "review what changed; if it is intended, run `{}` and check the lock in",
            self.command
        );
        let path = self.file.path().display();
        let message = format!("{path} is out of date{}", self.forbids());
        let lines: String = entries.iter().map(|it| format!("\n  {}", it.line)).collect();
        let data = entries.into_iter().map(|it| it.data).collect();
        Err(Failure::new((ErrorCode::LockOutOfDate, help), message)
            .with_details(&lines, &[("entries", data)]))
    }
}

/// An outdated entry, as text and as JSON.
struct Outdated {
    line: String,
    data: Value,
}

const NOT_LOCKED: &str = "not locked yet";
const NOT_DECLARED: &str = "no longer declared";

/// Describes an entry that does not match the declarations of the Boxfile. The JSON is that of a change without a new
/// digest.
fn of_mismatch(mismatch: &Mismatch<'_>) -> Outdated {
    let (change, old, found) = match mismatch {
        Mismatch::NotLocked(_) => ("added", None, NOT_LOCKED.to_owned()),
        Mismatch::NotDeclared(entry) => ("removed", Some(*entry), NOT_DECLARED.to_owned()),
        Mismatch::Different { locked, named } if locked.kind == named.kind => {
            let [locked_source, source] =
                [&locked.source, &named.source].map(|it| shown_source(it));
            ("changed", Some(*locked), format!("locked {locked_source}, found {source}"))
        }
        Mismatch::Different { locked, named } => {
            let found = format!("locked as {}, found {}", locked.kind, named.kind);
            ("changed", Some(*locked), found)
        }
    };
    let line = format!("{}: {found}", titled(mismatch.key()));
    Outdated { line, data: entry_json(mismatch.key(), change, old, None) }
}

/// Describes an entry that differs between the lock and the resolved inputs.
fn of_change(change: &Change<'_>) -> Outdated {
    let (key, found) = match change {
        Change::Added(entry) => (entry.key(), NOT_LOCKED.to_owned()),
        Change::Removed(entry) => (entry.key(), NOT_DECLARED.to_owned()),
        Change::Changed { old, new } => {
            let found =
                differences(old, new, |before, after| format!("locked {before}, found {after}"));
            (new.key(), found.join("; "))
        }
    };
    Outdated { line: format!("{}: {found}", titled(key)), data: change_json(change) }
}

/// Describes the differences between two locks, in one line for each entry and each layer.
pub(crate) fn describe(old: Option<&Lock>, new: &Lock) -> Vec<String> {
    changes(old, new).iter().flat_map(lines).collect()
}

/// Returns the changes from `old` to `new`. Without `old`, all entries are added.
fn changes<'l>(old: Option<&'l Lock>, new: &'l Lock) -> Vec<Change<'l>> {
    match old {
        Some(old) => old.changes(new),
        None => new.entries().map(Change::Added).collect(),
    }
}

fn lines(change: &Change<'_>) -> Vec<String> {
    match change {
        Change::Added(entry) => {
            vec![format!("{}: added, {}", titled(entry.key()), entry.digest.short())]
        }
        Change::Removed(entry) => vec![format!("{}: removed", titled(entry.key()))],
        Change::Changed { old, new } => {
            let changed = differences(old, new, |before, after| format!("{before} → {after}"));
            let layers = |sign, layers: Vec<Digest>| -> Vec<String> {
                let line = |layer| format!("  {sign} layer {}", AnyDigest::from(layer).short());
                layers.into_iter().map(line).collect()
            };
            let mut lines = vec![format!("{}: {}", titled(new.key()), changed.join(", "))];
            lines.extend(layers('-', old.layers_not_in(new)));
            lines.extend(layers('+', new.layers_not_in(old)));
            lines
        }
    }
}

/// Describes the differences between two versions of an entry. Size and layers depend on the digest,
/// and are described only if nothing else differs.
fn differences(
    old: &LockEntry,
    new: &LockEntry,
    shown: impl Fn(&str, &str) -> String,
) -> Vec<String> {
    let pairs = [
        (shown_source(&old.source), shown_source(&new.source)),
        (old.kind.to_string(), new.kind.to_string()),
        (old.digest.short(), new.digest.short()),
    ];
    let mut differences: Vec<String> = pairs
        .iter()
        .filter(|(before, after)| before != after)
        .map(|(before, after)| shown(before, after))
        .collect();
    if differences.is_empty() {
        let [before, after] =
            [old, new].map(|it| format!("{}, layers: {}", bytes(it.size), it.layers.len()));
        differences.push(shown(&before, &after));
    }
    differences
}

/// Returns the changes of a lock as JSON.
pub(crate) fn report(file: &LockFile, new: &Lock, written: bool) -> Value {
    let changes: Vec<Value> = changes(file.lock.as_ref(), new).iter().map(change_json).collect();
    json!({ "lock": file.path().display().to_string(), "written": written, "changes": changes })
}

/// Returns the changes from `old` to `new` as JSON.
pub(crate) fn changes_json(old: &Lock, new: &Lock) -> Vec<Value> {
    old.changes(new).iter().map(change_json).collect()
}

/// Returns a change as JSON.
fn change_json(change: &Change<'_>) -> Value {
    match change {
        Change::Added(new) => entry_json(new.key(), "added", None, Some(new)),
        Change::Removed(old) => entry_json(old.key(), "removed", Some(old), None),
        Change::Changed { old, new } => entry_json(new.key(), "changed", Some(old), Some(new)),
    }
}

/// Returns the change of an entry as JSON. A missing or unknown digest is `null`. Layers are
/// compared if both versions are known.
fn entry_json(
    (name, platform): (&str, Option<Platform>),
    change: &str,
    old: Option<&LockEntry>,
    new: Option<&LockEntry>,
) -> Value {
    let digest = |entry: Option<&LockEntry>| entry.map(|it| it.digest.to_string());
    let layers = |of: Option<&LockEntry>, other: Option<&LockEntry>| -> Vec<String> {
        let pair = of.zip(other).into_iter();
        pair.flat_map(|(of, other)| of.layers_not_in(other)).map(|it| it.to_string()).collect()
    };
    json!({
        "name": name, "platform": platform, "change": change,
        "old": digest(old), "new": digest(new),
        "layers_added": layers(new, old), "layers_removed": layers(old, new),
    })
}

/// Returns the name of an entry, with its platform if it has one.
fn titled((name, platform): (&str, Option<Platform>)) -> String {
    platform.map_or_else(|| name.to_owned(), |platform| format!("{name} ({platform})"))
}

/// Formats a source. The source of an installed kernel is empty.
fn shown_source(source: &str) -> String {
    if source.is_empty() { "as installed".to_owned() } else { format!("\"{source}\"") }
}

#[cfg(test)]
mod tests {
    use box_contract::manifest::FORMAT_EPOCH;
    use box_digest::Digest;
    use boxbuild::project::lock::PinKind;

    use super::*;

    fn image(name: &str, source: &str, platform: Platform, byte: u8) -> LockEntry {
        LockEntry {
            name: name.to_owned(),
            kind: PinKind::Image,
            source: source.to_owned(),
            platform: Some(platform),
            digest: Digest::from_bytes([byte; 32]).into(),
            size: 7,
            layers: vec![Digest::from_bytes([byte + 1; 32])],
        }
    }

    fn lock(entries: &[LockEntry]) -> Lock {
        let mut lock = Lock::new(FORMAT_EPOCH);
        entries.iter().for_each(|entry| drop(lock.set(entry.clone())));
        lock
    }

    #[test]
    fn a_change_names_what_changed() {
        let amd64 = Platform::LinuxAmd64;
        let old = image("agent", "oci:a", amd64, 0x11);
        let old = lock(&[old, image("business", "oci:b", amd64, 0x22)]);
        let moved = image("agent", "oci:a", amd64, 0x33);
        let renamed = image("business", "oci:c", amd64, 0x22);
        let new = lock(&[moved, renamed, image("new", "oci:d", amd64, 0x44)]);
        assert_eq!(
            describe(Some(&old), &new).join("\n"),
            "agent (linux/amd64): sha256:111111111111 → sha256:333333333333\n  \
               - layer sha256:121212121212\n  \
               + layer sha256:343434343434\n\
             business (linux/amd64): \"oci:b\" → \"oci:c\"\n\
             new (linux/amd64): added, sha256:444444444444"
        );
        assert_eq!(describe(Some(&new), &new), [""; 0]);
        assert_eq!(describe(None, &old).len(), 2);
    }

    #[test]
    fn a_size_that_alone_differs_is_named() {
        let old = image("agent", "oci:a", Platform::LinuxAmd64, 1);
        let new = lock(&[LockEntry { size: 8, ..old.clone() }]);
        let lines = describe(Some(&lock(&[old])), &new);
        assert_eq!(lines, ["agent (linux/amd64): 7 bytes, layers: 1 → 8 bytes, layers: 1"]);
    }

    #[test]
    fn only_the_same_lock_passes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("Boxfile.lock");
        let old = lock(&[image("agent", "oci:a", Platform::LinuxAmd64, 1)]);
        std::fs::write(&path, old.write()).unwrap();
        let file = LockFile::read(&path).unwrap();
        let fixed = Fixed { file: &file, option: "--check", command: "boxbuild lock" };
        fixed.check_resolved(&old).unwrap();
        fixed.check_resolved(&Lock::new(FORMAT_EPOCH + 1)).unwrap_err();
    }
}
