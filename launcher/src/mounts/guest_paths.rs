//! The paths of a box at which a command line mounts something.

use box_contract::plan::{SSH_AGENT_SOCKET, reserved_place};
use box_contract::rules::{MountKind, excludes, is_place};
use box_contract::{RunPlan, SecretDelivery};
use safe_text::shown;

/// Why the path of a mount is not free.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum Taken {
    /// The mount at `place` would hide the path `other` that the box declares, or would be inside a secret's file. `what` is
    /// the declaration of `other`.
    #[error("{place} is in use: the box has its {} at {}", shown(.what), shown(.other))]
    ByBox { place: String, what: String, other: String },
    /// Two options of the command line mount something at this path.
    #[error("two of the options use {0}")]
    Twice(String),
}

/// Parses the path of a mount. A trailing slash is ignored: for example, `/data/` is `/data`.
///
/// # Errors
/// Why nothing can be mounted at this path, as a message to the user.
pub fn read(text: &str) -> Result<&str, String> {
    let guest = text.strip_suffix('/').filter(|it| !it.is_empty()).unwrap_or(text);
    check(guest).map(|()| guest)
}

fn check(guest: &str) -> Result<(), String> {
    // Refuse a colon, because it ends the path on a command line: `--share /src:/work:ro`.
    if !is_place(guest) || guest.contains(':') {
        let form = "it has to be an absolute path without `.`, `..`, `:` and empty names";
        return Err(format!("nothing can be mounted at {:?}: {form}", shown(guest)));
    }
    match reserved_place(guest) {
        Some(taken) => Err(format!("nothing can be mounted at {guest}: a box has its own {taken}")),
        None => Ok(()),
    }
}

/// Checks that no mount hides another mount or a path that the box declares in any component. A mount may be inside
/// another one: `/a` and `/a/b` do not conflict.
///
/// # Errors
/// The first path in `places` that is not free.
pub fn check_free(places: &[&str], plan: &RunPlan) -> Result<(), Taken> {
    for (at, place) in places.iter().enumerate() {
        let is_hidden = |it: &BoxPath<'_>| excludes((it.kind, it.guest), (MountKind::Mount, place));
        if let Some(BoxPath { what, name, guest, .. }) = of_box(plan).find(is_hidden) {
            let (place, other) = ((*place).to_owned(), guest.to_owned());
            return Err(Taken::ByBox { place, what: format!("{what} {name}"), other });
        }
        if places[..at].contains(place) {
            return Err(Taken::Twice((*place).to_owned()));
        }
    }
    Ok(())
}

/// A path that a box declares.
struct BoxPath<'a> {
    kind: MountKind,
    /// The word for what is at the path.
    what: &'static str,
    name: &'a str,
    guest: &'a str,
}

/// Returns the paths that a box declares, in any component.
fn of_box(plan: &RunPlan) -> impl Iterator<Item = BoxPath<'_>> {
    let path = |kind, what, name, guest| BoxPath { kind, what, name, guest };
    let shares =
        plan.shares.iter().map(move |it| path(MountKind::Mount, "share", &*it.name, &*it.guest));
    let disks = plan
        .scratch
        .iter()
        .map(move |it| path(MountKind::Scratch, "scratch", &*it.name, &*it.guest));
    let volumes =
        plan.volumes.iter().map(move |it| path(MountKind::Mount, "volume", &*it.name, &*it.guest));
    let secrets = plan.secrets.iter().filter_map(move |it| match &it.delivery {
        SecretDelivery::Env | SecretDelivery::Host => None,
        SecretDelivery::File { path: guest } => {
            Some(path(MountKind::Secret, "secret", &*it.name, &**guest))
        }
    });
    let agent =
        plan.ssh_agent.map(|_| path(MountKind::Socket, "socket", "ssh-agent", SSH_AGENT_SOCKET));
    shares.chain(volumes).chain(disks).chain(secrets).chain(agent)
}

#[cfg(test)]
mod tests {
    use box_contract::{Access, Scope, ScratchPlan, SecretPlan, SharePlan, SshAgentPlan};
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
    fn nothing_is_hidden() {
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
        for free in
            [["/a", "/b"], ["/a", "/a/b"], ["/a/b", "/a"], ["/scratch/there", "/scratch/here/x"]]
        {
            assert_eq!(check_free(&free, &plan), Ok(()));
        }
        plan.shares = vec![SharePlan {
            name: "s".to_owned(),
            guest: "/s/in".to_owned(),
            access: Access::ReadOnly,
            scope: Scope::Both,
            host: None,
        }];
        assert_eq!(check_free(&["/s", "/s/in/x", "/run"], &plan), Ok(()));
        plan.ssh_agent = Some(SshAgentPlan { scope: Scope::Business });
        assert_eq!(check_free(&["/run/ssh"], &plan), Ok(()));
        let error = |places: &[&str]| check_free(places, &plan).unwrap_err().to_string();
        assert_eq!(error(&["/a", "/b", "/a"]), "two of the options use /a");
        for place in ["/scratch", "/scratch/here"] {
            assert!(error(&[place]).ends_with("the box has its scratch tmp at /scratch/here"));
        }
        assert!(error(&["/s/in"]).ends_with("the box has its share s at /s/in"));
        for place in ["/run", "/run/ssh-agent.sock", "/run/ssh-agent.sock/x"] {
            let taken = "the box has its socket ssh-agent at /run/ssh-agent.sock";
            assert!(error(&[place]).ends_with(taken), "{place}");
        }
        for place in ["/etc/app", "/etc/app/token", "/etc/app/token/x"] {
            assert!(error(&[place]).ends_with("the box has its secret TOKEN at /etc/app/token"));
        }
    }
}
