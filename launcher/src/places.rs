//! The places of a box at which a command line mounts something.

use box_image::rules::{is_place, overlap, reserved_place};
use box_image::text::shown;
use box_image::{ComponentName, RunPlan, SecretDelivery};

/// Checks the path of a place.
///
/// # Errors
/// Why nothing can be mounted there, for people.
pub fn check(guest: &str) -> Result<(), String> {
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
/// Which are not, for people.
pub fn check_apart(places: &[&str], plan: &RunPlan) -> Result<(), String> {
    let mut taken: Vec<_> = taken(plan).collect();
    for place in places {
        if let Some(other) = taken.iter().find(|it| overlap(it, place)) {
            let other = shown(other);
            return Err(format!("{place} is not free: there is something at {other} already"));
        }
        taken.push(place);
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
        assert_eq!(check("/var/work"), Ok(()));
        for bad in ["", "w", "/", "/a/", "/a//b", "/a/../b", "/a:b", "/a\0"] {
            assert!(check(bad).unwrap_err().contains("absolute path without"), "{bad}");
        }
        for (bad, has) in [("/proc/x", "/proc"), ("/dev", "/dev"), ("/a3s", "/a3s/skills")] {
            assert!(check(bad).unwrap_err().ends_with(has), "{bad}");
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
        let error = |places: &[&str]| check_apart(places, &plan).unwrap_err();
        assert!(error(&["/a", "/a/b"]).starts_with("/a/b is not free"));
        assert!(error(&["/scratch"]).ends_with("at /scratch/here already"));
        assert!(error(&["/etc/app"]).ends_with("at /etc/app/token already"));
    }
}
