//! `boxbuild-bench --network`: measures downloads from another host, in a box through its filter and on the box's host. Both
//! run on one virtual host.

use std::time::Duration;

use testbed::{Artefacts, program};

use super::places::{Contest, Work};
use crate::Outcome;

/// The memory of the virtual host in MiB.
const MEMORY_MIB: u32 = 2048;
/// The timeout of the run.
const MAX_TIME: Duration = Duration::from_secs(1800);
/// The size of the large file in bytes, and the number of small ones.
const AMOUNTS: [(&str, u32); 2] = [("SIZE", 30_000_000), ("COUNT", 20)];
/// The downloads: the name in the script, and the label in the table.
const WORKS: [Work; 4] = [
    ("proxy-large", "30 MB, by the proxy"),
    ("direct-large", "30 MB, by its name alone"),
    ("proxy-small", "20 programs, one request each"),
    ("direct-small", "the same by the name alone"),
];
/// The Boxfile of the measured box. Its rate limit is so high that it has no effect.
const BOXFILE: &str = "box \"network\"
agent {
    image \"oci:images/business\"
    entrypoint \"/bin/sleep\" \"infinity\"
    health \"none\"
    limits memory=\"64MiB\"
}
network \"filtered\" {
    allow \"*.test.example\" \"127.0.0.2\"
    limits rate=\"16GiB\"
}
vm cpus=1 memory=\"256MiB\"
";

/// Measures, prints a table and writes `target/bench/network.json`.
pub(super) fn run(runs: u32) -> Outcome {
    let contest = Contest {
        name: "network",
        works: &WORKS,
        boxfile: BOXFILE,
        script: include_str!("script.sh"),
        work: include_str!("work.sh"),
        amounts: &AMOUNTS,
        packages: &[],
    };
    contest.run(runs, |host, workspace, programs| {
        program::run(&mut Artefacts::peers_build(workspace))?;
        let host = host.memory(MEMORY_MIB).time_limit(MAX_TIME);
        Ok(host.file(&programs.peers, "/bin/peers"))
    })
}
