//! `vm …`: the machine's size, which must have room for what the components may take.

use box_contract::Vm;

use crate::parse::component::Share;
use crate::parse::reader::Reader;
use crate::schema::{self, MOST_MEMORY};
use crate::syntax::tree::{Node, Value};
use crate::units::{MIB, show_size};
use crate::{form, value};
use diagnostics::Diagnostic;
use diagnostics::Sink;

const DEFAULT_CPUS: u8 = 2;
/// The memory that the default adds to the components' limits, for the kernel and init.
const RESERVE: u64 = 256 * MIB;

/// Reads the machine's size. `shares` are the memory limits of the components, as far as they are
/// known: the agent's and the business application's.
pub(super) fn read(node: Option<&Node>, shares: &[Option<Share>; 2], sink: &Sink) -> Vm {
    let shares: Vec<Share> = shares.iter().flatten().copied().collect();
    // Each is at most 64 GiB: see `limits`.
    let sensible = roomy(total(&shares));
    let Some(node) = node else {
        return machine(DEFAULT_CPUS, default_memory(sensible, &shares, sink));
    };
    let mut reader = Reader::new(node, &schema::VM, sink);
    let cpus = reader.integer("cpus");
    let memory = match reader.optional_prop("memory") {
        None if node.broken => sensible,
        None => default_memory(sensible, &shares, sink),
        Some(value) => read_memory(&mut reader, value, &shares, sink).unwrap_or(sensible),
    };
    reader.finish();
    machine(cpus.unwrap_or(DEFAULT_CPUS), memory)
}

/// Returns the size of a machine with memory of whole MiB.
fn machine(cpus: u8, memory: u64) -> Vm {
    // The schema and the default bound the memory far below 2^32 MiB.
    Vm { cpus, memory_mib: u32::try_from(memory / MIB).unwrap_or(u32::MAX) }
}

/// Returns what the components may take.
fn total(shares: &[Share]) -> u64 {
    shares.iter().map(|share| share.bytes).sum()
}

/// Reads the memory that is written. Of one that is too little for the components, no more is
/// said: what there would be to say depends on what is written instead.
fn read_memory(
    reader: &mut Reader<'_>,
    value: &Value,
    shares: &[Share],
    sink: &Sink,
) -> Option<u64> {
    let sum = total(shares);
    let kind = reader.kind("memory");
    if value::size(value, "memory").is_ok_and(|memory| memory <= sum) {
        match value::size_within(value, "memory", kind) {
            Ok(_) if shares.iter().all(|share| share.written) => {
                sink.report(too_small(value, sum, shares));
            }
            // The limits may be in what cannot be read.
            Ok(_) => sink.report_missing(too_small(value, sum, shares)),
            // The least that any machine has would not do either.
            Err(error) => sink.report(error.with_help(sufficient(value, sum))),
        }
        return None;
    }
    reader.size("memory").filter(|bytes| whole(value, "memory", *bytes, sink))
}

/// Returns the memory of a machine that has room for `sum` bytes of limits.
const fn roomy(sum: u64) -> u64 {
    sum.next_multiple_of(MIB) + RESERVE
}

fn default_memory(sensible: u64, shares: &[Share], sink: &Sink) -> u64 {
    if let [first, ..] = shares
        && sensible > MOST_MEMORY
    {
        let message = "the components may take more memory than a machine can have";
        let error = Diagnostic::new(message, first.span, label(first));
        let most = show_size(MOST_MEMORY - RESERVE);
        let error = add_labels(error, &shares[1..]);
        sink.report_missing(
            error.with_help(format!("lower the limits to at most {most} together")),
        );
    }
    sensible
}

/// Checks that a size is a whole number of MiB.
pub(in crate::parse) fn whole(value: &Value, name: &str, bytes: u64, sink: &Sink) -> bool {
    let whole = bytes.is_multiple_of(MIB);
    if !whole {
        let message = format!("`{name}` must be a whole number of MiB");
        let next = show_size(bytes.next_multiple_of(MIB));
        let help = form::write_text(value.syntax, name, &next);
        sink.report(Diagnostic::new(message, value.span, "not a multiple of 1MiB").with_help(help));
    }
    whole
}

fn too_small(memory: &Value, sum: u64, shares: &[Share]) -> Diagnostic {
    let figure = show_size(sum);
    let message =
        format!("the components may take {figure}, which leaves no memory for the machine itself");
    let error = Diagnostic::new(message, memory.span, format!("must be more than {figure}"));
    let lower = "lower the limits";
    add_labels(error, shares).with_help(match sufficient(memory, sum) {
        _ if roomy(sum) > MOST_MEMORY => lower.to_owned(),
        enough => format!("{enough}, or {lower}"),
    })
}

/// Says how a memory is written that is enough, where a machine can have so much.
fn sufficient(memory: &Value, sum: u64) -> String {
    form::write_text(memory.syntax, "memory", &show_size(roomy(sum).min(MOST_MEMORY)))
}

fn add_labels(error: Diagnostic, shares: &[Share]) -> Diagnostic {
    shares.iter().fold(error, |error, share| error.with_label(share.span, label(share)))
}

fn label(share: &Share) -> String {
    let default = if share.written { "" } else { " by default" };
    format!("may take {}{default}", show_size(share.bytes))
}
