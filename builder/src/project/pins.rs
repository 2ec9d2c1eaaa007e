//! The declarations of a Boxfile that a lock pins, and their names.

use std::collections::BTreeMap;
use std::path::Path;

use crate::project::lock::Lock;
use crate::project::lock::{LockEntry, PinKind};
use box_contract::ComponentName;
use box_contract::Platform;
use boxfile_spec::{BakedFile, Binary, Boxfile};
use checkout::skill::is_skill;

/// The prefix of the names of environment files.
pub(crate) const ENV_FILE: &str = "env:";
/// The prefix of the names of files that are baked into components.
pub(crate) const FILE: &str = "file:";
/// The prefix of the names of skills.
pub(crate) const SKILL: &str = "skill:";

/// The lock as a build uses it.
///
/// The name of an entry is the name of its declaration: `agent`, `skill:greet`. If a profile declares the same name
/// differently, the entry of the profile's declaration has the profile's name in front, such as `ci@agent`, so that a
/// lock can have both entries. The prefix is unambiguous: a profile's name has no `:`, and all other names have an `@`
/// only after a `:`.
#[derive(Debug, Clone, Default)]
pub struct Pins<'a> {
    /// The lock, if there is one.
    pub lock: Option<&'a Lock>,
    /// The chosen profile, if any.
    pub profile: Option<Variant<'a>>,
    /// The names of the entries that are resolved again, regardless of their pins.
    pub refresh: &'a [String],
}

/// A chosen profile.
#[derive(Debug, Clone, Copy)]
pub struct Variant<'a> {
    /// The profile's name.
    pub name: &'a str,
    /// The file's declarations without the profile.
    pub without: &'a Boxfile,
}

impl Pins<'_> {
    /// Returns the lock's name for a declaration of the Boxfile.
    pub(crate) fn name(&self, name: &str, source: &str) -> String {
        lock_name(self.profile, name, source)
    }

    /// Returns the entry that pins a component's image, if the entry has the reference `source`.
    pub(crate) fn image(
        &self,
        component: ComponentName,
        source: &str,
        platform: Platform,
    ) -> Option<&LockEntry> {
        let name = self.name(component.name(), source);
        if self.refresh.contains(&name) {
            return None;
        }
        let entry = self.lock?.get(&name, Some(platform))?;
        (entry.kind == PinKind::Image && entry.source == source).then_some(entry)
    }
}

/// Returns the lock's name for a declaration of a Boxfile with this profile.
pub(super) fn lock_name(profile: Option<Variant<'_>>, name: &str, source: &str) -> String {
    match profile {
        Some(variant) if kind_of(variant.without, name, source).is_none() => {
            format!("{}@{name}", variant.name)
        }
        _ => name.to_owned(),
    }
}

/// Returns the name, the kind and the source of each declaration that a lock pins. The source is as the Boxfile has it.
/// The skills in a directory of skills are not included, because listing them would read the disk.
pub(crate) fn declared(boxfile: &Boxfile) -> BTreeMap<String, (PinKind, String)> {
    let mut named = BTreeMap::new();
    for name in ComponentName::ALL {
        let Some(component) = boxfile.component(name) else { continue };
        if let Some(image) = &component.image {
            named.insert(name.name().to_owned(), (PinKind::Image, image.value.to_string()));
        }
        for file in &component.env_files {
            named.insert(
                format!("{ENV_FILE}{}", file.value),
                (PinKind::EnvFile, file.value.clone()),
            );
        }
        for BakedFile { path, .. } in &component.files {
            named.insert(format!("{FILE}{}", path.value), (PinKind::File, path.value.clone()));
        }
    }
    let binary = boxfile.agent.binary.as_ref().map(|binary| match binary {
        Binary::Local { path, .. } => (PinKind::Binary, path.value.clone()),
        Binary::Remote { url, .. } => (PinKind::Url, url.value.clone()),
    });
    named.extend(binary.map(|binary| ("binary".to_owned(), binary)));
    for skill in &boxfile.skills {
        named.insert(format!("{SKILL}{}", skill.name), (PinKind::Skill, skill.path.value.clone()));
    }
    let kernel = boxfile.kernel.as_ref().and_then(|kernel| kernel.path.as_ref());
    let kernel = kernel.map(|path| path.value.clone()).unwrap_or_default();
    named.insert("kernel".to_owned(), (PinKind::Kernel, kernel));
    named.insert("init".to_owned(), (PinKind::Init, String::new()));
    named
}

/// Returns the kind of the declaration with this name and source. `None` if the Boxfile has no such declaration.
fn kind_of(boxfile: &Boxfile, name: &str, source: &str) -> Option<PinKind> {
    if in_directory(boxfile, name, source) {
        return Some(PinKind::Skill);
    }
    let (kind, written) = declared(boxfile).remove(name)?;
    (written == source).then_some(kind)
}

/// Returns whether a name and a source belong to a skill in the Boxfile's directory of skills.
fn in_directory(boxfile: &Boxfile, name: &str, source: &str) -> bool {
    let Some(skills) = &boxfile.skills_dir else { return false };
    let rest = source.strip_prefix(skills.dir.value.trim_end_matches('/'));
    let skill = rest.and_then(|rest| rest.strip_prefix('/'));
    skill.is_some() && skill == name.strip_prefix(SKILL)
}

/// Returns the name under which a Boxfile declares an entry. `None` if it does not. `profile` is the profile with which
/// the Boxfile was read. The disk is not read: every name in the directory of skills is treated as a skill.
pub(super) fn declared_as<'e>(
    boxfile: &Boxfile,
    profile: Option<Variant<'_>>,
    entry: &'e LockEntry,
) -> Option<&'e str> {
    let LockEntry { name, source, platform, .. } = entry;
    let has = |platform: Platform| boxfile.platforms.iter().any(|it| it.value == platform);
    // The name of a profile's entry begins with the profile's name.
    let own = profile.and_then(|it| name.strip_prefix(it.name)?.strip_prefix('@'));
    [Some(name.as_str()), own].into_iter().flatten().find(|component| {
        platform.is_none_or(has)
            && kind_of(boxfile, component, source) == Some(entry.kind)
            && lock_name(profile, component, source) == *name
    })
}

/// Returns whether a Boxfile declares an entry. A skill in the Boxfile's directory of skills must still exist. `base`
/// is the base directory of the Boxfile's relative paths.
pub(super) fn still_declares(
    boxfile: &Boxfile,
    profile: Option<Variant<'_>>,
    entry: &LockEntry,
    base: &Path,
) -> bool {
    declared_as(boxfile, profile, entry).is_some_and(|name| {
        !in_directory(boxfile, name, &entry.source) || is_skill(&base.join(&entry.source))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use box_digest::Digest;
    use boxfile_spec::read;
    use diagnostics::Source;

    use super::*;

    const BOXFILE: &str = r#"box "x"
platform "linux/amd64" "linux/arm64"
agent { image "oci:agent"; env-file "a.env"; file "conf" to="/etc/"; }
skills dir="skills/"
skill "own" path="own"
profile "ci" {
    agent { image "oci:other"; file "ci.conf" to="/etc/"; }
    skill "own" path="ci/own"
}
"#;

    fn boxfile(profile: Option<&str>) -> Boxfile {
        let none = |_: &str| Err(String::new());
        let document = read(Source::new("Boxfile", BOXFILE), profile, none);
        assert_eq!(document.found, []);
        document.boxfile.unwrap()
    }

    fn entry(name: &str, kind: PinKind, source: &str, platform: Option<Platform>) -> LockEntry {
        let (name, source) = (name.to_owned(), source.to_owned());
        let digest = Digest::from_bytes([7; 32]).into();
        LockEntry { name, kind, source, platform, digest, size: 1, layers: Vec::new() }
    }

    #[test]
    fn only_what_a_profile_declares_otherwise_has_a_name_of_its_own() {
        let without = boxfile(None);
        let profile = Some(Variant { name: "ci", without: &without });
        let pins = Pins { profile, ..Pins::default() };
        for (name, source, expected) in [
            ("agent", "oci:agent", "agent"),
            ("agent", "oci:other", "ci@agent"),
            ("env:a.env", "a.env", "env:a.env"),
            ("env:b.env", "b.env", "ci@env:b.env"),
            ("file:conf", "conf", "file:conf"),
            ("file:ci.conf", "ci.conf", "ci@file:ci.conf"),
            ("skill:own", "ci/own", "ci@skill:own"),
            ("skill:greet", "skills/greet", "skill:greet"),
            ("skill:greet", "more/greet", "ci@skill:greet"),
            ("init", "", "init"),
        ] {
            assert_eq!(pins.name(name, source), expected);
            assert_eq!(Pins::default().name(name, source), name);
        }
    }

    #[test]
    fn a_pin_applies_to_its_reference_and_platform_until_refreshed() {
        let mut lock = Lock::new(1);
        let amd64 = Some(Platform::LinuxAmd64);
        lock.set(entry("agent", PinKind::Image, "oci:agent", amd64));
        let pins = Pins { lock: Some(&lock), ..Pins::default() };
        let image = |pins: &Pins<'_>, source, platform| {
            pins.image(ComponentName::Agent, source, platform).is_some()
        };
        assert!(image(&pins, "oci:agent", Platform::LinuxAmd64));
        assert!(!image(&pins, "oci:agent", Platform::LinuxArm64));
        assert!(!image(&pins, "oci:agent:v2", Platform::LinuxAmd64));
        let refresh = ["agent".to_owned()];
        let refreshed = Pins { refresh: &refresh, ..pins };
        assert!(!image(&refreshed, "oci:agent", Platform::LinuxAmd64));
    }

    /// Returns whether the Boxfile declares an entry, first without a profile and then with `ci`.
    fn declaring(entry: &LockEntry, base: &Path) -> [bool; 2] {
        let (without, with) = (boxfile(None), boxfile(Some("ci")));
        let variant = Variant { name: "ci", without: &without };
        [
            still_declares(&without, None, entry, base),
            still_declares(&with, Some(variant), entry, base),
        ]
    }

    #[test]
    fn an_entry_belongs_to_the_profile_that_gives_it_its_name() {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir_all(base.path().join("skills/greet")).unwrap();
        fs::write(base.path().join("skills/greet/SKILL.md"), "").unwrap();
        fs::create_dir(base.path().join("skills/linked")).unwrap();
        symlink("../greet/SKILL.md", base.path().join("skills/linked/SKILL.md")).unwrap();
        let arm64 = Some(Platform::LinuxArm64);
        for (name, kind, source, platform, expected) in [
            ("agent", PinKind::Image, "oci:agent", arm64, [true, false]),
            ("ci@agent", PinKind::Image, "oci:other", arm64, [false, true]),
            ("ci@agent", PinKind::Image, "oci:agent", arm64, [false, false]),
            ("agent", PinKind::Image, "oci:other", arm64, [false, false]),
            ("dev@agent", PinKind::Image, "oci:other", arm64, [false, false]),
            ("agent", PinKind::Binary, "oci:agent", arm64, [false, false]),
            ("env:a.env", PinKind::EnvFile, "a.env", None, [true, true]),
            ("env:b.env", PinKind::EnvFile, "b.env", None, [false, false]),
            ("file:conf", PinKind::File, "conf", None, [true, true]),
            ("ci@file:ci.conf", PinKind::File, "ci.conf", None, [false, true]),
            ("skill:greet", PinKind::Skill, "skills/greet", None, [true, true]),
            ("skill:gone", PinKind::Skill, "skills/gone", None, [false, false]),
            ("skill:linked", PinKind::Skill, "skills/linked", None, [false, false]),
            ("ci@skill:greet", PinKind::Skill, "skills/greet", None, [false, false]),
            ("init", PinKind::Init, "", Some(Platform::LinuxAmd64), [true, true]),
        ] {
            let entry = entry(name, kind, source, platform);
            assert_eq!(declaring(&entry, base.path()), expected, "{name} {source}");
        }
    }
}
