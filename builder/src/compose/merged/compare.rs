//! In what two entries at one path differ.

use box_tree::{Field, FieldDifference, Inode, Origin};

/// The attributes, in the order in which they are compared; times do not count.
const ATTRIBUTES: [Field; 4] = [Field::Mode, Field::Uid, Field::Gid, Field::Xattrs];
const PAYLOAD: [Field; 4] = [Field::Size, Field::Content, Field::Target, Field::Device];

/// Returns the first difference; `None` where the entries are one.
pub(super) fn difference(agent: &Inode, business: &Inode) -> Option<FieldDifference> {
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
    Some(field.difference(agent, business))
}

/// Returns `true` if two entries have the same attributes but for the time.
pub(super) fn same_attributes(agent: &Inode, business: &Inode) -> bool {
    !ATTRIBUTES.into_iter().any(|field| field.differs(agent, business))
}
