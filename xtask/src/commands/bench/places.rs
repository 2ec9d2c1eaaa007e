//! The same work on the host and in a box, on the virtual host: what the scripts print, and the figures that come of it.

use serde_json::{Map, Value, json};
use testkit::{KitError, Result};

use super::report::median;

/// A work as the scripts name it, and for people.
pub(super) type Work = (&'static str, &'static str);

/// Makes the report of what the script printed.
pub(super) fn report(works: &[Work], printed: &str, emulator: &str) -> Result<Value> {
    let mut found = Map::new();
    for (work, _) in works {
        let [host, shared] = ["host", "box"].map(|place| median_ms(printed, place, work));
        let (host, shared) = (host?, shared?);
        found.insert(
            (*work).to_owned(),
            json!({ "host_ms": host, "box_ms": shared, "ratio": shared / host }),
        );
    }
    Ok(json!({ "works": found, "emulator": emulator }))
}

/// Returns the median of what a work took at a place, in milliseconds.
fn median_ms(printed: &str, place: &str, work: &str) -> Result<f64> {
    let start = format!("took {place} {work} ");
    let taken = printed.lines().filter_map(|line| line.strip_prefix(&start)?.parse::<u32>().ok());
    let taken: Vec<u32> = taken.collect();
    if taken.is_empty() {
        return Err(KitError::malformed("the script's output", format!("it has no {start}")));
    }
    Ok(f64::from(median(taken)) / 1000.0)
}

/// Returns what a person reads of a report.
pub(super) fn table(works: &[Work], report: &Value) -> String {
    let figure = |work: &str, name: &str| report["works"][work][name].as_f64().unwrap_or_default();
    let line = |(work, about): &(&str, &str)| {
        let [host, shared, ratio] = ["host_ms", "box_ms", "ratio"].map(|it| figure(work, it));
        format!("{about:<28}{host:>9.0} ms {shared:>9.0} ms {ratio:>7.1}\n")
    };
    let head = format!("{:<28}{:>12} {:>12} {:>7}\n", "", "host", "box", "ratio");
    head + &works.iter().map(line).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKS: [Work; 2] = [("read", "read it"), ("write", "write it")];

    #[test]
    fn the_medians_of_both_places_are_compared() {
        let printed: String = WORKS
            .iter()
            .flat_map(|(work, _)| {
                [("host", 1000), ("box", 3000), ("box", 9000), ("box", 1)].map(|it| (it, work))
            })
            .map(|((place, taken), work)| format!("took {place} {work} {taken}\n"))
            .collect();
        let report = report(&WORKS, &printed, "QEMU").unwrap();
        assert_eq!(report["works"]["read"], json!({ "host_ms": 1.0, "box_ms": 3.0, "ratio": 3.0 }));
        assert!(table(&WORKS, &report).contains("read it"), "{report}");
        assert!(super::report(&WORKS, "", "QEMU").is_err());
    }
}
