//! The messages about a component that ran out of memory or of disk space.

use box_contract::size::written;
use box_contract::{ComponentName, RunPlan};
use safe_text::readable;

/// Returns the message about processes that the kernel ended for lack of memory, with the component's limit and how to raise it.
pub(super) fn out_of_memory(component: ComponentName, limit: Option<u64>) -> String {
    let name = component.name();
    let (may, more) = match limit {
        Some(limit) => (format!(", which may take {}", readable(limit)), declared(limit)),
        // An earlier version of boxlaunch did not record the limit.
        None => (String::new(), "…".to_owned()),
    };
    format!(
        "boxlaunch: out of memory: the kernel has ended a process of the {name} component{may}; \
         `limits memory=\"{more}\"` in `{name}` of its Boxfile gives it more, and --memory does not\n"
    )
}

/// Returns the message about a program that failed while the file system of its root was full, with the limit and how to
/// raise it. `disk_bytes` is the size of the box's disk; `None` if the files are in memory.
pub(super) fn disk_full(component: ComponentName, disk_bytes: Option<u64>) -> String {
    let name = component.name();
    match disk_bytes {
        Some(bytes) => {
            let (size, more) = (readable(bytes), declared(bytes));
            format!(
                "boxlaunch: the box's disk is full ({size} for all components): `disk \"{more}\"` in its Boxfile or `--disk {more}` of \
                 a new run gives it more\n"
            )
        }
        None => format!(
            "boxlaunch: the root of the {name} component is full: it is in memory, and may take half of the component's limit; \
             `disk \"10GiB\"` in its Boxfile or `--disk 10GiB` of a new run puts it on a disk\n"
        ),
    }
}

/// Returns twice the limit as a Boxfile declares it, for example `2GiB`.
fn declared(limit: u64) -> String {
    let mib = limit.div_ceil(1 << 20).saturating_mul(2);
    written(mib.saturating_mul(1 << 20))
}

/// If `memory_mib` is more than the plan's memory, returns the notice that the limits of the components stay the same.
pub(super) fn larger_machine(plan: &RunPlan, memory_mib: Option<u32>) -> Option<String> {
    memory_mib.filter(|it| *it > plan.vm.memory_mib)?;
    let limit = |(name, component): (ComponentName, &box_contract::ComponentPlan)| {
        format!("{} {}", name.name(), readable(component.limits.memory_bytes))
    };
    let limits: Vec<_> = plan.components().map(limit).collect();
    let limits = limits.join(", ");
    Some(format!(
        "boxlaunch: --memory enlarges the VM, but not the limits of its components (`limits memory`): {limits}\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::test_box::config;

    #[test]
    fn what_was_too_little_is_named_with_the_line_that_gives_more() {
        insta::assert_snapshot!(out_of_memory(ComponentName::Agent, Some(1 << 30)), @r#"boxlaunch: out of memory: the kernel has ended a process of the agent component, which may take 1.0 GiB; `limits memory="2GiB"` in `agent` of its Boxfile gives it more, and --memory does not"#);
        for (limit, more) in
            [(64 << 20, "128MiB"), (768 << 20, "1536MiB"), (512 << 20, "1GiB"), (1, "2MiB")]
        {
            assert_eq!(declared(limit), more);
        }
        let unknown = out_of_memory(ComponentName::Business, None);
        assert!(unknown.contains("of the business component; `limits memory=\"…\"`"), "{unknown}");
    }

    #[test]
    fn a_full_disk_is_named_with_the_line_that_gives_more() {
        insta::assert_snapshot!(disk_full(ComponentName::Agent, Some(10 << 30)), @r#"boxlaunch: the box's disk is full (10.0 GiB for all components): `disk "20GiB"` in its Boxfile or `--disk 20GiB` of a new run gives it more"#);
        insta::assert_snapshot!(disk_full(ComponentName::Business, None), @r#"boxlaunch: the root of the business component is full: it is in memory, and may take half of the component's limit; `disk "10GiB"` in its Boxfile or `--disk 10GiB` of a new run puts it on a disk"#);
    }

    #[test]
    fn a_larger_machine_gives_components_no_more() {
        let plan = config().plan;
        let own = plan.vm.memory_mib;
        for memory in [None, Some(own), Some(own - 1)] {
            assert_eq!(larger_machine(&plan, memory), None);
        }
        let notice = larger_machine(&plan, Some(own + 1)).unwrap();
        for (name, component) in plan.components() {
            let limit = format!("{} {}", name.name(), readable(component.limits.memory_bytes));
            assert!(notice.contains(&limit), "{notice}");
        }
    }
}
