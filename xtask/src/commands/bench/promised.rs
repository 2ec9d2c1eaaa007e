//! The promises of SPECIFICATION.md that benchmarks hold.

use std::process::ExitCode;

use serde_json::Value;
use testkit::Promise;
use testkit::promises::{BUILD_MEMORY, BUILD_OVER_FLOOR, BUILD_OVER_MICROSANDBOX};

use super::peers::Peer;
use crate::say;

/// A promise, and what was measured.
pub(super) type Measured = (Promise, f64);

/// Prints each promise with what was measured; a broken one makes the command fail.
pub(super) fn judge(measured: &[Measured]) -> ExitCode {
    say::result("\npromised in SPECIFICATION.md");
    for it in measured {
        say::result(&line(it));
    }
    let kept = measured.iter().all(|(promise, value)| promise.is_kept_by(*value));
    if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn line((promise, value): &Measured) -> String {
    let verdict = if promise.is_kept_by(*value) { "kept" } else { "BROKEN" };
    let Promise { what, unit, .. } = promise;
    format!("{verdict:<6}  {value:.2} {unit}, {}: {what}", promise.limit()).replace(" ,", ",")
}

/// Returns what the report of the builds says of the promises.
pub(super) fn of_builds(report: &Value) -> Vec<Measured> {
    let programs = report["programs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let figure = |peer: Peer, field: &str| {
        let program = programs.iter().find(|it| it["name"] == peer.name());
        program.and_then(|it| it[field].as_f64()).unwrap_or(f64::NAN)
    };
    let wall = |peer| figure(peer, "wall_s");
    let memory = figure(Peer::Boxbuild, "peak_memory_bytes") / f64::from(1 << 20);
    vec![
        (BUILD_OVER_FLOOR, wall(Peer::Boxbuild) / wall(Peer::Floor)),
        (BUILD_OVER_MICROSANDBOX, wall(Peer::Boxbuild) / wall(Peer::Microsandbox)),
        (BUILD_MEMORY, memory),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn builds_are_compared_with_the_floor_and_the_peer() {
        let program = |peer: Peer, wall: f64| json!({ "name": peer.name(), "wall_s": wall, "peak_memory_bytes": 64 << 20 });
        let report = json!({ "programs": [
            program(Peer::Boxbuild, 3.0), program(Peer::Microsandbox, 4.0), program(Peer::Floor, 2.0),
        ] });
        let values: Vec<f64> = of_builds(&report).iter().map(|(_, value)| *value).collect();
        assert_eq!(values, [1.5, 0.75, 64.0]);
        assert!(of_builds(&json!({})).iter().all(|(it, value)| !it.is_kept_by(*value)));
    }

    #[test]
    fn a_broken_promise_is_marked() {
        let text = line(&(BUILD_MEMORY, 1000.0));
        assert!(text.starts_with("BROKEN  1000.00 MiB, at most 160 MiB: "), "{text}");
        assert!(line(&(BUILD_OVER_FLOOR, 1.0)).starts_with("kept    1.00, at most 3: "));
    }
}
