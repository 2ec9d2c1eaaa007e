//! Files that options of the command line name, and whose content a box is given.

use std::env;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use box_image::text::shell_word;
use host_fs::known::Known;
use host_fs::named::{self, NamedError};
use host_fs::trust::Trusted;
use host_fs::upward::Search;
use nix::unistd::{User, geteuid};

use super::error::{CommandError, usage};

/// Opens the file of an option. An earlier box may have made a link of it, in a directory that it could write to: it leads
/// nowhere but to the checkout in which it lies.
///
/// # Errors
/// The link's, or what `failed` makes of the operating system's.
pub(super) fn open(
    path: &Path,
    failed: impl FnOnce(io::Error) -> CommandError,
) -> Result<File, CommandError> {
    named::open(path, &search()).map_err(|error| match error {
        NamedError::Io(error) => failed(error),
        error @ NamedError::Leads { .. } => leads(&error),
    })
}

/// Returns the error of a link, with what to type for the file that it leads to.
fn leads(error: &NamedError) -> CommandError {
    let help = match error {
        NamedError::Leads { target, .. } => {
            let target = shell_word(target.as_os_str());
            format!("a box may have put it there; if you mean that file, name it: {target}")
        }
        NamedError::Io(_) => String::new(),
    };
    usage(&error.to_string(), &help)
}

/// Returns how checkouts are found.
fn search() -> Search {
    let home = env::var_os("HOME").map(PathBuf::from);
    let account = User::from_uid(geteuid()).ok().flatten().map(|it| it.dir);
    let homes = Known::of(home.into_iter().chain(account));
    Search { homes, trusted: Trusted::this_user() }
}
