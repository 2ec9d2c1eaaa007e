//! The conflicts that `git merge` leaves in a file.

use super::parts::lines;
use crate::{Diagnostic, Span};

/// Finds the first merge conflict that git left in the text.
pub(super) fn find(text: &str) -> Option<Diagnostic> {
    let mut marks = lines(text).filter_map(|(start, line)| {
        mark(line).map(|sign| (sign, Span::between(start, start + line.trim_end().len())))
    });
    let (sign, span) = marks.find(|(sign, _)| *sign != BETWEEN)?;
    let label = if sign == OURS { "one side starts here" } else { "left by git" };
    let mut error = Diagnostic::new("the file has an unresolved merge conflict", span, label);
    if sign == OURS {
        for (sign, span) in marks.take_while(|(sign, _)| *sign != OURS).take(3) {
            error = error.with_label(span, role(sign));
            if sign == THEIRS {
                break;
            }
        }
    }
    Some(error.with_help("keep either side, and run `boxbuild lock`: it adds what is missing"))
}

/// Returns the text as each of the two sides has it: all of it twice where there is no conflict.
pub(super) fn sides(text: &str) -> [String; 2] {
    let mut sides = [String::with_capacity(text.len()), String::with_capacity(text.len())];
    let mut has = [true, true];
    for (_, line) in lines(text) {
        // A `=======` that is in no conflict is no line of a lock, and left out as well.
        match mark(line) {
            Some(OURS) => has = [true, false],
            Some(BASE) => has = [false, false],
            Some(BETWEEN) => has = [false, true],
            Some(_) => has = [true, true],
            None => {
                for (side, _) in sides.iter_mut().zip(has).filter(|(_, has)| *has) {
                    side.push_str(line);
                }
            }
        }
    }
    sides
}

const OURS: &str = "<<<<<<<";
const BASE: &str = "|||||||";
const BETWEEN: &str = "=======";
const THEIRS: &str = ">>>>>>>";
const MARKS: [&str; 4] = [OURS, BASE, BETWEEN, THEIRS];

fn role(sign: &str) -> &'static str {
    match sign {
        BASE => "what both sides started from",
        BETWEEN => "the other side starts here",
        _ => "it ends here",
    }
}

/// Returns the mark that a line begins with, if it stands for itself.
fn mark(line: &str) -> Option<&'static str> {
    let mark = MARKS.into_iter().find(|mark| line.starts_with(mark))?;
    line[mark.len()..].chars().next().is_none_or(|next| next.is_ascii_whitespace()).then_some(mark)
}
