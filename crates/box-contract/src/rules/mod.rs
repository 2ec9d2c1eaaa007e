//! The syntax rules and bounds that several programs check.

use std::ffi::{OsStr, OsString};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use crate::defaults::SEARCH_PATH;

pub use safe_text::{VARIABLE_FORM, is_variable};

mod mcp;
mod peer;
mod place;
mod service;
mod user;

pub use mcp::McpUrl;
pub use peer::{MAX_DOMAIN, is_numeric_label, is_peer, network, peer_name};
pub use place::{
    MountKind, check_disjoint, excludes, is_inside, is_place, overlap, path_order, share_host_fault,
};
pub use service::{
    RequestRule, ServiceUrl, is_credential_header, is_credential_prefix, is_plain_path,
};
pub use user::check_user;

/// The maximum length of a path, in bytes (`PATH_MAX` of Linux).
pub const PATH_MAX: usize = 4096;

/// The maximum number of CPUs of a box: both guest kernels ([`KernelName`](crate::KernelName)) are built with `NR_CPUS=16`.
pub const MAX_CPUS: u8 = 16;

/// The minimum memory of a box's VM, in MiB.
pub const MIN_VM_MIB: u32 = 64;

/// The maximum memory of a box's VM, in MiB. It also limits the memory of a component.
pub const MAX_VM_MIB: u32 = 64 << 10;

/// The maximum number of simultaneous connections through a box's filter.
pub const MAX_CONNECTIONS: u32 = 512;

/// The minimum rate limit of a filter, in bytes per second. Below it, a TLS handshake becomes noticeably slow.
pub const MIN_RATE: u64 = 64 << 10;
/// The maximum rate limit of a filter, in bytes per second. No filter is faster.
pub const MAX_RATE: u64 = 16 << 30;

/// The maximum number of DNS names that a box may resolve per minute. The minimum is 1.
pub const MAX_NAMES: u32 = 100_000;

/// The maximum number of HTTP APIs that a box reaches through the host.
pub const MAX_SERVICES: usize = 64;
/// The maximum number of headers that the host adds to the requests to an API.
pub const MAX_SERVICE_HEADERS: usize = 8;
/// The maximum number of rules about the requests to an API.
pub const MAX_SERVICE_RULES: usize = 64;

/// The maximum number of MCP servers of a box.
pub const MAX_MCP_SERVERS: usize = 64;
/// The maximum number of agent definitions of a box.
pub const MAX_AGENTS: usize = 64;
/// The maximum number of characters in the description of an agent definition.
pub const MAX_AGENT_DESCRIPTION: usize = 4096;
/// The maximum number of tools that an agent definition has.
pub const MAX_AGENT_TOOLS: usize = 256;
/// The maximum number of characters in the name of a tool or model in an agent definition.
pub const MAX_AGENT_WORD: usize = 256;

/// The maximum number of ports per name in a box's resolver.
pub const MAX_PORTS: usize = 8;

/// The maximum number of streams that a component may open per second. After an idle second, it may open as many at once.
pub const MAX_OPENED: u32 = 512;

/// The maximum time limit, in seconds: one day.
pub const MAX_TIMEOUT: u32 = 24 * 60 * 60;

/// The maximum number of characters in a skill's description (<https://agentskills.io/specification>).
pub const MAX_SKILL_DESCRIPTION: usize = 1024;

/// The maximum number of characters in a skill's version.
pub const MAX_SKILL_VERSION: usize = 64;

/// The maximum number of characters in the name of a skill's author.
pub const MAX_SKILL_AUTHOR: usize = 256;

/// The maximum number of skills in a Boxfile, including the skills of its skill directory.
pub const MAX_SKILLS: usize = 1000;

/// The maximum number of skills that a start mounts from directories of the host.
pub const MAX_MOUNTED_SKILLS: usize = 128;

/// The maximum number of skills that are loaded into a running box.
pub const MAX_LOADED_SKILLS: usize = 64;

/// The id that is neither a user nor a group: system calls such as setuid(2) refuse it, or read it as "unchanged".
pub const NO_ID: u32 = u32::MAX;

/// The maximum number of supplementary groups of a process (`NGROUPS_MAX` of Linux).
pub const MAX_GROUPS: usize = 65_536;

/// Checks a variable of a command: a name with an optional value. For example, `PORT=80`.
///
/// # Errors
/// Returns the correct form, for an error message.
pub fn check_variable(text: &str) -> Result<(), &'static str> {
    if text.is_empty() || text.starts_with('=') { Err("write NAME=VALUE, or NAME") } else { Ok(()) }
}

/// Checks that the working directory of a command is an absolute path.
///
/// # Errors
/// Returns the correct form, for an error message.
pub fn check_directory(text: &str) -> Result<(), &'static str> {
    if text.starts_with('/') { Ok(()) } else { Err("write a path that starts with /") }
}

/// The maximum `cpu.weight` of [cgroup v2](https://docs.kernel.org/admin-guide/cgroup-v2.html). The minimum is 1.
pub const MAX_CPU_WEIGHT: u16 = 10_000;

/// The kernel's `PID_MAX_LIMIT` on 64-bit platforms. `pids.max` refuses higher numbers.
pub const MAX_PIDS: u64 = 4 << 20;

/// The kernel's `fs.nr_open`. `RLIMIT_NOFILE` cannot be higher.
pub const MAX_FILES: u64 = 1 << 20;

/// The maximum size of init, in bytes. The guest kernel reads it at the start.
pub const MAX_INIT: u64 = 64 << 20;
/// The maximum size of a guest kernel, or of a library that contains one, in bytes.
pub const MAX_KERNEL: u64 = 512 << 20;

/// The minimum limit of a process's address space, in bytes.
pub const MIN_ADDRESS_SPACE: u64 = 1 << 20;
/// The maximum value of a process's limits that are in bytes. No VM has as much memory or disk space.
pub const MAX_BYTES: u64 = 1 << 50;

/// The maximum length of a DNS label, in bytes.
pub const MAX_LABEL: usize = 63;
/// The beginning of an address of AF_VSOCK in a command line, such as `vsock://4088`. No program of a component can open
/// such a socket.
pub const VSOCK_SCHEME: &str = "vsock://";
/// The maximum length of a gRPC service's name, in bytes. Protobuf encodes lengths up to this one in one byte.
pub const MAX_SERVICE: usize = 100;

/// Returns whether `text` is a label of a host name ([RFC 1123](https://www.rfc-editor.org/rfc/rfc1123), section 2.1).
/// For example, `my-host` is accepted and `-host` is not.
pub fn is_label(text: &str) -> bool {
    text.len() <= MAX_LABEL && is_hyphenated(text)
}

/// Returns whether a text consists of ASCII letters, digits and inner hyphens, and is not empty.
fn is_hyphenated(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// The maximum length of the name of a volume on the host.
pub const MAX_VOLUME_NAME: usize = 63;
/// The least port of the host that a box can declare to publish. Only root can use the ports below.
pub const MIN_HOST_PORT: u16 = 1024;

/// Returns whether a box can declare to publish a port at this port of the host. 0 is any free port.
pub const fn is_host_port(port: u16) -> bool {
    port == 0 || port >= MIN_HOST_PORT
}

/// The maximum length of a name in a Boxfile. It equals the limit of skill names
/// (<https://agentskills.io/specification>).
pub const MAX_NAME: usize = 64;

/// Describes the rule of [`is_name`], for error messages.
pub const NAME_FORM: &str =
    "a name has lower-case letters, digits and inner hyphens, at most 64: \"my-agent\"";

/// Returns whether `text` is a valid name of a box, a skill, a share or the like in a Boxfile:
/// `[a-z0-9]([a-z0-9-]*[a-z0-9])?`, at most [`MAX_NAME`] bytes.
pub fn is_name(text: &str) -> bool {
    text.len() <= MAX_NAME
        && is_hyphenated(text)
        && !text.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// Returns a server's `HOST` or `HOST:PORT` in lower case, or `None` if `text` is malformed. The host is an IPv4
/// address, an IPv6 address in brackets, or DNS labels separated by dots. The port is from 1 to 65535. Texts that a URL
/// parser would interpret as another host are refused, such as `0x7f.1`.
pub fn host_and_port(text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (&*text, None),
    };
    let is_port = |port: &str| !port.starts_with(['0', '+']) && port.parse::<u16>().is_ok();
    (is_host(host) && port.is_none_or(is_port)).then_some(text)
}

/// Returns whether a text in lower case is a server's name or address.
fn is_host(text: &str) -> bool {
    if let Some(address) = text.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().is_ok();
    }
    // A URL parser reads a host whose last label is a number, in any notation, as an IPv4 address
    // ([URL Standard](https://url.spec.whatwg.org/#ends-in-a-number-checker)).
    let last = text.rsplit('.').next().unwrap_or_default();
    if is_numeric_label(last) {
        return text.parse::<Ipv4Addr>().is_ok();
    }
    text.len() <= MAX_DOMAIN && text.split('.').all(is_label)
}

/// Describes the rule of [`is_tag`], for error messages.
pub const TAG_FORM: &str =
    "a tag has letters, digits, `_`, `.` and `-`, at most 128, and does not begin with `.` or `-`";

/// Returns whether `text` is a valid image tag
/// ([OCI distribution specification](https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pulling-manifests)).
pub fn is_tag(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=128).contains(&text.len()) && text.bytes().all(inner) && !text.starts_with(['.', '-'])
}

/// Returns whether `text` is a valid name of an image in a layout (`org.opencontainers.image.ref.name` of the
/// [OCI annotations](https://github.com/opencontainers/image-spec/blob/v1.1.1/annotations.md)): a tag, or a full reference
/// such as `registry.example.org/team/app:1`.
pub fn is_layout_name(text: &str) -> bool {
    let part = |part: &str| {
        let bytes = part.as_bytes();
        let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let separates = |byte: u8| b"-._:@+".contains(&byte);
        let two = |pair: &[u8]| separates(pair[0]) && separates(pair[1]);
        ends(bytes.first())
            && ends(bytes.last())
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || separates(*byte))
            && !bytes.windows(2).any(|pair| two(pair) && pair != b"--")
            && !part.contains("---")
    };
    is_tag(text) || (text.len() <= 512 && text.split('/').all(part))
}

/// Describes the rule of [`is_repository`], for error messages.
pub const REPOSITORY_FORM: &str =
    "a repository has lower-case letters, digits, `.`, `_` and `-` between `/`";

/// Describes the rule of [`host_and_port`] for the name of a registry, for error messages.
pub const REGISTRY_FORM: &str = "a registry is HOST or HOST:PORT";

/// Returns whether `text` is a valid name of a repository in a registry
/// ([OCI distribution specification](https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pulling-manifests)).
/// Its parts, separated by slashes, begin and end with a lower-case letter or a digit, so that none is `..`.
pub fn is_repository(text: &str) -> bool {
    let ends = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(ends)
            && bytes.last().is_some_and(ends)
            && bytes.iter().all(|byte| ends(byte) || b"._-".contains(byte))
    };
    text.len() <= 255 && text.split('/').all(part)
}

/// The directories in which the guest mounts the kernel's pseudo file systems. An image's files below them are hidden.
pub const KERNEL_DIRECTORIES: [&str; 3] = ["/dev", "/proc", "/sys"];

/// The user account file of an image, [passwd(5)](https://man7.org/linux/man-pages/man5/passwd.5.html).
pub const PASSWD: &str = "/etc/passwd";
/// The group file of an image, [group(5)](https://man7.org/linux/man-pages/man5/group.5.html).
pub const GROUP: &str = "/etc/group";
/// The account files that the builder can merge line by line: [`PASSWD`], [`GROUP`],
/// [shadow(5)](https://man7.org/linux/man-pages/man5/shadow.5.html) and
/// [gshadow(5)](https://man7.org/linux/man-pages/man5/gshadow.5.html).
pub const ACCOUNT_FILES: [&str; 4] = [PASSWD, GROUP, "/etc/shadow", "/etc/gshadow"];

/// Returns the member of [`KERNEL_DIRECTORIES`] that equals or contains an absolute path of the guest. The path is
/// resolved as text: `..` removes the part before it.
pub fn kernel_directory(path: &str) -> Option<&'static str> {
    let parts = resolved_parts(path);
    KERNEL_DIRECTORIES.into_iter().find(|it| parts.first() == Some(&&it[1..]))
}

/// Returns the names in an absolute path, which is resolved as text: `..` removes the name before it.
pub fn resolved_parts(path: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts
}

/// Returns whether a path is absolute, is not `/`, and has no empty part, `.` or `..`.
pub fn is_normalized(path: &str) -> bool {
    let is_name = |name: &str| !matches!(name, "" | "." | "..");
    path.strip_prefix('/').is_some_and(|names| names.split('/').all(is_name))
}

/// Returns the value of `PATH` in an environment, or [`SEARCH_PATH`] if the environment has none.
pub fn search_path(env: &[String]) -> &str {
    env.iter().find_map(|variable| variable.strip_prefix("PATH=")).unwrap_or(SEARCH_PATH)
}

/// Like [`search_path`], for variables that need not be UTF-8.
pub fn search_path_of(env: &[OsString]) -> &OsStr {
    let value = env.iter().find_map(|it| it.as_bytes().strip_prefix(b"PATH="));
    value.map_or(OsStr::new(SEARCH_PATH), OsStr::from_bytes)
}

/// Returns the paths at which a program is searched, in order: the program itself if it contains a slash, and otherwise
/// its name in each absolute directory of the search path.
pub fn program_paths(program: &str, search_path: &str) -> Vec<String> {
    let paths = program_paths_of(OsStr::new(program), OsStr::new(search_path));
    paths.into_iter().filter_map(|it| it.into_string().ok()).collect()
}

/// Like [`program_paths`], for names that need not be UTF-8.
pub fn program_paths_of(program: &OsStr, search_path: &OsStr) -> Vec<OsString> {
    let (name, search_path) = (program.as_bytes(), search_path.as_bytes());
    if name.contains(&b'/') {
        return vec![program.to_owned()];
    }
    let is_searched = |directory: &&[u8]| directory.starts_with(b"/") && !name.is_empty();
    let absolute = search_path.split(|it| *it == b':').filter(is_searched);
    let in_directory = |directory: &[u8]| {
        let end = directory.iter().rposition(|it| *it != b'/').map_or(0, |last| last + 1);
        OsString::from_vec([&directory[..end], b"/", name].concat())
    };
    absolute.map(in_directory).collect()
}

/// The minimum size of the disk for the components' roots, in bytes.
pub const MIN_DISK_BYTES: u64 = 16 << 20;
/// The minimum size of a scratch disk, in bytes.
pub const MIN_SCRATCH_BYTES: u64 = 1 << 20;
/// The maximum size of a disk of a box, in bytes.
pub const MAX_SCRATCH_BYTES: u64 = 1 << 40;

/// Returns whether `text` is a valid path and query of an HTTP request: visible ASCII, which needs no escaping in the
/// request line ([RFC 9112](https://www.rfc-editor.org/rfc/rfc9112), section 3.2.1).
pub fn is_request_path(text: &str) -> bool {
    text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns whether `text` is a valid full name of a gRPC service, for a health check.
pub fn is_grpc_service(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_.".contains(&byte);
    (1..=MAX_SERVICE).contains(&text.len()) && text.bytes().all(inner)
}

/// Returns whether a path contains a part `..`.
pub fn climbs(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_programs_are_looked_up_and_paths_are_not() {
        let env = ["HOME=/", "PATH=/a/bin:/b/:bin::/"].map(str::to_owned);
        assert_eq!(program_paths("sh", search_path(&env)), ["/a/bin/sh", "/b/sh", "/sh"]);
        assert_eq!(program_paths("./sh", search_path(&env)), ["./sh"]);
        let default = program_paths("sh", search_path(&[]));
        assert_eq!(default.first().map(String::as_str), Some("/usr/local/sbin/sh"));
        assert_eq!(default.last().map(String::as_str), Some("/bin/sh"));
        assert_eq!(program_paths("", search_path(&env)), Vec::<String>::new());
        let env = [b"A=1".to_vec(), b"PATH=/\xFF".to_vec()].map(OsString::from_vec);
        let path = OsString::from_vec(b"/\xFF/\xFE".to_vec());
        assert_eq!(program_paths_of(OsStr::from_bytes(b"\xFE"), search_path_of(&env)), [path]);
        assert_eq!(search_path_of(&[]), search_path(&[]));
    }

    #[test]
    fn labels_of_hosts() {
        assert!(is_label("Agent-1") && is_label(&"a".repeat(63)));
        for bad in ["", "-a", "a-", "a.b", "a_b", &"a".repeat(64)] {
            assert!(!is_label(bad), "{bad}");
        }
    }

    #[test]
    fn hosts_and_ports() {
        for host in [
            "localhost",
            "example.com",
            "a:5000",
            "10.0.0.1",
            "a.b:65535",
            "host:443",
            "xn--bcher-kva.example",
            "[::1]",
            "[2001:db8::1]:5000",
        ] {
            assert_eq!(host_and_port(host).as_deref(), Some(host));
            assert_eq!(host_and_port(&host.to_ascii_uppercase()).as_deref(), Some(host));
        }
        for bad in [
            "",
            ":5000",
            "a:",
            "a:0",
            "a:080",
            "a:+80",
            "a:65536",
            "a:x",
            "a:b:1",
            "a..b",
            "a.",
            "-a",
            "a_b",
            "a b",
            "user@a",
            "a/b",
            "a?b",
            "a#b",
            "a\\b",
            "hôst",
            "127.1",
            "0x7f.1",
            "h.0X7F",
            &format!("{}.org", ["a"; 128].join(".")),
            "5000",
            "127.0.0.01",
            "1.2.3.4.5",
            "[::1",
            "[::1]x",
            "[a]",
            "::1",
            "[::1]:0",
        ] {
            assert_eq!(host_and_port(bad), None, "{bad}");
        }
    }

    #[test]
    fn tags_and_repositories() {
        assert!(is_tag("v1.0_b-2") && !is_tag("") && !is_tag(".v") && !is_tag("a/b"));
        assert!(!is_tag(&"x".repeat(129)));
        for name in
            ["v1", "_v", "registry.example.org/team/b:1", "a--b/c", "h:5000/a@b", &"x".repeat(512)]
        {
            assert!(is_layout_name(name), "{name}");
        }
        for name in [
            "",
            "a/",
            "/a",
            "a//b",
            "a/-b",
            "a..b/c",
            "a---b/c",
            "a b",
            "a/\u{e9}",
            &"x".repeat(513),
        ] {
            assert!(!is_layout_name(name), "{name}");
        }
        assert!(is_repository("library/debian") && is_repository("a/b-c_d.e"));
        for bad in ["", "A", "a//b", "/a", "a/", "a-", "-a", "a/..", &"a".repeat(256)] {
            assert!(!is_repository(bad), "{bad}");
        }
    }

    #[test]
    fn the_kernels_directories_are_known_by_any_spelling() {
        for (path, name) in [
            ("/proc", "/proc"),
            ("//sys/", "/sys"),
            ("/srv/../dev/shm", "/dev"),
            ("/./../proc/self", "/proc"),
        ] {
            assert_eq!(kernel_directory(path), Some(name), "{path}");
        }
        for path in ["/", "/work", "/processes", "/dev/..", "/home/dev", "/sys/../work"] {
            assert_eq!(kernel_directory(path), None, "{path}");
        }
    }

    #[test]
    fn paths_of_requests() {
        for good in ["/health?x=1", "/a%20b", "/"] {
            assert!(is_request_path(good), "{good}");
        }
        for bad in ["health", "", "/a b", "/a\r\nHost: b", "/santé"] {
            assert!(!is_request_path(bad), "{bad}");
        }
    }
}
