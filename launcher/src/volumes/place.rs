//! `NAME:/path`: which volume a box gets, and where it sees that.

use std::str::FromStr;

use box_image::rules::{PATH_MAX, is_normalized, overlap, reserved_place};
use box_image::text::shown;
use box_image::{ComponentName, RunPlan, SecretDelivery};

use super::VolumeError;
use crate::state::is_name;

const FORM: &str = "write NAME:/path";

/// A volume of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumePlace {
    /// The volume's name.
    pub volume: String,
    /// Where the components of the box see it: absolute and normalized, and nothing of the guest's own.
    pub guest: String,
}

impl FromStr for VolumePlace {
    type Err = String;

    /// Reads `NAME:/path`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (volume, guest) = text.split_once(':').ok_or(FORM)?;
        if volume.starts_with(['.', '/']) {
            return Err(format!("{FORM}; for a directory of the host there is --share"));
        }
        if !is_name(volume) {
            return Err(VolumeError::BadName(volume.to_owned()).to_string());
        }
        if guest.ends_with(":ro") || guest.ends_with(":rw") {
            return Err("a volume is always writable: leave out what is after the path".to_owned());
        }
        if !is_normalized(guest) || guest.len() > PATH_MAX || guest.contains([':', '\0']) {
            return Err(format!("{FORM}, without `.`, `..`, `:` and empty names in the path"));
        }
        if let Some(taken) = reserved_place(guest) {
            return Err(format!("{guest} is not free: the box itself has {taken}"));
        }
        Ok(Self { volume: volume.to_owned(), guest: guest.to_owned() })
    }
}

/// Checks the volumes of a start: each once, and each at a place of its own.
///
/// # Errors
/// What is wrong, for people.
pub fn check(places: &[VolumePlace], plan: &RunPlan) -> Result<(), String> {
    let taken: Vec<_> = taken(plan).collect();
    for (at, place) in places.iter().enumerate() {
        let VolumePlace { volume, guest } = place;
        if places[..at].iter().any(|it| it.volume == *volume) {
            return Err(format!("the volume {volume} is named twice"));
        }
        let before = places[..at].iter().map(|it| it.guest.as_str());
        if let Some(other) = before.chain(taken.iter().copied()).find(|it| overlap(it, guest)) {
            let other = shown(other);
            return Err(format!("{guest} is not free: there is something at {other} already"));
        }
    }
    Ok(())
}

/// Returns the places at which a box has something already, in whichever component.
fn taken(plan: &RunPlan) -> impl Iterator<Item = &str> {
    let mounts = ComponentName::ALL.into_iter().flat_map(|it| plan.mount_points(it));
    let files = plan.secrets.iter().filter_map(|it| match &it.delivery {
        SecretDelivery::Env => None,
        SecretDelivery::File { path } => Some(path.as_str()),
    });
    mounts.chain(files)
}
