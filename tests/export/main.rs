//! Tests of `boxbuild export`: every form has the same tree, read by our readers and by other projects' programs.
//!
//! Tests that extract an export or install packages run as root. Only root can set the owners and create the devices of an
//! image.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is how a test fails")]

mod command;
mod container;
mod damage;
mod forms;
mod golden;
mod judges;
mod made;
mod ownership;
mod readers;
mod refusals;
mod reproducible;
mod specimens;
