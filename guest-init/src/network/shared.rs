//! The network that a box shares with its host: one device, which all components without a network namespace use.
//!
//! The addresses of the device and of the gateway are constants, so the start does not wait for DHCP.

use std::os::fd::AsFd as _;

use box_contract::network::{SHARED_DEVICE, SHARED_GATEWAY, SHARED_GUEST, SHARED_PREFIX};
use box_contract::{NetworkMode, NetworkPlan};

use crate::error::{InitError, Step as _};
use crate::{boot, sys};

/// The file with the groups whose processes may ping without `CAP_NET_RAW`
/// ([icmp(7)](https://man7.org/linux/man-pages/man7/icmp.7.html)). By default, there are none.
const PING_GROUPS: &str = "/proc/sys/net/ipv4/ping_group_range";
/// All groups.
const EVERYBODY: &str = "0 2147483647";

/// Sets the device of the current network namespace up, if the box shares the host's network.
///
/// # Errors
/// The kernel's error, for example because the VM has no such device.
pub(crate) fn set_up(plan: &NetworkPlan) -> Result<(), InitError> {
    if plan.mode != NetworkMode::Shared {
        return Ok(());
    }
    let socket = boot::network_socket().step("make a socket")?;
    let socket = socket.as_fd();
    sys::set_address(socket, SHARED_DEVICE, (SHARED_GUEST, SHARED_PREFIX))
        .and_then(|()| sys::device_up(socket, SHARED_DEVICE))
        .step_with(|| format!("bring {SHARED_DEVICE} up"))?;
    sys::add_default_route(socket, SHARED_GATEWAY).step("lead what the box sends to its host")?;
    std::fs::write(PING_GROUPS, EVERYBODY).step("let the programs ping")
}
