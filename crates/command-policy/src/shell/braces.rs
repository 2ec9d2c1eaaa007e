//! Brace expansion: `{a,b}` and `{a..c}`.

use super::Unreadable;

/// The unquoted `{`, `,` and `}` of a word, while it is read.
pub(super) const OPEN: char = '\u{e000}';
pub(super) const COMMA: char = '\u{e001}';
pub(super) const CLOSE: char = '\u{e002}';

/// The maximum numbers of letters and of numbers that `{a..c}` is replaced by. More of them, and those that depend on a variable, are
/// a glob that stands for any text.
const MAX_LETTERS: usize = 32;
const MAX_NUMBERS: usize = 16;
/// The maximum number of words of one word.
const MAX_WORDS: usize = 64;
/// The maximum number of bytes of all of them, and of the words on the way.
const MAX_BYTES: usize = 1024 * 1024;

/// Returns the words of a word with braces.
///
/// # Errors
/// There are too many words.
pub(super) fn expand(text: &str) -> Result<Vec<String>, Unreadable> {
    let mut done = Vec::new();
    let mut open = vec![text.to_owned()];
    let mut bytes = 0;
    while let Some(text) = open.pop() {
        bytes += text.len();
        if bytes > MAX_BYTES || open.len() + done.len() >= MAX_WORDS {
            return Err(Unreadable("it expands to too many words"));
        }
        match first(&text) {
            Some(parts) => open.extend(parts.into_iter().rev()),
            None => done.push(plain(&text)),
        }
    }
    Ok(done)
}

/// Returns the word with ordinary braces.
pub(super) fn plain(text: &str) -> String {
    let ordinary = |it| match it {
        OPEN => '{',
        COMMA => ',',
        CLOSE => '}',
        other => other,
    };
    text.chars().map(ordinary).collect()
}

/// Expands the innermost braces with a comma or a sequence that close first. `None` if there are none.
fn first(text: &str) -> Option<Vec<String>> {
    // The start and the commas of each pair of braces that is open.
    let mut pairs: Vec<(usize, Vec<usize>)> = Vec::new();
    for (at, char) in text.char_indices() {
        match char {
            OPEN => pairs.push((at, Vec::new())),
            COMMA => {
                if let Some((_, commas)) = pairs.last_mut() {
                    commas.push(at);
                }
            }
            CLOSE => {
                let Some((start, commas)) = pairs.pop() else {
                    continue;
                };
                if !commas.is_empty() {
                    return Some(parts(text, start, &commas, at));
                }
                if let Some(all) = sequence(&text[start + OPEN.len_utf8()..at]) {
                    let (before, after) = (&text[..start], &text[at + CLOSE.len_utf8()..]);
                    return Some(all.iter().map(|it| format!("{before}{it}{after}")).collect());
                }
            }
            _ => (),
        }
    }
    None
}

fn parts(text: &str, start: usize, commas: &[usize], end: usize) -> Vec<String> {
    let (before, after) = (&text[..start], &text[end + CLOSE.len_utf8()..]);
    let starts = [start].into_iter().chain(commas.iter().copied()).map(|it| it + OPEN.len_utf8());
    let ends = commas.iter().copied().chain([end]);
    starts.zip(ends).map(|(from, to)| format!("{before}{}{after}", &text[from..to])).collect()
}

/// Returns the texts of a sequence such as `a..c` or `1..9..2`, or `*` if they are too many or unknown. `None` if it is none.
fn sequence(text: &str) -> Option<Vec<String>> {
    let parts: Vec<&str> = text.split("..").collect();
    let (from, to, step) = match parts.as_slice() {
        [from, to] => (*from, *to, "1"),
        [from, to, step] => (*from, *to, *step),
        _ => return None,
    };
    let any = || Some(vec!["*".to_owned()]);
    if from.is_empty() || to.is_empty() {
        return None;
    }
    if text.contains('$') {
        return any();
    }
    let step = usize::try_from(step.parse::<i64>().ok()?.unsigned_abs()).ok()?.max(1);
    if let (Some(from), Some(to)) = (letter(from), letter(to)) {
        let all: Option<Vec<_>> = steps(from.into(), to.into(), step, MAX_LETTERS).map(|it| {
            it.filter_map(|it| u32::try_from(it).ok().and_then(char::from_u32))
                .map(String::from)
                .collect()
        });
        return all.or_else(any);
    }
    let number = |it: &str| it.parse::<i64>().ok();
    let (first, last) = (number(from)?, number(to)?);
    // Others have zeros at the beginning.
    let is_plain = first.to_string() == from && last.to_string() == to;
    let numbers = steps(first, last, step, MAX_NUMBERS).filter(|_| is_plain);
    let all: Option<Vec<String>> = numbers.map(|it| it.map(|it| it.to_string()).collect());
    all.or_else(any)
}

/// Returns the letter that is the whole text.
fn letter(text: &str) -> Option<u32> {
    let mut chars = text.chars();
    let first = chars.next().filter(char::is_ascii_alphabetic)?;
    chars.next().is_none().then_some(first.into())
}

/// Returns the numbers from one to another. `None` if they are more than `most`.
fn steps(from: i64, to: i64, step: usize, most: usize) -> Option<impl Iterator<Item = i64>> {
    let (least, greatest) = (from.min(to), from.max(to));
    let distance = usize::try_from(greatest.checked_sub(least)?).ok()?;
    let sign = if from <= to { 1 } else { -1 };
    let count = distance / step + 1;
    let step = i64::try_from(step).ok()?;
    (count <= most).then(|| {
        (0_i64..)
            .take(count)
            .map(move |it| from.saturating_add(it.saturating_mul(step).saturating_mul(sign)))
    })
}
