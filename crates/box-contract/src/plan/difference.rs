//! Compares two run plans field by field.
//!
//! The plans are compared as JSON, so that a field which a later version adds is compared without a change here.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::RunPlan;
use safe_text::secrets::{MASK, looks_secret, mask_words};
use safe_text::{readable, shown};

/// A field in which two plans differ. Probable secrets are masked in both values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldDifference {
    /// The field, in words: `network`, `agent capabilities`, `agent env FEATURE`, `share data access`.
    pub field: String,
    /// The field's value in the first plan, null if it is absent.
    pub a: Value,
    /// The field's value in the second plan, null if it is absent.
    pub b: Value,
}

impl FieldDifference {
    /// Formats the change as one line that is safe for a terminal: `none → shared`, `+NET_RAW`, `-"on"`.
    pub fn change(&self) -> String {
        let [a, b] = [&self.a, &self.b].map(|value| text(&self.field, value));
        let change = match (self.a.is_null(), self.b.is_null()) {
            (true, _) => format!("+{b}"),
            (_, true) => format!("-{a}"),
            _ if self.a == self.b => format!("{a} → {b} (another value, which is not shown)"),
            // Two sizes can have the same rounded text.
            _ if a == b => format!("{} → {}", self.a, self.b),
            _ => format!("{a} → {b}"),
        };
        shown(&change)
    }

    /// Returns the field's name, safe for a terminal.
    pub fn name(&self) -> String {
        shown(&self.field)
    }
}

/// Returns each field in which two plans differ, in the order of the fields' names.
///
/// # Errors
/// Fails if a plan is not representable in JSON. Every plan that was read from a box is representable.
pub fn differences(a: &RunPlan, b: &RunPlan) -> serde_json::Result<Vec<FieldDifference>> {
    let [mut one, mut other] = [serde_json::to_value(a)?, serde_json::to_value(b)?];
    complete(&mut one);
    complete(&mut other);
    let mut found = Vec::new();
    compare(&[], &one, &other, &mut found);
    Ok(found)
}

/// Inserts the defaults that a plan's JSON omits, so that a change from the default prints as `none → shared` rather
/// than `+shared`.
fn complete(plan: &mut Value) {
    fill(
        plan,
        &json!({ "agent-kind": super::AgentKind::default(), "network": super::NetworkPlan::default() }),
    );
    fill(&mut plan["network"], &json!({ "limits": super::NetworkLimits::default() }));
    for component in ["agent", "business"] {
        if plan[component].is_object() {
            let defaults = json!({
                "autostart": false, "restart": super::Restart::default(),
                "capabilities": crate::Capabilities::default(),
                "system": super::SystemDirectories::default(),
            });
            fill(&mut plan[component], &defaults);
        }
    }
    for (list, defaults) in [
        ("shares", json!({ "access": super::Access::default() })),
        ("skills", json!({ "mode": super::SkillMode::default() })),
    ] {
        for element in plan[list].as_array_mut().into_iter().flatten() {
            fill(element, &defaults);
        }
    }
}

/// Inserts the defaults of absent fields.
fn fill(object: &mut Value, defaults: &Value) {
    let Value::Object(object) = object else { return };
    for (name, value) in defaults.as_object().into_iter().flatten() {
        object.entry(name).or_insert_with(|| value.clone());
    }
}

/// Compares two values at a path of field names. A value is null if its plan lacks the field.
fn compare(path: &[&str], a: &Value, b: &Value, found: &mut Vec<FieldDifference>) {
    if a == b {
        return;
    }
    match (Shape::of(path, a), Shape::of(path, b)) {
        (Shape::Fields(a), Shape::Fields(b)) => each(path, &a, &b, found),
        (Shape::Fields(a), Shape::Nothing) if has_parts(&a) => each(path, &a, &Map::new(), found),
        (Shape::Nothing, Shape::Fields(b)) if has_parts(&b) => each(path, &Map::new(), &b, found),
        (Shape::Named(a), Shape::Named(b)) => each(path, &a, &b, found),
        (Shape::Named(a), Shape::Nothing) => each(path, &a, &Map::new(), found),
        (Shape::Nothing, Shape::Named(b)) => each(path, &Map::new(), &b, found),
        (Shape::Set(a), Shape::Set(b)) => elements(path, &a, &b, found),
        (Shape::Set(a), Shape::Nothing) => elements(path, &a, &[], found),
        (Shape::Nothing, Shape::Set(b)) => elements(path, &[], &b, found),
        _ => found.push(difference(path, a, b)),
    }
}

/// How a value is compared.
enum Shape {
    /// The field is absent.
    Nothing,
    /// An object, compared field by field.
    Fields(Map<String, Value>),
    /// A list of named elements, compared element by element.
    Named(Map<String, Value>),
    /// An unordered list: elements in only one of the two lists are differences.
    Set(Vec<Value>),
    /// Compared as a whole: numbers, words, and command lines.
    Whole,
}

impl Shape {
    fn of(path: &[&str], value: &Value) -> Self {
        match value {
            Value::Null => Self::Nothing,
            Value::Object(fields) => Self::Fields(fields.clone()),
            Value::Array(words) if path.last() == Some(&"env") => Self::Named(variables(words)),
            Value::Array(_) if path.last() == Some(&"argv") => Self::Whole,
            Value::Array(list) => named(list).map_or_else(|| Self::Set(list.clone()), Self::Named),
            _ => Self::Whole,
        }
    }
}

/// Returns whether an object contains objects, as a component's plan does. Such an object is compared field by field
/// even if one plan lacks it.
fn has_parts(fields: &Map<String, Value>) -> bool {
    fields.values().any(Value::is_object)
}

/// Returns the elements by name. Returns `None` if the list is empty, or if an element has no unique name.
fn named(list: &[Value]) -> Option<Map<String, Value>> {
    let mut all = Map::new();
    for element in list {
        let mut fields = element.as_object()?.clone();
        let name = fields.remove("name")?.as_str()?.to_owned();
        if all.insert(name, fields.into()).is_some() {
            return None;
        }
    }
    (!all.is_empty()).then_some(all)
}

/// Returns the values of `NAME=value` variables by name.
fn variables(words: &[Value]) -> Map<String, Value> {
    let words = words.iter().filter_map(Value::as_str);
    words
        .map(|word| {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            (name.to_owned(), value.into())
        })
        .collect()
}

fn each(
    path: &[&str],
    a: &Map<String, Value>,
    b: &Map<String, Value>,
    found: &mut Vec<FieldDifference>,
) {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    for name in names {
        let below = [path, &[name.as_str()]].concat();
        let [a, b] = [a, b].map(|it| it.get(name).unwrap_or(&Value::Null));
        compare(&below, a, b, found);
    }
}

fn elements(path: &[&str], a: &[Value], b: &[Value], found: &mut Vec<FieldDifference>) {
    // Compares how often each list contains an element: a word that only one list contains twice is a difference.
    let mut count: BTreeMap<String, (i64, &Value)> = BTreeMap::new();
    for (list, step) in [(a, -1), (b, 1)] {
        for value in list {
            count.entry(value.to_string()).or_insert((0, value)).0 += step;
        }
    }
    let before = found.len();
    for (count, value) in count.into_values() {
        match count {
            ..0 => found.push(difference(path, value, &Value::Null)),
            0 => {}
            1.. => found.push(difference(path, &Value::Null, value)),
        }
    }
    if found.len() == before {
        found.push(difference(path, &a.into(), &b.into()));
    }
}

/// Creates a difference, and masks probable secrets.
fn difference(path: &[&str], a: &Value, b: &Value) -> FieldDifference {
    let [a, b] = [a, b].map(|value| masked(path, value));
    FieldDifference { field: words(path), a, b }
}

/// Masks the probable secrets of a value, also inside an object or a list. For example, if only one of two plans has a health
/// check, the difference contains the whole object.
fn masked(path: &[&str], value: &Value) -> Value {
    match (path, value) {
        ([.., "env", name], Value::String(text)) if looks_secret(name, text) => MASK.into(),
        ([.., "argv"], Value::Array(list)) => {
            let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
            let mut words: Vec<String> = list.iter().map(text).collect();
            mask_words(&mut words);
            words.into()
        }
        (_, Value::Object(fields)) => {
            let field = |(name, value): (&String, &Value)| {
                let below = [path, &[name.as_str()]].concat();
                (name.clone(), masked(&below, value))
            };
            Value::Object(fields.iter().map(field).collect())
        }
        (_, Value::Array(list)) => list.iter().map(|element| masked(path, element)).collect(),
        _ => value.clone(),
    }
}

/// Formats a path in words. A list's name before an element is in the singular (`share data access`), and `mode` at the
/// end is omitted (`network`).
fn words(path: &[&str]) -> String {
    let path = if path.len() > 1 { path.strip_suffix(&["mode"]).unwrap_or(path) } else { path };
    let one = |(at, name): (usize, &&str)| {
        let is_list = at == 0 && path.len() > 1 && matches!(*name, "shares" | "skills" | "secrets");
        if is_list { name.trim_end_matches('s').to_owned() } else { (*name).to_owned() }
    };
    path.iter().enumerate().map(one).collect::<Vec<_>>().join(" ")
}

/// Formats a value: plain words unquoted, other words in quotes, sizes with units.
fn text(field: &str, value: &Value) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:*@+%,".contains(c);
    match value {
        Value::String(word) if field.contains(" env ") && word != MASK => format!("{word:?}"),
        Value::String(word) if !word.is_empty() && word.chars().all(is_plain) || value == MASK => {
            value.as_str().unwrap_or_default().to_owned()
        }
        Value::Number(number) if field.ends_with("-bytes") => {
            number.as_u64().map_or_else(|| number.to_string(), readable)
        }
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| format!("{name}={}", text(name, value));
            fields.iter().map(field).collect::<Vec<_>>().join(" ")
        }
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Health;
    use crate::plan::tests::{GROWN, grown};

    fn lines(a: &RunPlan, b: &RunPlan) -> Vec<String> {
        let found = differences(a, b).unwrap();
        found.iter().map(|it| format!("{}  {}", it.name(), it.change())).collect()
    }

    #[test]
    fn what_a_reviewer_asks_for_is_one_line() {
        let a = grown("{}");
        let mut b = grown(r#"{"network": {"mode": "shared"}}"#);
        b.agent.capabilities =
            b.agent.capabilities.with(crate::capabilities::Capability::find("NET_RAW").unwrap());
        b.agent.env = vec!["FEATURE=on".to_owned(), "PATH=/usr/bin".to_owned()];
        b.agent.limits.memory_bytes <<= 1;
        b.agent.argv.push("--fast".to_owned());
        b.vm.memory_mib = 1024;
        let expected = [
            "agent argv  [\"/bin/agent\"] → [\"/bin/agent\",\"--fast\"]",
            "agent capabilities  +NET_RAW",
            "agent env FEATURE  +\"on\"",
            "agent env PATH  \"/bin\" → \"/usr/bin\"",
            "agent limits memory-bytes  1.0 MiB → 2.0 MiB",
            "network  none → shared",
            "vm memory-mib  512 → 1024",
        ];
        assert_eq!(lines(&a, &b), expected);
        assert_eq!(lines(&a, &a), [""; 0]);
    }

    #[test]
    fn what_one_plan_lacks_is_added_or_removed() {
        let (bare, full) = (grown("{}"), grown(GROWN));
        let added = lines(&bare, &full);
        for line in [
            "share work  +access=rw guest=/a3s/workspace host=src scope=agent",
            "network  none → filtered",
            "network allow  +peer=example.org port=8443",
            "secret KEY  +delivery=env scope=agent",
            "caps  +payments",
        ] {
            assert!(added.iter().any(|it| it == line), "{line}: {added:#?}");
        }
        let removed = lines(&full, &bare);
        assert_eq!(added.len(), removed.len());
        let mut lonely = full.clone();
        lonely.business = None;
        let gone = lines(&full, &lonely);
        assert!(gone.contains(&"business user  -gid=0 uid=0".to_owned()), "{gone:#?}");
    }

    /// Calls `check` with each plan that differs from `plan` in one leaf, and with the path of that leaf.
    fn changed_in_each_leaf(plan: &Value, check: &mut dyn FnMut(&str, &Value)) {
        fn leaves(value: &Value, at: &str, all: &mut Vec<String>) {
            match value {
                Value::Object(fields) => {
                    fields.iter().for_each(|(name, it)| leaves(it, &format!("{at}/{name}"), all));
                }
                Value::Array(list) => {
                    (0..)
                        .zip(list)
                        .for_each(|(n, it): (usize, _)| leaves(it, &format!("{at}/{n}"), all));
                }
                _ => all.push(at.to_owned()),
            }
        }
        let mut all = Vec::new();
        leaves(plan, "", &mut all);
        for leaf in all {
            let mut other = plan.clone();
            let value = other.pointer_mut(&leaf).unwrap();
            *value = match &*value {
                Value::Bool(on) => (!*on).into(),
                Value::Number(number) => (number.as_u64().unwrap() + 1).into(),
                Value::String(text) => format!("{text}x").into(),
                value => panic!("{value}"),
            };
            check(&leaf, &other);
        }
    }

    #[test]
    fn every_field_of_the_plan_and_one_that_nobody_knows_shows() {
        let mut plan = serde_json::to_value(grown(GROWN)).unwrap();
        complete(&mut plan);
        plan["mystery"] = json!({ "deep": [{ "name": "a", "on": false }, 1], "x": "y" });
        plan["agent"]["mystery"] = json!(["b", "a"]);
        let mut count = 0;
        changed_in_each_leaf(&plan, &mut |leaf, other| {
            let mut found = Vec::new();
            compare(&[], &plan, other, &mut found);
            assert!(!found.is_empty(), "{leaf}");
            let first = leaf.split('/').nth(1).unwrap().trim_end_matches('s');
            for it in &found {
                assert!(it.field.starts_with(first), "{leaf}: {}", it.field);
                assert!(!it.change().is_empty());
            }
            count += 1;
        });
        assert!(count > 80, "{count}");
    }

    #[test]
    fn a_field_of_the_plan_that_one_lacks_shows() {
        let mut plan = serde_json::to_value(grown(GROWN)).unwrap();
        complete(&mut plan);
        for name in plan.as_object().unwrap().keys() {
            let mut other = plan.clone();
            other.as_object_mut().unwrap().remove(name);
            let mut found = Vec::new();
            compare(&[], &plan, &other, &mut found);
            assert!(!found.is_empty(), "{name}");
        }
    }

    #[test]
    fn a_list_in_another_order_is_another_list() {
        let (a, b) = (json!({ "tools": ["a", "b"] }), json!({ "tools": ["b", "a"] }));
        let mut found = Vec::new();
        compare(&[], &a, &b, &mut found);
        assert_eq!(found[0].change(), r#"["a","b"] → ["b","a"]"#);
    }

    #[test]
    fn no_secret_is_shown_and_another_one_is_a_difference() {
        let (mut a, mut b) = (grown("{}"), grown("{}"));
        a.agent.env = vec!["API_KEY=abc123".to_owned()];
        b.agent.env = vec!["API_KEY=def456".to_owned()];
        a.agent.argv = ["x", "--password=abc123"].map(str::to_owned).to_vec();
        b.agent.argv = ["x", "--password=def456"].map(str::to_owned).to_vec();
        let found = differences(&a, &b).unwrap();
        let text = serde_json::to_string(&found).unwrap() + &lines(&a, &b).join("\n");
        assert_eq!(found.len(), 2);
        assert!(!text.contains("abc123") && !text.contains("def456"), "{text}");
        assert_eq!(found[1].change(), "**** → **** (another value, which is not shown)");
    }

    #[test]
    fn no_secret_of_a_new_health_check_is_shown() {
        let (a, mut b) = (grown("{}"), grown("{}"));
        let argv = ["/bin/check", "--password=abc123"].map(str::to_owned).to_vec();
        b.agent.health = Some(Health::Exec { argv });
        for (a, b) in [(&a, &b), (&b, &a)] {
            let found = differences(a, b).unwrap();
            let text = serde_json::to_string(&found).unwrap() + &lines(a, b).join("\n");
            assert!(!text.contains("abc123") && text.contains("/bin/check"), "{text}");
        }
    }

    #[test]
    fn no_terminal_obeys_a_foreign_text() {
        let (a, mut b) = (grown("{}"), grown("{}"));
        b.agent.env.push("A\u{1b}[2J=\u{202e}x\nagent limits".to_owned());
        b.agent.hostname = "a\nnetwork  none".to_owned();
        for line in lines(&a, &b) {
            assert_eq!(shown(&line), line);
        }
    }
}
