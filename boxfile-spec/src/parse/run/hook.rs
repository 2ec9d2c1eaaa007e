//! `hook "EVENT" PROGRAM …`: a program that the agent runs at an event.

use box_contract::{HookEvent, HookPlan};

use crate::errors::DECLARATION_ERRORS;
use crate::parse::{Children, Reader};
use crate::schema;
use diagnostics::Spanned;
use safe_text::quote;

/// Reads all hooks, and sorts them by the names of their events. Each span is that of the program.
pub(in crate::parse) fn read(top: &Children<'_>) -> Vec<Spanned<HookPlan>> {
    Reader::keyed(top, &schema::HOOK, hook)
}

fn hook(reader: &mut Reader<'_>) -> Option<Spanned<HookPlan>> {
    let event: Option<HookEvent> = reader.first();
    let span = reader.next_span();
    let argv: Vec<String> = reader.rest()?;
    let event = event?;
    if argv.first().is_none_or(String::is_empty) {
        let error = DECLARATION_ERRORS.about("hook-program", &quote(event.name()), span);
        reader.report_missing_error(error.with_help(reader.usage()));
        return None;
    }
    Some(Spanned { value: HookPlan { event, argv }, span })
}
