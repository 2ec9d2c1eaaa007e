//! `entrypoint` and `args`: the command of a component.

use box_contract::rules::VSOCK_SCHEME;
use safe_text::{quote, words};

use crate::errors::DECLARATION_ERRORS;
use crate::parse::{Children, Reader};
use crate::schema;
use crate::syntax::tree::{Data, Value};
use diagnostics::{Diagnostic, Spanned, with_texts};

/// A text of more words, none of which is an option, is probably a sentence and not a command line.
const MAX_WORDS: usize = 4;

/// Reads the program, which is required, and its arguments.
pub(in crate::parse) fn entrypoint(reader: &mut Reader<'_>) -> Option<Spanned<Vec<String>>> {
    let program = reader.first::<Spanned<String>>();
    let args = reader.rest();
    let Spanned { value, span } = program?;
    Some(Spanned { value: [vec![value], args?].concat(), span })
}

/// Reads the arguments that follow an entrypoint. Warns about a single text that looks like several arguments, unless
/// it is the value of an option, as after `"/bin/sh" "-c"`.
pub(super) fn args(
    children: &Children<'_>,
    entrypoint: Option<&Spanned<Vec<String>>>,
) -> Option<Vec<String>> {
    let after_option =
        entrypoint.and_then(|it| it.value.last()).is_some_and(|it| it.starts_with('-'));
    let node = children.one(&schema::ARGS)?;
    if let ([only], false) = (node.args.as_slice(), after_option) {
        several(only).into_iter().for_each(|warning| children.sink().report(warning));
    }
    Reader::sole(children, &schema::ARGS, Reader::rest)
}

/// Reports each word of the command with an address of AF_VSOCK.
pub(super) fn refuse_vsock(children: &Children<'_>) {
    let declared = [&schema::ENTRYPOINT, &schema::ARGS].into_iter();
    let words = declared.filter_map(|it| children.one(it)).flat_map(|node| &node.args);
    for word in words {
        if let Some(text) = word.as_text().filter(|text| text.contains(VSOCK_SCHEME)) {
            children.sink().report(DECLARATION_ERRORS.about("vsock", &quote(text), word.span));
        }
    }
}

/// Returns the warning about a text that looks like a command line.
fn several(only: &Value) -> Option<Diagnostic> {
    let Data::Text(text) = &only.data else { return None };
    let words = words(text)?;
    let has_option = words.iter().any(|word| word.starts_with('-'));
    let is_sentence = text.starts_with(char::is_uppercase)
        || text.ends_with(['.', '!', '?'])
        || words.len() > MAX_WORDS;
    if is_sentence && !has_option {
        return None;
    }
    let written = with_texts(only.syntax, schema::ARGS.name, &words);
    let warning = DECLARATION_ERRORS.at("one-argument", only.span).into_warning();
    Some(warning.with_help(format!("for {} arguments, write `{written}`", words.len())))
}
