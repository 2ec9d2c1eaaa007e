//! The events of a run of the assistant, with their times.

use std::str::FromStr;

use serde_json::{Value, json};

/// Returns the launcher's report, with additions from the script's files: the `story` (all events, sorted by time), the `result`
/// of the agent, the `changes` of the project, and the `denied` connections. `read` returns the content of a file of the script.
/// Returns `None` if the agent was not given its task.
pub fn report(read: impl Fn(&str) -> Vec<u8>) -> Option<Value> {
    let text = |name: &str| String::from_utf8_lossy(&read(name)).into_owned();
    let report: Option<Value> = serde_json::from_slice(&read("report")).ok();
    let mut report = report.filter(|it| it["task"].is_object())?;
    let started = number(&text("started"));
    let verified = started + report["verify_ms"].as_f64().unwrap_or_default();
    let mut story = vec![event(started, "host", "boxlaunch run")];
    story.push(event(verified, "host", "the box is verified, which is done once"));
    let total = report["phases_ms"]["total"].as_f64().unwrap_or_default();
    story.push(event(verified + total, "box", "the agent is started"));
    story.extend(text("model.log").lines().filter_map(of_model));
    story.extend(text("steps").lines().flat_map(of_agent));
    story.push(event(number(&text("ended")), "host", "boxlaunch has ended"));
    story.sort_by(|one, other| one.0.total_cmp(&other.0));
    let line = |(at, who, text): Event| json!({ "ms": at - started, "who": who, "text": text });
    report["story"] = story.into_iter().map(line).collect();
    report["result"] = serde_json::from_str(&text("result.json")).unwrap_or_default();
    report["changes"] = text("changes").into();
    report["denied"] = text("notices").lines().filter(|it| it.contains(" denied: ")).collect();
    Some(report)
}

/// The time of an event in milliseconds since 1970, its actor, and its description.
type Event = (f64, &'static str, String);

fn event(at: f64, who: &'static str, text: &str) -> Event {
    (at, who, text.to_owned())
}

/// Parses a line of the model's log. Returns `None` for the first line, which has no time.
fn of_model(line: &str) -> Option<Event> {
    let (time, text) = line.split_once(' ')?;
    Some(event(time.parse().ok()?, "model", text))
}

/// Parses a line of `boxlaunch logs --json`, which has a piece of the agent's output.
fn of_agent(line: &str) -> Vec<Event> {
    let piece = Value::from_str(line).unwrap_or_default();
    let time = piece["time_ms"].as_f64().unwrap_or_default();
    let text = piece["text"].as_str().unwrap_or_default();
    text.lines().map(|line| event(time, "agent", line)).collect()
}

fn number(text: &str) -> f64 {
    text.trim().parse().unwrap_or_default()
}

/// Returns whether the task was done within the box's budget.
pub fn is_good(report: &Value) -> bool {
    report["within_budget"] == true && report["result"]["ok"] == true
}

/// Formats the report as text: the box's digest, the host of the run (`place`), all events, and the results.
pub fn for_people(report: &Value, digest: &str, place: &str) -> String {
    let mut text = format!("\nbox      {digest}\nran on   {place}\n\n");
    text += &format!("{:>9} {:>9}\n", "at ms", "taken ms");
    let list = |name: &str| report[name].as_array().cloned().unwrap_or_default();
    let mut before = 0.0;
    for event in list("story") {
        let at = event["ms"].as_f64().unwrap_or(f64::NAN);
        let (who, what) = (word(&event["who"]), word(&event["text"]));
        text += &format!("{at:>9.0} {:>9.0}  {who:<6} {what}\n", at - before);
        before = at;
    }
    text += &format!("\n{}\n", verdict(report));
    text += &format!("asked    {}\n", first_request(report, &list("story")));
    let denied = list("denied");
    denied.iter().for_each(|it| text += &format!("denied   {}\n", word(it)));
    text += if denied.is_empty() { "denied   no host\n" } else { "" };
    text += &format!("\nresult.json\n{}\n\n", indented(&format!("{:#}", report["result"])));
    text + "changes of the project\n" + &indented(word(&report["changes"]))
}

/// Returns the line with the verdict of the task.
pub(crate) fn verdict(report: &Value) -> String {
    let budget = if report["within_budget"] == true { "within budget" } else { "OVER BUDGET" };
    format!("verdict  {}, {budget}", word(&report["task"]["status"]))
}

/// Formats the time of the first request to the model.
fn first_request(report: &Value, story: &[Value]) -> String {
    let first = story.iter().find(|it| it["who"] == "model").and_then(|it| it["ms"].as_f64());
    let Some(first) = first else { return "never".to_owned() };
    let alone = first - report["verify_ms"].as_f64().unwrap_or_default();
    format!("{first:.0} ms after boxlaunch run; {alone:.0} ms where the box was verified before")
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(name: &str) -> Vec<u8> {
        let text = match name {
            "report" => {
                r#"{"phases_ms":{"total":30.5},"verify_ms":20,"within_budget":true,"task":{"status":"completed"}}"#
            }
            "started" => "1000\n",
            "ended" => "1200\n",
            "model.log" => "ready\n1100 asks for the files\n",
            "steps" => "{\"time_ms\":1090,\"text\":\"task a: b\\nskill c\\n\"}\n",
            "notices" => "boxlaunch: the agent: a.example:80 denied: it is not allowed\nmore\n",
            "changes" => "+new\n",
            "result.json" => r#"{"ok":true}"#,
            other => panic!("{other}"),
        };
        text.as_bytes().to_owned()
    }

    #[test]
    fn the_story_is_in_the_order_of_time() {
        let report = report(files).unwrap();
        assert!(is_good(&report), "{report}");
        let text = for_people(&report, "sha256:00", "a machine");
        let expected = "    at ms  taken ms
        0         0  host   boxlaunch run
       20        20  host   the box is verified, which is done once
       50        30  box    the agent is started
       90        40  agent  task a: b
       90         0  agent  skill c
      100        10  model  asks for the files
      200       100  host   boxlaunch has ended

verdict  completed, within budget
asked    100 ms after boxlaunch run; 80 ms where the box was verified before
denied   boxlaunch: the agent: a.example:80 denied: it is not allowed

result.json
    {
      \"ok\": true
    }

changes of the project
    +new";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn a_run_that_did_not_start_has_no_story() {
        assert_eq!(report(|_| br#"{"errors":[{"message":"no KVM"}]}"#.to_vec()), None);
        assert_eq!(report(|_| Vec::new()), None);
        assert!(!is_good(&json!({ "within_budget": true, "result": { "ok": false } })));
    }
}
