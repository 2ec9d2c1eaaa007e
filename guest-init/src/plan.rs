//! Reads the run plan and checks it before anything is started.
//!
//! The rules are [`RunPlan::check`]'s and [`RunPlan::unsupported`]'s. The launcher has gone by them
//! before it started the machine, unless it is of a version that knows more, or less, than this
//! init.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

use box_image::RunPlan;
use box_image::plan::{PLAN_MAX, PLAN_PATH};
use nix::fcntl::OFlag;

use crate::error::{InitError, Step as _};

/// Reads the run plan from the rootfs.
///
/// # Errors
/// The file's, the JSON's, or the first value that cannot be carried out.
pub fn read() -> Result<RunPlan, InitError> {
    let mut text = Vec::new();
    // A pipe or a terminal at its place would be waited for.
    File::options()
        .read(true)
        .custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits())
        .open(PLAN_PATH)
        .and_then(|file| file.take(PLAN_MAX + 1).read_to_end(&mut text))
        .step("read the run plan")?;
    parse(&text)
}

/// Reads a run plan from its JSON.
///
/// # Errors
/// The JSON's, or the first value that cannot be carried out.
pub fn parse(text: &[u8]) -> Result<RunPlan, InitError> {
    if u64::try_from(text.len()).is_ok_and(|length| length > PLAN_MAX) {
        return Err(format!("it is longer than {PLAN_MAX} bytes")).step("read the run plan");
    }
    let plan: RunPlan = serde_json::from_slice(text).step("parse the run plan")?;
    check_enforced(&plan).step("check the run plan")?;
    // The plan's length is known already.
    plan.check_values().step("check the run plan")?;
    Ok(plan)
}

/// Refuses a plan with declarations that this version does not enforce.
fn check_enforced(plan: &RunPlan) -> Result<(), String> {
    let unsupported: Vec<_> = plan.unsupported().iter().map(ToString::to_string).collect();
    if unsupported.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the box's init cannot enforce what the Boxfile declares; remove it there, or build the box \
         with an init that does: {}",
        unsupported.join("; ")
    ))
}

#[cfg(test)]
mod mutated;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A plan with an agent, and a business component with the same settings.
    pub(crate) const EXAMPLE: &str = r#"{
        "name": "demo", "layout": "split",
        "agent": {
            "root": "/roots/agent", "argv": ["/bin/agent"], "env": ["PATH=/bin"],
            "workdir": "/work", "user": {"uid": 1000, "gid": 1000}, "hostname": "agent-host",
            "namespaces": {"mount": true, "pid": true, "ipc": true, "uts": true, "net": false},
            "limits": {"memory-bytes": 1048576, "cpu-weight": 100, "pids": 10},
            "health": {"kind": "http", "port": 80, "path": "/ready"}
        },
        "vm": {"cpus": 1, "memory-mib": 512}, "budget": {}
    }"#;

    fn error_for(from: &str, to: &str) -> String {
        parse(EXAMPLE.replace(from, to).as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_sound_plan_is_read() {
        assert_eq!(parse(EXAMPLE.as_bytes()).unwrap().agent.workdir, "/work");
    }

    #[test]
    fn what_cannot_be_carried_out_is_refused_by_name() {
        assert_eq!(
            error_for(r#"["/bin/agent"]"#, "[]"),
            "check the run plan: its agent has no program to run; name one with `entrypoint`"
        );
        assert_eq!(
            error_for("\"/work\"", "\"/srv/../dev/shm\""),
            "check the run plan: agent workdir \"/srv/../dev/shm\": it is in /proc, /sys or /dev, \
             which are the kernel's; choose another directory"
        );
    }

    #[test]
    fn what_is_declared_and_not_enforced_is_refused_by_name() {
        let more = r#""network": {"mode": "cap-only"}, "caps": ["payments"],"#;
        let error = error_for("\"vm\":", &format!("{more} \"vm\":"));
        assert_eq!(
            error,
            "check the run plan: the box's init cannot enforce what the Boxfile declares; remove it \
             there, or build the box with an init that does: network \"cap-only\": not supported yet; cap \"payments\": not supported yet"
        );
    }

    #[test]
    fn what_a_later_version_declares_is_refused_by_name() {
        assert!(error_for("\"vm\":", "\"mystery\": 1, \"vm\":").contains("`mystery`"));
    }

    #[test]
    fn an_endless_plan_is_refused() {
        let text = vec![b' '; usize::try_from(PLAN_MAX).unwrap() + 1];
        assert!(parse(&text).unwrap_err().to_string().contains("longer than"));
    }
}
