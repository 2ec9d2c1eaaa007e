//! The trees that boxbuild makes of images, compared with those that umoci, an independent program,
//! unpacks from the same images. umoci is Debian's; it runs as root, for owners and devices.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is how a test fails")]

mod compare;
mod divergences;
mod listing;
mod ours;
mod real;
mod stacks;
mod theirs;
mod writers;
