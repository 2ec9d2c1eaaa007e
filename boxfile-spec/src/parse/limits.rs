//! `limits …`: what a component may take.

use crate::parse::reader::Reader;
use crate::sink::Sink;
use crate::syntax::{Node, Value};
use crate::units::{GIB, MIB, show_size};
use crate::{Diagnostic, Limits, Span, value};

const USAGE: &str = "`limits memory=\"512MiB\" pids=100 cpu-weight=20`";
/// Less cannot hold a program and its stack.
const LEAST_MEMORY: u64 = 4 * MIB;
/// The greatest memory of a virtual machine, and so of a component.
pub(super) const MOST_MEMORY: u64 = 64 * GIB;
/// The kernel's `PID_MAX_LIMIT` on 64-bit machines.
const MOST_PIDS: u64 = 4 << 20;

/// The memory that a component asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) bytes: u64,
    /// Where it is written, or the component's name where it is the default.
    pub(super) span: Span,
    pub(super) written: bool,
}

/// Reads the limits of `component`, and its memory with the place; no memory where it is wrong.
pub(super) fn read(
    node: Option<&Node>,
    component: &Node,
    default: Limits,
    sink: &Sink,
) -> (Limits, Option<Share>) {
    let share = Share { bytes: default.memory, span: component.name.span, written: false };
    let Some(node) = node else { return (default, Some(share)) };
    let mut reader = Reader::new(node, USAGE, sink);
    let share = match reader.optional_prop("memory") {
        None => Some(share),
        given @ Some(value) => reader.read(given, "memory", memory).map(|bytes| Share {
            bytes,
            span: value.span,
            written: true,
        }),
    };
    let pids = reader.optional_prop("pids");
    let pids = reader.read(pids, "pids", |value, name| value::integer(value, name, 1..=MOST_PIDS));
    let limits = Limits {
        memory: share.map_or(default.memory, |share| share.bytes),
        cpu_weight: read_weight(&mut reader).unwrap_or(default.cpu_weight),
        pids: pids.unwrap_or(default.pids),
    };
    reader.finish();
    (limits, share.filter(|_| !node.broken))
}

fn memory(value: &Value, name: &str) -> Result<u64, Diagnostic> {
    let bytes = value::size(value, name)?;
    within(value, bytes, LEAST_MEMORY, MOST_MEMORY)
}

/// Checks that a size is within its bounds.
pub(super) fn within(value: &Value, bytes: u64, least: u64, most: u64) -> Result<u64, Diagnostic> {
    let (relation, bound) = if bytes < least {
        ("less", least)
    } else if bytes > most {
        ("more", most)
    } else {
        return Ok(bytes);
    };
    let [size, bound] = [bytes, bound].map(show_size);
    let message = format!("a memory of {size} is {relation} than is possible");
    let [least, most] = [least, most].map(show_size);
    Err(Diagnostic::new(message, value.span, format!("must be from {least} to {most}"))
        .with_help(format!("write `memory=\"{bound}\"`")))
}

/// Reads the CPU weight, directly or from shares; both at once are an error.
fn read_weight(reader: &mut Reader<'_>) -> Option<u16> {
    let weight = reader.optional_prop("cpu-weight");
    let shares = reader.optional_prop("cpu-shares");
    if let (Some(weight), Some(shares)) = (weight, shares) {
        let message = "`cpu-weight` and `cpu-shares` are two ways to say the same";
        let error =
            Diagnostic::new(message, shares.span, "and this").with_label(weight.span, "this");
        reader.report(error.with_help("remove `cpu-shares`"));
    }
    let weight =
        reader.read(weight, "cpu-weight", |value, name| value::integer(value, name, 1..=10_000));
    let shares = reader.read(shares, "cpu-shares", |value, name| {
        value::integer(value, name, 2..=262_144).map(self::weight)
    });
    weight.or(shares)
}

/// Converts `cpu.shares` of cgroup v1, 2 to 262144, to `cpu.weight` of cgroup v2, 1 to 10000, in
/// the same proportion as container runtimes do.
#[expect(clippy::cast_possible_truncation, reason = "the result is at most 10000")]
pub(super) const fn weight(shares: u32) -> u16 {
    let above = shares.saturating_sub(2) as u64;
    let weight = 1 + above * 9_999 / 262_142;
    if weight > 10_000 { 10_000 } else { weight as u16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_become_weights() {
        for (shares, expected) in
            [(0, 1), (2, 1), (512, 20), (1024, 39), (262_144, 10_000), (u32::MAX, 10_000)]
        {
            assert_eq!(weight(shares), expected, "{shares} shares");
        }
    }
}
