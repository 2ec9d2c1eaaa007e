//! Parses `NAME:/path`: the name of a volume, and the path at which a box sees it.

use std::str::FromStr;

use box_contract::Scope;
use serde::{Deserialize, Serialize};

use super::{Claim, DEFAULT_SIZE, VolumeError};
use crate::host::state_dir::is_entry_name;
use crate::mounts::guest_paths;

const FORM: &str = "write NAME:/path";

/// A volume that a start uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumePlace {
    /// The volume's name.
    #[serde(rename = "name")]
    pub volume: String,
    /// The path at which the components of the box see the volume: absolute, normalized, and not one of the guest's
    /// system paths, such as `/proc`.
    pub guest: String,
    /// Whether the box declares the volume.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub declared: bool,
    /// The box that declares it. `None` if the volume belongs to an environment, whose name no box chooses, or is not declared.
    #[serde(skip)]
    pub claim: Option<Claim>,
    /// The components that see the volume.
    #[serde(skip, default = "both")]
    pub scope: Scope,
    /// The size of the volume if it has to be created, in bytes.
    #[serde(skip, default = "default_size")]
    pub new_bytes: u64,
}

const fn both() -> Scope {
    Scope::Both
}

const fn default_size() -> u64 {
    DEFAULT_SIZE
}

impl VolumePlace {
    /// Creates the place of a volume that all components see.
    pub const fn new(volume: String, guest: String) -> Self {
        let (scope, new_bytes) = (both(), DEFAULT_SIZE);
        Self { volume, guest, declared: false, claim: None, scope, new_bytes }
    }
}

impl FromStr for VolumePlace {
    type Err = String;

    /// Parses `NAME:/path`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (volume, guest) = text.split_once(':').ok_or(FORM)?;
        if volume.starts_with(['.', '/']) {
            return Err(FORM.to_owned());
        }
        if !is_entry_name(volume) {
            return Err(VolumeError::BadName(volume.to_owned()).to_string());
        }
        if guest.ends_with(":ro") || guest.ends_with(":rw") {
            return Err("a volume is always writable: leave out what is after the path".to_owned());
        }
        let guest = guest_paths::read(guest)?.to_owned();
        Ok(Self::new(volume.to_owned(), guest))
    }
}

/// Checks that no volume is named twice.
///
/// # Errors
/// The volume that is named twice, as a message to the user.
pub fn check_once(places: &[VolumePlace]) -> Result<(), String> {
    let again = places
        .iter()
        .enumerate()
        .find(|(at, it)| places[..*at].iter().any(|other| other.volume == it.volume));
    again.map_or(Ok(()), |(_, it)| Err(format!("the volume {} is named twice", it.volume)))
}
