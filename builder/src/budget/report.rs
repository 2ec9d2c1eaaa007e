//! A measurement as a table and as JSON.

use box_contract::{Budget, ErrorCode, Overrun, Phase, Phases};
use box_digest::Digest;
use cli_common::Problem;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Measurement;

/// Explains virtual time to a first-time reader.
const VIRTUAL_TIME: &str =
    "virtual time: 1 ns per instruction; compare it with other virtual times only";

/// Two boxes that were measured in the same way.
#[derive(Debug, Clone, Copy)]
pub struct Comparison<'m> {
    /// The older box, with whose times the times of `new` are compared.
    pub old: &'m Measurement,
    /// The measured box. The report shows its budget.
    pub new: &'m Measurement,
}

impl Comparison<'_> {
    /// Returns the median of a phase as a multiple of the old box's median. `None` if the old median is zero.
    pub fn ratio(&self, phase: Phase) -> Option<f64> {
        let median = |measured: &Measurement| measured.figures(phase).median;
        (median(self.old) > 0.0).then(|| median(self.new) / median(self.old))
    }
}

/// Renders a measurement: the limit and the time of each phase, the floor and the machine. With `old`, the table also
/// has the times of the older box. `advice` explains how to add a budget to a box that has none.
pub fn table(measured: &Measurement, old: Option<&Measurement>, advice: &str) -> String {
    let old = old.map(|old| Comparison { old, new: measured });
    let mut table = format!("{:<8}{:>10}{:>12}{:>21}", "phase", "allowed", "taken", "min to max");
    table += if old.is_some() { "      before   ratio\n" } else { "\n" };
    let over = measured.excess();
    for phase in Phase::ALL {
        table += &row(measured, phase, old, over.iter().find(|it| it.phase == phase));
    }
    table + &footer(measured, old, advice)
}

fn row(
    measured: &Measurement,
    phase: Phase,
    old: Option<Comparison<'_>>,
    over: Option<&Overrun>,
) -> String {
    let figures = measured.figures(phase);
    let limit = measured.budget.limit(phase);
    let allowed = limit.map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms"));
    let range = format!("{:.1} to {:.1} ms", figures.min, figures.max);
    let taken = ms(figures.median);
    let mut row = format!("{:<8}{allowed:>10}{taken:>12}{range:>21}", phase.name());
    if let Some(both) = old {
        let ratio = both.ratio(phase).map_or_else(|| "-".to_owned(), |it| format!("{it:.2}"));
        row += &format!("{:>12}{ratio:>8}", ms(both.old.figures(phase).median));
    }
    if let Some(over) = over {
        row += &format!("   over by {}", ms(excess(over)));
    }
    row + "\n"
}

/// Returns the lines below the phases.
fn footer(measured: &Measurement, old: Option<Comparison<'_>>, advice: &str) -> String {
    let (floor, ratio) = (ms(measured.floor_ms), measured.over_floor());
    let mut lines = format!(
        "\nfloor: {floor} for the same kernel with an init that only connects; the box takes {ratio:.2} times that\n"
    );
    if measured.machine.cpus < measured.cpus {
        lines += &format!("the box's {} CPUs share one emulated CPU\n", measured.cpus);
    }
    if let Some(Comparison { old, .. }) = old {
        lines += &format!("before: {}, {}\n", old.name, old.digest);
    }
    if measured.budget == Budget::default() {
        lines += &format!("the box has no budget: {advice}\n");
    }
    let (runs, machine) = (measured.runs.len(), &measured.machine);
    let starts = if runs == 1 { "start" } else { "starts" };
    lines + &format!("{runs} {starts} on {machine}\n{VIRTUAL_TIME}\n")
}

/// Returns the result as one object: `boxbuild budget --json`.
pub fn json(measured: &Measurement, old: Option<&Measurement>) -> Value {
    let excess = measured.excess();
    let mut report = about(measured);
    report["budget"] = json!(measured.budget);
    report["within_budget"] = json!(excess.is_empty());
    report["excess"] = json!(excess);
    report["machine"] = json!(measured.machine);
    report["compared"] = json!(old.map(|old| {
        let both = Comparison { old, new: measured };
        let mut compared = about(old);
        compared["ratio"] = by_phase(|phase| json!(both.ratio(phase)));
        compared
    }));
    report
}

/// The longest time that [`read`] accepts, in milliseconds: no start takes days.
const MAX_MS: f64 = 1e9;

/// Reads the box digest and the times from the object of [`json()`], or from the report of `boxlaunch run --json`. Of several starts,
/// the times are the medians.
///
/// # Errors
/// The text is no such object, or a time is negative, or longer than eleven days.
pub fn read(text: &[u8]) -> serde_json::Result<(Digest, Phases)> {
    #[derive(Deserialize)]
    struct Start {
        #[serde(rename = "box")]
        digest: Digest,
        phases_ms: Map<String, Value>,
    }
    let Start { digest, mut phases_ms } = serde_json::from_slice(text)?;
    for time in phases_ms.values_mut() {
        if let Some(median) = time.get("median") {
            *time = median.clone();
        }
    }
    for time in phases_ms.values_mut() {
        // -0.0 is not negative, but would be shown with its sign.
        if time.as_f64() == Some(0.0) {
            *time = Value::from(0.0);
        }
    }
    let phases: Phases = serde_json::from_value(Value::Object(phases_ms))?;
    if Phase::ALL.into_iter().any(|it| !(0.0..=MAX_MS).contains(&phases.of(it))) {
        return Err(serde::de::Error::custom("a time is negative, or longer than eleven days"));
    }
    Ok((digest, phases))
}

/// Returns the error of a box that exceeds its budget. `None` for other boxes.
pub fn exceeded(measured: &Measurement) -> Option<Problem> {
    let over = |it: &Overrun| {
        format!("{} took {}, {} ms are allowed", it.phase.name(), ms(it.taken_ms), it.limit_ms)
    };
    let over: Vec<String> = measured.excess().iter().map(over).collect();
    let help =
        "make the start shorter, or set another `budget` in the Boxfile and build the box again";
    let message = format!("the start takes longer than the budget allows: {}", over.join("; "));
    (!over.is_empty()).then(|| Problem::new((ErrorCode::OverBudget, help), message))
}

/// Returns the fields that both boxes of a comparison have.
fn about(measured: &Measurement) -> Value {
    json!({
        "box": measured.digest,
        "name": measured.name,
        "runs": measured.runs.len(),
        "phases_ms": by_phase(|phase| json!(measured.figures(phase))),
        "floor_ms": measured.floor_ms,
        "over_floor": measured.over_floor(),
    })
}

fn by_phase(value: impl Fn(Phase) -> Value) -> Value {
    Phase::ALL.into_iter().map(|phase| (phase.name().to_owned(), value(phase))).collect()
}

/// Returns by how many milliseconds a phase was over its limit.
#[allow(clippy::cast_precision_loss, reason = "a limit is far below 2^53 ms")]
fn excess(over: &Overrun) -> f64 {
    over.taken_ms - over.limit_ms as f64
}

fn ms(time: f64) -> String {
    format!("{time:.1} ms")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::measurement::tests::measurement;

    const BUDGET: Budget = Budget {
        vmm: None,
        jail: None,
        kernel: Some(150),
        init: Some(60),
        ready: None,
        total: Some(400),
    };

    const ADVICE: &str = "one is put into its Boxfile";

    #[test]
    fn the_table_shows_limits_times_and_what_is_over() {
        let measured = measurement(BUDGET, &[312.25, 310.0, 314.0]);
        insta::assert_snapshot!(table(&measured, None, ADVICE));
    }

    #[test]
    fn a_box_without_a_budget_is_shown_with_a_hint() {
        let measured = measurement(Budget::default(), &[312.0]);
        assert!(table(&measured, None, ADVICE).contains("has no budget"));
        assert!(
            !table(&Measurement { budget: BUDGET, ..measured }, None, ADVICE).contains("no budget")
        );
    }

    #[test]
    fn the_error_names_each_phase_that_is_over() {
        let text = |totals| exceeded(&measurement(BUDGET, totals)).map(|it| it.text());
        assert_eq!(text(&[300.0]), None);
        insta::assert_snapshot!(text(&[410.0]).unwrap());
    }

    #[test]
    fn two_boxes_are_side_by_side() {
        let old = measurement(Budget::default(), &[260.0]);
        let mut new = measurement(BUDGET, &[312.25, 310.0, 314.0]);
        new.runs.iter_mut().for_each(|run| run.init = 0.0);
        insta::assert_snapshot!(table(&new, Some(&old), ADVICE));
        let mut none = old.clone();
        none.runs[0].init = 0.0;
        assert_eq!(Comparison { old: &none, new: &new }.ratio(Phase::Init), None);
    }

    #[test]
    fn a_measurement_is_read_back() {
        let measured = measurement(BUDGET, &[312.0, 310.0, 314.0]);
        let text = json(&measured, None).to_string();
        assert_eq!(read(text.as_bytes()).unwrap(), (measured.digest, measured.medians()));
        let one = json!({ "box": measured.digest, "phases_ms": measured.runs[0] }).to_string();
        assert_eq!(read(one.as_bytes()).unwrap().1, measured.runs[0]);
        for wrong in ["-1", "\"1\"", "1e10", "1e300"].map(|it| one.replace("312.0", it)) {
            assert!(read(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(read(b"").is_err() && read(b"{}").is_err());
        let zero = read(one.replace("312.0", "-0.0").as_bytes()).unwrap().1;
        assert!(Phase::ALL.into_iter().all(|it| zero.of(it).is_sign_positive()), "{zero:?}");
    }

    #[test]
    fn the_object_has_the_promised_fields() {
        let measured = measurement(BUDGET, &[312.0, 310.0, 314.0]);
        insta::assert_snapshot!(serde_json::to_string_pretty(&json(&measured, None)).unwrap());
        let both = json(&measured, Some(&measured));
        assert_eq!(both["compared"]["ratio"]["total"], 1.0);
        assert_eq!(both["compared"]["box"], both["box"]);
    }
}
