//! `boxlaunch inspect`: describes a box in a store or directory, or a started box.

use std::ffi::OsStr;
use std::path::Path;

use box_contract::permissions::Permission;
use box_contract::{NetworkMode, NetworkPlan};
use box_find::{BoxReference, FindError};
use boxlaunch::boxes::{Boxes, Record, RecordError, is_entry_name};
use cli_common::Explanation;
use egress_proxy::is_own;
use egress_rules::{Local, Rule};
use safe_text::shown;

use super::error::Failure;
use super::found;
use super::list::describe;
use super::paths;
use super::stored::PROGRAM;
use super::terminal::{json_line, print};
use cli_common::store::BoxArgument;

/// Shows digest, components, limits, budget and sizes of a box, or the state of a box that was started.
///
/// A name that `ps` lists means the box that was started. Shows `****` for the value of a variable that looks like a secret.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch inspect ./hello.box --json | jq .plan.budget")]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    subject: BoxArgument,
    /// Print one JSON object. For a box: box, name, tree, epoch, kernel_version, plan, masked, unsupported and blobs; for a
    /// box that was started: its record.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn inspect(args: &InspectArgs) -> Result<u8, Failure> {
    if let Some(record) = started(args.subject.word())? {
        print(&if args.json { json_line(&record)? } else { describe(&record) })?;
        return Ok(0);
    }
    let opened = found::open(args.subject.find(&PROGRAM).map_err(not_started)?)?;
    print(&if args.json { json_line(&opened.report())? } else { opened.describe_with(mark) })?;
    Ok(0)
}

/// Returns the record of the started box with this name. The started box takes precedence over a box of the store, but not over a
/// file or directory at the path `word`.
fn started(word: &OsStr) -> Result<Option<Record>, Failure> {
    let is_path = BoxReference::parse(word).is_ok_and(|it| it.path().is_some());
    let is_here = is_path && Path::new(word).exists();
    let Some(name) = word.to_str().filter(|text| is_entry_name(text) && !is_here) else {
        return Ok(None);
    };
    match Boxes::new(&paths::state()?).find(name) {
        Err(RecordError::NoBox(_)) => Ok(None),
        record => Ok(Some(record?)),
    }
}

/// Adds to each network permission the option of `run` without which it has no effect.
fn mark(plan: &NetworkPlan, permissions: &mut [Permission]) {
    if plan.mode == NetworkMode::Shared {
        permissions.iter_mut().take(1).for_each(|it| it.value += ", with `--network shared`");
    }
    let allowed = permissions.iter_mut().filter(|it| it.field == "network allow");
    for (permission, peer) in allowed.zip(&plan.allow) {
        let rule: Vec<_> = Rule::try_from(peer).into_iter().collect();
        for wanted in Local::wanted(&rule, &[], is_own) {
            permission.value += &format!(", with `--network-local {}`", wanted.needs);
        }
    }
}

/// Returns the error of a box that was not found. If the argument is a name, the help also refers to started boxes.
fn not_started(error: FindError) -> Failure {
    let Explanation { code, help } = Explanation::from(&error);
    match (&error, help) {
        (FindError::NoName { .. }, Some(help)) => {
            let help = format!("{help}; `boxlaunch ps -a` lists those that were started");
            Failure::new((code, help), shown(&error.to_string()))
        }
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_the_command_line_gives_is_marked() {
        let mut plan = testkit::test_box::config().plan;
        plan.network.mode = NetworkMode::Filtered;
        let allow = r#"[{"peer":"10.0.0.0/8"},{"peer":"api.example.com"},{"peer":"127.0.0.1","port":5432}]"#;
        plan.network.allow = serde_json::from_str(allow).unwrap();
        let marked = |plan: &box_contract::RunPlan| {
            let mut all = plan.permissions();
            mark(&plan.network, &mut all);
            let network = all.iter().filter(|it| it.field.starts_with("network"));
            network.map(|it| it.value.clone()).collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(marked(&plan), @"
        filtered: the hosts that are allowed
        10.0.0.0/8, ports 80 and 443, with `--network-local 10.0.0.0/8`
        api.example.com, ports 80 and 443
        127.0.0.1, port 5432, with `--network-local 127.0.0.1:5432`
        ");
        plan.network = NetworkPlan { mode: NetworkMode::Shared, ..NetworkPlan::default() };
        insta::assert_snapshot!(marked(&plan), @"shared: everything that the host reaches, with `--network shared`");
    }
}
