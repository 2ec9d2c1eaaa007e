//! The public interface of the lock: its text, its errors and its changes.

mod changes;
mod errors;
mod hostile;
mod properties;
mod text;

use box_digest::{AnyDigest, Blake3Digest, Digest};

use super::{Lock, LockEntry, PinKind};
use box_contract::Platform;

/// A lock with an entry of every kind, and the agent for two platforms.
fn example() -> Lock {
    let [amd64, arm64] = Platform::ALL;
    lock([
        entry("business", PinKind::Url, "https://example.com/b?v=1", Some(amd64)),
        entry("agent", PinKind::Image, "registry.example.com/agent:v1", Some(arm64)),
        entry("agent", PinKind::Image, "registry.example.com/agent:v1", Some(amd64)),
        entry("skill:greet", PinKind::Skill, "skills/greet", None),
        entry("init", PinKind::Init, "", Some(amd64)),
        entry("kernel", PinKind::Kernel, "boot/vmlinux", Some(amd64)),
        entry("env:.env", PinKind::EnvFile, ".env", None),
        entry("agent-tool", PinKind::Binary, "bin/tool", Some(amd64)),
    ])
}

/// Returns a lock of entries with different keys.
fn lock(entries: impl IntoIterator<Item = LockEntry>) -> Lock {
    let mut lock = Lock::new(1);
    for entry in entries {
        assert_eq!(lock.set(entry), None);
    }
    lock
}

fn entry(name: &str, kind: PinKind, source: &str, platform: Option<Platform>) -> LockEntry {
    let layers = match kind {
        PinKind::Image => [[0x11; 32], [0x22; 32]].map(Digest::from_bytes).to_vec(),
        _ => Vec::new(),
    };
    let digest = match kind {
        PinKind::Skill => AnyDigest::Blake3(Blake3Digest::from_bytes([0x5c; 32])),
        _ => AnyDigest::Sha256(Digest::from_bytes([0xab; 32])),
    };
    let (name, source) = (name.to_owned(), source.to_owned());
    LockEntry { name, kind, source, platform, digest, size: 4096, layers }
}

/// Returns the example's text after a replacement, which must change it.
fn replaced(from: &str, to: &str) -> String {
    let text = example().write();
    let changed = text.replacen(from, to, 1);
    assert_ne!(changed, text);
    changed
}

/// Returns the rendered error of a text.
fn shown(text: &str) -> String {
    Lock::parse(text)
        .unwrap_err()
        .render(&diagnostics::Sources::single(diagnostics::Source::new("Boxfile.lock", text)))
}
