//! Formats the demo's report as a table.

use box_contract::Phase;
use serde_json::Value;

use crate::commands::demo::place;

/// Returns whether the box kept its budget and its command succeeded.
pub(super) fn is_good(report: &Value) -> bool {
    report["within_budget"] == true && report["command"]["status"] == 0
}

/// Formats the report: the host, the time and the budget of each phase, the verdict, and the output of the command.
pub(super) fn for_people(report: &Value, digest: &str) -> String {
    let place = place(report);
    let mut text = format!("\nbox      {digest}\nran on   {place}\n\n");
    text += &format!("{:<8} {:>10} {:>10}\n", "phase", "taken ms", "budget ms");
    for phase in Phase::ALL.map(Phase::name) {
        let taken = report["phases_ms"][phase].as_f64().unwrap_or(f64::NAN);
        let limit = report["budget"][phase].as_u64().map_or("-".to_owned(), |ms| ms.to_string());
        text += &format!("{phase:<8} {taken:>10.1} {limit:>10}\n");
    }
    let within = report["within_budget"] == true;
    text += if within { "verdict  within budget\n\n" } else { "verdict  OVER BUDGET\n\n" };
    let agent = &report["agent"];
    text += &format!("agent    {} is ready on port {}\n", word(&agent["hostname"]), agent["port"]);
    text += &indented(&report["command"]["stdout"]);
    text + &indented(&report["command"]["stderr"])
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

fn indented(output: &Value) -> String {
    word(output).lines().map(|line| format!("         {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(within: bool, status: u8) -> Value {
        json!({
            "host": "virtual", "within_budget": within,
            "phases_ms": { "vmm": 10.0, "kernel": 300.25, "init": 5.0, "ready": 1.0, "total": 316.25 },
            "budget": { "total": 700 },
            "agent": { "hostname": "agent-host", "port": 4088 },
            "command": { "status": status, "stdout": "one\ntwo\n", "stderr": "" },
        })
    }

    #[test]
    fn a_run_is_good_within_its_budget_and_with_status_0() {
        assert!(is_good(&report(true, 0)));
        assert!(!is_good(&report(false, 0)));
        assert!(!is_good(&report(true, 1)));
        assert!(!is_good(&json!({})));
    }

    #[test]
    fn the_table_has_each_phase_and_the_verdict() {
        let text = for_people(&report(false, 0), "sha256:00");
        assert!(text.contains("\nbox      sha256:00\nran on   the virtual host"), "{text}");
        assert!(text.contains("\nkernel        300.2          -\n"), "{text}");
        assert!(
            text.contains("\ntotal         316.2        700\nverdict  OVER BUDGET\n"),
            "{text}"
        );
        assert!(
            text.ends_with(
                "agent    agent-host is ready on port 4088\n         one\n         two\n"
            )
        );
    }
}
