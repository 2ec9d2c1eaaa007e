//! `binary "PATH"` and `binary "URL" sha256="…"`: the agent's program, where it is not in an image.

use crate::parse::reader::Reader;
use crate::sink::Sink;
use crate::syntax::tree::Node;
use crate::{Binary, Spanned, form, schema, value};

/// Reads where the agent's program is.
pub(super) fn read(node: &Node, sink: &Sink) -> Option<Binary> {
    let mut reader = Reader::new(node, &schema::BINARY, sink);
    let source = reader.arg();
    let sha256 = reader.optional_prop("sha256");
    let remote = source.is_some_and(value::is_url);
    if remote && sha256.is_none() {
        let sha256 = form::prop(reader.syntax(), "sha256", "\"…\"");
        reader.report_missing_as(
            "a binary that is downloaded needs its `sha256`",
            "without `sha256`",
            &format!("add `{sha256}`, of which `sha256sum FILE` prints the 64 digits"),
        );
    }
    let sha256 = reader.read(sha256, "sha256", value::sha256);
    let source = reader.read(source, "binary", |value, name| {
        if remote { value::url(value, name, &["http", "https"]) } else { value::path(value, name) }
    });
    reader.finish();
    let source: Spanned<String> = source?;
    match remote {
        false => Some(Binary::Local { path: source, sha256 }),
        true => Some(Binary::Remote { url: source, sha256: sha256? }),
    }
}
