//! Checks that shares, volumes, scratch disks and secrets do not hide files of an image.

use box_contract::{ComponentName, SecretDelivery};
use box_tree::{Inode, InodeId, Kind, Leaf, Tree, path};
use boxfile_spec::{Boxfile, Share};
use diagnostics::Spanned;

use super::ComposeError;
use super::error::owner;

/// Checks that no mount hides an entry of a component's root.
///
/// # Errors
/// [`ComposeError::Hidden`] if the root has a directory with entries, or another type of entry, at the path of a mount.
pub fn check(tree: &Tree, component: ComponentName, boxfile: &Boxfile) -> Result<(), ComposeError> {
    let shares = boxfile.shares.iter().map(|Spanned { value: Share { plan, over }, span }| {
        ("share", &plan.name, &plan.guest, *over, plan.scope, *span)
    });
    // The first run copies what the image has there.
    let volumes = boxfile
        .volumes
        .iter()
        .map(|Spanned { value: it, span }| ("volume", &it.name, &it.guest, true, it.scope, *span));
    let disks = boxfile.scratch.iter().map(|Spanned { value: it, span }| {
        ("scratch", &it.name, &it.guest, false, it.scope, *span)
    });
    for (kind, name, guest, over, scope, span) in shares.chain(volumes).chain(disks) {
        if scope.includes(component)
            && let Some(Hidden { path, found, inode }) = mount_obstacle(tree, guest, over)
        {
            let (whose, baked) = owner(inode, component);
            return Err(ComposeError::Hidden {
                component: whose,
                baked,
                path,
                found,
                mounted: format!("in the way of the {kind} `{name}`"),
                span: Some(span),
            });
        }
    }
    check_secrets(tree, component, boxfile)
}

/// Checks that an image has no entry at the path of a secret's file, which init writes. A parent may be a link, which
/// init follows within the component's root.
fn check_secrets(
    tree: &Tree,
    component: ComponentName,
    boxfile: &Boxfile,
) -> Result<(), ComposeError> {
    for secret in boxfile.secrets.iter().filter(|it| it.scope.includes(component)) {
        let SecretDelivery::File { path } = &secret.delivery else { continue };
        if let Some((inode, path)) = occupied(tree, path.as_bytes()) {
            let (whose, baked) = owner(inode, component);
            return Err(ComposeError::Hidden {
                component: whose,
                baked,
                path: String::from_utf8_lossy(&path).into_owned(),
                found: described(inode).to_owned(),
                mounted: format!("in the way of the file of the secret `{}`", secret.name),
                span: Some(boxfile.root_span(component)),
            });
        }
    }
    Ok(())
}

/// Returns the entry that prevents a new file at `path`, with the path of the entry: an entry at `path`, even a
/// dangling link, or a parent that is not a directory.
fn occupied<'t>(tree: &'t Tree, path: &[u8]) -> Option<(&'t Inode, Vec<u8>)> {
    let (mut directory, mut at) = (Tree::ROOT, Vec::new());
    for name in path::names(path) {
        at = path::join(&at, name);
        let Some(names) = tree.inode(directory).names() else {
            return Some((tree.inode(directory), path::split(&at).0.to_vec()));
        };
        let found = *names.get(name)?;
        if at == path.strip_prefix(b"/").unwrap_or(path) || at == path {
            return Some((tree.inode(found), path.to_vec()));
        }
        directory = tree.lookup(&at)?;
    }
    None
}

/// An entry that a mount would hide, or that prevents the mount.
struct Hidden<'t> {
    path: String,
    found: String,
    inode: &'t Inode,
}

/// Returns the entry that is in the way of a mount at `path`: a leaf at `path` or above it, or an entry in the
/// directory at `path`, unless the mount may cover it (`over`). Links are not followed, because a workload could redirect
/// the mount with them.
fn mount_obstacle<'t>(tree: &'t Tree, path: &str, over: bool) -> Option<Hidden<'t>> {
    let (id, path) = occupant(tree, path)?;
    let inode = tree.inode(id);
    let names = match &inode.kind {
        Kind::Directory(_) if over => return None,
        Kind::Directory(names) => names,
        Kind::Leaf(_) => {
            return Some(Hidden { path, found: described(inode).to_owned(), inode });
        }
    };
    let (first, inode) = names.first_key_value()?;
    let first = String::from_utf8_lossy(first).escape_debug().to_string();
    let more = match names.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let found = format!("files ({first}{more})");
    Some(Hidden { path, found, inode: tree.inode(*inode) })
}

const fn described(inode: &Inode) -> &'static str {
    match inode.kind {
        Kind::Directory(_) => "a directory",
        Kind::Leaf(Leaf::Symlink(_)) => "a symbolic link",
        Kind::Leaf(_) => "a file",
    }
}

/// Returns the entry at `path`, or else the leaf that is in place of a parent of `path`, with the path of the entry or
/// leaf.
pub(super) fn occupant(tree: &Tree, path: &str) -> Option<(InodeId, String)> {
    match tree.reach(path.as_bytes()) {
        Ok(id) => Some((id, path.to_owned())),
        Err(end) if tree.inode(end.last).names().is_some() => None,
        Err(end) => Some((end.last, String::from_utf8_lossy(&end.path).into_owned())),
    }
}

#[cfg(test)]
mod tests {
    use box_tree::{Content, Meta};
    use boxfile_spec::parse;

    use super::*;

    /// An agent's image with an empty directory, a directory of two files, a file and a link.
    fn image() -> Tree {
        let mut tree = Tree::default();
        tree.ensure_directory(Tree::ROOT, b"empty");
        let full = tree.ensure_directory(Tree::ROOT, b"full");
        let leaf = |leaf| Inode::leaf(Meta::root_owned(0o644), leaf);
        let file = tree.add(leaf(Leaf::File(Content::of(b"x"))));
        for (directory, name) in [(full, "one"), (full, "two"), (Tree::ROOT, "file")] {
            tree.link(directory, name.as_bytes(), file);
        }
        let link = tree.add(leaf(Leaf::Symlink(b"empty".to_vec())));
        tree.link(Tree::ROOT, b"link", link);
        tree
    }

    /// Checks a declaration against the image.
    fn checked(declaration: &str) -> Result<(), String> {
        let text = format!(
            "box \"x\"\nagent {{ image \"oci:a\"; }}\nbusiness {{ image \"oci:b\"; }}\n{declaration}\n"
        );
        let boxfile = parse(&text).unwrap();
        check(&image(), ComponentName::Agent, &boxfile).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_empty_or_missing_may_be_mounted_over() {
        for path in ["/empty", "/empty/new", "/full/new", "/new/deep"] {
            assert_eq!(checked(&format!("share \"s\" guest=\"{path}\"")), Ok(()), "{path}");
        }
    }

    #[test]
    fn what_an_image_has_is_not_hidden() {
        for (path, found) in [
            ("/full", "files (one and 1 more) at /full"),
            ("/file", "a file at /file"),
            ("/full/one/below", "a file at /full/one"),
            ("/link", "a symbolic link at /link"),
            ("/link/below", "a symbolic link at /link"),
        ] {
            for mount in [
                format!("share \"s\" guest=\"{path}\""),
                format!("scratch \"s\" guest=\"{path}\" size=\"1MiB\""),
            ] {
                let error = checked(&mount).unwrap_err();
                assert!(error.starts_with(&format!("the agent image has {found}, ")), "{error}");
            }
        }
    }

    #[test]
    fn a_share_covers_a_directory_if_it_says_so_and_a_volume_does() {
        let share = |path: &str| checked(&format!("share \"s\" guest=\"{path}\" over=#true"));
        let volume = |path: &str| checked(&format!("volume \"s\" guest=\"{path}\""));
        assert_eq!((share("/full"), volume("/full")), (Ok(()), Ok(())));
        for path in ["/file", "/full/one/below", "/link", "/link/below"] {
            assert!(share(path).is_err() && volume(path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_secret_is_written_where_the_image_has_nothing() {
        let secret =
            |path: &str| checked(&format!("secret \"KEY\" path=\"{path}\" component=\"agent\""));
        for path in ["/empty/key", "/full/key", "/link/key", "/new/deep/key"] {
            assert_eq!(secret(path), Ok(()), "{path}");
        }
        for (path, found) in [
            ("/file", "a file at /file"),
            ("/full/one", "a file at /full/one"),
            ("/full/one/below", "a file at /full/one"),
            ("/link", "a symbolic link at /link"),
            ("/empty", "a directory at /empty"),
        ] {
            let error = secret(path).unwrap_err();
            let expected =
                format!("the agent image has {found}, in the way of the file of the secret");
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn mounts_of_the_other_component_are_ignored() {
        assert_eq!(checked("share \"s\" guest=\"/full\" component=\"business\""), Ok(()));
        assert!(checked("share \"s\" guest=\"/full\" component=\"agent\"").is_err());
    }
}
