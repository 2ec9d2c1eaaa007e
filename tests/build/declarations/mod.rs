//! Declarations of a Boxfile, and their effect on the box.

mod carried;
mod environment;
mod files;
mod labels;
mod mounts;
mod skills;
