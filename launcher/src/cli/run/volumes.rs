//! The volumes of a run: those that the box declares, and those of the command line.

use std::path::Path;

use box_contract::{RunPlan, Scope, VolumePlan};
use boxlaunch::mounts::guest_paths::{Taken, check_free};
use boxlaunch::mounts::volumes::{
    Claim, DEFAULT_SIZE, Volume, VolumeError, VolumePlace, Volumes, check_once,
};
use boxlaunch::project::volume_prefix;
use safe_text::{readable, shown};

use super::options::RunArgs;
use crate::cli::error::{Failure, usage};
use crate::cli::progress::Shown;
use crate::cli::shares::ShareArg;

/// Returns the volumes of a run. A volume of the command line replaces the one that the box declares at the same guest path, and is
/// seen by the same component. A declared volume has the name of the box in front, so that no box gets a volume of another box that
/// the user has not named. A volume that belongs to an environment has the name of the environment in front.
pub(in crate::cli) fn of_run(args: &RunArgs, plan: &RunPlan) -> Vec<VolumePlace> {
    let declared = plan.volumes.iter().filter(|it| !is_replaced(args, it)).map(|it| VolumePlace {
        declared: true,
        scope: it.scope,
        ..VolumePlace::new(name_of(args, plan, it), it.guest.clone())
    });
    let given = args.given.volumes.iter().map(|place| {
        let mut replaced = plan.volumes.iter().filter(|it| it.guest == place.guest);
        let scope = match (replaced.next(), replaced.next()) {
            (Some(one), None) => one.scope,
            _ => Scope::Both,
        };
        VolumePlace { scope, ..place.clone() }
    });
    declared.chain(given).collect()
}

/// Returns the name of a declared volume on this host.
fn name_of(args: &RunArgs, plan: &RunPlan, volume: &VolumePlan) -> String {
    match args.name.as_deref().filter(|_| args.project.is_some()) {
        Some(name) => volume_prefix(name) + &volume.name,
        None => plan.host_volume(volume),
    }
}

fn is_replaced(args: &RunArgs, volume: &VolumePlan) -> bool {
    args.given.volumes.iter().any(|place| place.guest == volume.guest)
}

/// Checks that no volume is used twice, and that the guest paths of volumes and shares are free in the box.
pub(super) fn checked(args: &RunArgs, plan: &RunPlan) -> Result<(), Failure> {
    let guests = args.given.volumes.iter().map(|it| it.guest.as_str()).chain(args.own_shares());
    let guests: Vec<_> = guests.collect();
    check_once(&of_run(args, plan)).map_err(|reason| usage(&reason, "leave one out"))?;
    let mut plan = plan.clone();
    plan.volumes.retain(|it| !is_replaced(args, it));
    check_free(&guests, &plan).map_err(|reason| usage(&reason.to_string(), &help(args, &reason)))
}

/// Returns the help for a guest path that is in use.
fn help(args: &RunArgs, taken: &Taken) -> String {
    let Taken::ByBox { place, .. } = taken else {
        return "give each its own path".to_owned();
    };
    let volume = args.given.volumes.iter().find(|it| it.guest == *place);
    let volume = volume.map(|it| format!("--volume {}:/PATH", it.volume));
    let share =
        || args.given.shares.iter().find(|it| it.place() == Some(place)).map(ShareArg::elsewhere);
    let option = volume.or_else(share).unwrap_or_default();
    format!("choose another path: `{option}`")
}

/// Returns the volumes of a run, with the sizes of those that have to be created, and what they leave of the `left` bytes that the
/// box's disks may still have together. `claim` returns the claim of the box on the volumes that it declares. The user has not asked for declared volumes, so they share these bytes with the box's disk.
///
/// # Errors
/// A volume has the files of a box of another origin.
pub(super) fn sized(
    args: &RunArgs,
    plan: &RunPlan,
    claim: impl FnOnce() -> Result<Claim, Failure>,
    (left, state): (u64, &Path),
) -> Result<(Vec<VolumePlace>, u64), Failure> {
    let volumes = Volumes::new(state);
    let is_new = |it: &VolumePlace| {
        it.declared && matches!(volumes.find(&it.volume), Err(VolumeError::Missing(_)))
    };
    let mut all = of_run(args, plan);
    // The name of an environment is not chosen by the author of a box.
    let mut claimed = all.iter_mut().filter(|it| it.declared && args.project.is_none()).peekable();
    if claimed.peek().is_some() {
        let claim = claim()?;
        claimed.for_each(|it| it.claim = Some(claim.clone()));
    }
    all.iter().try_for_each(|it| volumes.check(it))?;
    let mut new: Vec<_> = all.iter_mut().filter(|it| is_new(it)).collect();
    let count = u64::try_from(new.len()).unwrap_or(u64::MAX);
    let size = DEFAULT_SIZE.min(left / (count + 1));
    new.iter_mut().for_each(|it| it.new_bytes = size);
    Ok((all, left - size * count))
}

/// Returns a notice for each volume that the box declares, because no option of the command line names it.
pub(super) fn notices(volumes: &[VolumePlace]) -> impl Iterator<Item = String> {
    volumes.iter().filter(|it| it.declared).map(|VolumePlace { volume, guest, .. }| {
        shown(&format!("boxlaunch: the volume {volume} is at {guest}, and keeps its files")) + "\n"
    })
}

/// Locks the volumes for the box named `name`. Creates missing volumes, and prints a notice about each.
pub(super) fn take(
    places: &[VolumePlace],
    state: &Path,
    name: &str,
    watch: &Shown<'_>,
) -> Result<Vec<Volume>, VolumeError> {
    let volumes = Volumes::new(state);
    let take = |place: &VolumePlace| {
        let volume = volumes.take(place, name)?;
        if volume.is_new() {
            let (name, size) = (&place.volume, readable(volume.size_bytes()));
            watch.note(&format!("boxlaunch: made the volume {name} ({size})\n"));
        }
        Ok(volume)
    };
    places.iter().map(take).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> RunPlan {
        let mut plan = testkit::test_box::config().plan;
        "app".clone_into(&mut plan.name);
        let volume = |name: &str, guest: &str, scope| VolumePlan {
            name: name.to_owned(),
            guest: guest.to_owned(),
            scope,
        };
        plan.volumes =
            vec![volume("data", "/data", Scope::Both), volume("home", "/root", Scope::Business)];
        plan
    }

    fn args(options: &[&str]) -> RunArgs {
        RunArgs::of_words(["x.box"].iter().chain(options)).unwrap()
    }

    #[test]
    fn a_box_gets_its_own_volumes_unless_the_command_line_names_others() {
        let all = |options: &[&str]| {
            let volumes = of_run(&args(options), &plan()).into_iter();
            volumes.map(|it| (it.volume, it.guest, it.scope, it.declared)).collect::<Vec<_>>()
        };
        let volume = |name: &str, guest: &str, scope, declared| {
            (name.to_owned(), guest.to_owned(), scope, declared)
        };
        let data = volume("app.data", "/data", Scope::Both, true);
        let home = volume("app.home", "/root", Scope::Business, true);
        assert_eq!(all(&[]), [data.clone(), home]);
        let given = volume("mine", "/root", Scope::Business, false);
        assert_eq!(all(&["--volume", "mine:/root"]), [data, given]);
        let checked = |options: &[&str]| checked(&args(options), &plan()).map_err(|it| it.text());
        assert_eq!(checked(&["--volume", "mine:/root", "--volume", "more:/root/x"]), Ok(()));
        let errors = [["--volume", "app.data:/root"], ["-v", ".:/data"]];
        let mut texts: Vec<_> = errors.iter().map(|it| checked(it).unwrap_err()).collect();
        texts.push(checked(&["--volume", "a:/root", "--volume", "b:/root"]).unwrap_err());
        insta::assert_snapshot!(texts.concat(), @"
        error: the volume app.data is named twice
          = help: leave one out
        error: /data is in use: the box has its volume data at /data
          = help: choose another path: `-v .:/PATH`
        error: two of the options use /root
          = help: give each its own path
        ");
    }

    #[test]
    fn new_volumes_of_a_box_share_what_its_disks_may_have() {
        let dir = tempfile::tempdir().unwrap();
        let sized = |options: &[&str], left| {
            let claim = || Ok(Claim::default());
            let (all, left) = sized(&args(options), &plan(), claim, (left, dir.path())).unwrap();
            (all.iter().map(|it| it.new_bytes >> 20).collect::<Vec<_>>(), left >> 20)
        };
        let gib = 1 << 30;
        assert_eq!(sized(&[], 100 * gib), (vec![10 << 10, 10 << 10], 80 << 10));
        assert_eq!(sized(&[], 3 * gib), (vec![1 << 10, 1 << 10], 1 << 10));
        let given = ["--volume", "mine:/root"];
        assert_eq!(sized(&given, 3 * gib), (vec![1536, 10 << 10], 1536));
        Volumes::new(dir.path()).create("app.data", 8 << 20).unwrap();
        assert_eq!(sized(&[], 3 * gib), (vec![10 << 10, 1536], 1536));
    }

    #[test]
    fn each_declared_volume_is_said() {
        let all: String = notices(&of_run(&args(&["--volume", "a:/data"]), &plan())).collect();
        let expected = "boxlaunch: the volume app.home is at /root, and keeps its files\n";
        assert_eq!(all, expected);
    }
}
