//! Derives a budget from a measurement and writes it into a Boxfile's text.

mod kdl;
mod toml;

use std::cmp::Reverse;
use std::ops::Range;

use box_contract::{Budget, Phase, Phases};
use diagnostics::{Source, Syntax};

/// The name of the Boxfile's declaration that has the budget.
const NODE: &str = "budget";

/// Adds a margin, in percent of each phase, to the medians. Limits are whole milliseconds, rounded up. For example, a
/// median of 10.2 ms with a margin of 20 percent gives a limit of 13 ms.
pub fn with_margin(medians: &Phases, percent: f64) -> Budget {
    let limit = |phase| Some(whole_ms(medians.of(phase) * (1.0 + percent / 100.0)));
    Budget {
        vmm: limit(Phase::Vmm),
        jail: limit(Phase::Jail),
        kernel: limit(Phase::Kernel),
        init: limit(Phase::Init),
        ready: limit(Phase::Ready),
        total: limit(Phase::Total),
    }
}

/// Rounds up to a valid limit, which is never 0.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time is positive")]
fn whole_ms(ms: f64) -> u64 {
    (ms.ceil() as u64).max(1)
}

/// Returns the text of a Boxfile with another budget. Every other byte stays as it was. Returns `None` if the text
/// has no unique position for the budget: it is malformed, or declares the budget in another form than
/// docs/boxfile.md shows. Only the file's budget is written, not the budget of a profile.
pub fn rewritten(source: &Source, budget: &Budget) -> Option<String> {
    match source.syntax {
        Syntax::Kdl => kdl::rewritten(&source.text, budget),
        Syntax::Toml => toml::rewritten(&source.text, budget),
    }
}

/// A limit of a phase, in milliseconds.
struct Limit(Phase, u64);

fn limits(budget: &Budget) -> impl Iterator<Item = Limit> {
    Phase::ALL.into_iter().filter_map(|phase| Some(Limit(phase, budget.limit(phase)?)))
}

fn property(Limit(phase, ms): &Limit, syntax: Syntax) -> String {
    match syntax {
        Syntax::Kdl => format!("{}=\"{ms}ms\"", phase.name()),
        Syntax::Toml => format!("{} = \"{ms}ms\"", phase.name()),
    }
}

/// A range of a text, and its replacement.
struct Edit {
    place: Range<usize>,
    new: String,
}

/// Applies edits that do not overlap.
fn edited(text: &str, mut edits: Vec<Edit>) -> String {
    // From the last to the first, so that the ranges of the remaining edits stay valid.
    edits.sort_by_key(|it| Reverse((it.place.start, it.place.end)));
    edits.into_iter().fold(text.to_owned(), |mut text, Edit { place, new }| {
        text.replace_range(place, &new);
        text
    })
}

/// Returns the text with a paragraph appended.
fn appended(text: &str, paragraph: &str) -> String {
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{end}{paragraph}\n")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(super) const BUDGET: Budget = Budget {
        vmm: Some(56),
        jail: None,
        kernel: Some(309),
        init: Some(8),
        ready: Some(12),
        total: Some(383),
    };

    #[test]
    fn a_margin_is_rounded_up_to_whole_milliseconds() {
        let medians =
            Phases { vmm: 46.3, jail: 0.0, kernel: 257.5, init: 0.0, ready: 10.0, total: 319.0 };
        let budget = with_margin(&medians, 20.0);
        assert_eq!((budget.vmm, budget.kernel, budget.init), (Some(56), Some(309), Some(1)));
        assert_eq!((budget.ready, budget.total), (Some(12), Some(383)));
        assert_eq!(with_margin(&medians, 0.0).total, Some(319));
    }

    #[test]
    fn what_is_written_is_what_the_language_reads() {
        let boxes = [
            "box \"x\"\nagent { image \"oci:i\"; }\nbudget total=\"9s\" // why\n",
            "box = \"x\"\nagent = { image = \"oci:i\" }\nbudget = { total = \"9s\" } # why\n",
            "box = \"x\"\nagent = { image = \"oci:i\" }\n[budget]\ntotal = \"9s\" # why\n",
            "box = \"x\"\n[agent]\nimage = \"oci:i\"",
        ];
        for (text, name) in boxes.into_iter().zip(["Boxfile", "a.toml", "a.toml", "a.toml"]) {
            let text = rewritten(&Source::new(name, text), &BUDGET).unwrap();
            let source = Source::new(name, &*text);
            let read = boxfile_spec::read(source, None, |_| Err(String::new())).into_result();
            assert_eq!(read.unwrap().budget, BUDGET, "{text}");
        }
    }
}
