//! The recording of a run as an SVG image whose lines appear one after the other.

use serde_json::Value;

use crate::story::verdict;

/// The height of a line and the width of a character, in pixels.
const LINE: usize = 19;
const CHARACTER: f64 = 7.85;
/// The margin around the text, in pixels.
const EDGE: usize = 20;
/// The factor by which the animation is slower than the run, to be readable.
const SLOWER: f64 = 5.0;

/// The style: one colour for each speaker. Without animation, all lines are visible.
const STYLE: &str = "text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#d5d9e0}\
.at{fill:#7d8590}.host{fill:#d5d9e0}.box{fill:#79c0ff}.agent{fill:#7ee787}.model{fill:#d2a8ff}.end{fill:#f2cc60}\
g{animation:show .01s backwards}@keyframes show{from{opacity:0}}\
@media(prefers-reduced-motion:reduce){g{animation:none}}";

/// A line of the recording.
struct Line {
    /// The time at which the line appears, in milliseconds.
    at: f64,
    /// Whether the time is shown.
    is_timed: bool,
    /// The line's CSS class in the style.
    who: String,
    text: String,
}

/// Returns the recording of a report as SVG. Times are relative to the end of the box's verification, which happens
/// only once for a box.
pub fn svg(report: &Value) -> String {
    let lines = lines(report, &verdict(report));
    let longest = lines.iter().map(|it| it.text.chars().count()).max().unwrap_or(0) + 18;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a few hundred pixels"
    )]
    let width = (longest as f64 * CHARACTER) as usize + 2 * EDGE;
    let height = lines.len() * LINE + 2 * EDGE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" xml:space=\"preserve\" role=\"img\" \
         aria-label=\"cargo xtask demo assistant\">\n<style>{STYLE}</style>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n"
    );
    for (number, line) in lines.iter().enumerate() {
        svg += &element(line, EDGE + (number + 1) * LINE - 5);
    }
    svg + "</svg>\n"
}

fn lines(report: &Value, verdict: &str) -> Vec<Line> {
    let list = report["story"].as_array().cloned().unwrap_or_default();
    let verified = report["verify_ms"].as_f64().unwrap_or_default();
    let word = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let untimed = |at: f64, who: &str, text: &str| Line {
        at,
        is_timed: false,
        who: who.to_owned(),
        text: text.to_owned(),
    };
    let is_later = |event: &&Value| event["ms"].as_f64().is_some_and(|ms| ms > verified + 0.5);
    let events = list.iter().filter(is_later).map(|event| Line {
        at: event["ms"].as_f64().unwrap_or_default() - verified,
        is_timed: true,
        who: word(&event["who"]),
        text: format!("{:<6} {}", word(&event["who"]), word(&event["text"])),
    });
    let mut lines = vec![untimed(0.0, "host", "$ cargo xtask demo assistant")];
    lines.extend(events);
    let end = lines.last().map_or(0.0, |it| it.at);
    let result = word(&report["result"]["summary"]);
    let ends = [("end", verdict.to_owned()), ("end", format!("result   {result}"))];
    lines.extend(ends.map(|(who, text)| untimed(end, who, &text)));
    let changes = word(&report["changes"]);
    let is_change =
        |it: &&str| it.starts_with(['+', '-']) && !it.starts_with("+++") && !it.starts_with("---");
    lines.extend(changes.lines().filter(is_change).map(|it| untimed(end, class(it), it)));
    lines
}

/// Returns the CSS class of a line of the changes.
fn class(line: &str) -> &'static str {
    if line.starts_with('+') { "agent" } else { "at" }
}

fn element(line: &Line, y: usize) -> String {
    let delay = line.at * SLOWER / 1000.0;
    let at = if line.is_timed { format!("{:>7.0} ms  ", line.at) } else { String::new() };
    format!(
        "<g style=\"animation-delay:{delay:.2}s\"><text x=\"{EDGE}\" y=\"{y}\"><tspan class=\"at\">{at}</tspan><tspan class=\"{}\">{}</tspan></text></g>\n",
        line.who,
        escaped(&line.text)
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_line_appears_when_it_was_said() {
        let report = json!({
            "verify_ms": 100.0,
            "story": [
                { "ms": 0.0, "who": "host", "text": "boxlaunch run" },
                { "ms": 100.0, "who": "host", "text": "the box is verified" },
                { "ms": 300.0, "who": "agent", "text": "a < b" },
            ],
            "result": { "summary": "done & over" },
            "changes": "--- a\n+++ b\n-old\n+new\n same\n",
        });
        let svg = svg(&report);
        let texts: Vec<_> = svg.lines().filter(|it| it.starts_with("<g ")).collect();
        assert_eq!(texts.len(), 6, "{svg}");
        assert!(texts[1].contains("delay:1.00s") && texts[1].contains("    200 ms  "), "{svg}");
        assert!(texts[1].contains("agent  a &lt; b"), "{svg}");
        assert!(texts[3].contains("done &amp; over"), "{svg}");
        assert!(texts[4].contains(">-old<") && texts[5].contains(">+new<"), "{svg}");
    }
}
