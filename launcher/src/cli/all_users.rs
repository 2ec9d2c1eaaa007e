//! Boxes of all users: the names of users, and notices of what is not shown.

use boxlaunch::boxes::all_users::AllUsers;
use nix::unistd::{Uid, User, getuid};
use safe_text::shown;

use super::error::Failure;
use super::terminal::notice;

/// Finds the boxes of all users. `None` without root, after a notice: a supervisor hides its memory, and thus its open files, also
/// from other processes of its user, so that only the records of this user's own state directory can be read.
pub(super) fn look() -> Result<Option<AllUsers>, Failure> {
    if !getuid().is_root() {
        notice("boxlaunch: only the boxes of this user are shown; root sees those of all users\n");
        return Ok(None);
    }
    Ok(Some(AllUsers::look()?))
}

/// Prints what is not shown of each user, without any text of that user.
pub(super) fn notice_left_out(all: &AllUsers) {
    for (uid, reason, count) in all.left_out() {
        let boxes = if count == 1 { "1 box".to_owned() } else { format!("{count} boxes") };
        notice(&format!("boxlaunch: left out {boxes} of {}: {reason}\n", user(uid)));
    }
}

/// Returns the name of a user, or the number if the host has no name for it.
pub(super) fn user(uid: u32) -> String {
    let found = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    found.map_or_else(|| uid.to_string(), |it| shown(&it.name))
}
