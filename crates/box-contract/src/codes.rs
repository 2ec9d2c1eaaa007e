//! The exit codes of boxbuild and boxlaunch, and the stable codes of their errors, for scripts. `docs/errors.md` has a
//! table of each.

/// The exit codes of both programs.
pub mod exit {
    /// Declares the exit codes together with [`ALL`], so that the list is complete.
    macro_rules! exit_codes {
        ($($name:ident $code:literal $meaning:literal,)*) => {
            $(#[doc = $meaning] pub const $name: u8 = $code;)*

            /// All exit codes with their meanings.
            pub const ALL: &[(u8, &str)] = &[$(($code, $meaning),)*];
        };
    }

    exit_codes! {
        DONE 0 "done",
        FAILED 1 "the input is wrong, or the command failed; not healthy (`boxlaunch health`, `boxlaunch agent health`); a command does not run, or only with approval (`boxlaunch check-command`)",
        USAGE 2 "the command line is wrong",
        LOCKED 3 "the lock is missing, out of date or malformed (`--locked`, `lock --check`, `verify --rebuild`, `attest`), or of another format epoch",
        OVER_BUDGET 4 "the startup budget is exceeded (`boxlaunch run`, `boxbuild budget`)",
        DIFFERENT 5 "a difference was found (`boxbuild diff`, `verify --rebuild`, `update --exit-code`), or the box is damaged or has no trusted signature (`boxbuild verify`, `boxlaunch`)",
        KEPT 6 "the new box did not become ready, and the old one runs (`boxlaunch update`)",
        BUG 70 "a bug in the program",
    }

    /// The exit status of a command that was killed after its time limit, as with
    /// [timeout(1)](https://man7.org/linux/man-pages/man1/timeout.1.html).
    pub const TIMED_OUT: u8 = 124;

    /// Returns the list of a program's exit codes and their meanings for its `--help`.
    pub fn help(codes: &[(u8, &str)]) -> String {
        let lines = codes.iter().map(|(code, meaning)| format!("\n  {code:<3} {meaning}"));
        format!("Exit codes:{}", lines.collect::<String>())
    }
}

/// Declares [`ErrorCode`] together with its list, so that the list is complete.
macro_rules! error_codes {
    ($($variant:ident $name:literal $meaning:literal,)*) => {
        /// The stable code of an error, as printed with `--json`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ErrorCode {
            $(#[doc = $meaning] $variant,)*
        }

        impl ErrorCode {
            /// All codes with their names and meanings.
            pub const ALL: &[(Self, &str, &str)] = &[$((Self::$variant, $name, $meaning),)*];

            /// Returns the code with this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().find(|(_, it, _)| *it == name).map(|(code, ..)| *code)
            }

            /// Returns the name. Names never change.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

error_codes! {
    Usage "usage" "The command line is wrong",
    Io "io" "A file or directory cannot be read or written",
    DiskFull "disk-full" "There is no space left for the store or the output",
    Busy "busy" "Another process uses or changed the same file or directory",
    OutputExists "output-exists" "The output exists already, and is not replaced",
    Internal "internal" "An internal error of the program; please report it",

    BoxfileNotFound "boxfile-not-found" "There is no Boxfile, or it cannot be read",
    BoxfileInvalid "boxfile-invalid" "The Boxfile is wrong; `labels` says where",
    BoxfileUnformatted "boxfile-unformatted" "`fmt --check` found files that are not formatted",
    PlatformUnsupported "platform-unsupported" "This version cannot build for the platform",
    FileInvalid "file-invalid" "A file that the Boxfile names has the wrong content",
    SkillInvalid "skill-invalid" "A skill cannot be used",
    ProgramInvalid "program-invalid" "A program that a component starts is missing or unusable: its \
        own, its health check's, or an interpreter",
    KernelNotFound "kernel-not-found" "No guest kernel is installed or named",
    KernelInvalid "kernel-invalid" "The guest kernel cannot be used",
    InitNotFound "init-not-found" "box-init is not installed or named",
    InitInvalid "init-invalid" "The file is not a box-init for the platform",
    LauncherInvalid "launcher-invalid" "No boxlaunch for a container is installed, or the named file is not a static program for the platform",

    LockMissing "lock-missing" "There is no lock, and `--locked` forbids writing it",
    LockOutOfDate "lock-out-of-date" "The lock is out of date, and `--locked` forbids changing it; \
        `entries` says where",
    LockMalformed "lock-malformed" "The file is not a lock that can be used",
    LockConflicted "lock-conflicted" "The lock has an unresolved merge conflict",
    LockEpoch "lock-epoch" "The lock is for boxes of another format epoch",
    LockEntryNotFound "lock-entry-not-found" "The lock has no entry of this name",
    LockPinStale "lock-pin-stale" "What the lock pins is gone, or differs from the lock",

    ImageNotFound "image-not-found" "There is no such image",
    ImageAmbiguous "image-ambiguous" "It is not clear which image is meant",
    ImageMalformed "image-malformed" "The image cannot be read",
    ImagePlatform "image-platform" "The image is for other platforms",
    ImageUnusable "image-unusable" "The image does not fit what the Boxfile declares",
    LayerMalformed "layer-malformed" "A layer of the image is refused",
    TooLarge "too-large" "Something is larger than its limit",
    DigestMismatch "digest-mismatch" "A file or blob does not have the expected digest or size",
    MergeConflict "merge-conflict" "The images conflict at paths that no policy decides; `conflicts` lists them",

    Offline "offline" "What is needed is not in the store, and `--offline` forbids the network",
    ServerUnreachable "server-unreachable" "A server cannot be reached, or does not answer",
    ServerUntrusted "server-untrusted" "A server cannot be trusted: TLS, certificates, redirects",
    DownloadFailed "download-failed" "A server refused a download, or the download broke off",
    RegistryUnauthorized "registry-unauthorized" "The registry wants credentials, or refuses them",
    RegistryInvalid "registry-invalid" "The registry's response is not what the protocol allows",
    RegistryConfig "registry-config" "registries.toml cannot be used",

    StoreInvalid "store-invalid" "The directory is not a store of this version, or another user can change it",
    StoreDamaged "store-damaged" "The store lacks a blob, or holds a damaged one",

    BoxNotFound "box-not-found" "There is no box of this path, name or digest",
    NameNotFound "name-not-found" "No box that was started has this name",
    NotDeclared "not-declared" "The box's Boxfile does not declare what is asked for",
    SkillNotFound "skill-not-found" "No such skill was loaded into the box",
    SkillFixed "skill-fixed" "The box has the skill from its start, and neither replaces nor unloads it",
    NameTaken "name-taken" "Another box has this name, or another Boxfile gave it to its box",
    NotRunning "not-running" "The box is not running",
    StillRunning "still-running" "The box is still running",
    BoxEnded "box-ended" "The box ended before the awaited event",
    Refused "refused" "The box's supervisor did not do what was requested",
    NotRepeatable "not-repeatable" "The run cannot be repeated",
    NotUpdated "not-updated" "The new box did not become ready, now or when it was tried before, or would send a secret elsewhere, and the old one runs",
    VolumeNotFound "volume-not-found" "No volume has this name",
    VolumeExists "volume-exists" "There is a volume with this name already",
    VolumeInUse "volume-in-use" "A running box has the volume",
    VolumeDamaged "volume-damaged" "The volume's record or disk was changed",
    SnapshotNotFound "snapshot-not-found" "No snapshot has this name",
    SnapshotExists "snapshot-exists" "There is a snapshot with this name already",
    SnapshotDamaged "snapshot-damaged" "The snapshot's record or disk was changed",
    SnapshotOfOther "snapshot-of-other" "The snapshot is of another box than the one that is started",
    BoxMalformed "box-malformed" "The box cannot be read",
    BoxDamaged "box-damaged" "A file of the box does not have the digest that the box names",
    BoxEpoch "box-epoch" "The box is of a format epoch that this version does not read",
    KeyInvalid "key-invalid" "A key for signatures is malformed, encrypted or of another algorithm",
    SignatureInvalid "signature-invalid" "The box has no valid signature by a key that is trusted",
    ComponentNotFound "component-not-found" "The box has no such component, or which one is unclear",
    PathNotFound "path-not-found" "The box or image has nothing at this path",
    PathNotFile "path-not-file" "The path is not a regular file",
    ExportUnsupported "export-unsupported" "The export format cannot hold something that is in the box",

    BoxWritable "box-writable" "Another user could change the box while it runs",
    BoxUnsupported "box-unsupported" "The box needs a feature that this version of boxlaunch lacks",
    KvmUnavailable "kvm-unavailable" "The host's KVM cannot be used, or cannot run the guest",
    NetworkUnavailable "network-unavailable" "The host cannot give the network that the box shares with it",
    JailIncomplete "jail-incomplete" "The host does not give all layers of the jail, and `--jail require` asks for them",
    ConfigInvalid "config-invalid" "config.toml cannot be used",
    PolicyInvalid "policy-invalid" "policy.toml cannot be used",
    PolicyRefused "policy-refused" "The policy of the host refuses the box, whoever has signed it",
    BoxUnsigned "box-unsigned" "The box lacks a signature or provenance that the policy of the host requires",
    HostPolicy "host-policy" "The box asks for more of the host than it may take",
    VmmFailed "vmm-failed" "The VM could not be created, or ended by itself",
    GuestFailed "guest-failed" "The box's init failed, did not answer, or broke the rules of its control channel",
    AgentFailed "agent-failed" "The agent ended before it was ready",
    AgentCallFailed "agent-call-failed" "The agent broke the rules of its interface, or refused the call",
    VirtualHostMissing "virtual-host-missing" "A part of the virtual host is not installed: QEMU, boxlaunch, \
        or the programs that fetch its kernel",
    VirtualHostFailed "virtual-host-failed" "The virtual host could not be made, or stopped without a result",
    StartupTimeout "startup-timeout" "The agent was not ready in time",
    OverBudget "over-budget" "The start took longer than the box's budget allows",
    Interrupted "interrupted" "A signal stopped the command",
}

impl ErrorCode {
    /// Returns the exit code of a command that verifies a box, such as `boxbuild verify`, and of every command of boxlaunch: a damaged
    /// box is a difference. Otherwise the usual one.
    pub const fn exit_verified(self) -> u8 {
        match self {
            Self::BoxDamaged => exit::DIFFERENT,
            code => code.exit(),
        }
    }

    /// Returns the usual exit code of a command that fails with this error. Some commands use another exit code.
    pub const fn exit(self) -> u8 {
        match self {
            Self::Usage | Self::LockEntryNotFound => exit::USAGE,
            Self::LockMissing | Self::LockOutOfDate | Self::LockEpoch => exit::LOCKED,
            Self::OverBudget => exit::OVER_BUDGET,
            Self::SignatureInvalid => exit::DIFFERENT,
            Self::NotUpdated => exit::KEPT,
            _ => exit::FAILED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_codes_are_these() {
        let rows: Vec<String> = ErrorCode::ALL
            .iter()
            .map(|(code, name, meaning)| format!("| `{name}` | {} | {meaning} |", code.exit()))
            .collect();
        assert_eq!(documented("## Error codes"), rows);
        let row = |(code, meaning): &(u8, &str)| format!("| {code} | {meaning} |");
        assert_eq!(documented("## Exit codes"), exit::ALL.iter().map(row).collect::<Vec<_>>());
    }

    /// Returns the rows of the table in a section of `docs/errors.md`.
    fn documented(section: &str) -> Vec<&'static str> {
        let page = include_str!("../../../docs/errors.md").lines();
        let table =
            page.skip_while(|line| *line != section).skip_while(|it| !it.starts_with("|---"));
        table.skip(1).take_while(|line| line.starts_with('|')).collect()
    }

    #[test]
    fn codes_are_distinct_and_in_kebab_case() {
        let is_kebab = |name: &str| {
            name.split('-')
                .all(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase()))
        };
        let mut names: Vec<&str> = ErrorCode::ALL.iter().map(|(code, ..)| code.name()).collect();
        assert!(names.iter().all(|name| is_kebab(name)), "{names:?}");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ErrorCode::ALL.len());
    }
}
