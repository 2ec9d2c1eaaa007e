//! What the lock pins, by the names under which it knows things.

use std::collections::BTreeMap;

use box_image::ComponentName;
use boxfile_spec::lock::{Entry, Kind};
use boxfile_spec::{Binary, Boxfile, Lock, Platform};

/// A lock as a build uses it.
///
/// An entry is named after what it pins: `agent`, `skill:greet`. Where a profile declares something
/// else than the file does without it, what it declares is pinned under a name of its own,
/// `agent@ci`, so that a lock holds both.
#[derive(Debug, Clone, Default)]
pub struct Pins<'a> {
    /// The lock, if there is one.
    pub lock: Option<&'a Lock>,
    /// The chosen profile, and the sources that the file declares without one.
    pub profile: Option<Variant<'a>>,
    /// The names of what is resolved anew, whatever the lock says.
    pub refresh: &'a [String],
}

/// A chosen profile.
#[derive(Debug, Clone)]
pub struct Variant<'a> {
    /// Its name.
    pub name: &'a str,
    /// What the file declares without it.
    pub without: &'a Boxfile,
}

impl Pins<'_> {
    /// Returns the lock's name for something that the Boxfile declares.
    pub(super) fn name(&self, name: &str, source: &str) -> String {
        let Some(variant) = &self.profile else { return name.to_owned() };
        if declared(variant.without).get(name).is_some_and(|(_, without)| without == source) {
            return name.to_owned();
        }
        format!("{name}@{}", variant.name)
    }

    /// Returns the entry that pins a component's image, if it is about the same reference.
    pub(super) fn image(
        &self,
        component: ComponentName,
        source: &str,
        platform: Platform,
    ) -> Option<&Entry> {
        let name = self.name(component.name(), source);
        if self.refresh.contains(&name) {
            return None;
        }
        let entry = self.lock?.get(&name, Some(platform))?;
        (entry.kind == Kind::Image && entry.source == source).then_some(entry)
    }
}

/// Returns what a Boxfile declares that a lock pins, by name: its kind, and how it is written. What
/// lies in a directory of skills is not listed: that takes a look at the disk.
pub(super) fn declared(boxfile: &Boxfile) -> BTreeMap<String, (Kind, String)> {
    let mut named = BTreeMap::new();
    let business = boxfile.business.as_ref().map(|it| &it.component);
    let components = [("agent", Some(&boxfile.agent.component)), ("business", business)];
    for (name, component) in components {
        let Some(component) = component else { continue };
        if let Some(image) = &component.image {
            named.insert(name.to_owned(), (Kind::Image, image.value.to_string()));
        }
        for file in &component.env_files {
            named.insert(format!("env:{}", file.value), (Kind::EnvFile, file.value.clone()));
        }
    }
    let binary = boxfile.agent.binary.as_ref().map(|binary| match binary {
        Binary::Local { path, .. } => (Kind::Binary, path.value.clone()),
        Binary::Remote { url, .. } => (Kind::Url, url.value.clone()),
    });
    named.extend(binary.map(|binary| ("binary".to_owned(), binary)));
    for skill in &boxfile.skills {
        named.insert(format!("skill:{}", skill.name), (Kind::Skill, skill.path.value.clone()));
    }
    let kernel = boxfile.kernel.as_ref().and_then(|kernel| kernel.path.as_ref());
    let kernel = kernel.map(|path| path.value.clone()).unwrap_or_default();
    named.insert("kernel".to_owned(), (Kind::Kernel, kernel));
    named.insert("init".to_owned(), (Kind::Init, String::new()));
    named
}

/// Tells whether a Boxfile, with the profile of this name or without one, still declares what an
/// entry pins.
pub fn still_declared(entry: &Entry, profile: Option<&str>, boxfile: &Boxfile) -> bool {
    let suffix = profile.map(|profile| format!("@{profile}"));
    let bare = suffix.as_deref().and_then(|suffix| entry.name.strip_suffix(suffix));
    let name = bare.unwrap_or(&entry.name);
    let for_platform = entry
        .platform
        .is_none_or(|platform| boxfile.platforms.iter().any(|it| it.value == platform));
    let in_directory = boxfile.skills_dir.as_ref().is_some_and(|skills| {
        let rest = entry.source.strip_prefix(skills.dir.value.trim_end_matches('/'));
        entry.kind == Kind::Skill && rest.is_some_and(|rest| rest.starts_with('/'))
    });
    let named = declared(boxfile)
        .get(name)
        .is_some_and(|(kind, source)| *kind == entry.kind && *source == entry.source);
    for_platform && (named || in_directory)
}
