//! In what two entries at one path differ.

use box_tree::{Content, Inode, Kind, Leaf, Meta, Origin};
use boxfile_spec::shown;

/// The first field in which two entries differ, and its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The field: `type`, `mode`, `uid`, `gid`, `xattr NAME`, `size`, `content`, `target` or
    /// `device`.
    pub field: String,
    /// Its value in the agent's image and in the business image, as a person reads it.
    pub values: [String; 2],
}

impl Difference {
    fn new(field: impl Into<String>, values: [String; 2]) -> Self {
        Self { field: field.into(), values }
    }
}

/// Returns the first difference; nothing where the entries are one. Times do not count.
pub(super) fn difference(agent: &Inode, business: &Inode) -> Option<Difference> {
    let kinds = [agent, business].map(kind);
    if kinds[0] != kinds[1] {
        return Some(Difference::new("type", kinds.map(str::to_owned)));
    }
    match (&agent.kind, &business.kind) {
        (Kind::Leaf(one), Kind::Leaf(other)) => {
            attributes(one, &agent.meta, &business.meta).or_else(|| payload(one, other))
        }
        _ if [agent, business].iter().any(|it| it.origin == Origin::Generated) => None,
        _ => dressed(&agent.meta, &business.meta),
    }
}

/// Tells whether two entries have the same attributes but for the time.
pub(super) fn same_attributes(agent: &Inode, business: &Inode) -> bool {
    dressed(&agent.meta, &business.meta).is_none()
}

/// Returns what an entry is, in a word.
pub(super) const fn kind(inode: &Inode) -> &'static str {
    match &inode.kind {
        Kind::Directory(_) => "directory",
        Kind::Leaf(Leaf::File(_)) => "file",
        Kind::Leaf(Leaf::Symlink(_)) => "symbolic link",
        Kind::Leaf(Leaf::CharDevice(..)) => "character device",
        Kind::Leaf(Leaf::BlockDevice(..)) => "block device",
        Kind::Leaf(Leaf::Fifo) => "pipe",
    }
}

/// Compares attributes. The permissions of a symbolic link mean nothing, and archivers differ in
/// what they write there.
fn attributes(leaf: &Leaf, agent: &Meta, business: &Meta) -> Option<Difference> {
    match leaf {
        Leaf::Symlink(_) => owned(agent, business),
        _ => dressed(agent, business),
    }
}

fn dressed(agent: &Meta, business: &Meta) -> Option<Difference> {
    let modes = [agent, business].map(|meta| format!("{:04o}", meta.mode));
    let modes = (modes[0] != modes[1]).then(|| Difference::new("mode", modes));
    modes.or_else(|| owned(agent, business))
}

fn owned(agent: &Meta, business: &Meta) -> Option<Difference> {
    let fields = [("uid", agent.uid, business.uid), ("gid", agent.gid, business.gid)];
    let differs = fields.into_iter().find(|(_, one, other)| one != other);
    let number = |(field, one, other): (&str, u32, u32)| {
        Difference::new(field, [one, other].map(|it| it.to_string()))
    };
    differs.map(number).or_else(|| xattr(agent, business))
}

fn xattr(agent: &Meta, business: &Meta) -> Option<Difference> {
    let mut names: Vec<_> = agent.xattrs.keys().chain(business.xattrs.keys()).collect();
    names.sort_unstable();
    let differs = |name: &&&Vec<u8>| agent.xattrs.get(**name) != business.xattrs.get(**name);
    let name = *names.iter().find(differs)?;
    let value = |meta: &Meta| match meta.xattrs.get(name) {
        None => "none".to_owned(),
        Some(value) => {
            format!("blake3:{} ({} bytes)", Content::of(value).hash.short(), value.len())
        }
    };
    let field = format!("xattr {}", shown(&String::from_utf8_lossy(name)));
    Some(Difference::new(field, [agent, business].map(value)))
}

/// Compares what leaves of one type hold.
fn payload(agent: &Leaf, business: &Leaf) -> Option<Difference> {
    match (agent, business) {
        (Leaf::File(one), Leaf::File(other)) if one.size != other.size => {
            Some(Difference::new("size", [one, other].map(|it| it.size.to_string())))
        }
        (Leaf::File(one), Leaf::File(other)) if one != other => {
            let hash = |it: &Content| format!("blake3:{}", it.hash.short());
            Some(Difference::new("content", [one, other].map(hash)))
        }
        (Leaf::Symlink(one), Leaf::Symlink(other)) if one != other => {
            let target = |it: &Vec<u8>| shown(&String::from_utf8_lossy(it));
            Some(Difference::new("target", [one, other].map(target)))
        }
        (Leaf::CharDevice(..) | Leaf::BlockDevice(..), _) if agent != business => {
            Some(Difference::new("device", [agent, business].map(numbers)))
        }
        _ => None,
    }
}

fn numbers(leaf: &Leaf) -> String {
    match leaf {
        Leaf::CharDevice(major, minor) | Leaf::BlockDevice(major, minor) => {
            format!("{major}:{minor}")
        }
        _ => String::new(),
    }
}
