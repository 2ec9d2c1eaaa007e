//! Resolves the user of a component by the image's /etc/passwd and /etc/group.

use box_contract::accounts::{self, Account, MAX_ACCOUNTS, Unknown};
use box_contract::rules::{GROUP, PASSWD};
use box_tree::{ReadContent, Tree};
use diagnostics::Span;
use diagnostics::suggest::nearest;

use super::ComposeError;
use crate::pack::PackReader;

/// A user, and the text of messages about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'a> {
    /// The name or the number.
    pub(super) user: &'a str,
    /// The beginning of a message that the name completes, such as `the agent component runs as`.
    pub(super) whose: &'a str,
    /// The span in the Boxfile that names the user. `None` if an image's config names it.
    pub(super) span: Option<Span>,
}

/// Resolves a user by /etc/passwd and /etc/group of a component's image.
pub(super) fn resolve(
    component: &'static str,
    Named { user: wanted, whose, span }: Named<'_>,
    tree: &Tree,
    packs: &mut PackReader<'_>,
) -> Result<Account, ComposeError> {
    let mut read = |file| text(component, file, tree, packs);
    let (passwd, group) = (read(PASSWD)?, read(GROUP)?);
    accounts::resolve(wanted, &passwd, &group).map_err(|Unknown { file, name, names }| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let near = nearest(&name, &names).map(str::to_owned);
        let whose = format!("{whose} {wanted:?}");
        ComposeError::UnknownUser { component, whose, file, near, span }
    })
}

/// Returns the text of a file of the image. Empty if the file is absent.
fn text(
    component: &'static str,
    file: &'static str,
    tree: &Tree,
    packs: &mut PackReader<'_>,
) -> Result<String, ComposeError> {
    let content = tree.lookup(file.as_bytes()).and_then(|id| tree.inode(id).content());
    let Some(content) = content else { return Ok(String::new()) };
    let unreadable = |source| ComposeError::Unreadable { component, file, source };
    let bytes = packs.read(*content, MAX_ACCOUNTS).map_err(unreadable)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use box_cache::Store;
    use box_contract::User;
    use box_tree::{Content, Inode, Leaf, Meta};
    use oci_layer::LayerIndex;

    use super::*;
    use crate::pack::ContentMap;

    fn resolved(wanted: &str) -> Result<Account, ComposeError> {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let mut tree = Tree::default();
        let mut index = LayerIndex::default();
        let text = "app:x:1000:100::/home/app:\n";
        let content = Content::of(text.as_bytes());
        index.contents.push((content, 0));
        let etc = tree.ensure_directory(Tree::ROOT, b"etc");
        let inode = tree.add(Inode::leaf(Meta::root_owned(0o644), Leaf::File(content)));
        tree.link(etc, b"passwd", inode);
        let mut map = ContentMap::default();
        map.add(store.put(text.as_bytes()).unwrap(), &index.contents);
        let named = Named { user: wanted, whose: "the agent runs as", span: None };
        resolve("agent", named, &tree, &mut map.reader(&store))
    }

    #[test]
    fn the_files_of_the_image_are_read_and_one_that_is_missing_is_empty() {
        let user = |gid| User { uid: 1000, gid, groups: Vec::new() };
        assert_eq!(resolved("app").unwrap().user, user(100));
        assert_eq!(resolved("app:7").unwrap().user, user(7));
    }

    #[test]
    fn a_name_that_is_not_there_is_an_error_with_the_nearest() {
        let near = |wanted| match resolved(wanted).map(|it| it.user) {
            Err(ComposeError::UnknownUser { file, near, .. }) => (file, near),
            other => panic!("{other:?}"),
        };
        assert_eq!(near("apps"), (PASSWD, Some("app".to_owned())));
        assert_eq!(near("app:none"), (GROUP, None));
    }
}
