//! What the lock is to say, what it says, and how the difference is told.

use std::path::Path;

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
    let variants = loaded.variants()?;
    let suffix = loaded.profile_name().map(|name| format!("@{name}"));
    for entry in kept {
        let own = match &suffix {
            Some(suffix) => entry.name.ends_with(suffix.as_str()),
            None => !entry.name.contains('@'),
        };
        let resolved_now = own && entry.platform.is_none_or(|it| it == platform);
        let declared =
            |variant: &Loaded| still_declared(entry, variant.profile_name(), &variant.boxfile);
        if !resolved_now && variants.iter().any(declared) {
            lock.set(entry.clone());
        }
    }
    Ok(lock)
}

/// Refuses a lock that is not the one that it is to be.
pub(crate) fn check_locked(path: &Path, old: Option<&Lock>, new: &Lock) -> Result<(), Failure> {
    let path = path.display();
    let Some(old) = old else {
        let message = format!(
            "error: there is no {path}, and --locked forbids to write it\n  \
             = help: run `boxbuild lock`, and check it in"
        );
        return Err(Failure::locked(message, json!([])));
    };
    let changes = old.changes(new);
    if changes.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> =
        changes.iter().map(|change| format!("  {}\n", outdated(change))).collect();
    let entries: Vec<Value> = changes.iter().map(change_json).collect();
    let message = format!(
        "error: {path} is out of date, and --locked forbids to change it\n{}  \
         = help: look at what changed; if it is meant, run `boxbuild lock` and check the lock in",
        lines.concat()
    );
    Err(Failure::locked(message, Value::from(entries)))
}

/// Says why an entry is out of date.
fn outdated(change: &Change<'_>) -> String {
    match change {
        Change::Added(entry) => format!("{}: not locked yet", titled(entry)),
        Change::Removed(entry) => format!("{}: no longer declared", titled(entry)),
        Change::Changed { old, new, .. } => {
            format!("{}: locked {}, found {}", titled(new), short(&old.digest), short(&new.digest))
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
            let mut lines =
                vec![format!("{}: {} → {}", titled(new), short(&old.digest), short(&new.digest))];
            if fields.contains(&Field::Source) {
                lines.push(format!("  {} → {}", shown(&old.source), shown(&new.source)));
            }
            lines.extend(layers_removed.iter().map(|layer| format!("  - layer {}", short(layer))));
            lines.extend(layers_added.iter().map(|layer| format!("  + layer {}", short(layer))));
            lines
        }
    }
}

/// Writes a change down as data.
pub(crate) fn change_json(change: &Change<'_>) -> Value {
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

fn shown(source: &str) -> &str {
    if source.is_empty() { "(as installed)" } else { source }
}

/// Shortens a digest to what tells two apart.
fn short(digest: &Digest) -> String {
    let text = digest.to_string();
    let end = text.find(':').map_or(0, |colon| colon + 1) + 12;
    text.get(..end).unwrap_or(&text).to_owned()
}
