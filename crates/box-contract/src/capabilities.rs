//! The Linux capabilities that a component's root user has or can get. See
//! [capabilities(7)](https://man7.org/linux/man-pages/man7/capabilities.7.html).

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use Grant::{Always, Asked, Never};

/// The rule by which a component's root user gets a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// Granted unless the Boxfile drops it.
    Always,
    /// Granted only if the Boxfile adds it.
    Asked,
    /// Never granted.
    Never,
}

/// A capability and the rule by which it is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capability {
    /// The number in the kernel (`linux/capability.h`).
    pub number: u8,
    /// The name without `CAP_`.
    pub name: &'static str,
    /// The rule by which a component's root user gets the capability.
    pub grant: Grant,
    /// Whether Docker's containers have the capability by default.
    pub by_docker: bool,
    /// The capability's purpose, or the reason why it is never granted, as the end of a sentence that begins with `it`:
    /// `gives files to other users`.
    pub about: &'static str,
}

impl Capability {
    /// Finds a capability by its name, in any case, with or without `CAP_`. For example, `net_raw` and `CAP_NET_RAW`.
    pub fn find(name: &str) -> Option<&'static Self> {
        let upper = name.to_ascii_uppercase();
        let bare = upper.strip_prefix("CAP_").unwrap_or(&upper);
        CAPABILITIES.iter().find(|it| it.name == bare)
    }

    const fn bit(&self) -> u64 {
        1 << self.number
    }
}

const fn row(number: u8, name: &'static str, grant: Grant, about: &'static str) -> Capability {
    Capability { number, name, grant, by_docker: false, about }
}

/// Returns a capability that Docker's containers have by default.
const fn dock(number: u8, name: &'static str, grant: Grant, about: &'static str) -> Capability {
    Capability { by_docker: true, ..row(number, name, grant, about) }
}

/// All capabilities of Linux 6.12, sorted by number.
pub static CAPABILITIES: [Capability; 41] = [
    dock(0, "CHOWN", Always, "gives files to other users"),
    dock(1, "DAC_OVERRIDE", Always, "reads and writes files whatever their mode is"),
    row(2, "DAC_READ_SEARCH", Asked, "reads files whatever their mode is, without writing them"),
    dock(3, "FOWNER", Always, "changes modes and times of the files of other users"),
    dock(4, "FSETID", Always, "keeps set-user-ID bits of files that it changes"),
    dock(5, "KILL", Always, "signals processes of other users"),
    dock(6, "SETGID", Always, "becomes other groups"),
    dock(7, "SETUID", Always, "becomes other users"),
    dock(8, "SETPCAP", Asked, "changes which of its own capabilities its programs inherit"),
    row(9, "LINUX_IMMUTABLE", Never, "marks files that nobody can remove any more"),
    dock(10, "NET_BIND_SERVICE", Always, "listens on ports below 1024"),
    row(11, "NET_BROADCAST", Never, "does nothing: Linux asks for it nowhere"),
    row(12, "NET_ADMIN", Never, "changes the network that both components use, loopback too"),
    dock(
        13,
        "NET_RAW",
        Asked,
        "opens raw and packet sockets, as `tcpdump` does; on a \
        shared network it reads what the other component sends",
    ),
    row(14, "IPC_LOCK", Asked, "keeps memory from being swapped, up to the component's limit"),
    row(15, "IPC_OWNER", Asked, "uses System V IPC objects of other users"),
    row(16, "SYS_MODULE", Never, "loads code into the kernel"),
    row(17, "SYS_RAWIO", Never, "reaches devices and memory past the kernel"),
    dock(
        18,
        "SYS_CHROOT",
        Asked,
        "changes its root directory; the component needs mounts of its own",
    ),
    row(19, "SYS_PTRACE", Never, "takes over other processes, also that of init in the component"),
    row(20, "SYS_PACCT", Never, "records every process of the box"),
    row(
        21,
        "SYS_ADMIN",
        Never,
        "allows mounts and namespaces, and includes most other capabilities",
    ),
    row(22, "SYS_BOOT", Never, "stops the box or starts another kernel"),
    row(23, "SYS_NICE", Never, "takes the processors from the other component and from init"),
    row(24, "SYS_RESOURCE", Never, "lifts the limits that the Boxfile sets"),
    row(25, "SYS_TIME", Never, "sets the clock of the box, which follows the host's"),
    row(26, "SYS_TTY_CONFIG", Never, "takes terminals from other sessions"),
    dock(27, "MKNOD", Never, "makes devices, which could not be opened: a root has none (`nodev`)"),
    row(28, "LEASE", Asked, "is told when other processes open files of other users"),
    dock(29, "AUDIT_WRITE", Asked, "writes to the audit log, which a box does not have"),
    row(
        30,
        "AUDIT_CONTROL",
        Never,
        "configures the audit of the kernel, which a box does not have",
    ),
    dock(31, "SETFCAP", Asked, "gives files capabilities, which have no effect in a box"),
    row(32, "MAC_OVERRIDE", Never, "is for security modules that a box does not have"),
    row(33, "MAC_ADMIN", Never, "is for security modules that a box does not have"),
    row(34, "SYSLOG", Never, "reads and clears the messages of the kernel"),
    row(35, "WAKE_ALARM", Never, "wakes a machine that sleeps, which a box does not do"),
    row(36, "BLOCK_SUSPEND", Never, "keeps a machine from sleeping, which a box does not do"),
    row(37, "AUDIT_READ", Never, "reads the audit log, which a box does not have"),
    row(38, "PERFMON", Never, "measures the kernel and the other component"),
    row(39, "BPF", Never, "runs programs in the kernel"),
    row(40, "CHECKPOINT_RESTORE", Never, "reaches into other processes"),
];

/// The set of capabilities of a component's root user. Other users have none.
///
/// In JSON, the set is a list of names, sorted by number: `["CHOWN","NET_RAW"]`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Capabilities(u64);

impl Capabilities {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Adds a capability, unless it is never granted.
    #[must_use]
    pub const fn with(self, capability: &Capability) -> Self {
        match capability.grant {
            Never => self,
            Always | Asked => Self(self.0 | capability.bit()),
        }
    }

    /// Removes a capability.
    #[must_use]
    pub const fn without(self, capability: &Capability) -> Self {
        Self(self.0 & !capability.bit())
    }

    /// Returns whether the set contains a capability.
    pub const fn contains(self, capability: &Capability) -> bool {
        self.0 & capability.bit() != 0
    }

    /// Returns the kernel's bit mask: a capability's number is the index of its bit.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Iterates over the capabilities, sorted by number.
    pub fn iter(self) -> impl Iterator<Item = &'static Capability> {
        CAPABILITIES.iter().filter(move |it| self.contains(it))
    }
}

impl Default for Capabilities {
    /// Returns the default set of a component's root user. It suffices for package managers, servers and shells that
    /// stay within their root file system.
    fn default() -> Self {
        let usual = CAPABILITIES.iter().filter(|it| it.grant == Always);
        usual.fold(Self::NONE, Self::with)
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|it| it.name)).finish()
    }
}

impl Serialize for Capabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(|it| it.name))
    }
}

impl<'de> Deserialize<'de> for Capabilities {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        names.iter().try_fold(Self::NONE, |all, name| {
            let found = CAPABILITIES.iter().find(|it| it.name == name && it.grant != Never);
            found.map(|it| all.with(it)).ok_or_else(|| {
                D::Error::custom(format_args!("no component can have the capability {name:?}"))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_at_the_place_of_its_number() {
        for (place, capability) in CAPABILITIES.iter().enumerate() {
            assert_eq!(usize::from(capability.number), place, "{}", capability.name);
        }
    }

    #[test]
    fn the_default_is_part_of_dockers() {
        assert_eq!(Capabilities::default().bits(), 0b100_1111_1011);
        assert!(Capabilities::default().iter().all(|it| it.by_docker));
        assert_eq!(CAPABILITIES.iter().filter(|it| it.by_docker).count(), 14);
    }

    #[test]
    fn nothing_that_reaches_beyond_the_component_can_be_had() {
        for name in [
            "NET_ADMIN",
            "SYS_MODULE",
            "SYS_RAWIO",
            "SYS_PTRACE",
            "SYS_ADMIN",
            "SYS_BOOT",
            "SYS_NICE",
            "SYS_RESOURCE",
            "SYS_TIME",
            "MKNOD",
            "SYSLOG",
            "PERFMON",
            "BPF",
        ] {
            let capability = Capability::find(name).unwrap();
            assert_eq!(capability.grant, Never, "{name}");
            assert_eq!(Capabilities::NONE.with(capability), Capabilities::NONE, "{name}");
        }
    }

    #[test]
    fn names_are_found_as_docker_and_the_manual_spell_them() {
        for name in ["NET_RAW", "CAP_NET_RAW", "net_raw", "cap_net_raw"] {
            assert_eq!(Capability::find(name).unwrap().number, 13, "{name}");
        }
        assert_eq!(Capability::find("CAP_CAP_NET_RAW"), None);
        assert_eq!(Capability::find("ALL"), None);
    }

    #[test]
    fn a_set_reads_back_and_has_nothing_that_cannot_be_had() {
        let raw = Capability::find("NET_RAW").unwrap();
        let chown = Capability::find("CHOWN").unwrap();
        let set = Capabilities::NONE.with(raw).with(chown);
        let text = serde_json::to_string(&set).unwrap();
        assert_eq!(text, r#"["CHOWN","NET_RAW"]"#);
        assert_eq!(serde_json::from_str::<Capabilities>(&text).unwrap(), set);
        assert_eq!(set.without(chown).bits(), 1 << 13);
        for wrong in [r#"["SYS_ADMIN"]"#, r#"["CAP_CHOWN"]"#, r#"["chown"]"#, r#"[""]"#] {
            assert!(serde_json::from_str::<Capabilities>(wrong).is_err(), "{wrong}");
        }
    }
}
