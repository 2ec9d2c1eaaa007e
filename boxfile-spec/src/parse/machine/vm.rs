//! `vm …`: the machine's size, which must have room for what the components may take.

use crate::parse::component::Share;
use crate::parse::reader::Reader;
use crate::schema::{self, MOST_MEMORY};
use crate::sink::Sink;
use crate::syntax::{Node, Value};
use crate::units::{MIB, show_size};
use crate::{Diagnostic, Vm, form};

const DEFAULT_CPUS: u8 = 2;
/// What the default adds to the components' limits, for the kernel and init.
const RESERVE: u64 = 256 * MIB;

/// Reads the machine's size. `shares` are the memory limits of the components, as far as they are
/// known: the agent's and the business application's.
pub(in crate::parse) fn read(node: Option<&Node>, shares: &[Option<Share>; 2], sink: &Sink) -> Vm {
    let shares: Vec<Share> = shares.iter().flatten().copied().collect();
    // Each is at most 64 GiB: see `limits`.
    let sum = shares.iter().map(|share| share.bytes).sum();
    let sensible = roomy(sum);
    let Some(node) = node else {
        return Vm { cpus: DEFAULT_CPUS, memory: default_memory(sensible, &shares, sink) };
    };
    let mut reader = Reader::new(node, &schema::VM, sink);
    let cpus = reader.integer("cpus");
    let memory = match reader.optional_prop("memory") {
        None if node.broken => sensible,
        None => default_memory(sensible, &shares, sink),
        Some(value) => {
            let memory = reader.size("memory");
            let memory = memory.filter(|bytes| whole(value, "memory", *bytes, sink));
            if memory.is_some_and(|memory| memory <= sum) {
                sink.report(too_small(value, sum, &shares));
            }
            memory.unwrap_or(sensible)
        }
    };
    reader.finish();
    Vm { cpus: cpus.unwrap_or(DEFAULT_CPUS), memory }
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
        sink.report(error.with_help(format!("lower the limits to at most {most} together")));
    }
    sensible
}

/// Checks that a size is a whole number of MiB.
pub(in crate::parse) fn whole(value: &Value, name: &str, bytes: u64, sink: &Sink) -> bool {
    let whole = bytes.is_multiple_of(MIB);
    if !whole {
        let message = format!("`{name}` must be a whole number of MiB");
        let next = format!("\"{}\"", show_size(bytes.next_multiple_of(MIB)));
        let help = format!("write `{}`", form::prop(value.syntax, name, &next));
        sink.report(Diagnostic::new(message, value.span, "not a multiple of 1MiB").with_help(help));
    }
    whole
}

fn too_small(memory: &Value, sum: u64, shares: &[Share]) -> Diagnostic {
    let figure = show_size(sum);
    let message =
        format!("the components may take {figure}, which leaves nothing of the machine's memory");
    let error = Diagnostic::new(message, memory.span, format!("must be more than {figure}"));
    let enough = roomy(sum);
    let help = if enough > MOST_MEMORY {
        "lower the limits".to_owned()
    } else {
        let enough = format!("\"{}\"", show_size(enough));
        format!("write `{}`, or lower the limits", form::prop(memory.syntax, "memory", &enough))
    };
    add_labels(error, shares).with_help(help)
}

fn add_labels(error: Diagnostic, shares: &[Share]) -> Diagnostic {
    shares.iter().fold(error, |error, share| error.with_label(share.span, label(share)))
}

fn label(share: &Share) -> String {
    let default = if share.written { "" } else { " by default" };
    format!("may take {}{default}", show_size(share.bytes))
}
