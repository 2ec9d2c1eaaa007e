//! `boxlaunch save` and `boxlaunch load`: boxes as files, for hosts without a registry.

use std::io::{self, BufWriter, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use box_archive::{Archive, ArchiveError, Bundle, Names, Plan};
use box_cache::hold;
use box_digest::Digest;
use box_find::{BoxReference, FindError, Found};
use box_layout::Documents;
use boxlaunch::LaunchError;
use safe_text::{shown, with_causes};
use serde_json::json;

use super::error::{CommandError, usage};
use super::found::{BoxArgument, StoreOption};
use super::terminal::{is_quiet, json_line, notice, print};
use super::{paths, prune};

/// The word for standard input and output.
const STREAM: &str = "-";

/// Writes boxes to one file, for a host without a registry, and prints their digests.
///
/// The file is an OCI image layout: an archive if its name ends in .tar, else a directory. It has what the boxes share once, and
/// the names by which boxes of the store are named here. The same boxes give the same bytes. What exists is never overwritten.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch save hello -o hello.tar
  boxlaunch save hello ./other.box -o boxes.tar
  boxlaunch save hello -o - | ssh host boxlaunch load -")]
pub(crate) struct SaveArgs {
    /// The boxes: each a directory such as NAME.box or ./DIR, a name in the store, or sha256:...; with @sha256:... after it,
    /// it must have this digest.
    #[arg(id = "box", value_name = "BOX", required = true)]
    boxes: Vec<PathBuf>,
    /// Where to write to: FILE.tar, or a directory; `-` is standard output [default: ./NAME.tar of the one box].
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    #[command(flatten)]
    store: StoreOption,
    /// Print one JSON object: output, boxes, each with box and name, blobs and bytes.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Puts the boxes of a file into the store, and prints their digests.
///
/// Only what the store lacks is read, and every byte is verified before it counts. A box gets the name that the file gives it. If
/// another box of the store has that name, nothing is loaded, unless --replace is given. The file is what `save` writes, or an OCI archive or layout of another tool that has
/// boxes; it may be compressed with gzip or zstd if `save` has written it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch load boxes.tar
  boxlaunch load hello.tar --replace    a new version of a box
  ssh host boxbuild save hello -o - | boxlaunch load -")]
pub(crate) struct LoadArgs {
    /// The file or directory; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Give the boxes their names even if other boxes have these, as for a new version of a box: the others keep their
    /// digests.
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    store: StoreOption,
    /// Print one JSON object: loaded, for each box box, names, blobs, bytes, new_blobs and new_bytes.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs `boxlaunch save`.
pub(crate) fn save(args: &SaveArgs) -> Result<u8, CommandError> {
    let root = paths::store(args.store.store.as_deref());
    let references = args.boxes.iter().map(|it| BoxReference::parse(it.as_os_str()));
    let references: Vec<_> = references.collect::<Result<_, _>>()?;
    let output = output(args, &references)?;
    let documents = references
        .iter()
        .map(|it| it.find(paths::stores(args.store.store.as_deref()))?.documents());
    let documents: Vec<Documents> = documents.collect::<Result<_, FindError>>()?;
    // What the store has stays until it is written.
    let held = |it: &Documents| hold(root.as_deref()?, &it.digest);
    let _held: Vec<_> = documents.iter().filter_map(held).collect();
    let names = references.iter().map(BoxReference::label);
    let names: Vec<_> = names.collect();
    let names = names.iter().map(Option::as_deref);
    let bundle = Bundle::of(documents.iter().zip(names.clone()))?;
    let saved = match output.to_str() {
        Some(STREAM) => {
            let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
            bundle.write_archive(&mut out)?;
            out.flush().map_err(ArchiveError::Write)?;
            return Ok(0);
        }
        _ if box_archive::is_tar(&output) => bundle.write_file(&output)?,
        _ => bundle.write_directory(&output)?,
    };
    let digests = documents.iter().map(|it| it.digest);
    if args.json {
        let boxes: Vec<_> = digests.zip(names).collect();
        print(&json_line(&saved.json(&output, &boxes))?)?;
        return Ok(0);
    }
    if !is_quiet() {
        notice(&format!("{}\n", saved.line(&output, bundle.digests().count())));
    }
    print(&digests.map(|it| format!("{it}\n")).collect::<String>())?;
    Ok(0)
}

/// Returns where the boxes go to.
fn output(args: &SaveArgs, references: &[BoxReference]) -> Result<PathBuf, CommandError> {
    let output = match (&args.output, references) {
        (Some(output), _) => output.clone(),
        (None, [only]) if only.name().is_some() => {
            PathBuf::from(format!("{}.tar", only.name().unwrap_or_default()))
        }
        _ => return Err(usage("no place for the file is named", "name one with --output")),
    };
    let is_stream = output == Path::new(STREAM);
    if is_stream && io::stdout().is_terminal() {
        let help = "name a file with --output, or write to a pipe";
        return Err(usage("standard output is a terminal", help));
    }
    if is_stream && args.json {
        let message = "standard output cannot take both the boxes and the JSON";
        return Err(usage(message, "leave out one of --json and `--output -`"));
    }
    if box_archive::is_compressed(&output) {
        let help = "name it .tar, or write `-o - | gzip`";
        return Err(usage("files with boxes are not compressed here", help));
    }
    Ok(output)
}

/// Runs `boxlaunch load`.
pub(crate) fn load(args: &LoadArgs) -> Result<u8, CommandError> {
    let is_stream = args.file == Path::new(STREAM);
    if is_stream && io::stdin().is_terminal() {
        return Err(usage("standard input is a terminal", "name a file, or read from a pipe"));
    }
    let archive = if is_stream {
        Archive::read("standard input".to_owned(), io::stdin())?
    } else {
        Archive::open(&args.file)?
    };
    let boxes = archive.boxes()?;
    let cap = prune::cap()?;
    let store = paths::open_store(args.store.store.as_deref())?;
    let plan = Plan::new(&archive, boxes, &store)?;
    let names = if args.replace { Names::Replace } else { Names::Free };
    plan.check_names(&store, names)?;
    let is_told = !args.json && !is_quiet();
    if is_told {
        notice(&format!("{}\n", shown(&plan.line())));
    }
    let loaded = plan.load(&store, names)?;
    prune::after_adding(&store, cap, !is_told);
    if args.json {
        let all: Vec<_> = loaded.iter().map(box_archive::Loaded::json).collect();
        print(&json_line(&json!({ "loaded": all }))?)?;
        return Ok(0);
    }
    let lines = loaded.iter().flat_map(box_archive::Loaded::lines).filter(|_| is_told);
    lines.for_each(|it| notice(&format!("{}\n", shown(&it))));
    print(&loaded.iter().map(|it| format!("{}\n", it.digest)).collect::<String>())?;
    Ok(0)
}

/// Finds the box that a command line names to be started. One in a file is put into the store first, unless it is there.
pub(crate) fn find(subject: &BoxArgument, is_told: bool) -> Result<Found, CommandError> {
    match in_store(subject, is_told)? {
        None => Ok(subject.find()?),
        Some(digest) => {
            let stores = paths::stores(subject.store.store.as_deref());
            Ok(BoxReference::of_digest(digest).find(stores)?)
        }
    }
}

/// Puts the one box of a file, or the one of this digest, into the store, unless it is there; returns its digest. `None` if no file
/// is named.
pub(crate) fn in_store(
    subject: &BoxArgument,
    is_told: bool,
) -> Result<Option<Digest>, CommandError> {
    let reference = BoxReference::parse(subject.word())?;
    let Some(path) = reference.path().filter(|it| it.is_file()) else { return Ok(None) };
    let archive = Archive::open(path)?;
    let only = archive.one_box(reference.pinned())?;
    let digest = only.remote.digest;
    let named = subject.store.store.as_deref();
    let found = BoxReference::of_digest(digest).find(paths::stores(named));
    if found.and_then(Found::open).is_ok() {
        return Ok(Some(digest));
    }
    let cap = prune::cap()?;
    let store = paths::open_store(named)?;
    let plan = Plan::new(&archive, vec![only], &store)?;
    if is_told {
        notice(&format!("{}\n", shown(&plan.line())));
    }
    plan.load(&store, Names::None)?;
    prune::after_adding(&store, cap, !is_told);
    Ok(Some(digest))
}

impl From<ArchiveError> for CommandError {
    fn from(error: ArchiveError) -> Self {
        match error {
            ArchiveError::Write(source) if source.kind() == io::ErrorKind::BrokenPipe => {
                LaunchError::Output(source).into()
            }
            error => Self::new(&error, shown(&with_causes(&error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output_of(words: &[&str]) -> Result<PathBuf, String> {
        use clap::{Args as _, FromArgMatches as _};
        let command = SaveArgs::augment_args(clap::Command::new("save"));
        let matches = command.try_get_matches_from(["save"].iter().chain(words)).unwrap();
        let args = SaveArgs::from_arg_matches(&matches).unwrap();
        let references = args.boxes.iter().map(|it| BoxReference::parse(it.as_os_str()).unwrap());
        output(&args, &references.collect::<Vec<_>>()).map_err(|error| error.text())
    }

    #[test]
    fn the_one_box_of_the_store_gives_the_file_its_name() {
        assert_eq!(output_of(&["hello"]).unwrap(), Path::new("hello.tar"));
        assert_eq!(output_of(&["hello", "-o", "x/"]).unwrap(), Path::new("x/"));
        for words in [&["./hello"][..], &["hello", "other"]] {
            assert!(output_of(words).unwrap_err().contains("--output"), "{words:?}");
        }
        for name in ["a.tar.gz", "a.tgz", "a.tar.zst"] {
            assert!(output_of(&["hello", "-o", name]).unwrap_err().contains("| gzip"), "{name}");
        }
        assert!(output_of(&["hello", "-o", "-", "--json"]).unwrap_err().contains("--json"));
    }
}
