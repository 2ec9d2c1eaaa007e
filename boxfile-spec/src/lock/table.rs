//! Typed extraction: the fields of a table of the lock, each with its place.

use std::ops::Range;
use std::str::FromStr;

use toml::de::{DeArray, DeTable, DeValue};

use super::parts::Part;
use super::read::MOST_ERRORS;
use crate::diagnostic::quote;
use crate::sink::Sink;
use crate::suggest::nearest;
use crate::{Diagnostic, Span};

/// How to get rid of whatever is wrong with a lock.
pub(super) const ANEW: &str = "run `boxbuild lock` to write it anew";

/// A table, and what to say about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table<'t> {
    pub(super) fields: &'t DeTable<'t>,
    pub(super) part: Part<'t>,
    /// The table's name in messages: `the lock`, `the entry`.
    pub(super) owner: &'t str,
    /// What is marked where a field is missing.
    pub(super) place: Span,
}

impl<'t> Table<'t> {
    /// Reports each field that is not `known`; tells whether there was none.
    pub(super) fn report_unknown(&self, known: &[&str], sink: &Sink) -> bool {
        let mut fit = true;
        let unknown = self.fields.keys().filter(|name| !known.contains(&&**name.get_ref()));
        for name in unknown.take(MOST_ERRORS) {
            sink.report(self.unknown_field(name.get_ref(), &name.span(), known));
            fit = false;
        }
        fit
    }

    fn unknown_field(&self, name: &str, place: &Range<usize>, known: &[&str]) -> Diagnostic {
        let message = format!("{} has an unknown field {}", self.owner, quote(name));
        let help = match nearest(name, known) {
            Some(near) => format!("did you mean `{near}`? Or {ANEW}"),
            None => format!("remove it, or {ANEW}"),
        };
        Diagnostic::new(message, self.part.span(place), "no such field").with_help(help)
    }

    /// Returns a field that must be there.
    pub(super) fn required(&self, name: &'static str) -> Result<Field<'t>, Diagnostic> {
        self.optional(name).ok_or_else(|| {
            let message = format!("{} has no `{name}`", self.owner);
            Diagnostic::new(message, self.place, format!("`{name}` is missing")).with_help(ANEW)
        })
    }

    /// Returns a field that may be absent.
    pub(super) fn optional(&self, name: &'static str) -> Option<Field<'t>> {
        let value = self.fields.get(name)?;
        let span = self.part.span(&value.span());
        Some(Field { name, value: value.get_ref(), part: self.part, span })
    }
}

/// A field's value and where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'t> {
    name: &'static str,
    value: &'t DeValue<'t>,
    part: Part<'t>,
    pub(super) span: Span,
}

impl<'t> Field<'t> {
    /// Reads a text.
    pub(super) fn text(&self) -> Result<&'t str, Diagnostic> {
        self.value.as_str().ok_or_else(|| self.mismatch("a text"))
    }

    /// Reads a text that stands for a `noun`; `form` says what this looks like.
    pub(super) fn parsed<T: FromStr>(&self, noun: &str, form: &str) -> Result<T, Diagnostic> {
        let text = self.text()?;
        text.parse().map_err(|_| {
            let message = format!("{} is not a {noun}", quote(text));
            Diagnostic::new(message, self.span, format!("must be {form}")).with_help(ANEW)
        })
    }

    /// Reads a whole number that is not negative and fits the type.
    pub(super) fn number<T: TryFrom<u64>>(&self) -> Result<T, Diagnostic> {
        let integer = self.value.as_integer().ok_or_else(|| self.mismatch("a whole number"))?;
        let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
            let message = format!("`{}` is out of range", self.name);
            let label = format!("must be from 0 up, with at most {} bits", size_of::<T>() * 8);
            Diagnostic::new(message, self.span, label).with_help(ANEW)
        })
    }

    /// Reads an array into its elements, which messages call by the name given here.
    pub(super) fn elements(
        &self,
        name: &'static str,
    ) -> Result<impl Iterator<Item = Self>, Diagnostic> {
        let array: &'t DeArray<'t> =
            self.value.as_array().ok_or_else(|| self.mismatch("a list"))?;
        let part = self.part;
        Ok(array.iter().map(move |element| {
            let span = part.span(&element.span());
            Self { name, value: element.get_ref(), part, span }
        }))
    }

    /// Returns the table of an array that holds nothing else, and its place: its header's.
    pub(super) fn only_table(&self) -> Option<(&'t DeTable<'t>, Span)> {
        let [element] = &self.value.as_array()?[..] else { return None };
        Some((element.get_ref().as_table()?, self.part.span(&element.span())))
    }

    fn mismatch(&self, wanted: &str) -> Diagnostic {
        let message = format!("`{}` takes {wanted}, not {}", self.name, describe(self.value));
        Diagnostic::new(message, self.span, format!("expected {wanted}")).with_help(ANEW)
    }
}

/// Names a value for a message.
fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text {}", quote(text)),
        DeValue::Integer(number) => format!("the number {}", quote(&number.to_string())),
        DeValue::Float(number) => format!("the number {}", quote(&number.to_string())),
        DeValue::Boolean(truth) => format!("`{truth}`"),
        DeValue::Datetime(_) => "a date or time".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
