//! Options that a box requires and this command line lacks. All of them are reported at once, with the words to type.

use box_contract::ErrorCode;
use cli_common::Problem;
use safe_text::shown;

use super::error::Failure;

/// One missing option. Its texts may contain a box's strings and paths.
#[derive(Debug)]
pub(super) struct Lack {
    pub(super) message: String,
    /// The help for this option alone.
    pub(super) help: String,
    /// The words that add the option to the command line, for example `--secret KEY=env:KEY`.
    pub(super) words: String,
}

impl Lack {
    /// Returns the error of all missing options, or `Ok` if the list is empty.
    pub(super) fn check(lacks: &[Self]) -> Result<(), Failure> {
        if lacks.is_empty() {
            return Ok(());
        }
        Err(Failure::of(Self::problems(lacks)))
    }

    /// Returns the missing options as errors. The last error has the words for all of them.
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
