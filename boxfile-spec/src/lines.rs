//! Offsets to lines and columns.

/// Returns the line and the column of a byte offset, both from 1.
///
/// Lines end with LF or CRLF; columns count characters, a tab as one. An offset behind the end
/// means the end, one inside a character that character.
pub fn location(source: &str, offset: usize) -> (usize, usize) {
    let line = Line::at(source, offset);
    (line.number, line.column(offset))
}

/// A line of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'s> {
    /// From 1.
    pub(crate) number: usize,
    /// The offset of its first byte.
    pub(crate) start: usize,
    /// Its text without the line end.
    pub(crate) text: &'s str,
}

impl<'s> Line<'s> {
    /// Returns the line that holds `offset`.
    pub(crate) fn at(source: &'s str, offset: usize) -> Self {
        let before = &source[..source.floor_char_boundary(offset)];
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let rest = &source[start..];
        let text = rest.split_once('\n').map_or(rest, |(line, _)| line);
        Self {
            number: before.matches('\n').count() + 1,
            start,
            text: text.strip_suffix('\r').unwrap_or(text),
        }
    }

    /// Returns the column of an offset, from 1; of one behind the line, the column behind its end.
    pub(crate) fn column(&self, offset: usize) -> usize {
        let within = self.text.floor_char_boundary(offset.saturating_sub(self.start));
        self.text[..within].chars().count() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_lines_and_characters() {
        let source = "ab\r\n\tжж x\n\nlast";
        for (offset, place) in [
            (0, (1, 1)),
            (1, (1, 2)),
            (3, (1, 3)),
            (4, (2, 1)),
            (5, (2, 2)),
            (6, (2, 2)),
            (7, (2, 3)),
            (10, (2, 5)),
            (11, (2, 6)),
            (12, (3, 1)),
            (13, (4, 1)),
            (17, (4, 5)),
            (99, (4, 5)),
        ] {
            assert_eq!(location(source, offset), place, "offset {offset}");
        }
    }

    #[test]
    fn the_end_behind_a_final_newline_is_a_line_of_its_own() {
        assert_eq!(location("a\n", 2), (2, 1));
        assert_eq!(location("", 0), (1, 1));
    }
}
