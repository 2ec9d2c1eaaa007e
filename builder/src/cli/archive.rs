//! `boxbuild save` and `boxbuild load`: boxes as files, for hosts without a registry.

use std::io::{self, BufWriter, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use box_archive::{Archive, ArchiveError, Bundle, Loaded, Names, Plan};
use box_cache::hold;
use box_find::{BoxReference, FindError};
use box_layout::Documents;
use cli_common::Explanation;
use safe_text::shown;
use serde_json::json;

use super::failure::{Explain, Failure};
use super::options::StoreOption;
use super::{gc, locate, terminal};

/// The word for standard input and output.
const STREAM: &str = "-";

/// Writes boxes to one file, for a host without a registry, and prints their digests.
///
/// The file is an OCI image layout: an archive if its name ends in .tar, else a directory. It has what the boxes share once, and
/// the names by which boxes of the store are named here. The same boxes give the same bytes. What exists is never overwritten.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild save hello -o hello.tar\n  \
    boxbuild save hello ./other.box -o boxes.tar\n  \
    boxbuild save hello -o - | ssh host boxlaunch load -")]
pub(crate) struct SaveArgs {
    /// The boxes: each a directory such as NAME.box or ./DIR, a name in the store, or sha256:...; with @sha256:... after it,
    /// it must have this digest
    #[arg(id = "box", value_name = "BOX", required = true)]
    boxes: Vec<PathBuf>,
    /// Where to write to: FILE.tar, or a directory; `-` is standard output [default: ./NAME.tar of the one box]
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    #[command(flatten)]
    store: StoreOption,
    /// Print JSON, also for errors (except usage errors)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Puts the boxes of a file into the store, and prints their digests.
///
/// Only what the store lacks is read, and every byte is verified before it counts. A box gets the name that the file gives it. If
/// another box of the store has that name, nothing is loaded, unless --replace is given. The file is what `save` writes, or an OCI archive or layout of another tool that has
/// boxes; it may be compressed with gzip or zstd if `save` has written it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild load boxes.tar\n  \
    boxbuild load hello.tar --replace    a new version of a box\n  \
    boxbuild load - <boxes.tar    read once, as from `ssh host boxlaunch save hello -o - |`")]
pub(crate) struct LoadArgs {
    /// The file or directory; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Give the boxes their names even if other boxes have these, as for a new version of a box: the others keep their
    /// digests
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    store: StoreOption,
    /// Print JSON, also for errors (except usage errors)
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs `boxbuild save`.
pub(crate) fn save(args: &SaveArgs) -> Result<(), Failure> {
    let root = locate::store(args.store.store.as_deref()).ok();
    let references = args.boxes.iter().map(|it| BoxReference::parse(it.as_os_str()));
    let references: Vec<_> = references.collect::<Result<_, _>>()?;
    let output = output(args, &references)?;
    let documents = references
        .iter()
        .map(|it| it.find(locate::stores(args.store.store.as_deref()))?.documents());
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
            return Ok(out.flush().map_err(ArchiveError::Write)?);
        }
        _ if box_archive::is_tar(&output) => bundle.write_file(&output)?,
        _ => bundle.write_directory(&output)?,
    };
    let digests = documents.iter().map(|it| it.digest);
    if args.json {
        let boxes: Vec<_> = digests.zip(names).collect();
        terminal::json(&saved.json(&output, &boxes).to_string());
        return Ok(());
    }
    terminal::note(&saved.line(&output, bundle.digests().count()));
    digests.for_each(|it| terminal::result(&it.to_string()));
    Ok(())
}

/// Returns where the boxes go to.
fn output(args: &SaveArgs, references: &[BoxReference]) -> Result<PathBuf, Failure> {
    let output = match (&args.output, references) {
        (Some(output), _) => output.clone(),
        (None, [only]) if only.name().is_some() => {
            PathBuf::from(format!("{}.tar", only.name().unwrap_or_default()))
        }
        _ => return Err(Failure::usage("no place for the file is named: name one with --output")),
    };
    let is_stream = output == Path::new(STREAM);
    let wrong = if is_stream && terminal::is_result_watched() {
        "standard output is a terminal; name a file with --output, or write to a pipe"
    } else if is_stream && args.json {
        "standard output cannot take both the boxes and the JSON"
    } else if box_archive::is_compressed(&output) {
        "files with boxes are not compressed here; name it .tar, or write `-o - | gzip`"
    } else {
        return Ok(output);
    };
    Err(Failure::usage(wrong))
}

/// Runs `boxbuild load`.
pub(crate) fn load(args: &LoadArgs) -> Result<(), Failure> {
    let is_stream = args.file == Path::new(STREAM);
    if is_stream && io::stdin().is_terminal() {
        let message = "standard input is a terminal; name a file, or read from a pipe";
        return Err(Failure::usage(message));
    }
    let archive = if is_stream {
        Archive::read("standard input".to_owned(), io::stdin())?
    } else {
        Archive::open(&args.file)?
    };
    let boxes = archive.boxes()?;
    let cap = gc::cap()?;
    let store = locate::open_store(&locate::store(args.store.store.as_deref())?)?;
    let plan = Plan::new(&archive, boxes, &store)?;
    let names = if args.replace { Names::Replace } else { Names::Free };
    plan.check_names(&store, names)?;
    if !args.json {
        terminal::note(&shown(&plan.line()));
    }
    let loaded = plan.load(&store, names)?;
    gc::after_alone(&store, cap, args.json);
    if args.json {
        let all: Vec<_> = loaded.iter().map(Loaded::json).collect();
        terminal::json(&json!({ "loaded": all }).to_string());
        return Ok(());
    }
    loaded.iter().flat_map(Loaded::lines).for_each(|it| terminal::note(&shown(&it)));
    loaded.iter().for_each(|it| terminal::result(&it.digest.to_string()));
    Ok(())
}

impl Explain for ArchiveError {
    fn explain(&self) -> Explanation {
        self.into()
    }
}
