//! A kernel that is hostile to the host: it speaks to the devices of its machine as no Linux would.
//!
//! Of a box that is given directories of the host, the guest's kernel is what sends the requests of FUSE to libkrun. This
//! one makes [`attacks::ALL`] on both kinds of directories, one to read and one to write. It says what it does on the
//! console, and ends the machine after the last one, or after one that a device did not survive.
//!
//! The numbers of the first attack to make and of the last, and how many look-ups are a flood, are in the file `attacks` of
//! the directory to write: so whoever runs it continues after one that has ended the machine.
#![no_std]
#![deny(unsafe_code)]

pub mod attacks;
pub mod boot;
pub mod console;
mod entry;
pub mod fs;
pub mod ground;
pub mod machine;
pub mod text;
pub mod virtio;
