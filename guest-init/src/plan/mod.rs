//! Reads the run plan and checks it before a component is started.
//!
//! The plan is part of the box's config. The launcher has verified the config's bytes and provides them in the first
//! root.
//!
//! The rules are in [`RunPlan::check`] and [`RunPlan::unsupported`]. A launcher of the same version has applied them
//! before it started the VM. A launcher of another version can have other rules, so init applies its rules again.

use box_contract::manifest::MAX_CONFIG;
use box_contract::plan::MAX_PLAN;
use box_contract::{BoxConfig, RunPlan};

use crate::error::{InitError, Step as _};

/// Reads the run plan from a config in JSON.
///
/// # Errors
/// The JSON is malformed, or a value cannot be carried out.
pub fn of_config(text: &[u8]) -> Result<RunPlan, InitError> {
    check_length(text, MAX_CONFIG)?;
    let config: BoxConfig = serde_json::from_slice(text).step("parse the run plan")?;
    checked(config.plan)
}

/// Reads a run plan in JSON.
///
/// # Errors
/// The JSON is malformed, or a value cannot be carried out.
pub fn parse(text: &[u8]) -> Result<RunPlan, InitError> {
    check_length(text, MAX_PLAN)?;
    checked(serde_json::from_slice(text).step("parse the run plan")?)
}

fn check_length(text: &[u8], most: u64) -> Result<(), InitError> {
    if u64::try_from(text.len()).is_ok_and(|length| length > most) {
        return Err(format!("it is longer than {most} bytes")).step("read the run plan");
    }
    Ok(())
}

/// Returns the plan if it can be carried out.
fn checked(plan: RunPlan) -> Result<RunPlan, InitError> {
    check_enforced(&plan).step("check the run plan")?;
    // The plan's length is checked already.
    plan.check_values().step("check the run plan")?;
    Ok(plan)
}

/// Rejects a plan with declarations that this version does not enforce.
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

    /// A plan with an agent and without a business component.
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
             there, or build the box with an init that does: cap \"payments\": not supported: no provider of payments is known to boxlaunch; `service` reaches the API of \
             one, with its key on the host"
        );
    }

    #[test]
    fn what_a_later_version_declares_is_refused_by_name() {
        assert!(error_for("\"vm\":", "\"mystery\": 1, \"vm\":").contains("`mystery`"));
    }

    #[test]
    fn an_endless_plan_is_refused() {
        let spaces = |most: u64| vec![b' '; usize::try_from(most).unwrap() + 1];
        assert!(parse(&spaces(MAX_PLAN)).unwrap_err().to_string().contains("longer than"));
        let endless = of_config(&spaces(MAX_CONFIG)).unwrap_err().to_string();
        assert_eq!(endless, "read the run plan: it is longer than 1114112 bytes");
    }

    /// Returns a config with the plan of [`EXAMPLE`] after a change of the config's text.
    fn config(from: &str, to: &str) -> Result<RunPlan, InitError> {
        let tree = format!("blake3:{}", "0".repeat(64));
        let text = format!(
            r#"{{"epoch":4,"tree":"{tree}","plan":{EXAMPLE},"kernel-version":"","protocol":8}}"#
        );
        of_config(text.replace(from, to).as_bytes())
    }

    #[test]
    fn the_plan_of_a_config_is_read_and_checked() {
        assert_eq!(config("", "").unwrap(), parse(EXAMPLE.as_bytes()).unwrap());
        assert_eq!(config(r#","protocol":8"#, "").unwrap().agent.workdir, "/work");
        let refused = |from, to| config(from, to).unwrap_err().to_string();
        assert!(
            refused(r#"{"epoch""#, r#"{"more":1,"epoch""#)
                .starts_with("parse the run plan: unknown field `more`")
        );
        assert!(refused(r#""epoch":4"#, r#""epoch":"x""#).starts_with("parse the run plan: "));
        assert_eq!(
            refused(r#"["/bin/agent"]"#, "[]"),
            "check the run plan: its agent has no program to run; name one with `entrypoint`"
        );
        assert!(of_config(EXAMPLE.as_bytes()).is_err(), "a plan is no config");
    }
}
