//! In what two entries at one path differ.

use box_tree::{Content, Field, Inode, Meta, Origin};
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

/// The attributes, in the order in which they are compared; times do not count.
const ATTRIBUTES: [Field; 4] = [Field::Mode, Field::Uid, Field::Gid, Field::Xattrs];
const PAYLOAD: [Field; 4] = [Field::Size, Field::Content, Field::Target, Field::Device];

/// Returns the first difference; `None` where the entries are one.
pub(super) fn difference(agent: &Inode, business: &Inode) -> Option<Difference> {
    let are = |test: fn(&Inode) -> bool| test(agent) && test(business);
    let is_generated = |it: &Inode| it.origin == Origin::Generated;
    let mut fields = vec![Field::Type];
    if !are(|it| it.names().is_some()) || !(is_generated(agent) || is_generated(business)) {
        fields.extend(ATTRIBUTES);
    }
    fields.extend(PAYLOAD);
    // The permissions of a symbolic link mean nothing, and archivers differ in what they write there.
    fields.retain(|field| *field != Field::Mode || !are(|it| it.target().is_some()));
    let field = fields.into_iter().find(|field| field.differs(agent, business))?;
    if field == Field::Xattrs {
        return xattr(&agent.meta, &business.meta);
    }
    let values = [agent, business].map(|inode| value(field, inode));
    Some(Difference { field: field.name().to_owned(), values })
}

/// Returns `true` if two entries have the same attributes but for the time.
pub(super) fn same_attributes(agent: &Inode, business: &Inode) -> bool {
    !ATTRIBUTES.into_iter().any(|field| field.differs(agent, business))
}

/// Shows the value of a field.
fn value(field: Field, inode: &Inode) -> String {
    let meta = &inode.meta;
    let found = match field {
        Field::Mode => Some(format!("{:04o}", meta.mode)),
        Field::Uid => Some(meta.uid.to_string()),
        Field::Gid => Some(meta.gid.to_string()),
        Field::Size => inode.content().map(|it| it.size.to_string()),
        Field::Content => inode.content().map(|it| format!("blake3:{}", it.hash.short())),
        Field::Target => inode.target().map(|it| shown(&String::from_utf8_lossy(it))),
        Field::Device => inode.device().map(|(major, minor)| format!("{major}:{minor}")),
        _ => Some(inode.type_name().to_owned()),
    };
    found.unwrap_or_default()
}

fn xattr(agent: &Meta, business: &Meta) -> Option<Difference> {
    let name = agent.differing_xattr(business)?;
    let value = |meta: &Meta| match meta.xattrs.get(name) {
        None => "none".to_owned(),
        Some(value) => {
            format!("blake3:{} ({} bytes)", Content::of(value).hash.short(), value.len())
        }
    };
    let field = format!("xattr {}", shown(&String::from_utf8_lossy(name)));
    Some(Difference { field, values: [agent, business].map(value) })
}
