//! Paragraphs of `Name: value` lines: dpkg's status (deb-control(5)), Python's metadata (the headers
//! of a mail), apk's index (without the space).

/// The lines of a paragraph: each a name and a value.
pub(super) type Paragraph<'t> = Vec<(&'t str, &'t str)>;

/// Splits a text into paragraphs, which have an empty line between them. A line that continues the
/// one before, and one without a colon, is passed over.
pub(super) fn paragraphs(text: &str) -> impl Iterator<Item = Paragraph<'_>> {
    let mut lines = text.lines();
    std::iter::from_fn(move || {
        let mut paragraph = Vec::new();
        for line in lines.by_ref() {
            match line.trim_end() {
                "" if paragraph.is_empty() => {}
                "" => return Some(paragraph),
                line if line.starts_with([' ', '\t']) => {}
                line => paragraph.extend(line.split_once(':').map(|(name, it)| (name, it.trim()))),
            }
        }
        (!paragraph.is_empty()).then_some(paragraph)
    })
}

/// Returns the first value of a name, whose case means nothing.
pub(super) fn value<'t>(paragraph: &Paragraph<'t>, name: &str) -> Option<&'t str> {
    paragraph.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_have_their_first_lines() {
        let text = "\n\nA: 1\n continued\nb:2:3\nno colon\nA: second\n\n\n  \nC:\n";
        let found: Vec<_> = paragraphs(text).collect();
        assert_eq!(found, [vec![("A", "1"), ("b", "2:3"), ("A", "second")], vec![("C", "")]]);
        assert_eq!(value(&found[0], "a"), Some("1"));
        assert_eq!(value(&found[0], "c"), None);
        assert_eq!(paragraphs("").count(), 0);
    }
}
