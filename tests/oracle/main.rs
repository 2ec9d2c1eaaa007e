//! Compares boxbuild's trees of images with the trees that umoci, an independent program, unpacks from the same images. umoci
//! is Debian's package, and runs as root to set owners and create devices.
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
