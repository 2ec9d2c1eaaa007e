//! Computes the layer that turns one tree into another.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::{KitError, Result};
use testkit::images::{Layer, LayerTar};

/// One member of a tar stream, with its extension headers and padding.
struct Member<'a> {
    name: String,
    /// The name of the earlier member to which this one is a hard link. `None` if it is no hard link.
    hardlink_to: Option<String>,
    bytes: &'a [u8],
}

/// Returns the layer that turns `base` into `full`: a whiteout for each topmost removed path, and then all added and
/// changed members, byte for byte from `full`.
///
/// # Errors
/// `base` or `full` is no tar stream.
pub(super) fn layer_between(base: &LayerTar, full: &LayerTar) -> Result<LayerTar> {
    let malformed = |error: io::Error| KitError::malformed("a Debian tree's tar stream", error);
    let base = members(base.bytes()).map_err(malformed)?;
    let full = members(full.bytes()).map_err(malformed)?;
    let mut layer = whiteouts(&base, &full);
    for member in changed(&base, &full) {
        layer.extend_from_slice(member.bytes);
    }
    layer.resize(layer.len() + 1024, 0);
    Ok(LayerTar::from(layer))
}

fn members(tar: &[u8]) -> io::Result<Vec<Member<'_>>> {
    let mut members = Vec::new();
    let mut start = 0;
    for entry in tar::Archive::new(tar).entries()? {
        let entry = entry?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('/').to_owned();
        let is_link = entry.header().entry_type().is_hard_link();
        let target = entry.link_name_bytes().filter(|_| is_link);
        let end = entry.raw_file_position() + entry.size().next_multiple_of(512);
        let end = usize::try_from(end).map_err(io::Error::other)?;
        members.push(Member {
            name: text(&entry.path_bytes()),
            hardlink_to: target.map(|target| text(&target)),
            bytes: tar.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?,
        });
        start = end;
    }
    Ok(members)
}

/// Returns the members of `full` that are missing or different in `base`, and the hard links to them. Without a new
/// member, such a link would still refer to the old file of the base.
fn changed<'a>(base: &[Member<'_>], full: &'a [Member<'a>]) -> Vec<&'a Member<'a>> {
    let old: BTreeMap<_, _> = base.iter().map(|member| (&member.name, member.bytes)).collect();
    let mut names = BTreeSet::new();
    let is_changed = |member: &&Member<'_>| {
        let target_changed = member.hardlink_to.as_ref().is_some_and(|name| names.contains(name));
        let changed = target_changed || old.get(&member.name) != Some(&member.bytes);
        if changed {
            names.insert(member.name.clone());
        }
        changed
    };
    full.iter().filter(is_changed).collect()
}

/// Returns the whiteouts of the topmost removed paths, as members of a tar stream without its end marker.
fn whiteouts(base: &[Member<'_>], full: &[Member<'_>]) -> Vec<u8> {
    let kept: BTreeSet<_> = full.iter().map(|member| member.name.as_str()).collect();
    let is_topmost = |name: &str| match name.rsplit_once('/') {
        Some((folder, _)) => folder == "." || kept.contains(folder),
        None => true,
    };
    let removed = base.iter().map(|member| member.name.as_str());
    let mut layer = Layer::new();
    for name in removed.filter(|name| !kept.contains(name) && is_topmost(name)) {
        layer = layer.whiteout(name);
    }
    let mut tar = layer.to_tar().bytes().to_vec();
    tar.truncate(tar.len() - 1024);
    tar
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tar: &LayerTar) -> Vec<String> {
        members(tar.bytes()).unwrap().into_iter().map(|member| member.name).collect()
    }

    fn base() -> Layer {
        Layer::new()
            .dir("./etc", 0o755)
            .file("./etc/same", 0o644, "same")
            .file("./etc/changed", 0o644, "old")
            .hardlink("./etc/link", "./etc/changed")
            .dir("./gone", 0o755)
            .file("./gone/file", 0o644, "x")
    }

    #[test]
    fn only_what_differs_is_in_the_layer() {
        let full = Layer::new()
            .dir("./etc", 0o755)
            .file("./etc/same", 0o644, "same")
            .file("./etc/changed", 0o644, "new")
            .hardlink("./etc/link", "./etc/changed")
            .file(&format!("./etc/{}", "long".repeat(40)), 0o644, "added");
        let layer = layer_between(&base().to_tar(), &full.to_tar()).unwrap();
        let long = format!("./etc/{}", "long".repeat(40));
        assert_eq!(names(&layer), ["./.wh.gone", "./etc/changed", "./etc/link", &long]);
    }

    #[test]
    fn equal_trees_give_an_empty_layer() {
        let layer = layer_between(&base().to_tar(), &base().to_tar()).unwrap();
        assert_eq!(layer.bytes(), [0; 1024]);
    }

    #[test]
    fn noise_is_an_error() {
        let noise = LayerTar::from(vec![7; 1024]);
        assert!(layer_between(&base().to_tar(), &noise).is_err());
    }
}
