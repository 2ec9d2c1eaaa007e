//! Checks the benchmarks' results against the promises of SPECIFICATION.md.

use std::process::ExitCode;

use serde_json::Value;
use testbed::promises::{BOXBUILD_SIZE, BUILD_MEMORY, BUILD_OVER_FLOOR, BUILD_OVER_MICROSANDBOX};
use testbed::promises::{MEASURED_FILE, note_to};
use testbed::promises::{RUN_OVER_FLOOR, RUN_OVER_MICROSANDBOX};
use testbed::promises::{
    SHIP_AGAIN, SHIP_FIRST, SHIP_SECOND_FETCHED, SHIP_SECOND_STORED, SHIP_SKILL, SHIP_VARIABLE,
};
use testbed::{Promise, Workspace};
use tool_output::say;

use super::peers::Peer;
use super::start::Starter;

/// A promise and the measured value, in the promise's unit.
pub(super) type Measured = (Promise, f64);

/// Prints each promise with its measured value, and notes the value for SPECIFICATION.md. Returns failure if a promise is broken.
pub(super) fn judge(measured: &[Measured]) -> ExitCode {
    say::result("\npromised in SPECIFICATION.md");
    let noted = Workspace::find().target(MEASURED_FILE);
    for it in measured {
        note_to(&noted, &it.0, it.1);
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

/// Returns the promises on builds with their values from the report.
pub(super) fn of_builds(report: &Value) -> Vec<Measured> {
    let wall = |peer: Peer| figure(report, peer.name(), "wall_s");
    let mib = f64::from(1 << 20);
    let memory = figure(report, Peer::Boxbuild.name(), "peak_memory_bytes") / mib;
    let size = report["boxbuild_bytes"].as_f64().unwrap_or(f64::NAN) / mib;
    vec![
        (BUILD_OVER_FLOOR, wall(Peer::Boxbuild) / wall(Peer::Floor)),
        (BUILD_OVER_MICROSANDBOX, wall(Peer::Boxbuild) / wall(Peer::Microsandbox)),
        (BUILD_MEMORY, memory),
        (BOXBUILD_SIZE, size),
    ]
}

/// Returns the promises on starts with their values from the report.
pub(super) fn of_starts(report: &Value) -> Vec<Measured> {
    let taken = |starter: Starter| figure(report, starter.name(), "median_ms");
    let ours = taken(Starter::Boxlaunch);
    vec![
        (RUN_OVER_FLOOR, ours / taken(Starter::Floor)),
        (RUN_OVER_MICROSANDBOX, ours / taken(Starter::Microsandbox)),
    ]
}

/// Returns the promises on transfers with their values from the report.
pub(super) fn of_ships(report: &Value) -> Vec<Measured> {
    let figure =
        |pointer: &str| report.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let megabytes = |pointer: &str| figure(pointer) / 1e6;
    let requests = report["again"]["requests"].as_array().map_or(f64::NAN, |it| it.len() as f64);
    vec![
        (SHIP_FIRST, 100.0 * (1.0 - figure("/first_over_gzip"))),
        (SHIP_SECOND_FETCHED, megabytes("/second/pull/down")),
        (SHIP_SECOND_STORED, megabytes("/second/stored")),
        (SHIP_VARIABLE, figure("/variable/pull/down") / 1e3),
        (SHIP_SKILL, megabytes("/skill/pull/down")),
        (SHIP_AGAIN, requests),
    ]
}

/// Returns a figure of a program in the report. Returns NaN, which breaks every promise, if the report lacks it.
fn figure(report: &Value, program: &str, field: &str) -> f64 {
    let programs = report["programs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let program = programs.iter().find(|it| it["name"] == program);
    program.and_then(|it| it[field].as_f64()).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn builds_are_compared_with_the_floor_and_the_peer() {
        let program = |peer: Peer, wall: f64| json!({ "name": peer.name(), "wall_s": wall, "peak_memory_bytes": 64 << 20 });
        let report = json!({ "boxbuild_bytes": 8 << 20, "programs": [
            program(Peer::Boxbuild, 3.0), program(Peer::Microsandbox, 4.0), program(Peer::Floor, 2.0),
        ] });
        let values: Vec<f64> = of_builds(&report).iter().map(|(_, value)| *value).collect();
        assert_eq!(values, [1.5, 0.75, 64.0, 8.0]);
        assert!(of_builds(&json!({})).iter().all(|(it, value)| !it.is_kept_by(*value)));
    }

    #[test]
    fn starts_are_compared_with_the_floor_and_the_peer() {
        let program = |it: Starter, ms: f64| json!({ "name": it.name(), "median_ms": ms });
        let report = json!({ "programs": [
            program(Starter::Floor, 300.0), program(Starter::Boxlaunch, 360.0),
            program(Starter::Lean, 90.0), program(Starter::Microsandbox, 900.0),
        ] });
        let values: Vec<f64> = of_starts(&report).iter().map(|(_, value)| *value).collect();
        assert_eq!(values, [1.2, 0.4]);
    }

    #[test]
    fn a_broken_promise_is_marked() {
        let text = line(&(BUILD_MEMORY, 1000.0));
        let limit = BUILD_MEMORY.limit();
        assert!(text.starts_with(&format!("BROKEN  1000.00 MiB, {limit}: ")), "{text}");
        let limit = BUILD_OVER_FLOOR.limit();
        assert!(line(&(BUILD_OVER_FLOOR, 1.0)).starts_with(&format!("kept    1.00, {limit}: ")));
    }
}
