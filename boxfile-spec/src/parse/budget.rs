//! `budget …`: what each phase of the start may take.

use crate::parse::reader::Reader;
use crate::sink::Sink;
use crate::syntax::{Node, Value};
use crate::units::show_duration;
use crate::{Budget, Diagnostic, Spanned, value};

const USAGE: &str = "`budget total=\"700ms\" kernel=\"400ms\"`";
/// A box made of OCI images is to be ready within 5 s.
const DEFAULT_TOTAL: u64 = 5000;

/// Reads the budget; without a declaration, the total alone is limited.
pub(super) fn read(node: Option<&Node>, sink: &Sink) -> Budget {
    let mut budget = Budget { vmm: None, kernel: None, init: None, ready: None, total: None };
    if let Some(node) = node {
        let mut reader = Reader::new(node, USAGE, sink);
        let total = read_limit(&mut reader, "total");
        budget.total = total.as_ref().map(|total| total.value);
        for (name, limit) in [
            ("vmm", &mut budget.vmm),
            ("kernel", &mut budget.kernel),
            ("init", &mut budget.init),
            ("ready", &mut budget.ready),
        ] {
            let phase = read_limit(&mut reader, name);
            if let Some(phase) = &phase {
                check_possible(name, phase, total.as_ref(), sink);
            }
            *limit = phase.map(|phase| phase.value);
        }
        reader.finish();
    }
    budget.total = budget.total.or(Some(DEFAULT_TOTAL));
    budget
}

fn read_limit(reader: &mut Reader<'_>, name: &'static str) -> Option<Spanned<u64>> {
    let value = reader.optional_prop(name);
    let limit = reader.read(value, name, limit)?;
    Some(Spanned { value: limit, span: value?.span })
}

fn limit(value: &Value, name: &str) -> Result<u64, Diagnostic> {
    match value::duration(value, name)? {
        0 => Err(Diagnostic::new("nothing starts in no time", value.span, "must be at least 1ms")
            .with_help(format!("write `{name}=\"1ms\"` or more, or leave `{name}` out"))),
        ms => Ok(ms),
    }
}

/// Checks that a phase can take what it may: the total ends the start before that.
fn check_possible(name: &str, phase: &Spanned<u64>, total: Option<&Spanned<u64>>, sink: &Sink) {
    let most = total.map_or(DEFAULT_TOTAL, |total| total.value);
    if phase.value <= most {
        return;
    }
    let [taken, most] = [phase.value, most].map(show_duration);
    let message = format!("`{name}` can never take {taken}: the whole start may take {most}");
    let error = Diagnostic::new(message, phase.span, "impossible");
    sink.report(match total {
        Some(total) => error
            .with_label(total.span, "the whole start")
            .with_help(format!("raise `total` to at least \"{taken}\", or lower `{name}`")),
        None => error.with_help(format!(
            "add `total=\"{taken}\"` or more (it is {most} by default), or lower `{name}`"
        )),
    });
}
