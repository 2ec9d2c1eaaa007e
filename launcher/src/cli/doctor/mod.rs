//! `boxlaunch doctor`: the host's capabilities that boxes need.

mod jail;
mod row;
mod rows;

use std::path::Path;

use box_contract::{ErrorCode, exit};
use boxlaunch::host::Facts;
use boxlaunch::host::kvm::DEVICE;
use boxlaunch::host::memory::Memory;
use boxlaunch::network::why_no_network;
use cli_common::Problem;
use cli_common::policy::{HostPolicy, PolicyFault};
use serde::Serialize;
use vmm::jail::Policy;

use super::error::Failure;
use super::paths::{self, SELF};
use super::stored::PROGRAM;
use super::terminal::{is_quiet, json_line, notice, painted, print};
use row::{Row, State};

/// Shows what this host offers to boxes, and how to get what it lacks.
///
/// Boots a small guest under KVM, sets the jail up around a process, and looks for programs. A row that only a later version
/// needs prevents no box today. Exits with 1 if no box can start on this host, neither with KVM nor by emulation with QEMU, or if
/// the policy of this host cannot be used.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  boxlaunch doctor --json | jq -r .boots")]
pub(crate) struct DoctorArgs {
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How boxes can start on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Boots {
    /// With KVM.
    Kvm,
    /// On an emulated CPU.
    Emulated,
}

#[derive(Debug, Serialize)]
struct Report {
    /// `None` if no box can start.
    boots: Option<Boots>,
    rows: Vec<Row>,
    /// Whether a run without `--jail` is refused because a layer is missing.
    #[serde(skip)]
    is_refused: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Problem>,
}

pub(crate) fn doctor(args: &DoctorArgs) -> Result<u8, Failure> {
    let (programs, kernels) = (paths::programs(), paths::cache().ok());
    let base = paths::runtime_base();
    let facts =
        Facts::gather(Path::new(SELF), &programs, kernels.as_deref(), &base, why_no_network);
    if let Ok(state) = paths::state() {
        // Replaces the stored result of an earlier try, so that a KVM that was repaired meanwhile is used by the next run.
        Memory::new(&state, Path::new(DEVICE)).note(&facts.kvm);
    }
    let report = report(&facts, &HostPolicy::read(PROGRAM.variable));
    if args.json {
        print(&json_line(&report)?)?;
    } else {
        print(&text(&report, is_quiet()))?;
        if !report.errors.is_empty() {
            notice(&(painted(&cli_common::problem::text(&report.errors)) + "\n"));
        }
    }
    Ok(if report.errors.is_empty() { exit::DONE } else { exit::FAILED })
}

fn report(facts: &Facts, policy: &Result<Option<HostPolicy>, PolicyFault>) -> Report {
    let boots = match &facts.kvm {
        Ok(()) => Some(Boots::Kvm),
        Err(_) => facts.emulates().then_some(Boots::Emulated),
    };
    let mut errors = if boots.is_some() { Vec::new() } else { vec![nothing_works()] };
    errors.extend(policy.as_ref().err().into_iter().flat_map(PolicyFault::problems));
    let lacks_any = facts.jail.as_ref().is_ok_and(|jail| !jail.missing.is_empty());
    let is_refused = lacks_any && Policy::default_of(facts.is_root) == Policy::Require;
    Report { boots, rows: rows::of(facts, policy), is_refused, errors }
}

fn nothing_works() -> Problem {
    let help = "repair KVM, or get what `boxlaunch run --emulated` lacks, which is slower and needs no special host";
    Problem::new(
        (ErrorCode::KvmUnavailable, help),
        "nothing was found on this host that boxes can start with",
    )
}

/// Returns the report as text: the rows under the headings of their purposes, and how boxes start. With `problems_only`, returns
/// only the rows of problems.
fn text(report: &Report, problems_only: bool) -> String {
    let mut text = String::new();
    let mut above = "";
    for row in report.rows.iter().filter(|row| !problems_only || row.state != State::Ok) {
        if above != row.needed_for {
            let gap = if above.is_empty() { "" } else { "\n" };
            text += &format!("{gap}{}:\n", row.needed_for);
            above = row.needed_for;
        }
        text += &format!("  {:<17} {:<8} {}\n", row.title, row.state.name(), row.fact);
        if let Some(help) = &row.help {
            text += &format!("  {:>28} {help}\n", "= help:");
        }
    }
    if problems_only {
        return text;
    }
    if !report.errors.is_empty() {
        return text;
    }
    text + match report.boots {
        Some(Boots::Kvm) if report.is_refused => {
            "\nboxes start on this host without a complete jail only: `boxlaunch run --jail \
             best-effort BOX`\n"
        }
        Some(Boots::Kvm) => "\nboxes start on this host: `boxlaunch run BOX`\n",
        Some(Boots::Emulated) => {
            "\nboxes start on this host by emulation only: `boxlaunch run --emulated BOX`\n"
        }
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use boxlaunch::host::EmulatedKernel;
    use boxlaunch::host::error::KvmError;
    use boxlaunch::host::programs::Tool;
    use vmm::jail::isolation::{Cgroups, Switch};
    use vmm::jail::{Layer, Missing};

    use super::*;

    /// Returns the report of a host without a policy.
    fn report(facts: &Facts) -> Report {
        super::report(facts, &Ok(None))
    }

    fn tool(name: &str, version: &str) -> Option<Tool> {
        let path = PathBuf::from("/usr/bin").join(name);
        Some(Tool { path, version: Some(version.to_owned()) })
    }

    fn good() -> Facts {
        let controllers = ["cpu", "memory", "pids"].map(str::to_owned).to_vec();
        Facts {
            kvm: Ok(()),
            emulator: tool("qemu-system-x86_64", "QEMU emulator version 10.0.2"),
            emulated_kernel: EmulatedKernel::Here("6.1.0-56-cloud-amd64".to_owned()),
            jail: Ok(vmm::jail::Report { landlock_abi: Some(7), ..Default::default() }),
            is_root: false,
            cgroups: Cgroups::Unified { controllers, delegated: true },
            bounds_supervisor: true,
            forbidden_by: Vec::new(),
            has_landlock: true,
            network: tool("passt", "passt 0.0~git20250503"),
            network_failure: None,
        }
    }

    fn bad() -> Facts {
        let reason = "KVM_EXIT_INTERNAL_ERROR at the instruction int3";
        let switch = Switch {
            name: "kernel.apparmor_restrict_unprivileged_userns",
            forbids: "1",
            allows: "0",
        };
        let lacking = |layer| Missing::new(layer, "EPERM: Operation not permitted");
        let missing = [Layer::ControlGroup, Layer::UserNamespace, Layer::Landlock, Layer::UserId];
        let missing = missing.map(lacking).to_vec();
        Facts {
            kvm: Err(KvmError::Unusable(reason.to_owned())),
            emulator: None,
            emulated_kernel: EmulatedKernel::ToBeFetched,
            jail: Ok(vmm::jail::Report { missing, ..Default::default() }),
            is_root: false,
            cgroups: Cgroups::Legacy,
            bounds_supervisor: false,
            forbidden_by: vec![switch],
            has_landlock: false,
            network: None,
            network_failure: None,
        }
    }

    #[test]
    fn a_good_host_is_a_short_table() {
        insta::assert_snapshot!(text(&report(&good()), false), @"
        to start boxes:
          KVM               ok       a test guest ran to its end

        to start boxes without KVM, slowly (`boxlaunch run --emulated`):
          QEMU              ok       QEMU emulator version 10.0.2, at /usr/bin/qemu-system-x86_64
          its kernel        ok       6.1.0-56-cloud-amd64, fetched before

        for the jail of the process that runs a box (`boxlaunch run --jail`):
          jail              ok       all 13 layers work; Landlock's ABI is version 7

        to accept boxes (policy.toml):
          policy            ok       none: this host accepts every box (docs/trust.md)

        to start boxes with a shared network; no other box needs it:
          passt             ok       passt 0.0~git20250503, at /usr/bin/passt

        boxes start on this host: `boxlaunch run BOX`
        ");
        assert_eq!(text(&report(&good()), true), "");
    }

    #[test]
    fn each_thing_that_is_missing_has_its_help() {
        let report = report(&bad());
        insta::assert_snapshot!(text(&report, false), @"
        to start boxes:
          KVM               missing  this host's KVM cannot run a guest: KVM_EXIT_INTERNAL_ERROR at the instruction int3
                               = help: use a host with hardware virtualization

        to start boxes without KVM, slowly (`boxlaunch run --emulated`):
          QEMU              missing  there is no qemu-system-x86_64 in PATH
                               = help: `sudo apt-get install qemu-system-x86` (Debian, Ubuntu) or `sudo dnf install qemu-system-x86` (Fedora)
          its kernel        ok       fetched with apt-get by the first such run

        for the jail of the process that runs a box (`boxlaunch run --jail`):
          jail              limited  9 of 13 layers work; missing: control-group, user-namespace, landlock, user-id
                               = help: for a box that you trust: `boxlaunch run --jail best-effort BOX`
          control-group     missing  EPERM: Operation not permitted
                               = help: boot the host with the kernel's parameter `systemd.unified_cgroup_hierarchy=1`
          user-namespace    missing  EPERM: Operation not permitted
                               = help: `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`
          landlock          missing  EPERM: Operation not permitted
                               = help: use a kernel from 5.13 on that has `landlock` in its parameter `lsm=`
          user-id           missing  EPERM: Operation not permitted
                               = help: open the device to a group: `sudo chgrp kvm /dev/kvm`, `sudo chmod 660 /dev/kvm`

        to accept boxes (policy.toml):
          policy            ok       none: this host accepts every box (docs/trust.md)

        to start boxes with a shared network; no other box needs it:
          passt             missing  there is no passt in PATH
                               = help: `sudo apt-get install passt` (Debian, Ubuntu) or `sudo dnf install passt` (Fedora)
        ");
        insta::assert_snapshot!(cli_common::problem::text(&report.errors), @"
        error: nothing was found on this host that boxes can start with
          = help: repair KVM, or get what `boxlaunch run --emulated` lacks, which is slower and needs no special host
        ");
        assert_eq!(report.boots, None);
    }

    #[test]
    fn a_policy_with_an_error_accepts_no_box() {
        use std::ffi::OsString;

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("boxbuild/policy.toml");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "# a\nlocal = \"Allow\"\n").unwrap();
        let home = OsString::from(directory.path());
        let policy = HostPolicy::read(|name| (name == "XDG_CONFIG_HOME").then(|| home.clone()));
        let report = super::report(&good(), &policy);
        assert_eq!(report.errors[0].code, ErrorCode::PolicyInvalid);
        let text = text(&report, true);
        let row = format!("  policy            broken   {}:2: ", path.display());
        assert!(text.contains(&row), "{text}");
        assert!(!text.contains("boxes start on this host"), "{text}");
    }

    #[test]
    fn an_old_emulator_starts_no_box() {
        let old = "QEMU emulator version 6.2.0 (Debian 1:6.2+dfsg-2ubuntu6)";
        let facts = Facts { emulator: tool("qemu-system-x86_64", old), ..bad() };
        let report = report(&facts);
        assert_eq!(report.boots, None);
        let text = text(&report, true);
        let row = "QEMU              missing  QEMU emulator version 6.2.0 (Debian 1:6.2+dfsg-2ubuntu6); \
                   version 7.2 or later is needed";
        assert!(text.contains(row), "{text}");
    }

    #[test]
    fn an_emulator_without_a_kernel_starts_no_box() {
        let facts = Facts { emulated_kernel: EmulatedKernel::Missing, ..good() };
        let missing = report(&Facts { kvm: bad().kvm, ..facts });
        assert_eq!(missing.boots, None);
        insta::assert_snapshot!(text(&missing, true), @"
        to start boxes:
          KVM               missing  this host's KVM cannot run a guest: KVM_EXIT_INTERNAL_ERROR at the instruction int3
                               = help: use a host with hardware virtualization

        to start boxes without KVM, slowly (`boxlaunch run --emulated`):
          its kernel        missing  not fetched yet, and one of apt-get, apt-cache, dpkg-deb is missing
                               = help: name the file of a Debian package linux-image-*-cloud-amd64, once: `boxlaunch run --emulated --host-kernel FILE BOX`
        ");
    }

    #[test]
    fn what_a_jail_needs_is_told_where_none_can_be_tried() {
        let untried = |facts: Facts| {
            let kvm = Err(KvmError::Missing("/dev/kvm".into()));
            let jail = Err("there is no /dev/kvm".to_owned());
            text(&report(&Facts { kvm, jail, ..facts }), false)
        };
        insta::assert_snapshot!(untried(bad()), @"
        to start boxes:
          KVM               missing  there is no /dev/kvm
                               = help: switch hardware virtualization on in the firmware, load the module (`sudo modprobe kvm-intel` or `kvm-amd`), or, in a virtual machine or a container, pass /dev/kvm through

        to start boxes without KVM, slowly (`boxlaunch run --emulated`):
          QEMU              missing  there is no qemu-system-x86_64 in PATH
                               = help: `sudo apt-get install qemu-system-x86` (Debian, Ubuntu) or `sudo dnf install qemu-system-x86` (Fedora)
          its kernel        ok       fetched with apt-get by the first such run

        for the jail of the process that runs a box (`boxlaunch run --jail`):
          jail              missing  not tried: there is no /dev/kvm
                               = help: repair KVM first
          control-group     missing  the host has no control groups of version 2
                               = help: boot the host with the kernel's parameter `systemd.unified_cgroup_hierarchy=1`
          user-namespace    missing  forbidden by kernel.apparmor_restrict_unprivileged_userns=1
                               = help: `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`
          landlock          missing  the kernel does not offer it
                               = help: use a kernel from 5.13 on that has `landlock` in its parameter `lsm=`

        to accept boxes (policy.toml):
          policy            ok       none: this host accepts every box (docs/trust.md)

        to start boxes with a shared network; no other box needs it:
          passt             missing  there is no passt in PATH
                               = help: `sudo apt-get install passt` (Debian, Ubuntu) or `sudo dnf install passt` (Fedora)
        ");
        let good = untried(good());
        for name in ["control-group     ok", "user-namespace    ok", "landlock          ok"] {
            assert!(good.contains(name), "{good}");
        }
    }

    #[test]
    fn a_supervisor_without_limits_is_named_where_its_machine_has_some() {
        let facts = Facts { is_root: true, bounds_supervisor: false, ..good() };
        let roots = report(&facts);
        insta::assert_snapshot!(text(&roots, true), @"
        for the jail of the process that runs a box (`boxlaunch run --jail`):
          supervisor        limited  it has no control group of its own, and stays in the one of its service
                               = help: start in a group that is handed over: `systemd-run --scope -p Delegate=yes boxlaunch ...`
        ");
        assert!(!roots.is_refused);
        // If the VM has no control group either, only the missing layer `control-group` is reported.
        assert!(!text(&report(&bad()), true).contains("supervisor"));
    }

    #[test]
    fn limits_are_between_missing_and_ok() {
        let mut facts = good();
        facts.kvm = Err(KvmError::Unknown("a test guest did not end within 1 s".to_owned()));
        facts.emulator.as_mut().unwrap().version = None;
        facts.jail = Err("there is no /dev/kvm".to_owned());
        facts.network = None;
        insta::assert_snapshot!(text(&report(&facts), true), @"
        to start boxes:
          KVM               limited  it is not known whether this host's KVM can run a guest: a test guest did not end within 1 s
                               = help: try again when the host is less busy

        to start boxes without KVM, slowly (`boxlaunch run --emulated`):
          QEMU              limited  `/usr/bin/qemu-system-x86_64 --version` fails
                               = help: `sudo apt-get install qemu-system-x86` (Debian, Ubuntu) or `sudo dnf install qemu-system-x86` (Fedora)

        for the jail of the process that runs a box (`boxlaunch run --jail`):
          jail              missing  not tried: there is no /dev/kvm
                               = help: repair KVM first

        to start boxes with a shared network; no other box needs it:
          passt             missing  there is no passt in PATH
                               = help: `sudo apt-get install passt` (Debian, Ubuntu) or `sudo dnf install passt` (Fedora)
        ");
    }

    #[test]
    fn the_help_fits_who_asks() {
        let report = |cgroups, is_root| {
            let facts = Facts { cgroups, is_root, ..bad() };
            report(&facts).rows.into_iter().filter_map(|row| row.help).collect::<Vec<_>>()
        };
        let unified = || Cgroups::Unified { controllers: Vec::new(), delegated: false };
        let of_user = report(unified(), false);
        assert!(of_user.iter().any(|it| it.contains("systemd-run --user")), "{of_user:?}");
        assert!(of_user.iter().any(|it| it.contains("sudo sysctl")), "{of_user:?}");
        let of_root = report(unified(), true);
        assert!(of_root.iter().any(|it| it.contains("--cgroupns=host")), "{of_root:?}");
        assert!(!of_root.iter().any(|it| it.contains("sudo sysctl")), "{of_root:?}");
        let of_root =
            |is_root| text(&self::report(&Facts { kvm: Ok(()), is_root, ..bad() }), false);
        assert!(of_root(true).contains("\nboxes start on this host without a complete jail only"));
        assert!(of_root(false).contains("\nboxes start on this host: "), "by best effort");
        assert!(report(Cgroups::Missing, true).iter().any(|it| it.contains("mount -t cgroup2")));
    }

    #[test]
    fn the_report_as_data() {
        let json = |facts| serde_json::to_string_pretty(&report(&facts)).unwrap();
        insta::assert_snapshot!(json(good()), @r#"
        {
          "boots": "kvm",
          "rows": [
            {
              "name": "kvm",
              "state": "ok",
              "fact": "a test guest ran to its end",
              "help": null,
              "needed_for": "to start boxes"
            },
            {
              "name": "qemu",
              "state": "ok",
              "fact": "QEMU emulator version 10.0.2, at /usr/bin/qemu-system-x86_64",
              "help": null,
              "needed_for": "to start boxes without KVM, slowly (`boxlaunch run --emulated`)"
            },
            {
              "name": "host-kernel",
              "state": "ok",
              "fact": "6.1.0-56-cloud-amd64, fetched before",
              "help": null,
              "needed_for": "to start boxes without KVM, slowly (`boxlaunch run --emulated`)"
            },
            {
              "name": "jail",
              "state": "ok",
              "fact": "all 13 layers work; Landlock's ABI is version 7",
              "help": null,
              "needed_for": "for the jail of the process that runs a box (`boxlaunch run --jail`)"
            },
            {
              "name": "policy",
              "state": "ok",
              "fact": "none: this host accepts every box (docs/trust.md)",
              "help": null,
              "needed_for": "to accept boxes (policy.toml)"
            },
            {
              "name": "passt",
              "state": "ok",
              "fact": "passt 0.0~git20250503, at /usr/bin/passt",
              "help": null,
              "needed_for": "to start boxes with a shared network; no other box needs it"
            }
          ]
        }
        "#);
        insta::assert_snapshot!(json(bad()), @r#"
        {
          "boots": null,
          "rows": [
            {
              "name": "kvm",
              "state": "missing",
              "fact": "this host's KVM cannot run a guest: KVM_EXIT_INTERNAL_ERROR at the instruction int3",
              "help": "use a host with hardware virtualization",
              "needed_for": "to start boxes"
            },
            {
              "name": "qemu",
              "state": "missing",
              "fact": "there is no qemu-system-x86_64 in PATH",
              "help": "`sudo apt-get install qemu-system-x86` (Debian, Ubuntu) or `sudo dnf install qemu-system-x86` (Fedora)",
              "needed_for": "to start boxes without KVM, slowly (`boxlaunch run --emulated`)"
            },
            {
              "name": "host-kernel",
              "state": "ok",
              "fact": "fetched with apt-get by the first such run",
              "help": null,
              "needed_for": "to start boxes without KVM, slowly (`boxlaunch run --emulated`)"
            },
            {
              "name": "jail",
              "state": "limited",
              "fact": "9 of 13 layers work; missing: control-group, user-namespace, landlock, user-id",
              "help": "for a box that you trust: `boxlaunch run --jail best-effort BOX`",
              "needed_for": "for the jail of the process that runs a box (`boxlaunch run --jail`)"
            },
            {
              "name": "control-group",
              "state": "missing",
              "fact": "EPERM: Operation not permitted",
              "help": "boot the host with the kernel's parameter `systemd.unified_cgroup_hierarchy=1`",
              "needed_for": "for the jail of the process that runs a box (`boxlaunch run --jail`)"
            },
            {
              "name": "user-namespace",
              "state": "missing",
              "fact": "EPERM: Operation not permitted",
              "help": "`sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`",
              "needed_for": "for the jail of the process that runs a box (`boxlaunch run --jail`)"
            },
            {
              "name": "landlock",
              "state": "missing",
              "fact": "EPERM: Operation not permitted",
              "help": "use a kernel from 5.13 on that has `landlock` in its parameter `lsm=`",
              "needed_for": "for the jail of the process that runs a box (`boxlaunch run --jail`)"
            },
            {
              "name": "user-id",
              "state": "missing",
              "fact": "EPERM: Operation not permitted",
              "help": "open the device to a group: `sudo chgrp kvm /dev/kvm`, `sudo chmod 660 /dev/kvm`",
              "needed_for": "for the jail of the process that runs a box (`boxlaunch run --jail`)"
            },
            {
              "name": "policy",
              "state": "ok",
              "fact": "none: this host accepts every box (docs/trust.md)",
              "help": null,
              "needed_for": "to accept boxes (policy.toml)"
            },
            {
              "name": "passt",
              "state": "missing",
              "fact": "there is no passt in PATH",
              "help": "`sudo apt-get install passt` (Debian, Ubuntu) or `sudo dnf install passt` (Fedora)",
              "needed_for": "to start boxes with a shared network; no other box needs it"
            }
          ],
          "errors": [
            {
              "code": "kvm-unavailable",
              "help": "repair KVM, or get what `boxlaunch run --emulated` lacks, which is slower and needs no special host",
              "labels": [],
              "message": "nothing was found on this host that boxes can start with",
              "severity": "error"
            }
          ]
        }
        "#);
    }
}
