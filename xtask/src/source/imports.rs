//! Finds out which file of a crate imports which.

use std::collections::{BTreeMap, BTreeSet};

use super::Crate;
use super::scan::{Mention, ModulePath};

/// The meaning of the names that `use` brings into each module.
type Names = BTreeMap<ModulePath, BTreeMap<String, ModulePath>>;

/// How often an item may be re-exported on its way.
const MOST_RE_EXPORTS: usize = 16;

/// Returns for each file of a crate, by its index, the files that it imports.
///
/// Imports are `use` declarations and paths that begin with `crate`, `self` or `super`. Each leads to
/// the file with the longest prefix of the path that is a module, across re-exports: an item is
/// imported from the file that defines it. A re-export is itself no import, nor is a module's call of
/// its own child (`child::run()`): a parent that lists its children is above them as long as they do
/// not need it.
pub(crate) fn imports(of: &Crate) -> Vec<BTreeSet<usize>> {
    let names = names(of);
    let imported = |(number, file): (usize, &super::SourceFile)| {
        let counted = file.scan.mentions.iter().filter(|mention| is_import(mention));
        let files =
            counted.filter_map(|mention| file_of(of, &names, absolute(of, &names, mention)?));
        files.filter(|found| *found != number).collect()
    };
    of.files.iter().enumerate().map(imported).collect()
}

fn is_import(mention: &Mention) -> bool {
    let is_rooted = ["crate", "self", "super"].iter().any(|root| mention.path[0] == *root);
    !mention.re_export && (mention.name.is_some() || is_rooted)
}

/// Returns what names mean that lead to modules of the crate; re-exports are not yet followed.
fn names(of: &Crate) -> Names {
    let mut names = Names::new();
    for mention in of.files.iter().flat_map(|file| &file.scan.mentions) {
        if let (Some(name), Some(path)) = (&mention.name, absolute(of, &Names::new(), mention)) {
            names.entry(mention.module.clone()).or_default().insert(name.clone(), path);
        }
    }
    names
}

/// Returns a path from the crate's root on; `None` if it leads out of the crate.
fn absolute(of: &Crate, names: &Names, mention: &Mention) -> Option<ModulePath> {
    let mut module = mention.module.clone();
    let mut rest = mention.path.as_slice();
    match rest.first()?.as_str() {
        "crate" => {
            module.clear();
            rest = &rest[1..];
        }
        "self" => rest = &rest[1..],
        "super" => {}
        first => {
            let child = [module.as_slice(), &[first.to_owned()]].concat();
            if !of.modules.contains_key(&child) {
                module = names.get(&module)?.get(first)?.clone();
                rest = &rest[1..];
            }
        }
    }
    while let [first, after @ ..] = rest
        && first == "super"
    {
        module.pop()?;
        rest = after;
    }
    module.extend_from_slice(rest);
    Some(module)
}

/// Returns the file of the longest prefix of a path that is a module, across what modules re-export.
fn file_of(of: &Crate, names: &Names, mut path: ModulePath) -> Option<usize> {
    for _ in 0..MOST_RE_EXPORTS {
        let is_module = |length: &usize| of.modules.contains_key(&path[..*length]);
        let length = (0..=path.len()).rev().find(is_module)?;
        let (module, item) = path.split_at(length);
        let re_exported = item.first().and_then(|name| names.get(module)?.get(name));
        match re_exported {
            Some(target) if *target != path => path = [target, &item[1..]].concat(),
            _ => return of.modules.get(module).copied(),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Returns the imports of a crate of these files, as `file > file`.
    fn shown(files: &[(&str, &str)]) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(directory.path().join(name), text).unwrap();
        }
        let found = Crate::read(&directory.path().join("lib.rs")).unwrap();
        let name = |at: usize| found.files[at].path.file_stem().unwrap().to_str().unwrap();
        let edges = imports(&found).into_iter().enumerate();
        let shown = |(from, to): (usize, BTreeSet<usize>)| {
            to.into_iter().map(|to| format!("{} > {}", name(from), name(to))).collect::<Vec<_>>()
        };
        edges.flat_map(shown).collect()
    }

    #[test]
    fn a_path_is_an_import_of_its_longest_module() {
        let files = [
            ("lib.rs", "mod a; mod b; pub struct C;"),
            ("a.rs", "use crate::b::D; use std::fs; fn f() { fs::read() }"),
            ("b.rs", "use super::C; pub struct D;"),
        ];
        assert_eq!(shown(&files), ["a > b", "b > lib"]);
    }

    #[test]
    fn calling_or_re_exporting_a_child_is_no_import_but_using_it_is() {
        let files = |root: &'static str| [("lib.rs", root), ("a.rs", "pub fn f() {}")];
        assert_eq!(shown(&files("mod a; pub use a::f;")), [""; 0]);
        assert_eq!(shown(&files("mod a; fn g() { a::f() }")), [""; 0]);
        assert_eq!(shown(&files("mod a; use a::f; fn g() { f() }")), ["lib > a"]);
        assert_eq!(shown(&files("mod a; fn g() { self::a::f() }")), ["lib > a"]);
    }

    #[test]
    fn what_a_parent_re_exports_is_imported_from_where_it_is_defined() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::C; pub use b::D as E;"),
            ("a.rs", "use crate::E; pub struct C;"),
            ("b.rs", "use super::C; pub struct D;"),
        ];
        assert_eq!(shown(&files), ["a > b", "b > a"]);
    }

    #[test]
    fn names_that_were_imported_are_followed() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            (
                "a.rs",
                "use crate::b as c; mod inner { pub fn h() { super::c::g() } } fn f() { c::g() }",
            ),
            ("b.rs", "pub fn g() {}"),
        ];
        assert_eq!(shown(&files), ["a > b"]);
    }
}
