//! `boxlaunch inspect`: describes a box without running it, or one that was started.

use std::path::{Path, PathBuf};

use box_image::permissions::Permission;
use box_image::text::shown;
use box_image::{ErrorCode, NetworkMode, NetworkPlan};
use boxlaunch::LaunchError;
use boxlaunch::boxes::{Boxes, is_name};
use egress_proxy::is_own;
use egress_rules::{Local, Rule};
use error_report::Explanation;

use super::error::CommandError;
use super::list::describe;
use super::paths;
use super::terminal::{json_line, print};

/// Shows what a box is: digest, components, limits, budget, sizes; or how a box that was started is.
///
/// The value of a variable that looks like a secret is shown as `****`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch inspect ./hello.box --json | jq .plan.budget")]
pub(crate) struct InspectArgs {
    /// The box's directory, or the name of one that was started.
    #[arg(value_name = "BOX|NAME")]
    directory: PathBuf,
    /// Print one JSON object. Of a box: box, name, tree, epoch, kernel_version, plan, masked, unsupported
    /// and blobs; of one that was started: its record.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn inspect(args: &InspectArgs) -> Result<u8, CommandError> {
    let path = &args.directory;
    // A box that is here comes before one that was started under its name.
    let is_here = path.join("oci-layout").exists();
    if let Some(name) = path.to_str().filter(|text| is_name(text) && !is_here) {
        match Boxes::new(&paths::state()?).find(name) {
            // The error of the path is more likely to be what helps.
            Err(LaunchError::NoBox(_)) => {}
            record => {
                let record = record?;
                print(&if args.json { json_line(&record)? } else { describe(&record) })?;
                return Ok(0);
            }
        }
    }
    let opened = boxlaunch::open(path).map_err(|error| not_a_box(path, error))?;
    print(&if args.json { json_line(&opened.report())? } else { opened.describe_with(mark) })?;
    Ok(0)
}

/// Marks what of a network only the command line gives.
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

/// Returns the error of what is no box. A name alone may be meant for that of one that was started.
fn not_a_box(path: &Path, error: LaunchError) -> CommandError {
    let LaunchError::Open(open) = &error else { return error.into() };
    let Explanation { code, help } = open.into();
    let is_name = path.to_str().is_some_and(is_name);
    match help.filter(|_| is_name && code == ErrorCode::BoxNotFound) {
        Some(help) => {
            let help = format!("{help}, or a box of `boxlaunch ps -a`");
            CommandError::new((code, help), shown(&error.to_string()))
        }
        None => error.into(),
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
        let marked = |plan: &box_image::RunPlan| {
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
        insta::assert_snapshot!(marked(&plan), @"shared: whatever the host reaches, with `--network shared`");
    }
}
