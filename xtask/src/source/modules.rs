//! The files of a crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use testkit::{KitError, Result};

use super::scan::{ModulePath, Scan, scan};
use super::{Token, production, tokens};

/// The files that a library or program is made of, tests left out.
#[derive(Debug, Default)]
pub(crate) struct Crate {
    pub(crate) files: Vec<SourceFile>,
    /// Where each module is, as an index of `files`.
    pub(super) modules: BTreeMap<ModulePath, usize>,
}

/// A file with production code.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    /// Its lines that are neither blank, comment nor test.
    pub(crate) code: usize,
    /// The modules and paths that it declares and names.
    pub(super) scan: Scan,
}

impl SourceFile {
    /// Returns the lengths of the file's functions, in lines.
    pub(crate) fn functions(&self) -> &[usize] {
        &self.scan.functions
    }
}

impl Crate {
    /// Reads a crate from its root file on.
    ///
    /// # Errors
    /// A file cannot be read, or a module that is declared has none.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut found = Self::default();
        found.add(root.to_owned(), &[])?;
        Ok(found)
    }

    fn add(&mut self, path: PathBuf, module: &[String]) -> Result<()> {
        let text = read(&path)?;
        let all = tokens(&text);
        let tokens = production(&all);
        let scan = scan(&tokens, module);
        let number = self.files.len();
        self.modules.extend(scan.modules.iter().map(|module| (module.clone(), number)));
        let children = scan.children.clone();
        self.files.push(SourceFile { code: lines(&tokens), path: path.clone(), scan });
        for child in children {
            self.add(file_of(&path, module, &child)?, &child)?;
        }
        Ok(())
    }
}

/// Returns the number of lines of code in a file, tests included.
///
/// # Errors
/// It cannot be read.
pub(crate) fn code_lines(path: &Path) -> Result<usize> {
    Ok(lines(&tokens(&read(path)?)))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(KitError::file("read", path))
}

fn lines(tokens: &[Token<'_>]) -> usize {
    tokens.iter().flat_map(|token| token.line..=token.last_line).collect::<BTreeSet<_>>().len()
}

/// Returns the file of the module `child`, which the module `parent` in the file at `path` declares.
fn file_of(path: &Path, parent: &[String], child: &[String]) -> Result<PathBuf> {
    let directory = path.parent().unwrap_or(Path::new(""));
    let stem = path.file_stem().unwrap_or_default();
    let owns_directory = parent.is_empty() || stem == "mod";
    let base = if owns_directory { directory.to_owned() } else { directory.join(stem) };
    let below = &child[parent.len()..];
    let base = base.join(below.iter().collect::<PathBuf>());
    let places = [base.with_extension("rs"), base.join("mod.rs")];
    places.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        let why = format!("it declares the module {}, which has no file", below.join("::"));
        KitError::malformed(path.display().to_string(), why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_read_without_its_tests() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "lib.rs",
            "//! A crate.\n\nmod a;\nmod b {\n    mod c;\n}\n#[cfg(test)]\nmod tests;\n",
        );
        write("a/mod.rs", "mod d; // a comment\n");
        write("a/d.rs", "const TEXT: &str = \"a\n\n\";\n\nfn f() {\n}\n#[cfg(test)]\nmod t {}\n");
        write("b/c.rs", "");
        let found = Crate::read(&directory.path().join("lib.rs")).unwrap();
        let shown: Vec<_> = found.files.iter().map(|it| (it.path.clone(), it.code)).collect();
        let expected = [("lib.rs", 4), ("a/mod.rs", 1), ("a/d.rs", 5), ("b/c.rs", 0)];
        assert_eq!(shown, expected.map(|(name, code)| (directory.path().join(name), code)));
        assert_eq!(code_lines(&directory.path().join("lib.rs")).unwrap(), 6);
        write("tests/probe.rs", "mod seen;");
        write("tests/seen.rs", "");
        assert_eq!(Crate::read(&directory.path().join("tests/probe.rs")).unwrap().files.len(), 2);
        fs::remove_file(directory.path().join("a/d.rs")).unwrap();
        let error = Crate::read(&directory.path().join("lib.rs")).unwrap_err().to_string();
        assert!(error.contains("a/mod.rs") && error.contains("module d"), "{error}");
    }
}
