//! The [Landlock](https://docs.kernel.org/userspace-api/landlock.html) rules for the VMM process. They restrict its
//! files a second time, after its root directory, and its network.

use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, LandlockStatus,
    PathBeneath, PathFd, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, Scope, make_bitflags,
};

use super::shares::{ServedShare, places};
use super::{Files, fd_path};
use crate::jail::isolation::Landlock;

/// The newest ABI version whose rights this module knows.
const NEWEST: ABI = ABI::V6;

/// Restricts this process: it can open only the device of KVM, the files of the box and its disks, use the shares, and
/// make sockets in the directory `sockets`. Returns the ABI version of this kernel.
///
/// # Errors
/// The reason why no rules could be applied.
pub(super) fn restrict(
    device: &Path,
    files: Files<'_>,
    shares: &[ServedShare],
    sockets: &Path,
) -> Result<i32, String> {
    let status = rules(device, files, shares, sockets).map_err(|error| error.to_string())?;
    Ok(Landlock::from(status).version()?)
}

/// The rights below a read-only directory.
const READING: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});

/// The rights below a writable directory: all except executing programs, and making and controlling devices.
fn writing() -> BitFlags<AccessFs> {
    use AccessFs as Fs;
    READING
        | (Fs::WriteFile | Fs::Truncate | Fs::RemoveDir | Fs::RemoveFile | Fs::Refer)
        | (Fs::MakeDir | Fs::MakeReg | Fs::MakeSock | Fs::MakeFifo | Fs::MakeSym)
}

fn rules(
    device: &Path,
    files: Files<'_>,
    shares: &[ServedShare],
    sockets: &Path,
) -> Result<LandlockStatus, Box<dyn std::error::Error>> {
    let use_device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .add_rule(PathBeneath::new(PathFd::new(device)?, use_device))?
        .add_rule(PathBeneath::new(PathFd::new(sockets)?, AccessFs::MakeSock))?;
    let blobs = files.blobs.iter().map(|it| (it, AccessFs::ReadFile.into()));
    let disks = files.disks.iter().map(|it| (it, AccessFs::ReadFile | AccessFs::WriteFile));
    for (file, access) in blobs.chain(disks) {
        let file = PathFd::new(fd_path(*file))?;
        rules = rules.add_rule(PathBeneath::new(file, access))?;
    }
    for (share, (_, place)) in shares.iter().zip(places(shares)) {
        let access = if share.is_writable { writing() } else { READING };
        rules = rules.add_rule(PathBeneath::new(PathFd::new(place)?, access))?;
    }
    Ok(rules.restrict_self()?.landlock)
}
