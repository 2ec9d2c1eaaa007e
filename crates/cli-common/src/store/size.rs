//! The size of the store: the command that reduces it, and the check after a command that adds to it.

use std::time::Duration;

use box_cache::Store;
use box_cache::collect::{Report, Rules};
use box_prune::{Cap, VARIABLE};
use safe_text::{shown_json, with_causes};

use super::{CommandFault, Program, StoreOption};

/// The arguments of `boxbuild gc` and `boxlaunch prune`.
#[derive(Debug, clap::Args)]
pub struct PruneArgs {
    /// The maximum size of the store, such as 50G or 512MiB; 0 removes everything that need not be kept, and none sets no
    /// maximum [default: $BOXBUILD_STORE_MAX, else 20G or a tenth of the disk]
    #[arg(long, value_name = "SIZE", value_parser = Cap::parse)]
    max_size: Option<Cap>,
    /// Also remove what was not used for this long: 90s, 10m, 12h or 7d. A time below one hour also removes boxes that were
    /// built or used within the last hour
    #[arg(long, value_name = "TIME", value_parser = box_prune::age)]
    older_than: Option<Duration>,
    /// Print what would be removed, but remove nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    store: StoreOption,
    /// Print one JSON object: what is removed, and what is kept and why
    #[arg(long)]
    pub json: bool,
}

impl PruneArgs {
    /// Returns the examples at the end of this command's help.
    pub fn examples(command: &str) -> String {
        let examples = [
            ("", "until the store is within its maximum size"),
            (" --max-size 5G", "until the store has at most 5 GiB"),
            (" --older-than 7d", "also everything that was not used for a week"),
            (" --dry-run", "print what would be removed, and what is kept and why"),
        ];
        let line = |(arguments, purpose)| {
            let line = format!("{command}{arguments}");
            format!("\n  {line:<width$}{purpose}", width = command.len() + 20)
        };
        "Examples:".to_owned() + &examples.map(line).concat()
    }

    /// Collects garbage in the store. Returns the result to print, without a final newline.
    ///
    /// # Errors
    /// [`CommandFault`] if the command line, the environment or the store is wrong.
    pub fn run(&self, program: &Program) -> Result<Option<String>, CommandFault> {
        let root = self.store.root(program)?;
        let cap = self.max_size.map_or_else(|| cap(program), Ok)?;
        let rules = Rules {
            cap: cap.bytes(&root),
            older_than: self.older_than,
            dry_run: self.dry_run,
            ..Rules::default()
        };
        let report = box_prune::collect(&root, &rules, program.note)?;
        if !self.json {
            warn(program, box_prune::over(&report, &root, false));
        }
        Ok(result(program, &report, self.dry_run, self.json))
    }
}

/// Formats the report of a collection for standard output, without a final newline.
pub fn result(program: &Program, report: &Report, dry_run: bool, as_json: bool) -> Option<String> {
    let text = if as_json {
        shown_json(&box_prune::json(report, dry_run).to_string())
    } else if (program.is_quiet)() {
        let digests = report.removed.iter().map(|it| it.digest.to_string());
        digests.collect::<Vec<_>>().join("\n")
    } else {
        box_prune::lines(report, dry_run).join("\n")
    };
    (!text.is_empty()).then_some(text)
}

/// Returns the size limit of the store from the environment.
///
/// # Errors
/// [`CommandFault::Usage`] if the variable is malformed.
pub fn cap(program: &Program) -> Result<Cap, CommandFault> {
    let cap = Cap::from_variable((program.variable)(VARIABLE));
    let help = Some(format!("write `{VARIABLE}=50G`").into());
    cap.map_err(|message| CommandFault::Usage { message, help })
}

/// Collects garbage in the store if a command has made it too large. Prints the freed space unless `is_silent`. Returns
/// a warning if the store stays too large or cannot be collected, which is no failure of the command.
pub fn after_adding(program: &Program, store: &Store, cap: Cap, is_silent: bool) -> Option<String> {
    match box_prune::after_adding(store.root(), store.added(), cap) {
        Ok(None) => None,
        Ok(Some(report)) => {
            if !is_silent && report.before > report.after {
                (program.note)(&box_prune::size_line(&report, false));
            }
            box_prune::over(&report, store.root(), true)
        }
        Err(error) => {
            let reason = with_causes(&error);
            Some(format!("nothing was removed from the store, which is too large: {reason}"))
        }
    }
}

/// Prints a warning, if there is one.
fn warn(program: &Program, warning: Option<String>) {
    warning.iter().for_each(|text| (program.note)(&format!("warning: {text}")));
}

/// Like [`after_adding`], but prints the warning, for a command without other warnings.
pub fn after_adding_alone(program: &Program, store: &Store, cap: Cap, is_silent: bool) {
    warn(program, after_adding(program, store, cap, is_silent).filter(|_| !is_silent));
}
