//! The bounds of what a box may ask for, for all programs.

/// The most processors of a box: libkrunfw's kernels are built with `NR_CPUS=16`.
pub const MAX_CPUS: u8 = 16;

/// The greatest `cpu.weight` of cgroup v2 (Documentation/admin-guide/cgroup-v2.rst); the least is 1.
pub const MAX_CPU_WEIGHT: u16 = 10_000;

/// The kernel's `PID_MAX_LIMIT` on 64-bit machines, above which `pids.max` takes no number.
pub const MAX_PIDS: u64 = 4 << 20;

/// The kernel's `fs.nr_open`, above which it sets no `RLIMIT_NOFILE`.
pub const MAX_FILES: u64 = 1 << 20;
