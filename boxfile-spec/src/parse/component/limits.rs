//! `limits …` and `rlimits …`: the limits of a component, and of each of its processes.

use box_contract::{Limits, Rlimits};

use crate::errors::DECLARATION_ERRORS;
use crate::parse::{Children, Reader, read_fields};
use crate::syntax::tree::{Data, Node, Value};
use crate::{form, rules, schema};
use diagnostics::{Sink, Span, Spanned};

/// The memory limit of a component.
#[derive(Debug, Clone, Copy)]
pub(in crate::parse) struct MemoryLimit {
    pub(in crate::parse) bytes: u64,
    /// The span of the limit; for the default, the span of the component's name.
    pub(in crate::parse) span: Span,
    pub(in crate::parse) written: bool,
}

/// Reads the limits of `component`. Also returns its memory limit with the span, or `None` if the
/// declared memory limit cannot be read.
pub(super) fn read(
    children: &Children<'_>,
    component: &Node,
    default: Limits,
) -> (Limits, Option<MemoryLimit>) {
    let (bytes, span) = (default.memory_bytes, component.name.span);
    let by_default = MemoryLimit { bytes, span, written: false };
    let node = children.one(&schema::LIMITS);
    let Some(node) = node else { return (default, Some(by_default)) };
    let mut reader = Reader::new(node, &schema::LIMITS, children.sink());
    let memory =
        match reader.optional_prop("memory") {
            None => Some(by_default),
            Some(_) => reader
                .optional("memory")
                .map(|Spanned { value: bytes, span }| MemoryLimit { bytes, span, written: true }),
        };
    let limits = Limits {
        memory_bytes: memory.map_or(default.memory_bytes, |memory| memory.bytes),
        cpu_weight: read_weight(&mut reader).unwrap_or(default.cpu_weight),
        pids: reader.optional("pids").unwrap_or(default.pids),
    };
    reader.finish();
    (limits, memory.filter(|_| !node.broken))
}

/// Reads the CPU weight from `cpu-weight`, or converts it from `cpu-shares`. Both at once are an
/// error.
fn read_weight(reader: &mut Reader<'_>) -> Option<u16> {
    let written = ["cpu-weight", "cpu-shares"].map(|name| reader.optional_prop(name));
    if let [Some(weight), Some(shares)] = written {
        let error = DECLARATION_ERRORS.at("two-weights", shares.span);
        reader.report(error.with_label(weight.span, "this"));
    }
    let weight = reader.optional("cpu-weight");
    weight.or(reader.optional("cpu-shares").map(self::weight))
}

/// Converts `cpu.shares` of cgroup v1 (2 to 262144) to `cpu.weight` of
/// [cgroup v2](https://docs.kernel.org/admin-guide/cgroup-v2.html) (1 to 10000), in the same
/// proportion as container runtimes.
#[expect(clippy::cast_possible_truncation, reason = "the result is at most 10000")]
const fn weight(shares: u32) -> u16 {
    let above = shares.saturating_sub(2) as u64;
    let weight = 1 + above * 9_999 / 262_142;
    if weight > 10_000 { 10_000 } else { weight as u16 }
}

/// Reads the limits of each process. `user` is `None` if the component declares no user.
pub(super) fn read_rlimits(children: &Children<'_>, user: Option<&Spanned<String>>) -> Rlimits {
    let limits = Reader::sole(children, &schema::RLIMITS, |reader| {
        check_user(reader.optional_prop("nproc"), user, children.sink());
        read_fields!(reader => Rlimits {
            nofile, nproc, as_bytes: "address-space", cpu_seconds: "cpu", core_bytes: "core", fsize_bytes: "file-size"
        })
    });
    limits.unwrap_or_default()
}

/// Reports a limit on the number of root's processes: root is exempt from it
/// ([setrlimit(2)](https://man7.org/linux/man-pages/man2/setrlimit.2.html), "RLIMIT_NPROC").
fn check_user(nproc: Option<&Value>, user: Option<&Spanned<String>>, sink: &Sink) {
    let root = user.filter(|user| rules::is_root(&user.value));
    let (Some(nproc), Some(root)) = (nproc, root) else { return };
    let Data::Integer(number) = nproc.data else { return };
    let pids = form::prop(nproc.syntax, "pids", &number.to_string());
    let error = DECLARATION_ERRORS.about("root-nproc", &pids, nproc.span);
    sink.report(error.with_label(root.span, "the component runs as root"));
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
