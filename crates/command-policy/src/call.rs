//! A program with its arguments.

use crate::path::Path;
use crate::shell::Word;

/// Programs whose names can end in a version.
const VERSIONED: [&str; 9] = ["python", "pypy", "pip", "perl", "ruby", "node", "php", "lua", "gem"];

/// Options of a program with a value in the next word: letters and long options.
type Values = (&'static str, &'static [&'static str]);

/// A program with its arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    /// The program without its directory and version.
    pub(crate) name: &'a str,
    /// The program as it is written.
    pub(crate) program: &'a Word,
    pub(crate) args: &'a [Word],
    /// The directory in which it runs, if it is known.
    pub(crate) directory: Option<&'a Path>,
}

impl<'a> Call<'a> {
    /// Returns the call of these words. `None` if there are none.
    pub(crate) fn of(words: &'a [Word], directory: Option<&'a Path>) -> Option<Self> {
        let (program, args) = words.split_first()?;
        Some(Self { name: name(&program.known), program, args, directory })
    }

    /// Returns the path that a word names.
    pub(crate) fn path(self, text: &str) -> Path {
        Path::of(text, self.directory)
    }

    pub(crate) fn is(self, names: &[&str]) -> bool {
        names.contains(&self.name)
    }

    /// Returns the arguments that are no options.
    pub(crate) fn operands(self) -> impl Iterator<Item = &'a Word> {
        let mut is_over = false;
        self.args.iter().filter(move |it| {
            let is_end = !is_over && it.known == "--";
            let is_operand = is_over || !is_option(&it.known);
            is_over |= is_end;
            is_operand && !is_end
        })
    }

    /// Returns the options.
    pub(crate) fn options(self) -> impl Iterator<Item = &'a str> {
        let all = self.args.iter().map(|it| it.known.as_str());
        all.take_while(|it| *it != "--").filter(|it| is_option(it))
    }

    /// Returns whether it has an option of one of these letters, or one of the long options, which can be abbreviated.
    pub(crate) fn has(self, letters: &str, longs: &[&str]) -> bool {
        self.has_before("", letters, longs)
    }

    /// Like [`Self::has`]. What follows a letter of `stops` is a value.
    pub(crate) fn has_before(self, stops: &str, letters: &str, longs: &[&str]) -> bool {
        self.options().any(|it| match it.strip_prefix("--") {
            Some(long) => {
                let name = long.split('=').next().unwrap_or(long);
                longs.iter().any(|it| it.starts_with(name))
            }
            None => {
                let mut cluster = it.chars().skip(1).take_while(|it| !stops.contains(*it));
                cluster.any(|it| letters.contains(it))
            }
        })
    }

    /// Returns the subcommand with its arguments, after the options of the program.
    pub(crate) fn subcommand(self) -> Option<Self> {
        let (letters, longs) = values(self.name);
        let at = skip_options(self.args, letters, longs);
        let (program, args) = self.args.get(at..)?.split_first()?;
        Some(Self { name: &program.known, program, args, directory: self.directory })
    }

    /// Returns the name of the subcommand, or an empty text.
    pub(crate) fn verb(self) -> &'a str {
        self.subcommand().map_or("", |it| it.name)
    }
}

fn is_option(text: &str) -> bool {
    text.len() > 1 && text.starts_with('-')
}

/// Returns the program's name without its directory and version.
pub(crate) fn name(text: &str) -> &str {
    let name = text.rsplit(['/', '\\']).next().unwrap_or(text);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let base = name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.' || it == '-');
    match base {
        "nodejs" => "node",
        _ if VERSIONED.contains(&base) => base,
        _ => name,
    }
}

/// Returns the options of a program that precede its subcommand and have a value.
fn values(name: &str) -> Values {
    match name {
        "git" => (
            "Cc",
            &[
                "--git-dir",
                "--work-tree",
                "--namespace",
                "--super-prefix",
                "--config-env",
                "--attr-source",
            ],
        ),
        "docker" | "podman" => ("Hlc", &["--context", "--config", "--host", "--log-level"]),
        "kubectl" | "helm" | "oc" => {
            ("ns", &["--namespace", "--context", "--kubeconfig", "--cluster", "--user", "--server"])
        }
        "npm" | "pnpm" | "yarn" => ("CF", &["--prefix", "--dir", "--filter", "--cwd"]),
        "cargo" => ("+CZ", &["--config", "--color"]),
        "systemctl" => ("HM", &["--host", "--machine"]),
        "apt" | "apt-get" | "aptitude" => ("otc", &["--option", "--target-release"]),
        _ => ("", &[]),
    }
}

/// Returns the number of arguments before the first operand. `letters` and `longs` are the options that have a value. `+` in `letters`
/// means that words with a `+` are options.
pub(crate) fn skip_options(args: &[Word], letters: &str, longs: &[&str]) -> usize {
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let text = arg.known.as_str();
        if text == "--" {
            return at + 1;
        }
        let is_plus = letters.contains('+') && text.starts_with('+');
        if !is_option(text) && !is_plus {
            break;
        }
        let has_value = if text.starts_with("--") {
            longs.contains(&text)
        } else {
            text.find(|it: char| letters.contains(it))
                .is_some_and(|it| it > 0 && it + 1 == text.len())
        };
        at += 1 + usize::from(has_value);
    }
    at.min(args.len())
}
