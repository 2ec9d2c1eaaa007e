//! Reads files of the host within bounds, and puts files and directories in place so that a crash
//! leaves the old or the new.
#![forbid(unsafe_code)]

pub mod publish;
