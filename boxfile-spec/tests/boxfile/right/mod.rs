//! Valid files and their models.

mod canonical;
mod components;
mod defaults;
mod example;
mod extends;
mod files;
mod images;
mod kdl;
mod profiles;
mod run;

use boxfile_spec::{Boxfile, parse};

const MIB: u64 = 1 << 20;

/// Parses `lines` after a valid box and agent.
fn file(lines: &str) -> Boxfile {
    good(&format!("box b\nagent {{ image \"oci:i\"; }}\n{lines}\n"))
}

/// Parses a file whose agent has an image and the declarations `lines`. Returns the agent.
fn agent(lines: &str) -> boxfile_spec::Agent {
    good(&format!("box b\nagent {{\nimage \"oci:i\"\n{lines}\n}}\n")).agent
}

/// Parses a file that must be valid.
fn good(text: &str) -> Boxfile {
    parse(text).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
