//! The names in an archive of images or boxes, and the offsets of their data.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;

use host_fs::read::Section;

use crate::members::{Member, MemberKind, member};
use crate::{LayerErrorKind, Limits};

/// The maximum number of members, and the maximum size of all names and link targets in bytes. `docker
/// save` writes three members for each layer, a layout has one for each blob.
const MAX_MEMBERS: usize = 1 << 16;
const MAX_NAMES: usize = 16 << 20;
/// The maximum number of links in a chain of links to a file.
const MAX_LINKS: usize = 8;
/// The size of a read of headers, in bytes. The headers of a member are seldom longer.
const HEADERS: usize = 1536;

/// The files and links of an archive, by their names. Directories are left out, because no caller needs them.
#[derive(Debug, Default)]
pub struct MemberIndex {
    members: BTreeMap<Vec<u8>, MemberKind>,
    /// The size of all names and link targets, in bytes.
    bytes: usize,
}

/// Why the members of an archive cannot be listed.
#[derive(Debug, thiserror::Error)]
#[error("at byte {offset}: {reason}")]
pub struct MembersError {
    /// The offset of the member's headers.
    pub offset: u64,
    /// The fault.
    pub reason: String,
}

impl MemberIndex {
    /// Reads the headers of all members of an archive of `length` bytes.
    ///
    /// # Errors
    /// [`MembersError`]: a malformed header, two members with one name, or too many members.
    pub fn read(file: &File, length: u64) -> Result<Self, MembersError> {
        let mut index = Self::default();
        let mut offset = 0;
        let limits = Limits::default();
        loop {
            let here = offset;
            let fail =
                |kind: LayerErrorKind| MembersError { offset: here, reason: kind.to_string() };
            let headers = Section::new(file, here, length.saturating_sub(here));
            let headers = BufReader::with_capacity(HEADERS, headers);
            let Some(member) = member(headers, here, &limits).map_err(fail)? else {
                return Ok(index);
            };
            offset = member.next;
            index.add(member, length).map_err(|reason| MembersError { offset: here, reason })?;
        }
    }

    fn add(&mut self, member: Member, length: u64) -> Result<(), String> {
        let Member { path, kind, .. } = member;
        if let MemberKind::File { offset, size } = kind
            && offset.saturating_add(size) > length
        {
            let name = String::from_utf8_lossy(&path);
            return Err(format!("the archive ends in the middle of {name:?}"));
        }
        let target = match &kind {
            MemberKind::Other => return Ok(()),
            MemberKind::Symlink(target) | MemberKind::HardLink(target) => target.len(),
            MemberKind::File { .. } => 0,
        };
        self.bytes += path.len() + target;
        if self.members.len() >= MAX_MEMBERS || self.bytes > MAX_NAMES {
            return Err(format!("it has more than {MAX_MEMBERS} files"));
        }
        let name = String::from_utf8_lossy(&path).into_owned();
        match self.members.insert(path, kind) {
            None => Ok(()),
            // Readers differ in which of the two they use.
            Some(_) => Err(format!("it has two files named {name:?}")),
        }
    }

    /// Returns whether there is a member of this name.
    pub fn has(&self, name: &str) -> bool {
        self.members.contains_key(name.as_bytes())
    }

    /// Returns offset and size of the data of a regular file. `None` for a link, or if there is no such name.
    pub fn file(&self, name: &str) -> Option<(u64, u64)> {
        match self.members.get(name.as_bytes()) {
            Some(MemberKind::File { offset, size }) => Some((*offset, *size)),
            _ => None,
        }
    }

    /// Returns offset and size of a file's data, links followed. `None` if there is no such name.
    ///
    /// # Errors
    /// The name is a link that is broken, leads out of the archive, or is part of a cycle.
    pub fn find(&self, name: &str) -> Result<Option<(u64, u64)>, &'static str> {
        let mut name = name.as_bytes().to_vec();
        for links in 0..=MAX_LINKS {
            name = match self.members.get(&name) {
                None if links == 0 => return Ok(None),
                None => return Err("it is a link to a file that is not in the archive"),
                Some(MemberKind::File { offset, size }) => return Ok(Some((*offset, *size))),
                Some(MemberKind::Symlink(target)) => beside(&name, target)?,
                Some(MemberKind::HardLink(target)) => beside(b"", target)?,
                Some(MemberKind::Other) => return Ok(None),
            };
        }
        Err("too many links lead to it")
    }
}

/// Resolves the target of a link relative to the link's directory.
fn beside(link: &[u8], target: &[u8]) -> Result<Vec<u8>, &'static str> {
    if target.first() == Some(&b'/') {
        return Err("it is a link out of the archive");
    }
    let mut parts: Vec<&[u8]> = link.split(|byte| *byte == b'/').collect();
    parts.pop();
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop().ok_or("it is a link out of the archive")?),
            part => parts.push(part),
        }
    }
    Ok(parts.join(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(members: &[(&str, MemberKind)]) -> MemberIndex {
        let members = members.iter().map(|(name, kind)| (name.as_bytes().to_vec(), kind.clone()));
        MemberIndex { members: members.collect(), bytes: 0 }
    }

    fn symlink(target: &str) -> MemberKind {
        MemberKind::Symlink(target.as_bytes().to_vec())
    }

    #[test]
    fn links_lead_to_files_of_the_archive_only() {
        let hard = |target: &str| MemberKind::HardLink(target.as_bytes().to_vec());
        let index = index(&[
            ("a.tar", MemberKind::File { offset: 512, size: 3 }),
            ("x/layer.tar", symlink("../a.tar")),
            ("y/layer.tar", symlink("./../x//layer.tar")),
            ("z/layer.tar", hard("./y/layer.tar")),
            ("out", symlink("../a.tar")),
            ("absolute", symlink("/a.tar")),
            ("dangling", symlink("b.tar")),
            ("circle", symlink("circle")),
            ("hard-out", hard("../a.tar")),
        ]);
        for name in ["a.tar", "x/layer.tar", "y/layer.tar", "z/layer.tar"] {
            assert_eq!(index.find(name), Ok(Some((512, 3))), "{name}");
            assert_eq!(index.file(name).is_some(), name == "a.tar", "{name}");
        }
        assert_eq!(index.find("nothing"), Ok(None));
        for (name, reason) in [
            ("out", "it is a link out of the archive"),
            ("absolute", "it is a link out of the archive"),
            ("hard-out", "it is a link out of the archive"),
            ("dangling", "it is a link to a file that is not in the archive"),
            ("circle", "too many links lead to it"),
        ] {
            assert_eq!(index.find(name), Err(reason), "{name}");
        }
    }
}
