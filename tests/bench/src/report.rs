//! The report on builds: each program's medians, and boxbuild's relative to them.

use std::time::Duration;

use serde_json::{Value, json};

use super::measure::Sample;
use super::peers::Peer;

/// Returns the median of some figures, the larger one if two are in the middle.
pub(super) fn median<T: Ord + Copy + Default>(figures: impl IntoIterator<Item = T>) -> T {
    let mut figures: Vec<T> = figures.into_iter().collect();
    figures.sort_unstable();
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

/// Makes the report from all samples.
pub(super) fn of(samples: &[(Peer, Vec<Sample>)]) -> Value {
    let peers = samples.iter().map(|(peer, list)| {
        let seconds = |field: fn(&Sample) -> Duration| median(list.iter().map(field)).as_secs_f64();
        let walls: Vec<f64> = list.iter().map(|it| it.wall.as_secs_f64()).collect();
        json!({
            "name": peer.name(),
            "wall_s": seconds(|it| it.wall),
            "user_s": seconds(|it| it.user),
            "system_s": seconds(|it| it.system),
            "peak_memory_bytes": median(list.iter().map(|it| it.memory)),
            "walls_s": walls,
        })
    });
    json!({ "runs": samples.first().map_or(0, |(_, list)| list.len()),
            "programs": peers.collect::<Vec<_>>() })
}

/// Formats the report as a table. The last two columns are boxbuild's figures divided by the program's.
pub(super) fn for_people(report: &Value) -> String {
    let programs = report["programs"].as_array().cloned().unwrap_or_default();
    let figure = |program: &Value, field: &str| program[field].as_f64().unwrap_or(f64::NAN);
    let cpu = |program: &Value| figure(program, "user_s") + figure(program, "system_s");
    let ours = programs.first().cloned().unwrap_or_default();
    let mut text = format!(
        "\nmedians of {} cold runs, in turn\n\n{:<30} {:>7} {:>7} {:>7} {:>9} {:>10} {:>9}\n",
        report["runs"], "", "wall s", "user s", "sys s", "peak MiB", "ours: wall", "ours: CPU"
    );
    for program in &programs {
        text += &format!(
            "{:<30} {:>7.2} {:>7.2} {:>7.2} {:>9.0} {:>9.2}x {:>8.2}x\n",
            program["name"].as_str().unwrap_or("?"),
            figure(program, "wall_s"),
            figure(program, "user_s"),
            figure(program, "system_s"),
            figure(program, "peak_memory_bytes") / f64::from(1 << 20),
            figure(&ours, "wall_s") / figure(program, "wall_s"),
            cpu(&ours) / cpu(program),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(seconds: u64) -> Sample {
        let time = Duration::from_secs(seconds);
        Sample { wall: time, user: time, system: Duration::ZERO, memory: seconds << 20 }
    }

    #[test]
    fn medians_are_compared_with_the_first() {
        let samples = [
            (Peer::Boxbuild, [3, 1, 2].map(sample).to_vec()),
            (Peer::Umoci, [8, 100, 1].map(sample).to_vec()),
        ];
        let report = of(&samples);
        assert_eq!(report["programs"][0]["wall_s"], 2.0);
        assert_eq!(report["programs"][1]["peak_memory_bytes"], 8 << 20);
        let text = for_people(&report);
        let last = text.lines().last().unwrap();
        let words: Vec<&str> = last.split_whitespace().rev().take(3).collect();
        assert_eq!(words, ["0.25x", "0.25x", "8"], "{text}");
    }
}
