//! One entry of a lock's text, with the places that errors are about.

use toml::de::DeTable;

use super::parts::Part;
use super::read::{MOST_ERRORS, not_a_header};
use super::table::{ANEW, Field, Table};
use super::{Digest, Entry, Kind, digest};
use crate::diagnostic::{invisible, quote};
use crate::sink::Sink;
use crate::{Diagnostic, Platform, Span, Spanned};

const FIELDS: [&str; 8] =
    ["name", "kind", "source", "platform", "digest", "size", "layers", "check"];

/// An entry as it is written.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) entry: Entry,
    pub(super) name: Span,
    /// Where the platform is named, if it is.
    pub(super) platform: Option<Span>,
    pub(super) check: Spanned<String>,
}

/// Reads an entry from the fields of its part; nothing if it has errors, which are reported.
pub(super) fn read(root: &DeTable<'_>, part: Part<'_>, sink: &Sink) -> Option<Found> {
    let document = Table { fields: root, part, owner: "the lock", place: part.span(&(0..2)) };
    let alone = document.report_unknown(&["entry"], sink);
    let table = document.optional("entry").and_then(|field| field.only_table());
    let Some((fields, header)) = table else {
        // Something else stands in the entry's place; where that is unknown, it is reported.
        if alone {
            sink.report(not_a_header(document.place));
        }
        return None;
    };
    let owner = match fields.get("name").and_then(|name| name.get_ref().as_str()) {
        Some(name) => format!("the entry {}", quote(name)),
        None => "the entry".to_owned(),
    };
    let reader = Reader { table: Table { fields, part, owner: &owner, place: header }, sink };
    let known = reader.table.report_unknown(&FIELDS, sink);
    reader.found().filter(|_| alone && known)
}

/// Reads the fields of one entry; each error goes to the sink.
struct Reader<'t> {
    table: Table<'t>,
    sink: &'t Sink,
}

impl<'t> Reader<'t> {
    /// Reads every field before it gives up on any, so that all errors are reported.
    fn found(&self) -> Option<Found> {
        let name = self.plain_text("name");
        let kind = self.required("kind").and_then(|field| self.kind(&field));
        let source = self.plain_text("source");
        let platform = self.table.optional("platform");
        let on = platform.map(|field| self.platform(&field));
        let digest = self.required("digest").and_then(|field| self.digest(&field));
        let size = self.required("size").and_then(|field| self.sink.check(field.number()));
        let layers = self.layers();
        let check = self.text("check");
        let name = name?;
        let entry = Entry {
            name: name.value,
            kind: kind?,
            source: source?.value,
            platform: on.map_or(Some(None), |platform| platform.map(Some))?,
            digest: digest?,
            size: size?,
            layers: layers?,
        };
        let platform = platform.map(|field| field.span);
        Some(Found { entry, name: name.span, platform, check: check? })
    }

    fn required(&self, name: &'static str) -> Option<Field<'t>> {
        self.sink.check(self.table.required(name))
    }

    fn text(&self, name: &'static str) -> Option<Spanned<String>> {
        let field = self.required(name)?;
        let text = self.sink.check(field.text())?;
        Some(Spanned { value: text.to_owned(), span: field.span })
    }

    /// Reads a text that is going to be printed, and so has to be what it looks like.
    fn plain_text(&self, name: &'static str) -> Option<Spanned<String>> {
        let text = self.text(name)?;
        let Some(c) = invisible(&text.value) else { return Some(text) };
        let message = format!("`{name}` contains the invisible character U+{:04X}", u32::from(c));
        self.sink
            .report(Diagnostic::new(message, text.span, "not what it looks like").with_help(ANEW));
        None
    }

    fn kind(&self, field: &Field<'_>) -> Option<Kind> {
        let form = format!("one of {}", Kind::ALL.map(Kind::as_str).join(", "));
        self.sink.check(field.parsed("kind", &form))
    }

    fn platform(&self, field: &Field<'_>) -> Option<Platform> {
        let form = Platform::ALL.map(Platform::as_str).join(" or ");
        self.sink.check(field.parsed("platform", &form))
    }

    fn digest(&self, field: &Field<'_>) -> Option<Digest> {
        self.sink.check(field.parsed("digest", digest::FORM))
    }

    fn layers(&self) -> Option<Vec<Digest>> {
        let Some(field) = self.table.optional("layers") else { return Some(Vec::new()) };
        let layers = self.sink.check(field.elements("layers[]"))?;
        let (mut digests, mut broken) = (Vec::new(), 0);
        for layer in layers {
            match self.digest(&layer) {
                Some(digest) => digests.push(digest),
                None => broken += 1,
            }
            if broken == MOST_ERRORS {
                break;
            }
        }
        (broken == 0).then_some(digests)
    }
}
