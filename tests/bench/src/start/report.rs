//! The report on starts: the programs, the virtual host, and the times.

use serde_json::{Map, Value, json};
use testbed::{KitError, Result};

use super::MEMORY_MIB;
use crate::report::median;

/// A compared program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Starter {
    /// libkrun alone, with a kernel and an init that connects to the host.
    Floor,
    /// `boxlaunch run` of a box of the image, with the floor's kernel.
    Boxlaunch,
    /// `boxlaunch run` of a box of the image, with the lean kernel.
    Lean,
    /// `msb run` of the same image.
    Microsandbox,
}

impl Starter {
    pub(super) const ALL: [Self; 4] =
        [Self::Floor, Self::Boxlaunch, Self::Lean, Self::Microsandbox];

    /// Returns the program's name in the script and in the report.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Boxlaunch => "boxlaunch",
            Self::Lean => "lean",
            Self::Microsandbox => "microsandbox",
        }
    }

    /// Returns the measured command, for the table.
    const fn command(self) -> &'static str {
        match self {
            Self::Floor => "boxlaunch floor KERNEL 1 512",
            Self::Boxlaunch => "boxlaunch run BOX -- /bin/true",
            Self::Lean => "the same, kernel \"lean\"",
            Self::Microsandbox => "msb run --entrypoint /bin/true IMAGE",
        }
    }
}

/// Makes the report from the script's output.
///
/// # Errors
/// If the output lacks a program.
pub(super) fn of(printed: &str, machine: &str) -> Result<Value> {
    let programs: Result<Vec<Value>> =
        Starter::ALL.iter().map(|it| program(*it, printed)).collect();
    let programs = programs?;
    let facts: Map<String, Value> = printed
        .lines()
        .filter_map(|line| line.strip_prefix("fact ")?.split_once(' '))
        .map(|(name, text)| (name.replace('-', "_"), json!(text)))
        .collect();
    Ok(json!({
        "clock": "virtual: 1 ns per instruction",
        "machine": machine,
        "facts": facts,
        "host_memory_mib": MEMORY_MIB,
        "guest": { "cpus": 1, "memory_mib": 512 },
        "runs": programs.first().map_or(0, |it| it["ms"].as_array().map_or(0, Vec::len)),
        "programs": programs,
    }))
}

fn program(starter: Starter, printed: &str) -> Result<Value> {
    let prefix = format!("took {} ", starter.name());
    let lines = printed.lines().filter_map(|line| line.strip_prefix(&prefix));
    let mut taken: Vec<u32> = lines.filter_map(|text| text.parse().ok()).collect();
    let ms = |micros: u32| f64::from(micros) / 1000.0;
    let all: Vec<f64> = taken.iter().copied().map(ms).collect();
    taken.sort_unstable();
    let (Some(least), Some(most)) = (taken.first(), taken.last()) else {
        return Err(KitError::malformed("the script's output", format!("no {}", starter.name())));
    };
    Ok(json!({
        "name": starter.name(),
        "command": starter.command(),
        "median_ms": ms(median(taken.iter().copied())),
        "min_ms": ms(*least),
        "max_ms": ms(*most),
        "ms": all,
    }))
}

/// Formats the report as a table. The last column is the program's time divided by the floor's.
pub(super) fn for_people(report: &Value) -> String {
    let programs = report["programs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let figure = |program: &Value, field: &str| program[field].as_f64().unwrap_or(f64::NAN);
    let floor = programs.first().map_or(f64::NAN, |it| figure(it, "median_ms"));
    let word = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let mut text = format!(
        "\n{}\n{}, guest kernels {} and {}\n{}, guest kernel {}\n\
         {} warm runs in turn, virtual time (1 ns per instruction)\n\n\
         {:<38} {:>9} {:>9} {:>9} {:>7}\n",
        word(&report["machine"]),
        word(&report["facts"]["boxlaunch"]),
        word(&report["facts"]["boxlaunch_kernel"]),
        word(&report["facts"]["lean_kernel"]),
        word(&report["facts"]["microsandbox"]),
        word(&report["facts"]["microsandbox_kernel"]),
        report["runs"],
        "from start to exit, ms",
        "median",
        "min",
        "max",
        "floor ×"
    );
    for program in programs {
        let [median, min, max] =
            ["median_ms", "min_ms", "max_ms"].map(|field| figure(program, field));
        let (command, times) = (word(&program["command"]), median / floor);
        text += &format!("{command:<38} {median:>9.1} {min:>9.1} {max:>9.1} {times:>7.2}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "fact boxlaunch boxlaunch 0.1.0\n\
        took floor 300000\ntook boxlaunch 360000\ntook lean 90000\ntook microsandbox 930500\n\
        took floor 310000\ntook boxlaunch 350000\ntook microsandbox 960000\n\
        took floor 290000\ntook boxlaunch 400000\ntook microsandbox 940000\n";

    #[test]
    fn medians_and_extremes_are_reported_with_where_it_ran() {
        let report = of(PRINTED, "QEMU 7.2.22, q35").unwrap();
        assert_eq!(report["runs"], 3);
        assert_eq!(report["facts"]["boxlaunch"], "boxlaunch 0.1.0");
        let boxlaunch = &report["programs"][1];
        assert_eq!(boxlaunch["ms"], json!([360.0, 350.0, 400.0]));
        let row = ["median_ms", "min_ms", "max_ms"].map(|field| boxlaunch[field].as_f64().unwrap());
        assert_eq!(row, [360.0, 350.0, 400.0]);
        let text = for_people(&report);
        let last: Vec<&str> = text.lines().last().unwrap().split_whitespace().rev().collect();
        assert_eq!(last[..4], ["3.13", "960.0", "930.5", "940.0"], "{text}");
        assert!(text.contains("\nQEMU 7.2.22, q35\nboxlaunch 0.1.0, "));
    }

    #[test]
    fn a_program_that_did_not_run_is_an_error() {
        let printed = PRINTED.replace("took boxlaunch", "said");
        assert!(of(&printed, "").unwrap_err().to_string().contains("boxlaunch"));
    }
}
