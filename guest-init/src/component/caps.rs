//! The capabilities of a workload that runs as root. Any other user has none.
//!
//! The plan contains the set, and [`box_contract::capabilities`] describes each capability.

use crate::error::{InitError, Step as _};
use crate::sys;

/// The capabilities for changing the owner of the standard streams and becoming another user: `CHOWN`, `SETGID` and
/// `SETUID`.
pub(crate) const TO_CHANGE_USER: u64 = 1 << 0 | 1 << 6 | 1 << 7;

/// The highest number of a capability: the sets have 64 bits.
const LAST: u8 = 63;

/// Drops all capabilities but `allowed` from the [bounding
/// set](https://man7.org/linux/man-pages/man7/capabilities.7.html). Must precede [`reduce`], because it needs a
/// capability itself.
///
/// # Errors
/// The kernel's error.
pub(crate) fn bound(allowed: u64) -> Result<(), InitError> {
    for number in (0..=LAST).filter(|number| allowed & 1 << number == 0) {
        if !sys::drop_bounding(number).step("bound the capabilities")? {
            break;
        }
    }
    sys::clear_ambient().step("clear the ambient capabilities")
}

/// Drops all capabilities but `allowed`. If the process is not root, drops all capabilities.
///
/// # Errors
/// The kernel's error.
pub(crate) fn reduce(allowed: u64) -> Result<(), InitError> {
    let allowed = if nix::unistd::geteuid().is_root() { allowed } else { 0 };
    sys::set_capabilities(allowed).step("drop capabilities")
}

#[cfg(test)]
mod tests {
    use box_contract::capabilities::{Capabilities, Capability};

    #[test]
    fn another_user_can_be_become_with_what_is_kept_until_then() {
        let three = ["CHOWN", "SETGID", "SETUID"].map(|name| Capability::find(name).unwrap());
        let set = three.into_iter().fold(Capabilities::NONE, Capabilities::with);
        assert_eq!(set.bits(), super::TO_CHANGE_USER);
    }
}
