//! The [Landlock](https://docs.kernel.org/userspace-api/landlock.html) rules of a command.

use std::fs;

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope, make_bitflags,
};

use crate::FenceError;

/// The newest ABI version whose rights this module knows.
const NEWEST: ABI = ABI::V6;

/// The rights for a file, and for devices without the right to control them.
const CHANGE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{WriteFile | Truncate});
/// The rights for the devices in `/dev`. Terminals need `IoctlDev`.
const USE_DEVICES: BitFlags<AccessFs> = make_bitflags!(AccessFs::{WriteFile | Truncate | IoctlDev});
/// The rights below a writable directory. Making devices is not among them.
const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    WriteFile | Truncate | RemoveDir | RemoveFile | Refer | MakeDir | MakeReg | MakeSock | MakeFifo | MakeSym
});
/// The directory of devices. Every command may use those that it has.
const DEVICES: &str = "/dev";

/// Confines the calling thread for the rest of its life: of all files, it can write only those at and below `writable`,
/// and devices in `/dev`. Paths that do not exist are skipped. It cannot trace or signal processes outside, or connect
/// to their abstract sockets. It gets no new privileges by executing a program.
///
/// Returns `false` if the kernel has no Landlock, or a version that lacks some of these rights (before Linux 6.12).
///
/// # Errors
/// [`FenceError::Rules`].
pub fn restrict(writable: &[&str]) -> Result<bool, FenceError> {
    try_restrict(writable).map_err(|error| FenceError::Rules(error.to_string()))
}

fn try_restrict(writable: &[&str]) -> Result<bool, Box<dyn std::error::Error>> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_write(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    for path in writable {
        let Some(file) = open(path) else { continue };
        let access = if fs::metadata(path).is_ok_and(|it| it.is_dir()) { WRITE } else { CHANGE };
        rules = rules.add_rule(PathBeneath::new(file, access))?;
    }
    if let Some(devices) = open(DEVICES) {
        rules = rules.add_rule(PathBeneath::new(devices, USE_DEVICES))?;
    }
    Ok(rules.restrict_self()?.ruleset == RulesetStatus::FullyEnforced)
}

/// Opens a path for a rule. `None` if it does not exist, or the thread cannot reach it.
fn open(path: &str) -> Option<PathFd> {
    PathFd::new(path).ok()
}
