//! Reads the project's own Rust code as far as its figures need it: which lines are code, which
//! files are modules of which crate, and which file imports which.
//!
//! ```text
//! package      cargo metadata → packages, and which of them the shipped programs are made of
//! token        text → tokens, without comments
//! production   tokens → tokens without tests
//! scan         tokens → the modules, functions and paths in them
//! modules      a crate's root file → its files, each with its modules and the paths that it names
//! imports      files → which file imports which
//! circles      imports → groups of files that import each other
//! ```
//!
//! Nothing is expanded or type-checked. What a macro makes is not seen.

mod circles;
mod imports;
mod modules;
mod package;
mod production;
mod scan;
mod token;

pub(crate) use circles::circles;
pub(crate) use imports::imports;
pub(crate) use modules::{Crate, SourceFile, code_lines};
pub(crate) use package::{Package, packages};
use production::production;
use token::{Token, tokens};
