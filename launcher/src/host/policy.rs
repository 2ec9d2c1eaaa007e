//! How much of this host a box may take at most: a box that somebody else has built must not decide that.

use std::fs;
use std::num::NonZero;
use std::thread;

use box_image::Vm;

use crate::LaunchError;

/// The CPUs that every box may have: Boxfiles that say nothing get as many.
const LEAST_CPUS: u8 = 2;

/// The largest machine that is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Most {
    /// Its virtual CPUs.
    pub cpus: u8,
    /// Its memory, in MiB.
    pub memory_mib: u32,
}

impl Most {
    /// Returns what this host has: as many CPUs as this process may use, but at least two, and all of its memory.
    pub fn of_host() -> Self {
        let cpus = thread::available_parallelism().map_or(1, NonZero::get);
        let memory = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_mib(&text));
        Self {
            cpus: u8::try_from(cpus).unwrap_or(u8::MAX).max(LEAST_CPUS),
            memory_mib: memory.unwrap_or(u32::MAX),
        }
    }

    /// Checks the size of a machine.
    ///
    /// # Errors
    /// [`LaunchError::TooMuch`].
    pub fn check(self, size: Vm) -> Result<(), LaunchError> {
        let (cpus, memory) = (size.cpus, size.memory_mib);
        if cpus > self.cpus {
            return Err(LaunchError::TooMuch(format!("{cpus} CPUs, and may have {}", self.cpus)));
        }
        if memory > self.memory_mib {
            let most = self.memory_mib;
            return Err(LaunchError::TooMuch(format!(
                "{memory} MiB of memory, and may have {most}"
            )));
        }
        Ok(())
    }
}

/// Reads the size of the memory out of `/proc/meminfo` (proc(5)), in MiB.
fn total_mib(text: &str) -> Option<u32> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    u32::try_from(kib >> 10).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_memory_and_two_cpus_by_definition() {
        let most = Most::of_host();
        assert!(most.cpus >= LEAST_CPUS && (64..u32::MAX).contains(&most.memory_mib), "{most:?}");
        assert_eq!(total_mib("MemFree: 7 kB\nMemTotal:       2048 kB\n"), Some(2));
        assert_eq!(total_mib("MemFree: 7 kB\n"), None);
    }

    #[test]
    fn a_machine_may_be_as_large_and_no_larger() {
        let most = Most { cpus: 4, memory_mib: 512 };
        let check =
            |cpus, memory_mib| most.check(Vm { cpus, memory_mib }).map_err(|it| it.to_string());
        assert_eq!(check(4, 512), Ok(()));
        assert_eq!(check(5, 1).unwrap_err(), "the box asks for 5 CPUs, and may have 4");
        assert_eq!(
            check(1, 513).unwrap_err(),
            "the box asks for 513 MiB of memory, and may have 512"
        );
    }
}
