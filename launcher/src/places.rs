//! The places of a box at which a command line mounts something.

use box_image::rules::{is_place, overlap, reserved_place};
use box_image::text::shown;
use box_image::{ComponentName, RunPlan, SecretDelivery};

/// Why a place is taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum Taken {
    /// The box has something there, above or below.
    #[error("{place} is not free: there is something at {} already", shown(.other))]
    ByBox { place: String, other: String },
    /// The command line has something else there.
    #[error("two of the options use {0}")]
    Twice(String),
    /// The command line has something else above or below.
    #[error("two of the options use {other} and {place}, which overlap")]
    Overlap { place: String, other: String },
}

/// Reads the path of a place. A slash at its end says nothing.
///
/// # Errors
/// Why nothing can be mounted there, for people.
pub fn read(text: &str) -> Result<&str, String> {
    let guest = text.strip_suffix('/').filter(|it| !it.is_empty()).unwrap_or(text);
    check(guest).map(|()| guest)
}

fn check(guest: &str) -> Result<(), String> {
    // A colon would end it on a command line.
    if !is_place(guest) || guest.contains(':') {
        let form = "it has to be an absolute path without `.`, `..`, `:` and empty names";
        return Err(format!("nothing can be mounted at {:?}: {form}", shown(guest)));
    }
    match reserved_place(guest) {
        Some(taken) => Err(format!("nothing can be mounted at {guest}: a box has its own {taken}")),
        None => Ok(()),
    }
}

/// Checks that places are apart from each other, and from all that a box has mounted in any component.
///
/// # Errors
/// The first that is not.
pub fn check_apart(places: &[&str], plan: &RunPlan) -> Result<(), Taken> {
    let of_box: Vec<_> = taken(plan).collect();
    for (at, place) in places.iter().enumerate() {
        let (place, earlier) = ((*place).to_owned(), &places[..at]);
        if let Some(other) = of_box.iter().find(|it| overlap(it, &place)) {
            return Err(Taken::ByBox { place, other: (*other).to_owned() });
        }
        match earlier.iter().find(|it| overlap(it, &place)) {
            None => {}
            Some(same) if **same == place => return Err(Taken::Twice(place)),
            Some(other) => return Err(Taken::Overlap { place, other: (*other).to_owned() }),
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

#[cfg(test)]
mod tests {
    use box_image::{Scope, ScratchPlan, SecretPlan};
    use testkit::test_box::config;

    use super::*;

    #[test]
    fn a_place_is_a_path_of_its_own() {
        assert_eq!(read("/var/work"), Ok("/var/work"));
        assert_eq!(read("/var/work/"), Ok("/var/work"));
        for bad in ["", "w", "/", "//", "/a//", "/a//b", "/a/../b", "/a:b", "/a\0"] {
            assert!(read(bad).unwrap_err().contains("absolute path without"), "{bad}");
        }
        for (bad, has) in [("/proc/x", "/proc"), ("/dev/", "/dev"), ("/a3s", "/a3s/skills")] {
            assert!(read(bad).unwrap_err().ends_with(has), "{bad}");
        }
    }

    #[test]
    fn places_are_apart() {
        let mut plan = config().plan;
        plan.scratch = vec![ScratchPlan {
            name: "tmp".to_owned(),
            guest: "/scratch/here".to_owned(),
            size_bytes: 1 << 20,
            scope: Scope::Agent,
        }];
        plan.secrets = vec![SecretPlan {
            name: "TOKEN".to_owned(),
            scope: Scope::Agent,
            delivery: SecretDelivery::File { path: "/etc/app/token".to_owned() },
        }];
        assert_eq!(check_apart(&["/a", "/b", "/scratch/there"], &plan), Ok(()));
        let error = |places: &[&str]| check_apart(places, &plan).unwrap_err().to_string();
        assert_eq!(error(&["/a", "/b", "/a"]), "two of the options use /a");
        assert_eq!(error(&["/a", "/a/b"]), "two of the options use /a and /a/b, which overlap");
        assert_eq!(error(&["/a/b", "/a"]), "two of the options use /a/b and /a, which overlap");
        assert!(error(&["/scratch"]).ends_with("at /scratch/here already"));
        assert!(error(&["/etc/app"]).ends_with("at /etc/app/token already"));
    }
}
