//! The report about the conflicts of two images that share one root, and the declarations that would decide them.

use box_contract::ErrorCode;
use box_inspect::entry::path_json;
use box_tree::FieldDifference;
use box_tree::listing::Origins;
use boxbuild::MergeConflicts;
use boxbuild::compose::merged::{Advice, Conflict, Conflicts, MAX_CONFLICTS, Side, advice};
use diagnostics::{Diagnostic, Sources, Syntax};
use serde_json::{Value, json};

use super::failure::Failure;

/// Returns the failure of a build with conflicts that no declaration decides.
pub(crate) fn failure(message: &str, unmerged: &MergeConflicts, sources: &Sources) -> Failure {
    let MergeConflicts { conflicts, origins, spans: [agent, business] } = unmerged;
    let diagnostic = Diagnostic::new(message, *agent, "the agent's files")
        .with_label(*business, "the business component's files");
    let syntax = sources.as_slice()[0].syntax;
    let text = format!("\n\n{}", text(conflicts, origins, syntax));
    let (all, advice) = (all_json(conflicts, origins), advice_json(conflicts, syntax));
    Failure::of_diagnostics(ErrorCode::MergeConflict, &[diagnostic], sources).with_details(
        &text,
        &[("conflict_count", conflicts.count.into()), ("conflicts", all), ("advice", advice)],
    )
}

/// Formats conflicts for a terminal, with the declarations to write.
pub(crate) fn text(conflicts: &Conflicts, origins: &Origins, syntax: Syntax) -> String {
    let shown = conflicts.first.iter().map(|it| it.describe(origins));
    let more = match conflicts.count {
        0..=MAX_CONFLICTS => "more; `--json` has all of them".to_owned(),
        _ => format!("more; `--json` has the first {MAX_CONFLICTS}"),
    };
    let list = cli_common::problem::first_of(conflicts.count, shown, "\n", &more);
    let split = match syntax {
        Syntax::Kdl => "`layout \"split\"`",
        Syntax::Toml => "`layout = \"split\"`",
    };
    let advice = advice(conflicts);
    let help = match advice.as_slice() {
        [] => format!("follow the notes, or keep each image whole: {split}"),
        advice => format!("{}\n    or keep each image whole: {split}", lines(advice, syntax)),
    };
    let rest = match conflicts.undeclared - advice.iter().map(|it| it.paths).sum::<usize>() {
        0 => "",
        _ => {
            "\n    No line is for a name with `*` whose pattern would decide others, too: rename it"
        }
    };
    format!("{list}\n\n  = help: {help}{rest}")
}

/// Formats the declarations to write into the Boxfile.
fn lines(advice: &[Advice], syntax: Syntax) -> String {
    let line = |advice: &Advice| {
        let declaration = advice.declaration(syntax).replace('\n', "\n      ");
        match (advice.paths, syntax) {
            (1, _) => format!("\n      {declaration}"),
            (paths, Syntax::Kdl) => format!("\n      {declaration}  // {paths} paths"),
            (paths, Syntax::Toml) => format!("\n      {declaration}  # {paths} paths"),
        }
    };
    let lines: String = advice.iter().map(line).collect();
    format!(
        "layout \"merged\" has each path once. Decide in the Boxfile: these lines are enough, and\n    \
         each policy is yours to choose: prefer-agent, prefer-business or drop; `merge` combines\n    \
         both files (passwd, group, shadow and gshadow only). The first pattern that matches\n    \
         decides, so put them above other `conflict`s:{lines}"
    )
}

/// Returns the first conflicts as JSON, at most `MAX_CONFLICTS`.
pub(crate) fn all_json(conflicts: &Conflicts, origins: &Origins) -> Value {
    let side = |Side { kind, size, below, origin }: &Side, value: &str| {
        let origin = origins.named(*origin);
        json!({ "value": value, "type": kind, "size": size, "below": below, "origin": origin })
    };
    let one = |conflict: &Conflict| {
        let FieldDifference { field, values } = &conflict.difference;
        let mut json = path_json(&conflict.path);
        json["field"] = json!(field);
        json["agent"] = side(&conflict.sides[0], &values[0]);
        json["business"] = side(&conflict.sides[1], &values[1]);
        json["note"] = json!(conflict.note.as_ref().map(ToString::to_string));
        json
    };
    conflicts.first.iter().map(one).collect()
}

/// Returns the declarations that would decide the conflicts, as JSON.
pub(crate) fn advice_json(conflicts: &Conflicts, syntax: Syntax) -> Value {
    let one = |advice: &Advice| {
        json!({
            "pattern": advice.pattern, "policy": advice.policy, "paths": advice.paths,
            "declaration": advice.declaration(syntax),
        })
    };
    advice(conflicts).iter().map(one).collect()
}
