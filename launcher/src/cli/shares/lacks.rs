//! Notices about what libkrun's file server does not do for a share: show changes at once, and pass on locks.

use box_contract::KernelName;
use boxlaunch::mounts::shares::{HostShare, ShareRecord};
use safe_text::shown;

/// Returns the notice that a box with this kernel sees changes of the host late.
pub(in crate::cli) fn late(shares: &[HostShare], kernel: &str) -> Option<String> {
    let is_late = !shares.is_empty() && !KernelName::is_lean(kernel);
    is_late.then(|| {
        "boxlaunch: the box sees changes of this host's files up to 5 s late; with `kernel \"lean\"` in its Boxfile, at once\n".to_owned()
    })
}

/// Returns a notice for each of the other boxes that run and write to a directory of `shares`: no box sees the locks of another one.
pub(in crate::cli) fn unlocked<'a>(
    shares: &[ShareRecord],
    others: impl IntoIterator<Item = (&'a str, &'a [ShareRecord])>,
) -> Vec<String> {
    let own: Vec<_> = shares.iter().filter(|it| it.writable).collect();
    let notice = |(name, theirs): (&str, &[ShareRecord])| {
        let mut theirs = theirs.iter().filter(|it| it.writable && !it.socket);
        let both = theirs.find(|theirs| own.iter().any(|own| overlap(own, theirs)))?;
        let host = both.host.display();
        let text = format!(
            "boxlaunch: {name} writes to {host}, too: a lock (flock, fcntl) of one box does not stop the other"
        );
        Some(shown(&text) + "\n")
    };
    others.into_iter().filter_map(notice).collect()
}

/// Returns whether one of two directories contains the other.
fn overlap(one: &ShareRecord, other: &ShareRecord) -> bool {
    one.host.starts_with(&other.host) || other.host.starts_with(&one.host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(host: &str, writable: bool, socket: bool) -> ShareRecord {
        ShareRecord { host: host.into(), guest: "/w".to_owned(), writable, socket }
    }

    #[test]
    fn who_writes_to_the_same_directory_is_named_once() {
        let own = [share("/me/app", true, false), share("/me/data", false, false)];
        let of = |theirs: &[ShareRecord]| unlocked(&own, [("web", theirs)]);
        let expected = "boxlaunch: web writes to /me, too: a lock (flock, fcntl) of one box does not stop the other\n";
        assert_eq!(of(&[share("/me", true, false), share("/me/app/src", true, false)]), [expected]);
        for none in [
            share("/me/app", false, false),
            share("/me/app/s", true, true),
            share("/me/data", true, false),
            share("/me/application", true, false),
        ] {
            assert_eq!(of(&[none]), Vec::<String>::new());
        }
    }
}
