//! The user that a component runs as: the names of an image's config become numbers.
//!
//! Rule: OCI image-spec config.md, "User": `user`, `uid`, `user:group`, `uid:gid`, `uid:group`,
//! `user:gid`. Files: passwd(5), group(5).

use box_image::User;
use box_image::rules::{GROUP, PASSWD};
use box_tree::{ReadContent, Tree};
use boxfile_spec::{Span, nearest};

use super::ComposeError;
use crate::pack::PackReader;

/// The most bytes of a file of accounts: far above any real one.
pub(super) const ACCOUNTS_MAX: u64 = 4 << 20;

/// The user of a component, and the home directory that its /etc/passwd names.
pub(super) struct Account {
    pub(super) user: User,
    pub(super) home: Option<String>,
}

/// Resolves the user that the Boxfile names at `span`, or an image's config.
pub(super) fn resolve(
    component: &'static str,
    wanted: &str,
    span: Option<Span>,
    tree: &Tree,
    packs: &mut PackReader<'_>,
) -> Result<Account, ComposeError> {
    let mut read = |file| lines(component, file, tree, packs);
    let (passwd, group) = (read(PASSWD)?, read(GROUP)?);
    let (user, named_group) = wanted.split_once(':').unwrap_or((wanted, ""));
    let unknown = |file| {
        let (lines, name) = if file == GROUP { (&group, named_group) } else { (&passwd, user) };
        let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
        let near = nearest(name, &names).map(str::to_owned);
        ComposeError::UnknownUser { component, user: wanted.to_owned(), file, near, span }
    };
    let named_group = Some(named_group).filter(|group| !group.is_empty());
    let user = if user.is_empty() { "0" } else { user };
    let number: Option<u32> = user.parse().ok();
    let is_wanted = |it: &&Line| it.name == user || number.is_some() && it.number(0) == number;
    let entry = passwd.iter().find(is_wanted);
    let Some(uid) = entry.and_then(|it| it.number(0)).or(number) else {
        return Err(unknown(PASSWD));
    };
    let gid = match named_group {
        None => entry.and_then(|it| it.number(1)).unwrap_or(0),
        Some(name) => group_id(name, &group).ok_or_else(|| unknown(GROUP))?,
    };
    let groups = match (entry, named_group) {
        (Some(entry), None) => supplementary(&entry.name, gid, &group),
        _ => Vec::new(),
    };
    let home = entry.and_then(|it| it.rest.get(3)).filter(|home| home.starts_with('/')).cloned();
    // The kernel reads this number as "leave it as it is" (setuid(2)).
    if uid == u32::MAX || gid == u32::MAX {
        return Err(unknown(PASSWD));
    }
    Ok(Account { user: User { uid, gid, groups }, home })
}

fn group_id(name: &str, group: &[Line]) -> Option<u32> {
    let entry = group.iter().find(|it| it.name == name);
    entry.and_then(|it| it.number(0)).or_else(|| name.parse().ok())
}

/// Returns the further groups that list the user as a member.
fn supplementary(user: &str, primary: u32, group: &[Line]) -> Vec<u32> {
    let lists =
        |it: &&Line| it.rest.get(1).is_some_and(|list| list.split(',').any(|it| it == user));
    let mut ids: Vec<u32> = group.iter().filter(lists).filter_map(|it| it.number(0)).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.retain(|id| *id != primary);
    ids
}

/// A line of passwd or group: the name, and the fields after the password.
struct Line {
    name: String,
    rest: Vec<String>,
}

impl Line {
    fn number(&self, field: usize) -> Option<u32> {
        self.rest.get(field)?.parse().ok()
    }
}

/// Reads a file of the image; an image without it has no names.
fn lines(
    component: &'static str,
    file: &'static str,
    tree: &Tree,
    packs: &mut PackReader<'_>,
) -> Result<Vec<Line>, ComposeError> {
    let content = tree.lookup(file.as_bytes()).and_then(|id| tree.inode(id).content());
    let Some(content) = content else { return Ok(Vec::new()) };
    let unreadable = |source| ComposeError::Unreadable { component, file, source };
    let bytes = packs.read(*content, ACCOUNTS_MAX).map_err(unreadable)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().filter_map(line).collect())
}

fn line(text: &str) -> Option<Line> {
    let mut fields = text.split(':').map(str::to_owned);
    let name = fields.next().filter(|name| !name.is_empty())?;
    Some(Line { name, rest: fields.skip(1).collect() })
}

#[cfg(test)]
mod tests {
    use box_cache::Store;
    use box_tree::{Content, Inode, Leaf, Meta};
    use oci_layer::LayerIndex;

    use super::*;
    use crate::pack::ContentMap;

    fn resolved(wanted: &str) -> Result<Account, ComposeError> {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let mut tree = Tree::default();
        let mut index = LayerIndex::default();
        let mut pack = Vec::new();
        for (name, text) in [
            ("passwd", "broken\nroot:x:0:0:root:/root:/bin/sh\napp:x:1000:100::/home/app:\n"),
            ("group", "root:x:0:\nusers:x:100:app\naudio:x:29:other,app\n"),
        ] {
            let content = Content::of(text.as_bytes());
            index.contents.push((content, pack.len() as u64));
            pack.extend_from_slice(text.as_bytes());
            let etc = tree.ensure_directory(Tree::ROOT, b"etc");
            let inode = tree.add(Inode::leaf(Meta::root_owned(0o644), Leaf::File(content)));
            tree.link(etc, name.as_bytes(), inode);
        }
        let mut map = ContentMap::default();
        map.add(store.put(&pack).unwrap(), &index.contents);
        resolve("agent", wanted, None, &tree, &mut map.reader(&store))
    }

    fn user(uid: u32, gid: u32, groups: &[u32]) -> User {
        User { uid, gid, groups: groups.to_vec() }
    }

    #[test]
    fn names_and_numbers_resolve_as_the_image_says() {
        let cases = [
            ("", user(0, 0, &[])),
            ("app", user(1000, 100, &[29])),
            ("1000", user(1000, 100, &[29])),
            ("app:audio", user(1000, 29, &[])),
            ("app:7", user(1000, 7, &[])),
            ("4242", user(4242, 0, &[])),
            ("4242:users", user(4242, 100, &[])),
            ("1000:", user(1000, 100, &[29])),
        ];
        for (wanted, expected) in cases {
            assert_eq!(resolved(wanted).unwrap().user, expected, "{wanted}");
        }
        assert_eq!(resolved("app").unwrap().home.as_deref(), Some("/home/app"));
        assert_eq!(resolved("4242").unwrap().home, None);
    }

    #[test]
    fn unknown_names_are_errors() {
        assert!(matches!(resolved("nobody"), Err(ComposeError::UnknownUser { file: PASSWD, .. })));
        let reserved = resolved("4294967295");
        assert!(matches!(reserved, Err(ComposeError::UnknownUser { file: PASSWD, .. })));
        assert!(matches!(resolved("app:none"), Err(ComposeError::UnknownUser { file: GROUP, .. })));
    }
}
