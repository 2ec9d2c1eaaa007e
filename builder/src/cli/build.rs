//! `boxbuild build`: from a Boxfile to a box.

use std::fs;
use std::path::{Path, PathBuf};

use box_cache::Store;
use boxbuild::{Build, Request, build, output};
use boxfile_spec::Boxfile;

use super::failure::{Failure, chain};
use super::{locate, terminal};

/// Builds a box from a Boxfile and prints its digest.
///
/// The box is an OCI image layout directory, the same bytes on every machine. A second build of
/// the same input takes it from the store.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild build                        build ./Boxfile into ./NAME.box\n  \
    boxbuild build -f ci/Boxfile -o out   build another Boxfile into ./out\n  \
    boxbuild build --json                 print what was built as JSON")]
pub(crate) struct Args {
    /// The Boxfile [default: ./Boxfile, ./Boxfile.kdl]
    #[arg(short, long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// The directory that the box is written to [default: ./NAME.box]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The init [default: box-init beside this program]
    #[arg(long, value_name = "PATH", env = "BOXBUILD_INIT")]
    init: Option<PathBuf>,
    /// The guest kernel: libkrunfw.so.5 or an ELF kernel [default: as installed]
    #[arg(long, value_name = "PATH", env = "BOXBUILD_KERNEL")]
    kernel: Option<PathBuf>,
    /// The directory of the store [default: $BOXBUILD_STORE, ~/.cache/boxbuild]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// How many threads decode layers [default: one per CPU]
    #[arg(short, long, value_name = "N")]
    jobs: Option<usize>,
    /// Print a JSON object instead of the digest
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let file = locate::boxfile(args.file.as_deref())?;
    let shown = file.display().to_string();
    let source = read_boxfile(&file)?;
    let boxfile = boxfile_spec::parse(&source)
        .map_err(|diagnostics| Failure::rendered(diagnostics.render(&shown, &source)))?;
    let base = file.parent().unwrap_or(Path::new(""));
    let store = Store::open(&locate::store(args.store.as_deref())?)
        .map_err(|it| Failure::new(chain(&it)))?;
    let request = Request {
        boxfile: &boxfile,
        base,
        init: &locate::init(args.init.as_deref())?,
        kernel: &locate::kernel(args.kernel.as_deref(), &boxfile, base)?,
        builder: builder_identity()?,
    };
    let built = with_threads(args.jobs, || build(&request, &store))?
        .map_err(|error| Failure::of_build(&error, &shown, &source))?;
    let directory =
        args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.box", boxfile.name)));
    output::write(&store, &built.sealed, &directory).map_err(|it| Failure::new(chain(&it)))?;
    report(args, &boxfile, &built, &directory);
    Ok(())
}

fn read_boxfile(file: &Path) -> Result<String, Failure> {
    let bytes = fs::read(file).map_err(|error| {
        Failure::new(format!("cannot read the Boxfile {}: {error}", file.display()))
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::new(format!("{} is not UTF-8 text: see byte {at}", file.display()))
    })
}

/// Identifies this very program, so that a changed builder builds anew.
fn builder_identity() -> Result<[u8; 32], Failure> {
    let program = fs::read("/proc/self/exe")
        .map_err(|error| Failure::new(format!("cannot read this program itself: {error}")))?;
    Ok(*blake3::hash(&program).as_bytes())
}

/// Runs a job with a bounded number of threads.
fn with_threads<T: Send>(
    jobs: Option<usize>,
    job: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    let threads = rayon::ThreadPoolBuilder::new().num_threads(jobs.unwrap_or(0)).build();
    let threads = threads.map_err(|error| Failure::new(chain(&error)))?;
    Ok(threads.install(job))
}

fn report(args: &Args, boxfile: &Boxfile, built: &Build, directory: &Path) {
    let sealed = &built.sealed;
    if args.json {
        let report = serde_json::json!({
            "name": boxfile.name,
            "box": sealed.manifest,
            "tree": sealed.tree,
            "output": directory,
            "rootfs_bytes": sealed.rootfs_size,
            "cached": built.cached,
        });
        return terminal::result(&report.to_string());
    }
    let how = if built.cached { "from the store" } else { "built" };
    let mib = sealed.rootfs_size.div_ceil(1 << 20);
    terminal::note(&format!("{how}: {} (rootfs {mib} MiB)", directory.display()));
    terminal::result(&sealed.manifest.to_string());
}
