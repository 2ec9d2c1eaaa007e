//! The capabilities that a workload keeps if it runs as root; any other user has none.

use crate::error::{InitError, Step as _};
use crate::sys;

/// The capabilities that workloads may have, with their numbers (`linux/capability.h`).
///
/// These are what package managers, servers and shells need within their own root. Of the usual
/// container's, six are left out: `MKNOD` and `NET_RAW` would reach devices and the raw network,
/// `SYS_CHROOT` would undo the root of a component without its own mount namespace, `SETPCAP`
/// and `SETFCAP` hand capabilities on, which `no_new_privs` makes pointless, and `AUDIT_WRITE`
/// has no audit to write to.
pub(crate) const KEPT: [(u8, &str); 8] = [
    (0, "CHOWN"),
    (1, "DAC_OVERRIDE"),
    (3, "FOWNER"),
    (4, "FSETID"),
    (5, "KILL"),
    (6, "SETGID"),
    (7, "SETUID"),
    (10, "NET_BIND_SERVICE"),
];

/// The sets are 64 bits wide.
const LAST: u8 = 63;

/// Returns [`KEPT`] as a bit set.
pub(crate) fn kept() -> u64 {
    KEPT.iter().fold(0, |set, (number, _)| set | 1 << number)
}

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
    use super::*;

    #[test]
    fn the_set_is_what_the_list_says() {
        assert_eq!(kept(), 0b100_1111_1011);
    }

    #[test]
    fn nothing_that_reaches_beyond_the_component_is_kept() {
        // SETPCAP, NET_ADMIN, NET_RAW, SYS_MODULE, SYS_RAWIO, SYS_CHROOT, SYS_PTRACE, SYS_ADMIN,
        // SYS_BOOT, SYS_TIME, MKNOD, SETFCAP, BPF
        for number in [8, 12, 13, 16, 17, 18, 19, 21, 22, 25, 27, 31, 39] {
            assert_eq!(kept() & (1 << number), 0, "capability {number}");
        }
    }
}
