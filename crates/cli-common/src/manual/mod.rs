//! Manual pages and shell completions.
//!
//! A page has the sections of [man-pages(7)](https://man7.org/linux/man-pages/man7/man-pages.7.html):
//! NAME, SYNOPSIS, DESCRIPTION, OPTIONS, COMMANDS, EXAMPLES, NOTES, ENVIRONMENT, FILES, EXIT STATUS, SEE
//! ALSO. The examples and notes come from the help that follows a command's options.
mod commands;
mod help;

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use host_fs::publish::FileDraft;

pub use commands::{CompletionsArgs, ManArgs};
use help::Help;

/// The sections of a program's manual that its clap definition does not provide.
#[derive(Debug, Clone, Copy)]
pub struct Manual {
    /// The variables that the program reads, with their purpose.
    pub environment: &'static [(&'static str, &'static str)],
    /// The files that the program reads and writes.
    pub files: &'static [(&'static str, &'static str)],
    /// The exit codes and their meanings.
    pub exit_codes: &'static [(u8, &'static str)],
    /// Other pages, such as `boxlaunch(1)`.
    pub see_also: &'static [&'static str],
}

impl Manual {
    /// Renders the page of a program, or of the command with these words, in roff.
    ///
    /// # Errors
    /// The program has no such command.
    fn page(&self, program: Command, words: &[String]) -> io::Result<Vec<u8>> {
        let program = documented(program);
        let mut command = &program;
        for word in words {
            let found = command.find_subcommand(word);
            command = found.ok_or_else(|| io::Error::other("there is no such command"))?;
        }
        self.render(command, &program)
    }

    /// Writes the pages of a program and of its commands into `directory`, which is created if it is missing:
    /// `PROGRAM.1`, `PROGRAM-COMMAND.1`, `PROGRAM-COMMAND-SUBCOMMAND.1`. A page replaces an existing file, symbolic link or pipe of its name, without
    /// following or opening it.
    ///
    /// # Errors
    /// An I/O error.
    fn write_pages(&self, program: Command, directory: &Path) -> io::Result<()> {
        let program = documented(program);
        fs::create_dir_all(directory)?;
        let mut left = vec![&program];
        while let Some(command) = left.pop() {
            let is_shown = |it: &&Command| !it.is_hide_set() && it.get_name() != "help";
            left.extend(command.get_subcommands().filter(is_shown));
            let name = Man::new(command.clone()).get_filename();
            let page = directory.join(name);
            let draft = FileDraft::beside(&page, 0o644)?;
            draft.file().write_all(&self.render(command, &program)?)?;
            draft.finish_over(&page)?;
        }
        Ok(())
    }

    fn render(&self, command: &Command, program: &Command) -> io::Result<Vec<u8>> {
        let is_program = command.get_name() == program.get_name();
        let version = program.get_version().unwrap_or_default();
        // An empty date would be dropped, and the version would take its position.
        let man = Man::new(command.clone())
            .date(" ")
            .source(format!("{} {version}", program.get_name()))
            .manual(format!("{} manual", program.get_name()));
        let mut page = Vec::new();
        man.render_title(&mut page)?;
        man.render_name_section(&mut page)?;
        synopsis(command).to_writer(&mut page)?;
        man.render_description_section(&mut page)?;
        man.render_options_section(&mut page)?;
        if command.has_subcommands() {
            man.render_subcommands_section(&mut page)?;
        }
        let mut roff = Roff::new();
        let help = Help::of(command);
        literal(&mut roff, "EXAMPLES", &help.examples);
        literal(&mut roff, "NOTES", &help.notes);
        if is_program {
            terms(&mut roff, "ENVIRONMENT", self.environment);
            terms(&mut roff, "FILES", self.files);
        }
        let codes: Vec<_> =
            self.exit_codes.iter().map(|(code, text)| (code.to_string(), *text)).collect();
        terms(&mut roff, "EXIT STATUS", &codes);
        let own = (!is_program).then(|| format!("{}(1)", program.get_name()));
        let pages = own.iter().map(String::as_str).chain(self.see_also.iter().copied());
        roff.control("SH", ["SEE ALSO"]);
        roff.text([roman(pages.collect::<Vec<_>>().join(", "))]);
        roff.to_writer(&mut page)?;
        Ok(page)
    }
}

/// Returns a program with the commands that have pages: all except `help`.
fn documented(program: Command) -> Command {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    program
}

/// Renders the synopsis from the usage line of `--help`, because clap_mangen writes `[-C  ]` for an
/// option that takes a value.
fn synopsis(command: &Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let lines = usage.trim_start_matches("Usage:").lines().map(|line| line.trim().to_owned());
    let mut roff = Roff::new();
    literal(&mut roff, "SYNOPSIS", &lines.collect::<Vec<_>>());
    roff
}

/// Adds a section whose lines are kept as they are (`.nf` of roff).
fn literal(roff: &mut Roff, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    roff.control("SH", [title]);
    roff.control("nf", []);
    for line in lines {
        roff.text([roman(line.as_str())]);
    }
    roff.control("fi", []);
}

/// Adds a section of terms with their meanings.
fn terms<T: AsRef<str>>(roff: &mut Roff, title: &str, terms: &[(T, &str)]) {
    if terms.is_empty() {
        return;
    }
    roff.control("SH", [title]);
    for (term, meaning) in terms {
        roff.control("TP", []);
        roff.text([bold(term.as_ref())]);
        roff.text([roman(*meaning)]);
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Args};

    use box_contract::exit;

    use super::*;

    const MANUAL: Manual = Manual {
        exit_codes: exit::ALL,
        environment: &[("TOOL_DIR", "Where it works.")],
        files: &[("~/.tool", "What it knows.")],
        see_also: &["other(1)"],
    };

    fn tool() -> Command {
        let command = Command::new("run")
            .about("Runs it")
            .arg(Arg::new("fast").long("fast").help("Be fast"))
            .after_help("Examples:\n  tool run --fast      at once\n  .hidden 'quoted'\n\nA note.");
        Command::new("tool").about("Does it").subcommand(command)
    }

    /// Parses the arguments of a command.
    fn parsed<T: Args>(args: &[&str]) -> T {
        let command = T::augment_args(Command::new("tool").no_binary_name(true));
        T::from_arg_matches(&command.get_matches_from(args)).unwrap()
    }

    #[test]
    fn examples_are_not_filled_and_every_section_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let to = directory.path().join("man1");
        let args: ManArgs = parsed(&["--output", to.to_str().unwrap()]);
        assert_eq!(args.page(&MANUAL, tool()).unwrap(), None);
        let page = fs::read_to_string(to.join("tool-run.1")).unwrap();
        let examples = page.split(".SH EXAMPLES\n").nth(1).unwrap();
        let shown = ".nf\ntool run \\-\\-fast      at once\n\\&.hidden \\*(Aqquoted\\*(Aq\n.fi\n";
        assert!(examples.starts_with(shown), "{examples}");
        for section in ["NOTES\n.nf\nA note.", "\"EXIT STATUS\"", "\"SEE ALSO\"\ntool(1), other(1)"]
        {
            assert!(page.contains(&format!(".SH {section}")), "{section}: {page}");
        }
        let page = fs::read_to_string(to.join("tool.1")).unwrap();
        let printed = parsed::<ManArgs>(&[]).page(&MANUAL, tool()).unwrap().unwrap();
        assert_eq!(printed, page);
        for text in ["\\fBTOOL_DIR\\fR", "\\fB~/.tool\\fR", "tool\\-run(1)"] {
            assert!(page.contains(text), "{text}: {page}");
        }
    }

    #[test]
    fn a_command_and_its_subcommands_have_pages() {
        let volume = || Command::new("volume").subcommand(Command::new("create").about("Makes it"));
        let tool = || tool().subcommand(volume());
        let page = |words: &[&str]| {
            let args: ManArgs = parsed(words);
            args.page(&MANUAL, tool()).map_err(|it| it.to_string()).map(Option::unwrap)
        };
        let one = page(&["volume", "create"]).unwrap();
        assert!(one.contains(".TH tool-volume-create 1"), "{one}");
        assert_eq!(page(&["volume", "make"]).unwrap_err(), "cannot make the page of volume make");
        let to = tempfile::tempdir().unwrap();
        let args: ManArgs = parsed(&["--output", to.path().to_str().unwrap()]);
        args.page(&MANUAL, tool()).unwrap();
        assert!(to.path().join("tool-volume-create.1").is_file());
        assert!(!to.path().join("tool-volume-help.1").exists());
    }

    #[test]
    fn the_synopsis_names_the_values_of_options() {
        let value = Arg::new("directory").short('C').value_name("DIR").required(true);
        let page = MANUAL.render(&tool().arg(value), &tool()).unwrap();
        let page = String::from_utf8(page).unwrap();
        let synopsis = page.split(".SH SYNOPSIS\n").nth(1).unwrap();
        assert!(synopsis.starts_with(".nf\ntool \\-C <DIR> [COMMAND]\n.fi"), "{synopsis}");
    }

    #[test]
    fn a_page_replaces_a_link_and_a_pipe() {
        use std::os::unix::fs::symlink;

        let directory = tempfile::tempdir().unwrap();
        let (to, precious) = (directory.path().join("man1"), directory.path().join("precious"));
        fs::create_dir(&to).unwrap();
        fs::write(&precious, "precious").unwrap();
        symlink("../precious", to.join("tool.1")).unwrap();
        let pipe = std::process::Command::new("mkfifo").arg(to.join("tool-run.1")).status();
        assert!(pipe.unwrap().success());
        MANUAL.write_pages(tool(), &to).unwrap();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
        for page in ["tool.1", "tool-run.1"] {
            assert!(fs::symlink_metadata(to.join(page)).unwrap().is_file(), "{page}");
        }
        assert_eq!(fs::read_dir(&to).unwrap().count(), 2, "nothing else is left");
    }

    #[test]
    fn pages_that_cannot_be_written_are_an_error_with_the_directory() {
        let args: ManArgs = parsed(&["--output", "/dev/null/man1"]);
        let error = args.page(&MANUAL, tool()).unwrap_err();
        assert_eq!(error.to_string(), "cannot write to /dev/null/man1");
    }
}
