//! Finds modules, functions and paths in the tokens of a file.

use super::production::group;
use super::token::{Kind, Token};

/// A path of modules below a crate's root: empty for the root itself.
pub(super) type ModulePath = Vec<String>;

/// The modules and paths that a file declares and names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// The modules that the file contains, its own first.
    pub(super) modules: Vec<ModulePath>,
    /// The modules that it declares and that are files of their own.
    pub(super) children: Vec<ModulePath>,
    /// The paths that it names.
    pub(super) mentions: Vec<Mention>,
    /// The lengths of its functions, in lines.
    pub(super) functions: Vec<usize>,
}

/// A path that code names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mention {
    /// The module that names it.
    pub(super) module: ModulePath,
    pub(super) path: Vec<String>,
    /// The name that a `use` gives it in the module; `None` for a path in other code.
    pub(super) name: Option<String>,
    /// Whether it is a `use` that makes the name visible to other modules.
    pub(super) re_export: bool,
}

/// Scans the production tokens of the file of a module.
pub(super) fn scan(tokens: &[Token<'_>], module: &[String]) -> Scan {
    let found = Scan { modules: vec![module.to_vec()], ..Scan::default() };
    let mut scanner = Scanner { tokens, current: module.to_vec(), opened: vec![], depth: 0, found };
    let mut at = 0;
    while at < tokens.len() {
        at += scanner.step(at);
    }
    scanner.found
}

struct Scanner<'t, 'a> {
    tokens: &'t [Token<'a>],
    /// The innermost module around the token.
    current: ModulePath,
    /// The depths of braces at which the inline modules around the token begin.
    opened: Vec<usize>,
    depth: usize,
    found: Scan,
}

impl Scanner<'_, '_> {
    /// Scans what is at a token, and returns its number of tokens.
    fn step(&mut self, at: usize) -> usize {
        match &self.tokens[at..] {
            [word, name, end, ..] if word.is("mod") && name.kind == Kind::Word => {
                self.module(name.text, end.is("{"))
            }
            [word, next, ..] if word.is("use") && !next.is("<") => self.import(at),
            [first, ..] if first.is("{") => {
                self.depth += 1;
                1
            }
            [first, ..] if first.is("}") => self.close(),
            _ => self.code(at),
        }
    }

    fn module(&mut self, name: &str, inline: bool) -> usize {
        let path = joined(&self.current, name);
        if inline {
            self.depth += 1;
            self.opened.push(self.depth);
            self.found.modules.push(path.clone());
            self.current = path;
        } else {
            self.found.children.push(path);
        }
        3
    }

    fn close(&mut self) -> usize {
        if self.opened.pop_if(|depth| *depth == self.depth).is_some() {
            self.current.pop();
        }
        self.depth = self.depth.saturating_sub(1);
        1
    }

    fn import(&mut self, at: usize) -> usize {
        let before = at.checked_sub(1).map(|before| self.tokens[before]);
        let re_export = before.is_some_and(|before| before.is("pub") || before.is(")"));
        let mut tree = UseTree { module: &self.current, re_export, found: Vec::new() };
        let length = tree.read(&self.tokens[at + 1..], &[]);
        self.found.mentions.append(&mut tree.found);
        1 + length
    }

    fn code(&mut self, at: usize) -> usize {
        self.found.functions.extend(function_length(&self.tokens[at..]));
        let path: Vec<_> = path(self.tokens, at).into_iter().map(str::to_owned).collect();
        let length = path.len().max(1) * 3 - 2;
        if path.len() > 1 {
            let module = self.current.clone();
            self.found.mentions.push(Mention { module, path, name: None, re_export: false });
        }
        length
    }
}

fn joined(module: &[String], name: &str) -> ModulePath {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// Returns the words of the path that starts at a token; none where the token is in the middle of
/// one, or in the `in` of a visibility.
fn path<'a>(tokens: &[Token<'a>], at: usize) -> Vec<&'a str> {
    let is_separator = |at: usize| {
        tokens.get(at).is_some_and(|it| it.is(":"))
            && tokens.get(at + 1).is_some_and(|it| it.is(":"))
    };
    let in_the_middle = at >= 2 && is_separator(at - 2);
    if in_the_middle || (at >= 1 && tokens[at - 1].is("in") && tokens[at].is("crate")) {
        return Vec::new();
    }
    let mut words = Vec::new();
    let mut at = at;
    while let Some(word) = tokens.get(at).filter(|token| token.kind == Kind::Word) {
        words.push(word.text);
        if !is_separator(at + 1) {
            break;
        }
        at += 3;
    }
    words
}

/// Returns the number of lines of the function that the tokens begin with.
fn function_length(tokens: &[Token<'_>]) -> Option<usize> {
    let [word, name, ..] = tokens else { return None };
    if !word.is("fn") || name.kind != Kind::Word {
        return None;
    }
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let opens = ["(", "[", "{"].iter().any(|it| token.is(it));
        let length = if opens { group(&tokens[at..]) } else { 1 };
        if token.is(";") {
            return None;
        }
        if token.is("{") {
            return Some(tokens[at + length - 1].last_line - word.line + 1);
        }
        at += length;
    }
    None
}

/// Reads the tree of a `use`.
struct UseTree<'t> {
    module: &'t [String],
    re_export: bool,
    found: Vec<Mention>,
}

impl UseTree<'_> {
    /// Reads a tree below `prefix`, and returns its number of tokens.
    fn read(&mut self, tokens: &[Token<'_>], prefix: &[String]) -> usize {
        let mut path = prefix.to_vec();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            if token.is("{") {
                return at + self.read_list(&tokens[at..], &path);
            }
            if token.is("as") {
                let name = tokens.get(at + 1).map(|name| name.text);
                self.add(path, name);
                return at + 2;
            }
            if token.is(",") || token.is("}") || token.is(";") {
                self.add(path, None);
                return at;
            }
            if token.kind == Kind::Word || token.is("*") {
                path.push(token.text.to_owned());
            }
            at += 1;
        }
        at
    }

    fn read_list(&mut self, tokens: &[Token<'_>], prefix: &[String]) -> usize {
        let mut at = 1;
        while let Some(token) = tokens.get(at) {
            if token.is("}") {
                return at + 1;
            }
            at += if token.is(",") { 1 } else { self.read(&tokens[at..], prefix) };
        }
        at
    }

    fn add(&mut self, mut path: Vec<String>, name: Option<&str>) {
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let Some(last) = path.last().cloned() else { return };
        let name = name.map_or(last, str::to_owned);
        let module = self.module.to_vec();
        self.found.push(Mention { module, path, name: Some(name), re_export: self.re_export });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tokens;

    fn scanned(text: &str) -> Scan {
        scan(&tokens(text), &["a".to_owned()])
    }

    fn mentioned(text: &str) -> Vec<String> {
        let shown = |it: Mention| format!("{}: {}", it.module.join("::"), it.path.join("::"));
        scanned(text).mentions.into_iter().map(shown).collect()
    }

    #[test]
    fn use_trees_are_read_to_their_leaves() {
        let text =
            "use super::{b::{self, C as D}, e::*}; pub use f::G; fn h() -> impl I + use<'a> {}";
        let expected = ["a: super::b", "a: super::b::C", "a: super::e::*", "a: f::G"];
        assert_eq!(mentioned(text), expected);
        let names: Vec<_> = scanned(text).mentions.into_iter().filter_map(|it| it.name).collect();
        assert_eq!(names, ["b", "D", "*", "G"]);
    }

    #[test]
    fn paths_in_code_are_found_once_and_whole() {
        let text = "fn f(x: crate::b::C<super::D>) { e::g::<h::I>(); j.k(); ::std::l(); }";
        let expected = ["a: crate::b::C", "a: super::D", "a: e::g", "a: h::I"];
        assert_eq!(mentioned(text), expected);
        assert_eq!(mentioned("pub(in crate::b) struct C;"), [""; 0]);
    }

    #[test]
    fn modules_are_recognised_by_their_braces() {
        let text = "mod b { mod c; x::y; } mod d; x::z; struct E { f: u8 } x::w;";
        let scan = scanned(text);
        let all = |list: &[ModulePath]| list.iter().map(|it| it.join("::")).collect::<Vec<_>>();
        assert_eq!(all(&scan.modules), ["a", "a::b"]);
        assert_eq!(all(&scan.children), ["a::b::c", "a::d"]);
        assert_eq!(mentioned(text), ["a::b: x::y", "a: x::z", "a: x::w"]);
    }

    #[test]
    fn re_exports_are_marked() {
        let marks = |text: &str| scanned(text).mentions[0].re_export;
        assert!(marks("pub use b::C;") && marks("pub(crate) use b::C;"));
        assert!(!marks("use b::C;") && !marks("#[allow(x)] use b::C;"));
    }

    #[test]
    fn functions_are_measured_with_their_signature() {
        let text = "fn f(\n a: [u8; 2],\n) {\n g();\n}\ntrait T { fn h(); fn i() { fn j() {\n} } }";
        assert_eq!(scanned(text).functions, [5, 2, 2]);
    }
}
