//! Tests of a Boxfile's declarations and of their effect on the box.

mod agent_config;
mod carried;
mod environment;
mod files;
mod labels;
mod mounts;
mod skills;
