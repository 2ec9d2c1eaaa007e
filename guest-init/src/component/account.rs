//! Resolves the user of a command from the component's `passwd` and `group` files.

use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;

use box_contract::accounts::{Account, MAX_ACCOUNTS, resolve};
use box_contract::rules::{GROUP, PASSWD};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};

use crate::error::{InitError, Step as _};

/// Finds a user by name or number in the component's files. They can be trusted: a user who can write them is root of
/// the component already.
///
/// # Errors
/// The name is not in the files, or a file cannot be read or is not a regular file.
pub(crate) fn find(wanted: &str) -> Result<Account, InitError> {
    let (passwd, group) = (read(PASSWD)?, read(GROUP)?);
    resolve(wanted, &passwd, &group).step("find the user")
}

/// Returns the content of the component's `passwd`. Empty if it cannot be read, for example because it is not a regular file.
pub(crate) fn users() -> String {
    read(PASSWD).unwrap_or_default()
}

/// Reads `passwd` or `group`, without blocking and without following a magic link. A missing file is empty.
fn read(path: &str) -> Result<String, InitError> {
    let step = || format!("read {path}");
    let how = OpenHow::new()
        .flags(OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_MAGICLINKS);
    let opened: OwnedFd = match openat2(AT_FDCWD, Path::new(path), how) {
        Err(Errno::ENOENT) => return Ok(String::new()),
        opened => opened.step_with(step)?,
    };
    let file = std::fs::File::from(opened);
    if !file.metadata().step_with(step)?.is_file() {
        return Err("it is not a regular file").step_with(step);
    }
    let mut bytes = Vec::new();
    file.take(MAX_ACCOUNTS).read_to_end(&mut bytes).step_with(step)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_this_machine_are_found_by_name_and_number() {
        let root = find("root").unwrap();
        assert_eq!((root.user.uid, root.user.gid), (0, 0));
        assert_eq!(find("0").unwrap().home, root.home);
        let error = find("no-such-user").unwrap_err().report();
        assert_eq!(error.step, "find the user");
        assert_eq!(error.message, "/etc/passwd has no \"no-such-user\"");
    }

    #[test]
    fn what_is_no_regular_file_is_refused_and_a_missing_one_is_empty() {
        assert_eq!(read("/no/such/file").unwrap(), "");
        assert!(read("/dev/null").is_err() && read("/etc").is_err());
        assert!(read("/proc/self/fd/0").is_err(), "a magic link");
    }
}
