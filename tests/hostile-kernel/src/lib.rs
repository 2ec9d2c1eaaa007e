//! A guest kernel that is hostile to the host: it sends requests to the VM's devices that Linux would not send.
//!
//! In a box with shares, the guest's kernel sends the FUSE requests to libkrun. This kernel makes the attacks of
//! [`attacks::ALL`] on a read-only and on a writable share. It reports on the console, and ends the VM after the last attack
//! or after an attack that a device did not survive.
//!
//! The file `attacks` in the writable share has the number of the first attack, of the last attack, and of the look-ups in a
//! flood. With it, a test continues after an attack that has ended the VM.
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
