//! What a Boxfile declares, and what becomes of it in the box.

mod carried;
mod environment;
mod labels;
mod mounts;
mod skills;
