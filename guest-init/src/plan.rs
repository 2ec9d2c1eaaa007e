//! Reads the run plan, and refuses what would be found out too late.

use std::fs::File;
use std::io::Read;

use box_image::plan::PLAN_PATH;
use box_image::{ComponentPlan, Health, RunPlan};

use crate::component::workdir;
use crate::error::{InitError, Step as _};

/// The greatest run plan, in bytes.
const PLAN_MAX: u64 = 1024 * 1024;

/// Reads the run plan from the rootfs.
///
/// # Errors
/// The file's, the JSON's, or the first value that cannot be carried out.
pub fn read() -> Result<RunPlan, InitError> {
    let mut text = Vec::new();
    File::open(PLAN_PATH)
        .and_then(|file| file.take(PLAN_MAX + 1).read_to_end(&mut text))
        .step("read the run plan")?;
    parse(&text)
}

fn parse(text: &[u8]) -> Result<RunPlan, InitError> {
    if u64::try_from(text.len()).is_ok_and(|length| length > PLAN_MAX) {
        return Err(format!("it is longer than {PLAN_MAX} bytes")).step("read the run plan");
    }
    let plan: RunPlan = serde_json::from_slice(text).step("parse the run plan")?;
    check(&plan).step("check the run plan")?;
    Ok(plan)
}

fn check(plan: &RunPlan) -> Result<(), String> {
    check_enforced(plan)?;
    if plan.agent.argv.is_empty() {
        return Err("the agent has no program".to_owned());
    }
    check_component("agent", &plan.agent)?;
    plan.business.as_ref().map_or(Ok(()), |business| check_component("business", business))
}

/// Refuses a plan with declarations that this version does not enforce. The launcher has done so
/// already, unless it is of a version that knows more, or less, than this init.
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

fn check_component(name: &str, plan: &ComponentPlan) -> Result<(), String> {
    let fail = |what: &str| Err(format!("{name}: {what}"));
    // Overlayfs reads its options as a list in which these separate or escape.
    if !plan.root.starts_with('/') || plan.root.contains([',', ':', '\\']) {
        return fail("the root is not an absolute path without `,`, `:` and `\\`");
    }
    if !plan.workdir.starts_with('/') {
        return fail("the working directory is not absolute");
    }
    if workdir::is_kernels(&plan.workdir) {
        return fail("the working directory is in /proc, /sys or /dev; choose another");
    }
    if !(1..=10_000).contains(&plan.limits.cpu_weight) {
        return fail("the CPU weight is not between 1 and 10000");
    }
    match &plan.health {
        Some(Health::Http { path, .. }) if !is_request_path(path) => {
            fail("the health check's path is not an absolute path without spaces")
        }
        Some(Health::Exec { argv }) if argv.is_empty() => fail("the health check has no program"),
        _ => Ok(()),
    }
}

/// Says whether a path can stand in an HTTP request line as it is.
fn is_request_path(path: &str) -> bool {
    path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic())
}

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
        assert!(error_for(r#"["/bin/agent"]"#, "[]").contains("no program"));
        assert!(error_for("/roots/agent", "/roots/agent,upperdir=/x").contains("the root"));
        assert!(error_for("\"/work\"", "\"work\"").contains("working directory"));
        for kernels in ["/proc/self/fd/5", "/sys", "/srv/../dev/shm"] {
            assert!(error_for("/work", kernels).contains("in /proc, /sys or /dev"), "{kernels}");
        }
        assert!(error_for("\"cpu-weight\": 100", "\"cpu-weight\": 0").contains("CPU weight"));
        assert!(error_for("/ready", "/ready HTTP/1.1\\r\\nX: y").contains("health check's path"));
        assert!(
            error_for("\"http\", \"port\": 80, \"path\": \"/ready\"", "\"exec\", \"argv\": []")
                .contains("health check has no program")
        );
    }

    #[test]
    fn what_is_declared_and_not_enforced_is_refused_by_name() {
        let more = r#""network": {"mode": "shared"}, "task": {"id": "1", "type": "t", "description": ""},"#;
        let error = error_for("\"vm\":", &format!("{more} \"vm\":"));
        assert_eq!(
            error,
            "check the run plan: the box's init cannot enforce what the Boxfile declares; remove it \
             there, or build the box with an init that does: network \"shared\": this version gives a \
             box loopback alone; task: this version makes no /task"
        );
    }

    #[test]
    fn what_a_later_version_declares_is_refused_by_name() {
        assert!(error_for("\"vm\":", "\"mystery\": 1, \"vm\":").contains("`mystery`"));
    }

    #[test]
    fn an_endless_plan_is_refused() {
        let text = vec![b' '; 1024 * 1024 + 1];
        assert!(parse(&text).unwrap_err().to_string().contains("longer than"));
    }
}
