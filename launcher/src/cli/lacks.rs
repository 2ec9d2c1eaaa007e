//! The things that a box declares, that only a command line gives, and that this one does not: they are said at once, with
//! the words to type.

use box_contract::ErrorCode;
use cli_common::Problem;
use safe_text::shown;

use super::error::CommandError;

/// One thing that a command line lacks. Its texts may have words of a box, and paths.
#[derive(Debug)]
pub(super) struct Lack {
    pub(super) message: String,
    /// The advice about this one alone.
    pub(super) help: String,
    /// The options that would give it.
    pub(super) words: String,
}

impl Lack {
    /// Returns the error of all of them; none where nothing is lacking.
    pub(super) fn check(lacks: &[Self]) -> Result<(), CommandError> {
        if lacks.is_empty() {
            return Ok(());
        }
        Err(CommandError::of(Self::problems(lacks)))
    }

    /// Returns them as errors, the last one with the words for all of them.
    pub(super) fn problems(lacks: &[Self]) -> impl Iterator<Item = Problem> {
        let words: Vec<_> = lacks.iter().map(|it| it.words.as_str()).collect();
        let all = format!(
            "\nall that is missing: `{}`; `boxlaunch inspect BOX` lists all that the box wants",
            shown(&words.join(" "))
        );
        lacks.iter().enumerate().map(move |(at, it)| {
            let is_last = at > 0 && at + 1 == lacks.len();
            let help = shown(&it.help) + if is_last { &all } else { "" };
            Problem::new((ErrorCode::Usage, help), shown(&it.message))
        })
    }
}
