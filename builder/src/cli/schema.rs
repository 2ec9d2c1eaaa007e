//! `boxbuild schema`: the language as a JSON Schema.

use super::failure::Failure;
use super::terminal;

/// Prints the JSON Schema of a Boxfile in TOML, for editors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  boxbuild schema > boxfile.schema.json")]
pub(crate) struct Args {
    /// Print the reference of the language, as Markdown, instead
    #[arg(long)]
    reference: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let text = if args.reference { boxfile_spec::reference() } else { boxfile_spec::json_schema() };
    terminal::result(text.trim_end());
    Ok(())
}
