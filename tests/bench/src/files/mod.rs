//! `boxbuild-bench --files`: measures file operations on a share, in a box and on the host. Both run on one virtual host.

use std::time::Duration;

use testbed::prerequisites::Package;

use super::places::{Contest, Work};
use super::with_mke2fs;
use crate::Outcome;

/// The memory of the virtual host in MiB.
const MEMORY_MIB: u32 = 4096;
/// The timeout of the run. Small files take most of the time.
const MAX_TIME: Duration = Duration::from_secs(7200);
/// The size of the virtual host's disk with the share, in MiB.
const DISK_MIB: u32 = 2048;
/// The size of the large file in MiB.
const LARGE_MIB: u32 = 1000;
/// The operations: the name in the script, and the label in the table.
const WORKS: [Work; 6] = [
    ("write", "write 1000 MiB, and fsync"),
    ("read", "read it"),
    ("make", "make small files"),
    ("list", "list them with `ls -l`"),
    ("read-small", "read them"),
    ("remove", "remove them"),
];
const BOXFILE: &str = "box \"files\"
agent {
    image \"oci:images/business\"
    entrypoint \"/bin/sleep\" \"infinity\"
    health \"none\"
    limits memory=\"256MiB\"
}
vm cpus=1 memory=\"512MiB\"
";

/// Measures, prints a table and writes `target/bench/files.json`.
pub(super) fn run(runs: u32, count: u32) -> Outcome {
    let contest = Contest {
        name: "files",
        works: &WORKS,
        boxfile: BOXFILE,
        script: include_str!("script.sh"),
        work: include_str!("work.sh"),
        amounts: &[("SIZE", LARGE_MIB), ("COUNT", count)],
        packages: &[Package::E2fs],
    };
    contest.run(runs, |host, _, _| {
        with_mke2fs(host.memory(MEMORY_MIB).result_disk(DISK_MIB).time_limit(MAX_TIME))
    })
}
