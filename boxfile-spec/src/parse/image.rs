//! `image "oci:…"`: where a component's files come from.

use crate::diagnostic::quote;
use crate::parse::reader::Reader;
use crate::sink::Sink;
use crate::syntax::{Node, Value};
use crate::{Diagnostic, ImageRef, Spanned, rules, value};

const FORM: &str = "write `image \"oci:PATH\"` or `image \"oci:PATH:TAG\"`, where PATH is an OCI image \
     layout directory";

/// Reads the reference to an image.
pub(super) fn read(node: &Node, sink: &Sink) -> Option<Spanned<ImageRef>> {
    let mut reader = Reader::new(node, "`image \"oci:images/agent\"`", sink);
    let image = reader.arg("a reference to an image");
    let image = reader.read(image, "image", reference);
    reader.finish();
    image
}

fn reference(value: &Value, name: &str) -> Result<Spanned<ImageRef>, Diagnostic> {
    let text = value::filled_text(value, name)?;
    let error =
        |message: String, label: &str| Diagnostic::new(message, value.span, label).with_help(FORM);
    let Some(place) = text.strip_prefix("oci:") else {
        let message = format!("{} is not an image that can be read", quote(text));
        return Err(error(message, "only `oci:` is supported"));
    };
    // The first colon: a tag holds none, so a path with colons would be read as a wrong one.
    let (path, tag) = place.split_once(':').map_or((place, None), |(path, tag)| (path, Some(tag)));
    if path.is_empty() {
        return Err(error(format!("{} names no directory", quote(text)), "nothing behind `oci:`"));
    }
    if let Some(tag) = tag.filter(|tag| !rules::is_tag(tag)) {
        return Err(error(format!("{} is not a tag", quote(tag)), "what is behind the colon"));
    }
    let image = ImageRef::OciLayout { path: path.to_owned(), tag: tag.map(str::to_owned) };
    Ok(Spanned { value: image, span: value.span })
}
