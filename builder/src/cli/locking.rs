//! What the lock is to say, what it says, and how the difference is told.

use std::path::Path;

use boxbuild::project::LockFile;
use boxbuild::still_declared;
use boxfile_spec::lock::{Change, Digest, Entry, Field};
use boxfile_spec::{Lock, Platform};
use serde_json::{Value, json};

use super::failure::Failure;
use super::loaded::Loaded;

/// Returns the lock after something was resolved: what was resolved is new, what other profiles and
/// platforms declare stays, and what nothing declares any more is gone.
pub(crate) fn updated(
    old: Option<&Lock>,
    resolved: &Lock,
    loaded: &Loaded,
    platform: Platform,
) -> Result<Lock, Failure> {
    let mut lock = resolved.clone();
    let missing = |entry: &&Entry| lock.get(&entry.name, entry.platform).is_none();
    let kept: Vec<&Entry> = old.into_iter().flat_map(Lock::entries).filter(missing).collect();
    if kept.is_empty() {
        return Ok(lock);
    }
    let variants = loaded.variants();
    for entry in kept {
        // What this profile declares for this platform was resolved just now.
        let elsewhere = |variant: &&Loaded| {
            variant.profile_name() != loaded.profile_name()
                || entry.platform.is_some_and(|it| it != platform)
        };
        let declared = |variant: &Loaded| {
            let (profile, base) = (variant.variant(), &variant.project.base);
            still_declared(entry, &variant.boxfile, profile.as_ref(), base)
        };
        if variants.iter().filter(elsewhere).any(declared) {
            lock.set(entry.clone());
        }
    }
    Ok(lock)
}

/// Refuses a lock that is not the one that it is to be; `command` would write that one.
pub(crate) fn check_locked(
    path: &Path,
    old: Option<&Lock>,
    new: &Lock,
    command: &str,
) -> Result<(), Failure> {
    let path = path.display();
    let Some(old) = old else {
        return Err(Failure::locked(
            &format!("there is no {path}, and --locked forbids to write it"),
            &[],
            &format!("run `{command}`, and check the lock in"),
            json!([]),
        ));
    };
    let changes = old.changes(new);
    if changes.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = changes.iter().map(outdated).collect();
    let entries: Vec<Value> = changes.iter().map(change_json).collect();
    Err(Failure::locked(
        &format!("{path} is out of date, and --locked forbids to change it"),
        &lines,
        &format!("look at what changed; if it is meant, run `{command}` and check the lock in"),
        Value::from(entries),
    ))
}

/// Says why an entry is out of date.
fn outdated(change: &Change<'_>) -> String {
    match change {
        Change::Added(entry) => format!("{}: not locked yet", titled(entry)),
        Change::Removed(entry) => format!("{}: no longer declared", titled(entry)),
        Change::Changed { old, new, fields, .. } => {
            let differences = differences(old, new, fields);
            let found: Vec<String> = differences
                .iter()
                .map(|[before, after]| format!("locked {before}, found {after}"))
                .collect();
            format!("{}: {}", titled(new), found.join("; "))
        }
    }
}

/// Tells the difference between two locks, a line for each entry and each layer.
pub(crate) fn describe(old: Option<&Lock>, new: &Lock) -> Vec<String> {
    let empty = Lock::new(new.epoch());
    old.unwrap_or(&empty).changes(new).iter().flat_map(lines).collect()
}

fn lines(change: &Change<'_>) -> Vec<String> {
    match change {
        Change::Added(entry) => vec![format!("{}: added, {}", titled(entry), short(&entry.digest))],
        Change::Removed(entry) => vec![format!("{}: removed", titled(entry))],
        Change::Changed { old, new, fields, layers_added, layers_removed } => {
            let differences = differences(old, new, fields);
            let changed: Vec<String> =
                differences.iter().map(|[before, after]| format!("{before} → {after}")).collect();
            let mut lines = vec![format!("{}: {}", titled(new), changed.join(", "))];
            lines.extend(layers_removed.iter().map(|layer| format!("  - layer {}", short(layer))));
            lines.extend(layers_added.iter().map(|layer| format!("  + layer {}", short(layer))));
            lines
        }
    }
}

/// Returns what an entry was and what it is, in the words of a message.
fn differences(old: &Entry, new: &Entry, fields: &[Field]) -> Vec<[String; 2]> {
    let told = |field: &Field| match field {
        Field::Source => Some([quoted(&old.source), quoted(&new.source)]),
        Field::Kind => Some([old.kind.to_string(), new.kind.to_string()]),
        Field::Digest => Some([short(&old.digest), short(&new.digest)]),
        // These follow from the digest.
        Field::Size | Field::Layers => None,
    };
    fields.iter().filter_map(told).collect()
}

/// Writes down what became of a lock.
pub(crate) fn report(file: &LockFile, new: &Lock, written: bool) -> Value {
    let empty = Lock::new(new.epoch());
    let changes = file.lock.as_ref().unwrap_or(&empty).changes(new);
    let changes: Vec<Value> = changes.iter().map(change_json).collect();
    json!({ "lock": file.path(), "written": written, "changes": changes })
}

/// Writes a change down as data.
fn change_json(change: &Change<'_>) -> Value {
    let texts = |digests: &[Digest]| digests.iter().map(Digest::to_string).collect::<Vec<_>>();
    match change {
        Change::Added(entry) => {
            json!({ "name": entry.name, "platform": entry.platform, "change": "added",
                    "new": entry.digest.to_string() })
        }
        Change::Removed(entry) => {
            json!({ "name": entry.name, "platform": entry.platform, "change": "removed",
                    "old": entry.digest.to_string() })
        }
        Change::Changed { old, new, layers_added, layers_removed, .. } => {
            json!({ "name": new.name, "platform": new.platform, "change": "changed",
                    "old": old.digest.to_string(), "new": new.digest.to_string(),
                    "layers_added": texts(layers_added), "layers_removed": texts(layers_removed) })
        }
    }
}

/// Names an entry, with its platform where it has one.
fn titled(entry: &Entry) -> String {
    match entry.platform {
        Some(platform) => format!("{} ({platform})", entry.name),
        None => entry.name.clone(),
    }
}

/// Names a source; an empty one is that of an installed kernel.
fn quoted(source: &str) -> String {
    if source.is_empty() { "as installed".to_owned() } else { format!("\"{source}\"") }
}

/// Shortens a digest to what tells two apart.
fn short(digest: &Digest) -> String {
    let text = digest.to_string();
    let end = text.find(':').map_or(0, |colon| colon + 1) + 12;
    text.get(..end).unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use boxfile_spec::lock::Kind;

    use super::super::options::ProjectOptions;
    use super::*;

    const BOXFILE: &str = r#"box "x"
platform "linux/amd64" "linux/arm64"
agent { image "oci:a"; }
profile "ci" {
    agent { image "oci:ci"; }
}
"#;

    /// Reads the Boxfile in a directory of its own.
    fn loaded(profile: Option<&str>) -> (tempfile::TempDir, Loaded) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("Boxfile");
        fs::write(&file, BOXFILE).unwrap();
        let options = ProjectOptions { file: Some(file), json: false };
        (directory, Loaded::read(&options, profile).unwrap())
    }

    fn image(name: &str, source: &str, platform: Platform, byte: u8) -> Entry {
        Entry {
            name: name.to_owned(),
            kind: Kind::Image,
            source: source.to_owned(),
            platform: Some(platform),
            digest: Digest::Sha256([byte; 32]),
            size: 7,
            layers: vec![Digest::Sha256([byte + 1; 32])],
        }
    }

    fn lock(entries: &[Entry]) -> Lock {
        let mut lock = Lock::new(1);
        entries.iter().for_each(|entry| drop(lock.set(entry.clone())));
        lock
    }

    #[test]
    fn what_other_profiles_and_platforms_declare_stays() {
        let (amd64, arm64) = (Platform::LinuxAmd64, Platform::LinuxArm64);
        let kept = [
            image("agent", "oci:a", arm64, 1),
            image("ci@agent", "oci:ci", amd64, 2),
            image("ci@agent", "oci:ci", arm64, 3),
        ];
        let gone = [
            image("ci@agent", "oci:a", amd64, 4),
            image("dev@agent", "oci:ci", amd64, 5),
            image("business", "oci:b", amd64, 6),
            image("agent", "oci:former", arm64, 7),
        ];
        let now = image("agent", "oci:a", amd64, 8);
        let (_directory, loaded) = loaded(None);
        let resolved = lock(std::slice::from_ref(&now));
        for entry in kept {
            let old = lock(&[image("agent", "oci:a", amd64, 9), entry.clone()]);
            let new = updated(Some(&old), &resolved, &loaded, amd64).unwrap();
            assert_eq!(new, lock(&[now.clone(), entry]));
        }
        for entry in gone {
            let new = updated(Some(&lock(std::slice::from_ref(&entry))), &resolved, &loaded, amd64)
                .unwrap();
            assert_eq!(new, resolved, "{entry:?}");
        }
    }

    #[test]
    fn what_was_resolved_just_now_is_all_that_there_is_of_it() {
        let amd64 = Platform::LinuxAmd64;
        let base = image("agent", "oci:a", amd64, 1);
        let old = lock(&[base.clone(), image("ci@agent", "oci:ci", amd64, 2)]);
        let (_directory, loaded) = loaded(Some("ci"));
        let new = updated(Some(&old), &Lock::new(1), &loaded, amd64).unwrap();
        assert_eq!(new, lock(&[base]));
    }

    #[test]
    fn a_change_is_told_by_what_changed() {
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
    fn only_the_same_lock_passes() {
        let path = Path::new("Boxfile.lock");
        let old = lock(&[image("agent", "oci:a", Platform::LinuxAmd64, 1)]);
        let check = |old, new| check_locked(path, old, new, "boxbuild lock");
        check(Some(&old), &old).unwrap();
        check(None, &old).unwrap_err();
        check(Some(&old), &Lock::new(1)).unwrap_err();
    }
}
