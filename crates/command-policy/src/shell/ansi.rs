//! The escapes of `$'…'`.

/// Returns the character of an escape in `chars`, whose first character is the one after the backslash, and the number of characters
/// of the escape. `None` if it is no escape.
pub(super) fn escape(chars: &[char]) -> Option<(char, usize)> {
    let simple = match *chars.first()? {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'e' | 'E' => '\u{1b}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        first @ ('\\' | '\'' | '"' | '?') => first,
        'x' if chars.get(1) == Some(&'{') => return braced(&chars[2..]).map(|it| (it.0, it.1 + 2)),
        'c' => return chars.get(1).map(|it| (control(*it), 2)),
        'x' => return number(&chars[1..], 16, 2).map(|(it, used)| (it, used + 1)),
        'u' => return number(&chars[1..], 16, 4).map(|(it, used)| (it, used + 1)),
        'U' => return number(&chars[1..], 16, 8).map(|(it, used)| (it, used + 1)),
        '0'..='7' => return number(chars, 8, 3).map(|(it, used)| (byte(it), used)),
        _ => return None,
    };
    Some((simple, 1))
}

/// Reads up to `most` digits as the number of a character.
fn number(chars: &[char], radix: u32, most: usize) -> Option<(char, usize)> {
    let digits: Vec<u32> = chars.iter().take(most).map_while(|it| it.to_digit(radix)).collect();
    let value = digits.iter().fold(0_u32, |sum, it| sum.wrapping_mul(radix).wrapping_add(*it));
    let found = char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER);
    (!digits.is_empty()).then_some((found, digits.len()))
}

/// Returns the character of the lowest byte of a character's number.
fn byte(char: char) -> char {
    char::from_u32(u32::from(char) & 0xff).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Returns the control character of a letter.
fn control(char: char) -> char {
    char::from_u32(u32::from(char) & 0x1f).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Reads what follows `\x{`: any number of digits, and a `}` if it is next.
fn braced(chars: &[char]) -> Option<(char, usize)> {
    let digits = chars.iter().take_while(|it| it.is_ascii_hexdigit()).count();
    let last = &chars[digits.saturating_sub(2)..digits];
    let (char, _) = number(last, 16, 2)?;
    Some((char, digits + usize::from(chars.get(digits) == Some(&'}'))))
}
