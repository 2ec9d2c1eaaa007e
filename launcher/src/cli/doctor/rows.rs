//! The rows of the report: the verdict about each capability, and its repair.

use super::jail;
use super::row::{Finding, Row};
use crate::cli::explain::kvm_help;
use boxlaunch::host::error::KvmError;
use boxlaunch::host::programs::Tool;
use boxlaunch::host::{
    EMULATOR, EmulatedKernel, Facts, INSTALL_NETWORK, NETWORK_NEEDS, OLDEST_EMULATOR, PASST,
    is_supported,
};
use cli_common::policy::{HostPolicy, PolicyFault};
use safe_text::shown;

use virtual_host::programs::fetchers;

const STARTS: &str = "to start boxes";
const EMULATION: &str = "to start boxes without KVM, slowly (`boxlaunch run --emulated`)";
const ACCEPTS: &str = "to accept boxes (policy.toml)";
const NETWORKS: &str = "to start boxes with a shared network; no other box needs it";

/// Returns a row for each capability. The capabilities that only some boxes need are last.
pub(super) fn of(facts: &Facts, policy: &Result<Option<HostPolicy>, PolicyFault>) -> Vec<Row> {
    let qemu = "`sudo apt-get install qemu-system-x86` (Debian, Ubuntu) or `sudo dnf install \
                qemu-system-x86` (Fedora)";
    let mut rows = vec![
        kvm(&facts.kvm).row("kvm", "KVM", STARTS),
        emulator(facts.emulator.as_ref(), qemu).row("qemu", "QEMU", EMULATION),
        emulated_kernel(&facts.emulated_kernel).row("host-kernel", "its kernel", EMULATION),
    ];
    rows.extend(jail::of(facts));
    rows.push(self::policy(policy).row("policy", "policy", ACCEPTS));
    rows.push(network(facts).row(PASST, PASST, NETWORKS));
    rows
}

fn policy(found: &Result<Option<HostPolicy>, PolicyFault>) -> Finding {
    match found {
        Ok(None) => Finding::ok("none: this host accepts every box (docs/trust.md)"),
        Ok(Some(policy)) => Finding::ok(policy.line()),
        Err(fault) => Finding::broken(
            shown(&fault.line()),
            "this host accepts no box until the file is repaired or removed; the whole error is below",
        ),
    }
}

fn network(facts: &Facts) -> Finding {
    match &facts.network_failure {
        Some(reason) => Finding::missing(reason.clone(), NETWORK_NEEDS),
        None => tool(PASST, facts.network.as_ref(), INSTALL_NETWORK),
    }
}

fn kvm(found: &Result<(), KvmError>) -> Finding {
    match found {
        Ok(()) => Finding::ok("a test guest ran to its end"),
        Err(error @ KvmError::Unknown(_)) => Finding::limited(error.to_string(), kvm_help(error)),
        Err(error) => Finding::missing(shown(&error.to_string()), kvm_help(error)),
    }
}

fn emulator(found: Option<&Tool>, install: &str) -> Finding {
    let version = found.and_then(|tool| tool.version.as_deref());
    match version.filter(|line| !is_supported(line)) {
        Some(old) => {
            let reason = format!("{old}; version {OLDEST_EMULATOR} or later is needed");
            Finding::missing(reason, install)
        }
        None => tool(EMULATOR, found, install),
    }
}

fn emulated_kernel(found: &EmulatedKernel) -> Finding {
    match found {
        EmulatedKernel::Here(version) => Finding::ok(format!("{}, fetched before", shown(version))),
        EmulatedKernel::ToBeFetched => Finding::ok("fetched with apt-get by the first such run"),
        EmulatedKernel::Missing => {
            let programs: Vec<_> = fetchers().collect();
            let reason = format!("not fetched yet, and one of {} is missing", programs.join(", "));
            let help = "name the file of a Debian package linux-image-*-cloud-amd64, once: \
                        `boxlaunch run --emulated --host-kernel FILE BOX`";
            Finding::missing(reason, help)
        }
    }
}

fn tool(name: &str, found: Option<&Tool>, install: &str) -> Finding {
    let Some(tool) = found else {
        return Finding::missing(format!("there is no {name} in PATH"), install);
    };
    let path = shown(&tool.path.display().to_string());
    match &tool.version {
        Some(version) => Finding::ok(format!("{version}, at {path}")),
        None => Finding::limited(format!("`{path} --version` fails"), install),
    }
}
