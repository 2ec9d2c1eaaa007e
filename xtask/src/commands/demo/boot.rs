//! Boots the box of a demo under this host's KVM or on the virtual host.

use std::process::Command;

use serde_json::{Value, json};
use testbed::{KitError, Result, VirtualHost, program};
use tool_output::say;

use super::Demo;

/// An example whose box can run under this host's KVM and on the virtual host. Both methods return the launcher's report, with
/// additions of the example.
pub(super) trait Places {
    /// Runs the box under this host's KVM.
    fn under_kvm(&self, demo: &Demo) -> Result<Value>;
    /// Runs the box on the virtual host.
    fn on_virtual_host(&self, demo: &Demo) -> Result<Value>;
}

/// Boots the box and returns the report, with the fields `host` and `clock`.
pub(super) fn boot(demo: &Demo, example: &impl Places) -> Result<Value> {
    match without_kvm(&doctor(demo)?) {
        None => match example.under_kvm(demo) {
            Ok(report) => return Ok(located(report, "kvm", "wall")),
            Err(error) => say::note(&format!("this machine's KVM did not boot the box:\n{error}")),
        },
        // A missing KVM is no error, because the demo then uses the virtual host.
        Some(reason) => say::note(&reason),
    }
    say::note("booting on the virtual host: real libkrun and kernel, emulated CPU, its own clock");
    example.on_virtual_host(demo).map(|report| located(report, "virtual", "virtual"))
}

/// Prints the versions of QEMU and of the virtual host's kernel, on which all times depend.
pub(super) fn note_machine(host: &VirtualHost) -> Result<()> {
    say::note(&format!("on {}", host.machine()?));
    Ok(())
}

/// Returns the report of `boxlaunch doctor`. Its exit code is ignored, because the demo also runs on a host that cannot start
/// boxes.
fn doctor(demo: &Demo) -> Result<Value> {
    let mut boxlaunch = Command::new(&demo.artefacts.boxlaunch);
    let output = program::finish(boxlaunch.args(["doctor", "--json"]))?;
    serde_json::from_slice(&output.stdout).map_err(|error| KitError::Failed {
        command: "boxlaunch doctor".to_owned(),
        status: output.status.to_string(),
        output: format!("{}{error}", String::from_utf8_lossy(&output.stderr)),
    })
}

/// Returns the reason why no box starts with this host's KVM. `None` if boxes start.
fn without_kvm(report: &Value) -> Option<String> {
    if report["boots"] == "kvm" {
        return None;
    }
    let rows = report["rows"].as_array();
    let row = rows.and_then(|rows| rows.iter().find(|row| row["name"] == "kvm"));
    let fact = row.and_then(|row| row["fact"].as_str());
    Some(fact.unwrap_or("this machine's KVM does not work").to_owned())
}

fn located(mut report: Value, host: &str, clock: &str) -> Value {
    report["host"] = json!(host);
    report["clock"] = json!(clock);
    report
}

/// Parses the report of a run.
///
/// # Errors
/// The run has failed. The error contains its messages.
pub(super) fn parse(status: i32, stdout: &[u8], stderr: &[u8]) -> Result<Value> {
    let report: Option<Value> = serde_json::from_slice(stdout).ok().filter(Value::is_object);
    let printed = match report {
        Some(report) if status == 0 => return Ok(report),
        Some(report) => errors(&report),
        None => String::from_utf8_lossy(stdout).into_owned(),
    };
    Err(KitError::Failed {
        command: "boxlaunch run".to_owned(),
        status: format!("exit status: {status}"),
        output: format!("{}{printed}", String::from_utf8_lossy(stderr)),
    })
}

/// Returns the errors of a run as lines. The last output of the box's programs precedes each error.
fn errors(report: &Value) -> String {
    let list = |of: &Value| of.as_array().cloned().unwrap_or_default();
    let word = |of: &Value| of.as_str().unwrap_or_default().to_owned();
    let mut text = String::new();
    for error in list(&report["errors"]) {
        for message in list(&error["said"]) {
            text += &format!("{}:\n{}\n", word(&message["source"]), word(&message["words"]));
        }
        text += &format!("error: {}\n{}\n", word(&error["message"]), word(&error["help"]));
    }
    text
}

#[cfg(test)]
mod tests {
    use box_contract::exit;

    use super::*;

    #[test]
    fn only_a_run_that_reported_counts() {
        let report = br#"{"box":"sha256:00"}"#;
        assert_eq!(parse(0, report, b"").unwrap()["box"], "sha256:00");
        assert!(
            parse(i32::from(exit::OVER_BUDGET), report, b"").is_err(),
            "stopped, so incomplete"
        );
        assert!(parse(1, b"", b"no KVM").unwrap_err().to_string().contains("no KVM"));
        let failed = br#"{"errors":[{"message":"no KVM","said":[{"source":"c","words":"w"}]}]}"#;
        assert!(parse(1, failed, b"").unwrap_err().to_string().contains("c:\nw\nerror: no KVM"));
        assert!(parse(0, b"", b"").is_err());
        assert!(parse(0, b"7", b"").is_err());
    }

    #[test]
    fn the_launcher_says_why_kvm_is_not_used() {
        let rows =
            json!([{ "name": "qemu", "fact": "here" }, { "name": "kvm", "fact": "it stops" }]);
        let report = |boots: Value| json!({ "boots": boots, "rows": rows });
        assert_eq!(without_kvm(&report("kvm".into())), None);
        assert_eq!(without_kvm(&report("emulated".into())).unwrap(), "it stops");
        assert_eq!(without_kvm(&report(Value::Null)).unwrap(), "it stops");
    }

    #[test]
    fn a_report_says_where_it_comes_from() {
        let report = located(json!({ "box": "b" }), "kvm", "wall");
        assert_eq!(report, json!({ "box": "b", "host": "kvm", "clock": "wall" }));
    }
}
