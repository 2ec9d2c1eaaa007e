//! Starts many environments side by side, each with a project of its own.

use std::time::Duration;

use super::{Outcome, run_script};

/// The timeout in real time. Twenty environments take ten minutes.
const MAX_TIME: Duration = Duration::from_secs(2 * 60 * 60);
/// The virtual host's memory, in MiB.
const MEMORY: u32 = 5000;

/// Starts the environments, writes to each project in its box, and stops them. Prints the virtual time at each step, in seconds.
const SCRIPT: &str = r#"
t() { echo "$1 $(cut -d' ' -f1 /proc/uptime)"; }
each() { i=0; while [ $i -lt $count ]; do mkdir -p /src/page$i; cd /src/page$i; "$@" || { echo "failed: $* in $PWD"; exit 1; }; i=$((i+1)); done; }
start() { boxlaunch up -q --box /deaf >/dev/null; }
use() { boxlaunch exec -q -u 0 --in business . -- sh -c 'echo $0 >own; echo $0 >/tmp/own; ls' $i >seen; }
check() { [ "$(cat own)" = $i ] && [ "$(boxlaunch exec --in business . cat /tmp/own)" = $i ] && [ "$(cat seen | tr '\n' ' ')" = 'own seen ' ]; }
stop() { boxlaunch down -q -t 0 >/dev/null; }
mkdir -p /root; export HOME=/root; chmod 755 /src 2>/dev/null
t start; each start; t started
[ $(boxlaunch ps -n | wc -l) = $count ] || { boxlaunch ps; exit 1; }
each use; each check; t used; each stop; t stopped
[ $(boxlaunch ps -n | wc -l) = 0 ]"#;

pub(super) fn run(count: u32) -> Outcome {
    let script = format!("count={count}\n{SCRIPT}");
    run_script(&script, MEMORY, MAX_TIME, |host, _| host)
}
