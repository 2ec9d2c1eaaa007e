//! The rules of the lock: whether it matches the Boxfile, and how a build updates it.

use std::collections::BTreeSet;
use std::path::Path;

use crate::project::lock::Lock;
use crate::project::lock::{LockEntry, PinKind};
use box_contract::Platform;
use boxfile_spec::Boxfile;

use super::pins::{self, Variant};

/// All declarations that one lock covers: the Boxfile without a profile and with each profile.
#[derive(Debug, Clone, Copy)]
pub struct Declarations<'a> {
    /// The Boxfile without a profile.
    pub without: &'a Boxfile,
    /// The name of each profile, and the Boxfile with this profile.
    pub profiles: &'a [(String, Boxfile)],
    /// The base directory of the Boxfile's relative paths.
    pub base: &'a Path,
}

/// The part of the declarations that one build uses.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The name of the chosen profile, one of [`Declarations::profiles`]. `None` without a profile.
    pub profile: Option<&'a str>,
    /// The platform.
    pub platform: Platform,
}

/// A declaration that a lock pins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The name of the declaration's entry in the lock.
    pub name: String,
    /// The platform of the entry. `None` if the entry applies to all platforms.
    pub platform: Option<Platform>,
    /// The kind of the declaration.
    pub kind: PinKind,
    /// The reference, URL or path as the Boxfile has it.
    pub source: String,
}

/// A difference between the declarations of a Boxfile and the pins of a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mismatch<'l> {
    /// The lock has no entry for the declaration.
    NotLocked(Named),
    /// The lock's entry has another kind or source.
    Different {
        /// The lock's entry.
        locked: &'l LockEntry,
        /// The declaration in the Boxfile.
        named: Named,
    },
    /// The Boxfile does not declare the entry for any profile or platform.
    NotDeclared(&'l LockEntry),
}

impl<'a> Declarations<'a> {
    /// Returns the differences between the declarations of a build and the lock, sorted by name and platform. Names,
    /// kinds, sources and platforms are compared. Nothing is resolved, and neither disk nor network are read. A lock
    /// without mismatches can therefore still be out of date: the content of a skill may have changed.
    ///
    /// Skills in a directory of skills, kernel and init are never reported as missing: the skills are unknown without
    /// the disk, and a platform that cannot be built needs no kernel and no init in the lock.
    pub fn mismatches<'l>(&self, lock: &'l Lock, target: Target<'_>) -> Vec<Mismatch<'l>> {
        let needed = self.needed(target);
        let mut found: Vec<_> = needed.iter().filter_map(|named| compare(named, lock)).collect();
        let needed: BTreeSet<_> =
            needed.iter().map(|named| (named.name.as_str(), named.platform)).collect();
        let undeclared = lock.entries().filter(|entry| {
            let declares =
                |(boxfile, profile)| pins::declared_as(boxfile, profile, entry).is_some();
            !needed.contains(&entry.key()) && !self.variants().any(declares)
        });
        found.extend(undeclared.map(Mismatch::NotDeclared));
        found.sort_by(|one, other| one.key().cmp(&other.key()));
        found
    }

    /// Returns the lock after a build or a preview of `target` resolved its inputs. The lock has the resolved entries,
    /// and the old entries that other profiles and platforms declare. Entries that are no longer declared are dropped.
    pub fn updated(&self, old: Option<&Lock>, resolved: &Lock, target: Target<'_>) -> Lock {
        let mut lock = resolved.clone();
        for entry in old.into_iter().flat_map(Lock::entries) {
            let missing = lock.get(&entry.name, entry.platform).is_none();
            if missing && self.declared_elsewhere(entry, target) {
                lock.set(entry.clone());
            }
        }
        lock
    }

    /// Returns whether another profile or platform than the target's declares an entry. The declarations of the target
    /// itself are ignored, because they were just resolved.
    fn declared_elsewhere(&self, entry: &LockEntry, target: Target<'_>) -> bool {
        let other_platform = entry.platform.is_some_and(|it| it != target.platform);
        self.variants().any(|(boxfile, profile)| {
            let other_profile = profile.map(|it| it.name) != target.profile;
            (other_profile || other_platform)
                && pins::still_declares(boxfile, profile, entry, self.base)
        })
    }

    /// Returns the declarations that a lock must pin for a build of the target.
    fn needed(&self, target: Target<'_>) -> Vec<Named> {
        let chosen = |(_, profile): &(&Boxfile, Option<Variant<'_>>)| {
            profile.map(|it| it.name) == target.profile
        };
        let Some((boxfile, profile)) = self.variants().find(chosen) else { return Vec::new() };
        let named = |(name, (kind, source)): (String, (PinKind, String))| Named {
            name: pins::lock_name(profile, &name, &source),
            platform: kind.has_platform().then_some(target.platform),
            kind,
            source,
        };
        pins::declared(boxfile).into_iter().map(named).collect()
    }

    /// Iterates over the Boxfile without a profile, and then with each profile.
    fn variants(&self) -> impl Iterator<Item = (&'a Boxfile, Option<Variant<'a>>)> {
        let without = self.without;
        let with = move |(name, boxfile): &'a (String, Boxfile)| {
            (boxfile, Some(Variant { name, without }))
        };
        std::iter::once((without, None)).chain(self.profiles.iter().map(with))
    }
}

/// Compares a declaration with its entry in the lock.
fn compare<'l>(named: &Named, lock: &'l Lock) -> Option<Mismatch<'l>> {
    match lock.get(&named.name, named.platform) {
        Some(locked) => (locked.kind != named.kind || locked.source != named.source)
            .then(|| Mismatch::Different { locked, named: named.clone() }),
        None if matches!(named.kind, PinKind::Kernel | PinKind::Init) => None,
        None => Some(Mismatch::NotLocked(named.clone())),
    }
}

impl Mismatch<'_> {
    /// Returns the name and the platform of the mismatch's entry.
    pub fn key(&self) -> (&str, Option<Platform>) {
        match self {
            Self::NotLocked(named) | Self::Different { named, .. } => (&named.name, named.platform),
            Self::NotDeclared(entry) => entry.key(),
        }
    }
}

#[cfg(test)]
mod tests {
    use box_digest::Digest;
    use boxfile_spec::read;
    use diagnostics::Source;

    use super::*;

    const BOXFILE: &str = r#"box "x"
platform "linux/amd64" "linux/arm64"
agent { image "oci:a"; env-file "a.env"; }
skills dir="skills"
profile "ci" {
    agent { image "oci:ci"; }
}
"#;

    const AMD64: Platform = Platform::LinuxAmd64;
    const ARM64: Platform = Platform::LinuxArm64;

    /// Runs a test with the declarations of the Boxfile.
    fn with_declarations(test: impl FnOnce(Declarations<'_>)) {
        let no_base = |_: &str| Err(String::new());
        let document = read(Source::new("Boxfile", BOXFILE), None, no_base);
        let (without, profiles) = (document.boxfile.unwrap(), document.variants);
        let base = tempfile::tempdir().unwrap();
        test(Declarations { without: &without, profiles: &profiles, base: base.path() });
    }

    fn target(profile: Option<&str>) -> Target<'_> {
        Target { profile, platform: AMD64 }
    }

    fn entry(
        name: &str,
        kind: PinKind,
        source: &str,
        platform: Option<Platform>,
        byte: u8,
    ) -> LockEntry {
        let (name, source) = (name.to_owned(), source.to_owned());
        let digest = Digest::from_bytes([byte; 32]).into();
        LockEntry { name, kind, source, platform, digest, size: 7, layers: Vec::new() }
    }

    fn image(name: &str, source: &str, platform: Platform, byte: u8) -> LockEntry {
        entry(name, PinKind::Image, source, Some(platform), byte)
    }

    fn env(path: &str) -> LockEntry {
        entry(&format!("env:{path}"), PinKind::EnvFile, path, None, 9)
    }

    fn lock(entries: &[LockEntry]) -> Lock {
        let mut lock = Lock::new(1);
        entries.iter().for_each(|entry| drop(lock.set(entry.clone())));
        lock
    }

    #[test]
    fn entries_of_other_profiles_and_platforms_are_kept() {
        let kept = [
            image("agent", "oci:a", ARM64, 1),
            image("ci@agent", "oci:ci", AMD64, 2),
            image("ci@agent", "oci:ci", ARM64, 3),
        ];
        let dropped = [
            image("ci@agent", "oci:a", AMD64, 4),
            image("dev@agent", "oci:ci", AMD64, 5),
            image("business", "oci:b", AMD64, 6),
            image("agent", "oci:former", ARM64, 7),
        ];
        let resolved = image("agent", "oci:a", AMD64, 8);
        with_declarations(|declarations| {
            let update = |old: &Lock| {
                declarations.updated(
                    Some(old),
                    &lock(std::slice::from_ref(&resolved)),
                    target(None),
                )
            };
            for entry in kept {
                let old = lock(&[image("agent", "oci:a", AMD64, 9), entry.clone()]);
                assert_eq!(update(&old), lock(&[resolved.clone(), entry]));
            }
            for entry in dropped {
                let new = update(&lock(std::slice::from_ref(&entry)));
                assert_eq!(new, lock(std::slice::from_ref(&resolved)), "{entry:?}");
            }
        });
    }

    #[test]
    fn entries_of_the_target_are_replaced_by_what_was_resolved() {
        let plain = image("agent", "oci:a", AMD64, 1);
        let old = lock(&[plain.clone(), image("ci@agent", "oci:ci", AMD64, 2)]);
        with_declarations(|declarations| {
            let new = declarations.updated(Some(&old), &Lock::new(1), target(Some("ci")));
            assert_eq!(new, lock(&[plain]));
        });
    }

    /// The entries of a lock that matches the Boxfile with and without its profile.
    fn fitting() -> Vec<LockEntry> {
        vec![
            image("agent", "oci:a", AMD64, 1),
            image("ci@agent", "oci:ci", AMD64, 2),
            env("a.env"),
            entry("skill:greet", PinKind::Skill, "skills/greet", None, 3),
            entry("kernel", PinKind::Kernel, "", Some(AMD64), 4),
            entry("init", PinKind::Init, "", Some(AMD64), 5),
        ]
    }

    #[test]
    fn a_lock_fits_whatever_its_digests_are() {
        with_declarations(|declarations| {
            for profile in [None, Some("ci")] {
                assert_eq!(declarations.mismatches(&lock(&fitting()), target(profile)), []);
            }
            // Kernel, init and the skills of a directory are not required.
            assert_eq!(declarations.mismatches(&lock(&fitting()[..3]), target(None)), []);
        });
    }

    #[test]
    fn what_is_not_locked_for_the_target_is_named() {
        with_declarations(|declarations| {
            let names = |profile, platform, lock: &Lock| -> Vec<String> {
                let target = Target { profile, platform };
                let found = declarations.mismatches(lock, target);
                assert!(found.iter().all(|it| matches!(it, Mismatch::NotLocked(_))));
                found.iter().map(|it| it.key().0.to_owned()).collect()
            };
            let (empty, fitting) = (Lock::new(1), lock(&fitting()));
            assert_eq!(names(None, AMD64, &empty), ["agent", "env:a.env"]);
            assert_eq!(names(Some("ci"), AMD64, &empty), ["ci@agent", "env:a.env"]);
            assert_eq!(names(None, ARM64, &fitting), ["agent"]);
        });
    }

    #[test]
    fn an_entry_of_another_source_or_kind_does_not_fit() {
        let former = image("agent", "oci:former", AMD64, 1);
        let binary = entry("agent", PinKind::Binary, "oci:a", Some(AMD64), 1);
        let kernel = entry("kernel", PinKind::Kernel, "boot/vmlinux", Some(AMD64), 1);
        with_declarations(|declarations| {
            for other in [former, binary, kernel] {
                let mut lock = lock(&fitting());
                lock.set(other.clone());
                let found = declarations.mismatches(&lock, target(None));
                let [Mismatch::Different { locked, named }] = &found[..] else {
                    panic!("{found:?}")
                };
                assert_eq!(**locked, other);
                assert_eq!((named.name.as_str(), named.platform), other.key());
            }
        });
    }

    #[test]
    fn an_entry_that_nothing_declares_does_not_fit() {
        let undeclared = [
            env("b.env"),
            image("business", "oci:b", AMD64, 6),
            image("agent", "oci:former", ARM64, 7),
            image("dev@agent", "oci:ci", AMD64, 5),
        ];
        with_declarations(|declarations| {
            for entry in undeclared {
                let mut lock = lock(&fitting());
                lock.set(entry.clone());
                for profile in [None, Some("ci")] {
                    let found = declarations.mismatches(&lock, target(profile));
                    assert_eq!(found, [Mismatch::NotDeclared(&entry)]);
                }
            }
        });
    }
}
