//! Declarations of a Boxfile, and their effect on the box.

mod carried;
mod environment;
mod labels;
mod mounts;
mod skills;
