//! `budget …`: the time limits of a start and of its phases.

use box_contract::Budget;

use crate::parse::{Children, Reader, read_fields};
use crate::units::show_duration;
use crate::{form, schema};
use diagnostics::{Diagnostic, Spanned};

/// Reads the budget. Without a declaration, only the total is limited: to `default_total`
/// milliseconds.
pub(in crate::parse) fn read(top: &Children<'_>, default_total: u64) -> Budget {
    let budget = Reader::sole(top, &schema::BUDGET, |reader| {
        let total: Option<Spanned<u64>> = reader.optional("total");
        let mut phase = |name| {
            let phase: Option<Spanned<u64>> = reader.optional(name);
            let check = |it| check_possible(reader, name, it, (total.as_ref(), default_total));
            phase.iter().for_each(check);
            Some(phase.map(|phase| phase.value))
        };
        read_fields!(reader => Budget {
            vmm = phase("vmm"), jail = phase("jail"), kernel = phase("kernel"), init = phase("init"),
            ready = phase("ready"), total = Some(total.as_ref().map(|total| total.value))
        })
    });
    let budget = budget.unwrap_or_default();
    Budget { total: budget.total.or(Some(default_total)), ..budget }
}

/// Reports a phase's limit that exceeds the total, because the start would reach the total first.
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
    let [phase_limit, most] = [phase.value, most].map(show_duration);
    let message = format!("`{name}` is {phase_limit}, but the whole start may take only {most}");
    let error = Diagnostic::new(message, phase.span, "impossible");
    let enough = form::prop(reader.syntax(), "total", &format!("\"{phase_limit}\""));
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
