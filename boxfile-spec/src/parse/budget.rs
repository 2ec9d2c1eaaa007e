//! `budget …`: what each phase of the start may take.

use box_contract::Budget;

use crate::parse::reader::Reader;
use crate::syntax::tree::Node;
use crate::units::show_duration;
use crate::{form, schema, value};
use diagnostics::Sink;
use diagnostics::{Diagnostic, Spanned};

/// A box made of OCI images is to be ready within 5 s.
pub(in crate::parse) const IMAGE_TOTAL: u64 = 5000;
/// A box without an image is to be ready within 3 s.
pub(in crate::parse) const BINARY_TOTAL: u64 = 3000;

/// Reads the budget; without a declaration, the total alone is limited.
pub(in crate::parse) fn read(node: Option<&Node>, default_total: u64, sink: &Sink) -> Budget {
    let mut budget = Budget::default();
    if let Some(node) = node {
        let mut reader = Reader::new(node, &schema::BUDGET, sink);
        let total = read_limit(&mut reader, "total");
        budget.total = total.as_ref().map(|total| total.value);
        for (name, limit) in [
            ("vmm", &mut budget.vmm),
            ("jail", &mut budget.jail),
            ("kernel", &mut budget.kernel),
            ("init", &mut budget.init),
            ("ready", &mut budget.ready),
        ] {
            let phase = read_limit(&mut reader, name);
            if let Some(phase) = &phase {
                check_possible(&reader, name, phase, (total.as_ref(), default_total));
            }
            *limit = phase.map(|phase| phase.value);
        }
        reader.finish();
    }
    budget.total = budget.total.or(Some(default_total));
    budget
}

fn read_limit(reader: &mut Reader<'_>, name: &'static str) -> Option<Spanned<u64>> {
    let span = reader.optional_prop(name)?.span;
    reader.read_optional(name, value::some_duration).map(|value| Spanned { value, span })
}

/// Checks that a phase can take what it may: the total ends the start before that.
fn check_possible(
    reader: &Reader<'_>,
    name: &str,
    phase: &Spanned<u64>,
    (total, default): (Option<&Spanned<u64>>, u64),
) {
    let most = total.map_or(default, |total| total.value);
    if phase.value <= most {
        return;
    }
    let [taken, most] = [phase.value, most].map(show_duration);
    let message = format!("`{name}` is {taken}, but the whole start may take only {most}");
    let error = Diagnostic::new(message, phase.span, "impossible");
    let enough = form::prop(reader.syntax(), "total", &format!("\"{taken}\""));
    match total {
        Some(total) => reader.report(
            error
                .with_label(total.span, "the whole start")
                .with_help(format!("write `{enough}` or more, or lower `{name}`")),
        ),
        None => reader.report_missing_error(error.with_help(format!(
            "add `{enough}` or more (it is {most} by default), or lower `{name}`"
        ))),
    }
}
