//! `save` and `load`: boxes as files, for hosts without a registry.

use std::borrow::Cow;
use std::fs;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use box_archive::{Archive, ArchiveError, Bundle, Loaded, Names, Plan, Saved};
use box_cache::{Attachment, Held, hold};
use box_delta::Made;
use box_digest::Digest;
use box_find::{BoxReference, FindError, Stores};
use box_layout::Documents;
use safe_text::{shell_word, shown, shown_json};
use serde_json::json;

use super::size::after_adding_alone;
use super::{BoxArgument, CommandFault, Program, StoreOption, cap, stored_boxes};
use crate::output::check_links;
use crate::policy::{HostPolicy, check_file};

/// The path that means standard input or output.
const STREAM: &str = "-";

/// Writes boxes to one file, for a host without a registry, and prints their digests.
///
/// The file is an OCI image layout: an archive if its name ends in .tar, else a directory. It contains blobs that several
/// boxes share once, and the names that the command line gives for boxes of the store. The same boxes give the same bytes.
/// Existing files are never overwritten.
#[derive(Debug, clap::Args)]
pub struct SaveArgs {
    /// The boxes: each a directory such as NAME.box or ./DIR, a name in the store, HOST/NAME:TAG of a box that was pulled, or
    /// sha256:...; a box with @sha256:... after it must have that digest
    #[arg(id = "box", value_name = "BOX", required = true)]
    boxes: Vec<PathBuf>,
    /// The file to write, such as FILE.tar, or a directory; `-` is standard output [default: ./NAME.tar of the one box]
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    #[command(flatten)]
    store: StoreOption,
    /// Print one JSON object: output, boxes (each with box and name), blobs, bytes, attachments and deltas
    #[arg(long)]
    pub json: bool,
}

/// Boxes that were found and are to be saved.
#[derive(Debug)]
pub struct Saving<'a> {
    args: &'a SaveArgs,
    references: Vec<BoxReference>,
    output: PathBuf,
    /// The documents of each box, in the order of the command line.
    pub documents: Vec<Documents>,
    /// Keeps garbage collection from removing the boxes of the store before they are written.
    _held: Vec<Held>,
}

impl SaveArgs {
    /// Returns the examples at the end of this command's help.
    pub fn examples(program: &str) -> String {
        format!(
            "Examples:\n  \
             {program} save hello -o hello.tar\n  \
             {program} save hello ./other.box -o boxes.tar\n  \
             {program} save hello -o - | ssh host boxlaunch load -"
        )
    }

    /// Returns the argument of another box, in the same store.
    pub fn sibling(&self, reference: &Path) -> BoxArgument {
        self.store.argument(reference)
    }

    /// Finds the boxes.
    ///
    /// # Errors
    /// [`CommandFault`] if the command line is wrong, or a box cannot be read.
    pub fn find(
        &self,
        program: &Program,
        stdout: &impl IsTerminal,
    ) -> Result<Saving<'_>, CommandFault> {
        let references = self.boxes.iter().map(|it| BoxReference::parse(it.as_os_str()));
        let references: Vec<_> = references.collect::<Result<_, _>>()?;
        let output = self.output(&references, stdout.is_terminal())?;
        let find = |it: &BoxReference| it.find(self.store.stores(program))?.documents();
        let documents: Vec<_> = references.iter().map(find).collect::<Result<_, FindError>>()?;
        let root = self.store.root(program).ok();
        let held = |it: &Documents| hold(root.as_deref()?, &it.digest);
        let held = documents.iter().filter_map(held).collect();
        Ok(Saving { args: self, references, output, documents, _held: held })
    }

    /// Returns the path to write to.
    fn output(
        &self,
        references: &[BoxReference],
        is_terminal: bool,
    ) -> Result<PathBuf, CommandFault> {
        let output = match (&self.output, references) {
            (Some(output), _) => output.clone(),
            (None, [only]) if only.name().is_some() => {
                PathBuf::from(format!("{}.tar", only.name().unwrap_or_default()))
            }
            _ => {
                let message =
                    "--output is missing: only one box that is named by its name has a default";
                return Err(usage(message, "add `--output boxes.tar`"));
            }
        };
        self.check(&output, is_terminal)?;
        Ok(output)
    }

    /// Checks that boxes can be written to a path.
    fn check(&self, output: &Path, is_terminal: bool) -> Result<(), CommandFault> {
        let is_stream = output == Path::new(STREAM);
        if is_stream && is_terminal {
            let help = "name a file with --output, or write to a pipe";
            return Err(usage("standard output is a terminal", help));
        }
        if is_stream && self.json {
            let message = "standard output cannot take both the boxes and the JSON";
            return Err(usage(message, "leave out one of --json and `--output -`"));
        }
        if box_archive::is_compressed(output) {
            let is_zstd = output.extension().is_some_and(|it| it == "zst");
            let tool = if is_zstd { "zstd" } else { "gzip" };
            let message = format!("--output {}: `save` does not compress", output.display());
            let help = format!("write `--output - | {tool} >{}`", shell_word(output));
            return Err(usage(&message, help));
        }
        if is_stdout(output) {
            let message = format!("{} is standard output", output.display());
            let help = format!("write `--output {}` instead of `>`", shell_word(output));
            return Err(usage(&message, help));
        }
        Ok(())
    }
}

impl Saving<'_> {
    /// Returns the only box to save, as the option `option` needs it.
    ///
    /// # Errors
    /// [`CommandFault`] if there are several.
    pub fn only(&self, option: &str) -> Result<&Documents, CommandFault> {
        match &*self.documents {
            [only] => Ok(only),
            _ => Err(usage(
                &format!("{option} takes one box to save"),
                "save the other boxes to files of their own",
            )),
        }
    }

    /// Checks that the output does not exist yet, before work that takes long.
    ///
    /// # Errors
    /// [`CommandFault`] if it exists, if no file may be there, or if a link leads it elsewhere.
    pub fn check_place(&self, program: &Program) -> Result<(), CommandFault> {
        if self.output == Path::new(STREAM) {
            return Ok(());
        }
        check_links(program, &self.output)?;
        Ok(box_archive::check_place(&self.output)?)
    }

    /// Writes the boxes. With `since`, the only box is written without what a host that has that older box does not need, with these
    /// deltas between the two. Returns the result to print, without a final newline, or `None` if the boxes were written to `stdout`.
    ///
    /// # Errors
    /// [`CommandFault`] if a box cannot be read, or the file cannot be written.
    pub fn write(
        self,
        program: &Program,
        stdout: impl Write,
        since: Option<(&Documents, Vec<Made>)>,
    ) -> Result<Option<String>, CommandFault> {
        self.check_place(program)?;
        let Self { args, references, output, documents, .. } = &self;
        let names: Vec<_> = references.iter().map(BoxReference::label).collect();
        let names = names.iter().map(Option::as_deref);
        let mut bundle = Bundle::of(documents.iter().zip(names.clone()))?;
        if let (Some((base, deltas)), [only]) = (since, &**documents) {
            bundle.since(base, &only.digest, deltas);
        }
        let stores = args.store.stores(program);
        for it in documents {
            bundle.attach(&it.digest, attachments(&stores, &it.digest)?)?;
        }
        let Some(saved) = write(&bundle, output, stdout)? else { return Ok(None) };
        let digests = documents.iter().map(|it| it.digest);
        if args.json {
            let boxes: Vec<_> = digests.zip(names).collect();
            return Ok(Some(shown_json(&saved.json(output, &boxes).to_string())));
        }
        (program.note)(&saved.line(output, bundle.digests().count()));
        Ok(Some(digests.map(|it| it.to_string()).collect::<Vec<_>>().join("\n")))
    }
}

/// Writes boxes to a path. Returns `None` if the path stands for `stdout`.
fn write(
    bundle: &Bundle<'_>,
    output: &Path,
    stdout: impl Write,
) -> Result<Option<Saved>, ArchiveError> {
    if output == Path::new(STREAM) {
        let mut out = BufWriter::with_capacity(1 << 20, stdout);
        bundle.write_archive(&mut out)?;
        out.flush().map_err(ArchiveError::Write)?;
        return Ok(None);
    }
    let is_tar = box_archive::is_tar(output);
    let saved = if is_tar { bundle.write_file(output) } else { bundle.write_directory(output) };
    saved.map(Some)
}

/// Returns the attachments that the stores keep for a box. A box in a directory needs no store, and has no attachments if there is
/// no usable one.
///
/// # Errors
/// [`CommandFault`] if a store cannot be read.
pub fn attachments(stores: &Stores, digest: &Digest) -> Result<Vec<Attachment>, CommandFault> {
    let Some(boxes) = stored_boxes(stores)? else { return Ok(Vec::new()) };
    let listed = boxes.attachments(digest)?;
    Ok(listed.iter().map(|it| boxes.read_attachment(it)).collect::<Result<_, _>>()?)
}

/// Loads the boxes of a file into the store, and prints their digests.
///
/// Reads only what the store lacks, and verifies every byte before use. A box gets the name that it has in the file. If
/// another box of the store has that name, loads nothing, unless --replace is given. The file is one that `save` wrote,
/// perhaps compressed with gzip or zstd, or an OCI archive or layout of another tool that contains boxes.
#[derive(Debug, clap::Args)]
pub struct LoadArgs {
    /// The file or directory to load; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Take a name from another box that has it, as for a new version of a box; the other box keeps its digest
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    store: StoreOption,
    /// Print one JSON object: loaded, a list with box, names, blobs, bytes, new_blobs, new_bytes and attachments of each box
    #[arg(long)]
    pub json: bool,
}

impl LoadArgs {
    /// Returns the examples at the end of this command's help.
    pub fn examples(program: &str) -> String {
        format!(
            "Examples:\n  \
             {program} load boxes.tar\n  \
             {program} load hello.tar --replace    a new version of a box\n  \
             {program} load - <boxes.tar    read a stream, as from `ssh host boxbuild save hello -o - |`"
        )
    }

    /// Loads the boxes, if the policy of this host accepts all of them. Returns the result to print, without a final newline.
    ///
    /// # Errors
    /// [`CommandFault`] if the command line, the file or the store is wrong. A failed load changes no name in the
    /// store.
    pub fn run(
        &self,
        program: &Program,
        policy: Option<&HostPolicy>,
        stdin: impl io::Read + IsTerminal + Send + 'static,
    ) -> Result<String, CommandFault> {
        let is_stream = self.file == Path::new(STREAM);
        if is_stream && stdin.is_terminal() {
            return Err(usage("standard input is a terminal", "name a file, or read from a pipe"));
        }
        let archive = if is_stream {
            Archive::read("standard input".to_owned(), stdin)?
        } else {
            Archive::open(&self.file)?
        };
        let mut boxes = archive.boxes()?;
        if let Some(policy) = policy {
            let file =
                if is_stream { "standard input".into() } else { self.file.to_string_lossy() };
            boxes.iter_mut().try_for_each(|it| check_file(policy, &file, it).map(drop))?;
        }
        let cap = cap(program)?;
        let store = self.store.open(program)?;
        let plan = Plan::new(&archive, boxes, &store)?;
        let names = if self.replace { Names::Replace } else { Names::Free };
        plan.check_names(&store, names)?;
        let note = |text: &str| {
            if !self.json {
                (program.note)(&shown(text));
            }
        };
        note(&plan.line());
        let loaded = plan.load(&store, names)?;
        after_adding_alone(program, &store, cap, self.json);
        if self.json {
            let all: Vec<_> = loaded.iter().map(Loaded::json).collect();
            return Ok(shown_json(&json!({ "loaded": all }).to_string()));
        }
        loaded.iter().flat_map(Loaded::lines).for_each(|line| note(&line));
        Ok(loaded.iter().map(|it| it.digest.to_string()).collect::<Vec<_>>().join("\n"))
    }
}

/// Returns whether standard output is the file `path`, as after `>path` in a shell.
fn is_stdout(path: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).map(|it| (it.dev(), it.ino())).ok();
    identity(path).is_some_and(|it| identity(Path::new("/dev/stdout")) == Some(it))
}

/// Returns a usage error.
fn usage(message: &str, help: impl Into<Cow<'static, str>>) -> CommandFault {
    CommandFault::Usage { message: message.to_owned(), help: Some(help.into()) }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use clap::{Args as _, FromArgMatches as _};

    use super::*;
    use crate::Explanation;

    /// Returns the path of the output, or the help of the error.
    fn output_of(words: &[&str]) -> Result<PathBuf, String> {
        let command = SaveArgs::augment_args(clap::Command::new("save"));
        let matches = command.try_get_matches_from(["save"].iter().chain(words)).unwrap();
        let args = SaveArgs::from_arg_matches(&matches).unwrap();
        let references = args.boxes.iter().map(|it| BoxReference::parse(it.as_os_str()).unwrap());
        let output = args.output(&references.collect::<Vec<_>>(), false);
        output.map_err(|fault| {
            assert!(fault.source().is_none());
            Explanation::from(&fault).help.unwrap().into_owned()
        })
    }

    #[test]
    fn the_one_box_of_the_store_gives_the_file_its_name() {
        assert_eq!(output_of(&["hello"]).unwrap(), Path::new("hello.tar"));
        assert_eq!(output_of(&["hello", "-o", "x/"]).unwrap(), Path::new("x/"));
        for words in [&["./hello"][..], &["hello", "other"]] {
            assert!(output_of(words).unwrap_err().contains("--output"), "{words:?}");
        }
        for (name, tool) in [("a.tar.gz", "gzip"), ("a.tgz", "gzip"), ("a.tar.zst", "zstd")] {
            let help = output_of(&["hello", "-o", name]).unwrap_err();
            assert_eq!(help, format!("write `--output - | {tool} >{name}`"));
        }
        assert!(output_of(&["hello", "-o", "-", "--json"]).unwrap_err().contains("--json"));
    }

    #[test]
    fn the_file_of_standard_output_is_recognized() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(is_stdout(Path::new("/proc/self/fd/1")));
        assert!(!is_stdout(file.path()) && !is_stdout(Path::new("/none/a.tar")));
    }
}
