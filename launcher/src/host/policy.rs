//! Limits the resources of this host that a box may use. The user of the host sets the limits, not the author of the
//! box.

use std::num::NonZero;
use std::path::Path;
use std::{fs, thread};

use box_contract::Vm;
use nix::sys::statvfs::statvfs;

use super::error::{PolicyError, Resource};

use vmm::jail::isolation::{own_group, with_above};

/// The number of CPUs that every box may have: the default of a Boxfile.
const MIN_CPUS: u8 = 2;
/// The memory in MiB that every box may have if the host has that much. Half of a small host's memory would be less
/// than most boxes need.
pub const MIN_MEMORY_MIB: u32 = 1024;

/// The size of the largest VM that may be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Most {
    /// The number of its virtual CPUs.
    pub cpus: u8,
    /// Its memory, in MiB.
    pub memory_mib: u32,
}

impl Most {
    /// Returns the default limits of a box on this host. They are all CPUs that this process may use, but at least two,
    /// and half of the memory that this process may use, but at least [`MIN_MEMORY_MIB`] if the host has that much.
    pub fn of_host() -> Self {
        let cpus = thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            cpus: u8::try_from(cpus).unwrap_or(u8::MAX).max(MIN_CPUS),
            memory_mib: usable_mib().map_or(u32::MAX, half),
        }
    }

    /// Checks that a VM of this size may be started. `is_option` returns whether the command line, and not the box, sets
    /// the amount of a resource.
    ///
    /// # Errors
    /// [`PolicyError::TooMuch`].
    pub fn check(self, size: Vm, is_option: impl Fn(Resource) -> bool) -> Result<(), PolicyError> {
        let amounts = [
            (Resource::Cpus, size.cpus.into(), self.cpus.into()),
            (Resource::Memory, size.memory_mib, self.memory_mib),
        ];
        let exceeded = amounts.into_iter().find(|(_, asked, most)| asked > most);
        exceeded.map_or(Ok(()), |(resource, asked, most)| {
            Err(PolicyError::TooMuch { resource, is_option: is_option(resource), asked, most })
        })
    }
}

/// Returns the default limit, in bytes, of the total size of the disks that a box declares: half of the free space in the file
/// system of `directory`. `None` if that is unknown.
pub fn most_scratch(directory: &Path) -> Option<u64> {
    let found = statvfs(directory.ancestors().find(|it| it.exists())?).ok()?;
    Some(found.blocks_available().saturating_mul(found.fragment_size()) / 2)
}

/// Checks that the total size of a box's disks is at most `most`, and returns the difference. All sizes are in bytes.
///
/// # Errors
/// [`PolicyError::TooMuchScratch`].
pub fn check_scratch(sizes: impl Iterator<Item = u64>, most: u64) -> Result<u64, PolicyError> {
    let asked = sizes.fold(0_u64, u64::saturating_add);
    most.checked_sub(asked).ok_or(PolicyError::TooMuchScratch { asked, most })
}

/// Returns half of a memory size, but at least [`MIN_MEMORY_MIB`] if the memory is that large.
fn half(mib: u32) -> u32 {
    (mib / 2).max(mib.min(MIN_MEMORY_MIB))
}

/// Returns the memory in MiB that this process and its children may use: all of the host's, or less if a control group
/// has a lower limit, for example in a container.
fn usable_mib() -> Option<u32> {
    let total = total_mib(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let own = own_group();
    let limits = with_above(&own).filter_map(|it| fs::read_to_string(it.join("memory.max")).ok());
    let least = limits.filter_map(|text| limit_mib(&text)).min();
    Some(least.map_or(total, |limit| limit.min(total)))
}

/// Parses the content of a `memory.max` file, and returns the limit in MiB. `None` if there is no limit (`max`).
fn limit_mib(text: &str) -> Option<u32> {
    let bytes: u64 = text.trim().parse().ok()?;
    Some(u32::try_from(bytes >> 20).unwrap_or(u32::MAX))
}

/// Parses the total memory in `/proc/meminfo`
/// ([proc_meminfo(5)](https://man7.org/linux/man-pages/man5/proc_meminfo.5.html)), in MiB.
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
        assert!(most.cpus >= MIN_CPUS && (64..u32::MAX).contains(&most.memory_mib), "{most:?}");
        assert_eq!(total_mib("MemFree: 7 kB\nMemTotal:       2048 kB\n"), Some(2));
        assert_eq!(total_mib("MemFree: 7 kB\n"), None);
    }

    #[test]
    fn a_box_may_have_half_of_the_memory_that_there_is_for_this_process() {
        for (has, may) in [(512, 512), (1024, 1024), (1536, 1024), (4096, 2048), (65536, 32768)] {
            assert_eq!(half(has), may);
        }
        assert_eq!(limit_mib("4294967296\n"), Some(4096));
        assert_eq!(limit_mib("max\n"), None);
    }

    #[test]
    fn scratch_disks_count_by_what_they_may_hold() {
        let check = |sizes: &[u64], most| {
            check_scratch(sizes.iter().copied(), most).map_err(|it| it.to_string())
        };
        assert_eq!(check(&[], 0), Ok(0));
        assert_eq!(check(&[1 << 30, 1 << 30], 2 << 30), Ok(0));
        assert_eq!(
            check(&[1 << 30, (1 << 30) + 1], 2 << 30).unwrap_err(),
            "the box asks for disks of 2.0 GiB, but may have only 2.0 GiB"
        );
        assert!(check(&[u64::MAX, u64::MAX], u64::MAX - 1).is_err());
    }

    #[test]
    fn a_machine_may_be_as_large_and_no_larger() {
        let most = Most { cpus: 4, memory_mib: 512 };
        let check = |cpus, memory_mib, is_option| {
            let checked = most.check(Vm { cpus, memory_mib }, |_| is_option);
            checked.map_err(|error| error.to_string())
        };
        assert_eq!(check(4, 512, false), Ok(()));
        for (size, is_option, message) in [
            ((5, 1), false, "the box asks for 5 CPUs, which is more than the maximum of 4"),
            ((5, 1), true, "--cpus 5 is more than the maximum of 4"),
            (
                (1, 513),
                false,
                "the box asks for 513 MiB of memory, which is more than the maximum of 512 MiB",
            ),
            ((1, 513), true, "--memory 513 is more than the maximum of 512 MiB"),
        ] {
            assert_eq!(check(size.0, size.1, is_option).unwrap_err(), message);
        }
    }
}
