//! Notes on calls, most often why a call is refused: the last column of the table in `docs/security.md`.

pub(super) const REQUESTS: &str =
    "but for `TIOCSTI` and `TIOCLINUX`, which type into a terminal that others read";
pub(super) const FAMILIES: &str = "`AF_UNIX`, `AF_INET`, `AF_INET6`, `AF_NETLINK` and `AF_PACKET` only. Above all no \
    `AF_VSOCK`: every box has the same address there, so the launcher could not tell a \
    workload from init";
pub(super) const NEW_NAMESPACES: &str = "without the flags that make a namespace";
pub(super) const TRACING: &str = "for `strace` and `gdb`: without `SYS_PTRACE` it reaches processes of the same user and \
    component only; on the lean kernel own children only";
pub(super) const MESSAGES: &str =
    "reads and clears the messages of the kernel, which all components share";
pub(super) const OLD: &str = "obsolete: current programs do not make it";
pub(super) const PERSONALITIES: &str =
    "Linux of 64 or 32 bits by name, and asking; not what weakens the layout of memory";
pub(super) const HANG_UP: &str = "takes a terminal from other sessions";
pub(super) const SEGMENTS: &str = "for code of 16 and 32 bits, which a box does not run";
pub(super) const MOUNTS: &str = "changes the mounts, which the Boxfile decides";
pub(super) const GONE: &str = "gone from Linux, or never in it";
pub(super) const CLOCK: &str = "sets the clock of the box, which follows the host's";
pub(super) const CHROOT: &str = "needs the capability `SYS_CHROOT`, which a Boxfile can add";
pub(super) const RECORDS: &str = "writes a record of every process of the box to a file";
pub(super) const SWAP: &str = "gives the kernel memory on a disk";
pub(super) const REBOOT: &str = "stops the box; its launcher does that";
pub(super) const NAMES: &str = "the names of a component are given by the Boxfile";
pub(super) const DEVICES: &str = "reaches devices past the kernel";
pub(super) const KERNEL: &str = "changes the running kernel";
pub(super) const QUOTAS: &str = "limits of file systems are the host's to set";
pub(super) const NODES: &str = "places memory on processors' nodes; as on a kernel without them";
pub(super) const KEYS: &str = "the keys of root are one ring for both components";
pub(super) const NAMESPACES: &str =
    "makes or enters namespaces: the ones of a component are made before it starts";
pub(super) const MEASURING: &str = "measures the kernel and other processes; a history of faults";
pub(super) const WATCHING: &str = "sees every file of a file system, also of another component";
pub(super) const HANDLES: &str =
    "names a file without a path: it reaches past the root of a component";
pub(super) const OTHERS: &str = "reaches into other processes, for what `ptrace` can do as well";
pub(super) const BPF: &str = "programs in the kernel; a history of faults";
pub(super) const PAGE_FAULTS: &str =
    "holds the kernel up in the middle of a copy, which makes faults in it usable";
pub(super) const PROBE: &str = "placed by the kernel itself, for tracing; from Linux 6.14 on no filter is asked, and it kills a process without a probe";
pub(super) const RING: &str = "does the work of other calls, such as `socket`, past this filter";
pub(super) const CLONE3: &str =
    "its flags lie in memory, which a filter cannot read; libraries take `clone` instead";
pub(super) const SECURITY_MODULES: &str =
    "of security modules, which a box has none of but Landlock and Yama";
