//! Checks that the images do not have different C libraries.
//!
//! A dynamic program names its loader by an absolute path, and loader and libc are built together: a loader that finds
//! the libc of another build fails at once or later. Two libcs therefore cannot share one root, and no policy helps.
//! Static programs need neither loader nor libc.

use std::collections::BTreeMap;

use box_digest::AnyDigest;
use box_tree::{Content, Tree};

use super::super::ComposeError;

/// The directories of loaders: the paths that programs name (ELF psABIs; musl's `configure`).
const DIRECTORIES: [&str; 4] = ["/lib64", "/lib", "/usr/lib64", "/usr/lib"];

/// A loader: its path and its content.
type Loader = (String, Content);

/// Checks that the images do not have two C libraries: at least one image has no loader, or the images have a loader
/// in common, and every common loader has the same content.
pub(super) fn check(agent: &Tree, business: &Tree) -> Result<(), ComposeError> {
    let (agent, business) = (loaders(agent), loaders(business));
    let both = agent.iter().filter_map(|(name, one)| Some([one, business.get(name)?]));
    let both: Vec<_> = both.collect();
    let differs = both.iter().find(|[one, other]| one.1 != other.1).copied();
    let apart = || Some([agent.values().next()?, business.values().next()?]);
    let loaders = differs.or_else(|| if both.is_empty() { apart() } else { None });
    let Some([agent, business]) = loaders.map(|it| it.map(described)) else { return Ok(()) };
    Err(ComposeError::Libc { agent, business })
}

/// Returns the loaders of a tree by name.
fn loaders(tree: &Tree) -> BTreeMap<Vec<u8>, Loader> {
    let mut found = BTreeMap::new();
    for directory in DIRECTORIES {
        let names = tree.lookup(directory.as_bytes()).and_then(|id| tree.inode(id).names());
        for name in names.into_iter().flat_map(BTreeMap::keys).filter(|name| is_loader(name)) {
            let path = [directory.as_bytes(), b"/", name].concat();
            if let Some(content) = tree.lookup(&path).and_then(|id| tree.inode(id).content()) {
                let path = String::from_utf8_lossy(&path).into_owned();
                found.entry(name.to_vec()).or_insert((path, *content));
            }
        }
    }
    found
}

/// Returns whether a file name is the name of a loader, such as `ld-linux-x86-64.so.2` or `ld-musl-x86_64.so.1`.
fn is_loader(name: &[u8]) -> bool {
    let prefixed = [b"ld-linux", b"ld-musl-".as_slice()].iter().any(|it| name.starts_with(it));
    prefixed && name.windows(4).any(|part| part == b".so.")
}

/// Returns the library of a loader, its path and its digest.
fn described((path, content): &Loader) -> String {
    let library = if path.contains("/ld-musl-") { "musl" } else { "glibc" };
    format!("{library}, by {path} ({})", AnyDigest::from(content.hash).short())
}

#[cfg(test)]
mod tests {
    use box_tree::{Inode, Leaf, Meta};

    use super::*;

    /// Returns a tree with files of these paths and contents. `-> TARGET` as the content makes a link.
    fn tree(files: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::default();
        for (path, content) in files {
            let (directory, name) = path.rsplit_once('/').unwrap();
            let directory = tree.make_directories(directory.as_bytes()).unwrap();
            let leaf = match content.strip_prefix("-> ") {
                Some(target) => Leaf::Symlink(target.as_bytes().to_vec()),
                None => Leaf::File(Content::of(content.as_bytes())),
            };
            let inode = tree.add(Inode::leaf(Meta::root_owned(0o755), leaf));
            tree.link(directory, name.as_bytes(), inode);
        }
        tree
    }

    const GLIBC: &str = "/lib64/ld-linux-x86-64.so.2";
    const MUSL: &str = "/lib/ld-musl-x86_64.so.1";

    #[test]
    fn one_library_or_none_is_fine() {
        let real = "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";
        let debian = tree(&[(real, "a"), (GLIBC, &format!("-> {real}"))]);
        let merged_usr =
            tree(&[("/usr/lib64/ld-linux-x86-64.so.2", "a"), ("/lib64", "-> usr/lib64")]);
        let with_both = tree(&[(GLIBC, "a"), (MUSL, "m")]);
        let none = tree(&[("/lib/ld-linux.txt", "x"), ("/bin/sh", "static")]);
        for (one, other) in
            [(&debian, &merged_usr), (&debian, &none), (&none, &none), (&with_both, &debian)]
        {
            check(one, other).unwrap();
            check(other, one).unwrap();
        }
    }

    #[test]
    fn two_libraries_are_refused() {
        let [old, new, musl] = [(GLIBC, "old"), (GLIBC, "new"), (MUSL, "m")].map(|it| tree(&[it]));
        let error = check(&old, &musl).unwrap_err().to_string();
        assert!(error.contains("(glibc, by /lib64/ld-linux-x86-64.so.2 (blake3:"), "{error}");
        assert!(error.contains("(musl, by /lib/ld-musl-x86_64.so.1 (blake3:"), "{error}");
        check(&old, &new).unwrap_err();
        check(&tree(&[(GLIBC, "old"), (MUSL, "m")]), &new).unwrap_err();
    }
}
