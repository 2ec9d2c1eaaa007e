//! Statements that do not go together.

use crate::Diagnostic;
use crate::diagnostic::quote;
use crate::syntax::toml::statement::Path;
use crate::syntax::toml::table::{Clash, ClashKind};

/// The error that a header does not go together with something before it.
pub(in crate::syntax::toml) fn of_header(written: &str, clash: &Clash) -> Diagnostic {
    match clash.kind {
        ClashKind::Redeclared => {
            let header = written.split_once(']').map_or(written, |(header, _)| header);
            let message = format!("the table {} is declared twice", quote(&format!("{header}]")));
            Diagnostic::new(message, clash.name.span, "declared again")
                .with_label(clash.first, "declared first")
                .with_help("write all of it in one place")
        }
        ClashKind::Closed => closed(clash),
        ClashKind::NoTable | ClashKind::Twice => no_table(clash),
    }
}

/// The error that a key does not go together with something before it; `table` is where it is.
pub(in crate::syntax::toml) fn of_pair(table: &Path, clash: &Clash) -> Diagnostic {
    let name = &clash.name.value;
    match clash.kind {
        ClashKind::Twice => Diagnostic::new(
            format!("{} is given twice", quote(name)),
            clash.name.span,
            "given again",
        )
        .with_label(clash.first, "given first")
        .with_help("remove one of them"),
        ClashKind::NoTable => no_table(clash),
        ClashKind::Closed => closed(clash),
        ClashKind::Redeclared => {
            let path: Vec<&str> = table.iter().map(|name| name.value.as_str()).collect();
            let header = format!("[{}]", [path, vec![name]].concat().join("."));
            let message = format!("{} is a table with a header", quote(name));
            Diagnostic::new(message, clash.name.span, "added to here")
                .with_label(clash.first, "its header")
                .with_help(format!("write it below {}", quote(&header)))
        }
    }
}

fn no_table(clash: &Clash) -> Diagnostic {
    let name = quote(&clash.name.value);
    let message = format!("{name} has a value, and is used as a table");
    Diagnostic::new(message, clash.name.span, "used as a table")
        .with_label(clash.first, "given a value")
        .with_help("keep one of them and remove the other")
}

fn closed(clash: &Clash) -> Diagnostic {
    let name = quote(&clash.name.value);
    let message = format!("{name} is complete where it is written in `{{…}}`");
    Diagnostic::new(message, clash.name.span, "added to here")
        .with_label(clash.first, "written in braces")
        .with_help("write all of it in the braces, or all of it in a table with a header")
}
