//! Reads a file and the chain of its base files, and merges them into one list of nodes.

use crate::errors::DECLARATION_ERRORS;
use crate::parse::checkout::{Checkout, Reach};
use crate::parse::{Reader, merge, rebase};
use crate::syntax::allowance::Allowance;
use crate::syntax::tree::{Node, Tree};
use crate::{schema, syntax};
use diagnostics::{Diagnostic, Sink, Source, Sources, Span, Spanned, Syntax};
use safe_text::quote;

/// The greatest length of a Boxfile in bytes: 1 MiB.
pub const MAX_SOURCE: usize = 1 << 20;

const BASE: &str = "copy it into the checkout, and write its path there";

/// The greatest number of base files in the chain.
const MAX_BASES: usize = 8;

/// The main file and its bases, after reading and merging.
pub(super) struct Files {
    pub(super) sources: Sources,
    /// The syntax of the main file.
    pub(super) syntax: Syntax,
    /// The declarations of all files, merged.
    pub(super) nodes: Vec<Node>,
    /// The declarations of each base by itself, for [`overridden`](crate::parse::overridden).
    pub(super) bases: Vec<Vec<Node>>,
    pub(super) found: Vec<Diagnostic>,
    /// Whether [`Tree::intact`] is true for all files.
    pub(super) intact: bool,
    /// Whether [`Tree::complete`] is true for all files, and every base can be read.
    pub(super) complete: bool,
    /// The reach of the checkout.
    pub(super) reach: Reach,
}

impl Files {
    /// Returns a sink for errors in the declarations.
    pub(super) fn sink(&self) -> Sink {
        Sink::new(!self.complete)
    }

    /// Returns the declarations `nodes` of one base by themselves. Declarations that are missing in `nodes` may be in
    /// another file, so they are not reported.
    pub(super) fn alone(&self, nodes: Vec<Node>) -> Self {
        let (sources, bases, found) = Default::default();
        let Self { syntax, intact, .. } = *self;
        let reach = self.reach.clone();
        Self { sources, syntax, nodes, bases, found, intact, complete: false, reach }
    }
}

/// Reads the main file and its chain of bases.
pub(super) fn files(
    main: Source,
    reach: &Reach,
    mut load: impl FnMut(&str) -> Result<Source, String>,
) -> Files {
    let (syntax, mut chain) = (main.syntax, Chain { reach: reach.clone(), ..Chain::default() });
    let mut next = chain.add(main, None);
    while let Some(extends) = next {
        next = chain.extend(&extends, &mut load);
    }
    chain.finish(syntax)
}

/// Reads the source at a path, or returns the reason why it cannot be read.
type Load<'l> = &'l mut dyn FnMut(&str) -> Result<Source, String>;

#[derive(Default)]
struct Chain {
    sources: Sources,
    trees: Vec<Tree>,
    /// The bases' paths, relative to the main file's directory.
    paths: Vec<String>,
    found: Vec<Diagnostic>,
    /// Whether the chain has a base that cannot be read.
    unread: bool,
    /// The number of declarations that the remaining files may have.
    allowance: Allowance,
    /// The number of bytes that the directories of the remaining files may add to paths.
    growth: rebase::Growth,
    reach: Reach,
}

impl Chain {
    /// Adds a file to the chain. Returns the path of its base, if it has one. `named` is the path by which another file
    /// extends this one; `None` for the main file.
    fn add(&mut self, source: Source, named: Option<&Spanned<String>>) -> Option<Spanned<String>> {
        let directory = named.and_then(|it| it.value.rsplit_once('/')).map_or("", |it| it.0);
        let sink = Sink::default();
        let help = "a Boxfile holds declarations only; put files into images and skills";
        let readable = sink.check(Diagnostic::check_length(&source.text, MAX_SOURCE, help));
        let tree = readable.map(|()| syntax::read(&source, &mut self.allowance, &sink));
        let mut tree = tree.unwrap_or_default();
        // If the allowance is exceeded, no declaration of a base could be read.
        let extends = extended(&tree.nodes, &sink).filter(|_| !self.allowance.is_exceeded());
        self.unread |= extends.is_none() && tree.nodes.iter().any(is_extends);
        let index = self.sources.push(source);
        rebase::nodes(&mut tree.nodes, schema::TOP, directory, &mut self.growth);
        if let Some(named) = named.filter(|_| self.growth.is_exceeded()) {
            self.found.push(too_long(named));
            self.trees.push(Tree::default());
            return None;
        }
        tree.nodes.iter_mut().for_each(|node| node.set_source(index));
        self.found.extend(sink.into_found().into_iter().map(|it| it.in_source(index)));
        self.trees.push(tree);
        extends.map(|path| Spanned {
            value: rebase::join(directory, &path.value),
            span: Span { source: index, ..path.span },
        })
    }

    /// Reads a base, and returns the path of its base, if it has one.
    fn extend(&mut self, path: &Spanned<String>, load: Load<'_>) -> Option<Spanned<String>> {
        match self.read(path, load) {
            Ok(source) => {
                self.paths.push(path.value.clone());
                self.add(source, Some(path))
            }
            Err(error) => {
                self.unread = true;
                self.found.push(error);
                None
            }
        }
    }

    fn read(&self, path: &Spanned<String>, load: Load<'_>) -> Result<Source, Diagnostic> {
        let error = |reason: &str| {
            DECLARATION_ERRORS.about(
                "base",
                &format!("{}: {reason}", quote(&path.value)),
                path.span,
            )
        };
        if self.paths.len() == MAX_BASES {
            let reason = format!("more than {MAX_BASES} files extend one another");
            return Err(error(&reason).with_help("merge some of the base files into one"));
        }
        let circle = || {
            error("the files extend one another in a circle")
                .with_help("remove `extends` from one of them")
        };
        if self.paths.contains(&path.value) {
            return Err(circle());
        }
        // A file outside of the checkout is not read, because messages show lines of the files that are read.
        Checkout::check(&self.reach, "a base file", path, BASE)?;
        let source = load(&path.value).map_err(|reason| error(&reason))?;
        // The main file's path is unknown here, so a circle back to it is recognized by the file's name and text.
        if self.sources.as_slice().first() == Some(&source) {
            return Err(circle());
        }
        Ok(source)
    }

    fn finish(self, syntax: Syntax) -> Files {
        let intact = self.trees.iter().all(|tree| tree.intact);
        // If a base cannot be read, its declarations are not reported as missing.
        let complete = !self.unread && self.trees.iter().all(|tree| tree.complete);
        // Begins with the farthest base, and merges each file into its base.
        let declared = |tree: Tree| tree.nodes.into_iter().filter(|it| !is_extends(it)).collect();
        let trees: Vec<Vec<Node>> = self.trees.into_iter().map(declared).collect();
        let bases = trees.get(1..).unwrap_or_default().to_vec();
        let merged = trees.into_iter().rev();
        let merged = merged.reduce(|base, over| merge::overlay(base, over, schema::TOP));
        let nodes = merged.unwrap_or_default();
        let (sources, found, reach) = (self.sources, self.found, self.reach);
        Files { sources, syntax, nodes, bases, found, intact, complete, reach }
    }
}

/// Returns the error of a base whose directory makes its paths too long. The base's declarations are dropped.
fn too_long(named: &Spanned<String>) -> Diagnostic {
    let (most, base) = (rebase::MAX_ADDED, quote(&named.value));
    let most = format!("{most} bytes to the paths in them, with {base}");
    DECLARATION_ERRORS.about("base-length", &most, named.span)
}

fn is_extends(node: &Node) -> bool {
    node.name.value == schema::EXTENDS.name
}

/// Returns the path of `extends`.
fn extended(nodes: &[Node], sink: &Sink) -> Option<Spanned<String>> {
    let mut all = nodes.iter().filter(|node| is_extends(node));
    let first = all.next()?;
    if let Some(second) = all.next() {
        let error = DECLARATION_ERRORS.at("extends-twice", second.name.span);
        sink.report(error.with_label(first.name.span, "the first"));
    }
    let path: Spanned<String> = Reader::whole(first, &schema::EXTENDS, sink, Reader::first)?;
    let label = if path.value.starts_with('/') {
        "an absolute path"
    } else if path.value.contains("://") {
        "a URL"
    } else {
        return Some(path);
    };
    sink.report(DECLARATION_ERRORS.about("base-path", label, path.span));
    None
}
