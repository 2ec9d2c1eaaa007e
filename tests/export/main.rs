//! `boxbuild export`: one tree in every form, read back by ours and by other people's programs.
//!
//! Tests that extract something run as root, as the tests do that install packages: only root can make
//! the owners and devices of an image.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is how a test fails")]

mod command;
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
