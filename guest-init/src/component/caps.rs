//! The capabilities of a workload that runs as root; any other user has none.
//!
//! Which these are is in the plan; [`box_contract::capabilities`] lists all.

use crate::error::{InitError, Step as _};
use crate::sys;

/// Needed to give the standard streams away and to become another user: `CHOWN`, `SETGID` and `SETUID`.
pub(crate) const TO_CHANGE_USER: u64 = 1 << 0 | 1 << 6 | 1 << 7;

/// The sets are 64 bits wide.
const LAST: u8 = 63;

/// Bounds what this process and its descendants can ever have to `allowed`. First of the steps,
/// as it needs a capability itself.
///
/// # Errors
/// The kernel's.
pub(crate) fn bound(allowed: u64) -> Result<(), InitError> {
    for number in (0..=LAST).filter(|number| allowed & 1 << number == 0) {
        if !sys::drop_bounding(number).step("bound the capabilities")? {
            break;
        }
    }
    sys::clear_ambient().step("clear the ambient capabilities")
}

/// Gives up all capabilities but `allowed`. A process that is not root has none to keep.
///
/// # Errors
/// The kernel's.
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
