//! The paths that the guest reserves.

use super::{
    AGENT_CONFIG_PATH, BOX_EXEC_PATH, CAP_PATH, EXEC_SOCKET_PATH, PLAN_PATH, SKILLS_PATH,
    TOOLS_PATH,
};
use crate::logs::LOGS_PATH;
use crate::rules::{KERNEL_DIRECTORIES, overlap};
use crate::task::TASK_PATH;

/// The directories that the guest provides for `task`, `logs` and `cap`.
const SHOWN: [&str; 3] = [TASK_PATH, LOGS_PATH, CAP_PATH];

/// Returns the reserved path that equals `place`, contains it, or is inside it. `place` must be absolute and normalized.
pub fn reserved_place(place: &str) -> Option<&'static str> {
    let plan = PLAN_PATH.rsplit_once('/').map(|(directory, _)| directory);
    let of_exec = [BOX_EXEC_PATH, EXEC_SOCKET_PATH];
    let of_agent = [SKILLS_PATH, TOOLS_PATH, AGENT_CONFIG_PATH];
    let own = KERNEL_DIRECTORIES.into_iter().chain(of_agent).chain(of_exec);
    let mut taken = own.chain(plan).chain(SHOWN);
    taken.find(|taken| overlap(taken, place))
}
