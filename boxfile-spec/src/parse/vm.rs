//! `vm …`: the VM's size, which must exceed the components' limits.

use box_contract::Vm;

use crate::errors::DECLARATION_ERRORS;
use crate::form;
use crate::parse::component::limits::MemoryLimit;
use crate::parse::{Children, Reader};
use crate::schema::{self, DEFAULT_CPUS, MAX_MEMORY, MEMORY_RESERVE};
use crate::syntax::tree::Value;
use crate::units::{MIB, show_size};
use crate::value::{self, Read as _};
use diagnostics::{Diagnostic, Sink};

/// Reads the VM's size. `limits` are the memory limits of the agent and of the business
/// application; `None` for an absent component and for a limit that cannot be read.
pub(super) fn read(top: &Children<'_>, limits: &[Option<MemoryLimit>; 2]) -> Vm {
    let (node, sink) = (top.one(&schema::VM), top.sink());
    let limits: Vec<MemoryLimit> = limits.iter().flatten().copied().collect();
    // The sum cannot overflow: each limit is at most 64 GiB ([`MAX_MEMORY`]).
    let sensible = roomy(total(&limits));
    let Some(node) = node else {
        return machine(DEFAULT_CPUS, default_memory(sensible, &limits, sink));
    };
    let mut reader = Reader::new(node, &schema::VM, sink);
    let cpus = reader.value("cpus");
    let memory = match reader.optional_prop("memory") {
        None if node.broken => sensible,
        None => default_memory(sensible, &limits, sink),
        Some(value) => read_memory(&mut reader, value, &limits, sink).unwrap_or(sensible),
    };
    reader.finish();
    machine(cpus.unwrap_or(DEFAULT_CPUS), memory)
}

/// Returns the size of a VM with memory of whole MiB.
fn machine(cpus: u8, memory: u64) -> Vm {
    // The schema and the default bound the memory far below 2^32 MiB.
    Vm { cpus, memory_mib: u32::try_from(memory / MIB).unwrap_or(u32::MAX) }
}

/// Returns the sum of the components' limits.
fn total(limits: &[MemoryLimit]) -> u64 {
    limits.iter().map(|limit| limit.bytes).sum()
}

/// Reads the declared memory. If it is too small for the components, its other errors are not
/// reported, because the user has to change the value anyway.
fn read_memory(
    reader: &mut Reader<'_>,
    value: &Value,
    limits: &[MemoryLimit],
    sink: &Sink,
) -> Option<u64> {
    let sum = total(limits);
    if value::size(value, "memory").is_ok_and(|memory| memory <= sum) {
        match u64::read(value, "memory", reader.kind("memory")) {
            Ok(_) if limits.iter().all(|limit| limit.written) => {
                sink.report(too_small(value, sum, limits));
            }
            // A limit that is not written may be in text that cannot be read.
            Ok(_) => sink.report_missing(too_small(value, sum, limits)),
            // Replaces the error's help: the smallest memory of a VM would not be enough for the
            // components.
            Err(error) => {
                let help = sufficient(value, sum);
                let sum = show_size(sum);
                sink.report(error.with_help(format!("{help}: the components may take {sum}")));
            }
        }
        return None;
    }
    let memory = reader.optional("memory")?;
    sink.check(value::check_whole(value, "memory", memory))
}

/// Returns the default memory of a VM in bytes: `sum`, the bytes of all limits, rounded up to MiB,
/// and the reserve.
const fn roomy(sum: u64) -> u64 {
    sum.next_multiple_of(MIB) + MEMORY_RESERVE
}

fn default_memory(sensible: u64, limits: &[MemoryLimit], sink: &Sink) -> u64 {
    if let [first, ..] = limits
        && sensible > MAX_MEMORY
    {
        let error = DECLARATION_ERRORS.about("memory-too-large", &label(first), first.span);
        let most = show_size(MAX_MEMORY - MEMORY_RESERVE);
        let error = add_labels(error, &limits[1..]);
        sink.report_missing(
            error.with_help(format!("lower the limits to at most {most} together")),
        );
    }
    sensible
}

fn too_small(memory: &Value, sum: u64, limits: &[MemoryLimit]) -> Diagnostic {
    let error = DECLARATION_ERRORS.about("memory-too-small", &show_size(sum), memory.span);
    let error = add_labels(error, limits);
    if roomy(sum) > MAX_MEMORY {
        return error;
    }
    error.with_help(format!("{}, or lower the limits", sufficient(memory, sum)))
}

/// Returns the help to write a sufficient memory, or at most the greatest memory of a VM.
fn sufficient(memory: &Value, sum: u64) -> String {
    form::write_text(memory.syntax, "memory", &show_size(roomy(sum).min(MAX_MEMORY)))
}

fn add_labels(error: Diagnostic, limits: &[MemoryLimit]) -> Diagnostic {
    limits.iter().fold(error, |error, limit| error.with_label(limit.span, label(limit)))
}

fn label(limit: &MemoryLimit) -> String {
    let default = if limit.written { "" } else { " by default" };
    format!("may take {}{default}", show_size(limit.bytes))
}
