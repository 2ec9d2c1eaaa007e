//! `boxbuild export`: writes a box's files for other programs.

use std::ffi::{OsStr, OsString};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use box_contract::{ComponentName, ErrorCode};
use box_digest::{Blake3Digest, Digest};
use box_inspect::export::{
    Export, ExportError, LeftOut, OciImage, Ownership, Privileged, Written, component_of,
    copy_rootfs, file,
};
use box_inspect::opened::{self, OpenBox};
use clap::ValueEnum;
use host_fs::FileError;
use safe_text::shell_path;
use serde_json::json;

use super::failure::Failure;
use super::installed;
use super::stored;
use super::terminal;
use cli_common::store::BoxArgument;

/// Writes the files of a box in a format that other programs read.
///
/// The format erofs is the box's rootfs unchanged, tar an archive, dir a directory, oci an image of one component for
/// podman or docker, and container an image that boots the box in a container with /dev/kvm. The same box gives the same bytes
/// on every host. Existing files are never overwritten.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild export greet.box                       the rootfs image: ./greet.erofs\n  \
    boxbuild export greet.box --format tar -o -     an archive on standard output\n  \
    boxbuild export greet.box --format dir          every file: ./greet.dir\n  \
    boxbuild export greet.box --format oci -o a.tar --component agent   for `podman load -i a.tar`\n  \
    boxbuild export greet.box --format container -o greet.tar   for `docker load -i greet.tar`")]
pub(crate) struct Args {
    #[command(flatten)]
    subject: BoxArgument,
    /// The format to write
    #[arg(long, value_enum, default_value = "erofs")]
    format: Format,
    /// Export only the root of this component; not with erofs and container
    #[arg(long, value_parser = cli_common::component_name())]
    component: Option<ComponentName>,
    /// The file or directory to write; `-` is standard output. With oci and container, a name that ends in .tar gives one
    /// file [default: ./BOX.FORMAT, ./BOX-COMPONENT.FORMAT]
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// With dir: give all files to the calling user. Without root, this is always the case
    #[arg(long)]
    no_owner: bool,
    /// With container: the static boxlaunch of the image [default: the one that is installed with boxbuild]
    #[arg(long, value_name = "FILE")]
    launcher: Option<PathBuf>,
    /// Print JSON, also for errors (except usage errors)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The rootfs, an EROFS file system
    Erofs,
    /// A directory
    Dir,
    /// A tar archive
    Tar,
    /// An OCI image of one component
    Oci,
    /// An OCI image that boots the box
    Container,
}

impl Format {
    /// Returns the value of `--format`.
    fn name(self) -> String {
        self.to_possible_value().map(|it| it.get_name().to_owned()).unwrap_or_default()
    }
}

/// The result of an export.
#[derive(Debug)]
struct Exported {
    /// The box digest.
    of: Digest,
    component: Option<ComponentName>,
    output: PathBuf,
    /// The digest of the exported tree.
    tree: Blake3Digest,
    /// The digest and size of the file, or of the OCI image's manifest.
    written: Option<Written>,
    left_out: LeftOut,
    privileged: Privileged,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    check_usage(args)?;
    let opened = stored::open(&args.subject)?;
    let exported = export(args, &opened)?;
    report(args, &exported);
    Ok(())
}

/// Refuses combinations of options that make no sense.
fn check_usage(args: &Args) -> Result<(), Failure> {
    let stream = args.output.as_deref().is_some_and(is_stream);
    let compressed = args.output.as_deref().filter(|it| box_archive::is_compressed(it));
    let (message, help) = match (args.format, args.component, compressed) {
        (Format::Erofs, Some(component), _) => (
            "`--format erofs` cannot be used with `--component`",
            format!("write `--format tar --component {}`", component.name()),
        ),
        (Format::Dir, ..) if stream => {
            ("a directory cannot go to standard output", "write `--format tar -o -`".to_owned())
        }
        (Format::Container, Some(_), _) => (
            "`--format container` cannot be used with `--component`",
            "leave out `--component`: the image has the whole box".to_owned(),
        ),
        (format, ..) if args.launcher.is_some() && format != Format::Container => (
            "`--launcher` can be used only with `--format container`",
            "write `--format container`, or leave out `--launcher`".to_owned(),
        ),
        _ if stream && terminal::is_result_watched() => (
            "standard output is a terminal, and cannot take the data",
            "name a file with `--output PATH`, or write to a pipe".to_owned(),
        ),
        _ if stream && args.json => (
            "standard output cannot take both the data and the JSON",
            "name a file with `--output PATH`".to_owned(),
        ),
        (Format::Oci | Format::Container, _, Some(output)) => (
            "an OCI image is not written as a compressed archive",
            format!("write `--output - | gzip >{}`", shell_path(output)),
        ),
        (format, ..) if args.no_owner && format != Format::Dir => (
            "`--no-owner` can be used only with `--format dir`",
            "write `--format dir --no-owner`, or leave out `--no-owner`".to_owned(),
        ),
        _ => return Ok(()),
    };
    Err(Failure::new((ErrorCode::Usage, help), message))
}

/// Returns whether an output is standard output.
pub(super) fn is_stream(output: &Path) -> bool {
    output == Path::new("-")
}

/// Returns the name of the box's directory without `.box`, or else the box's name in the store. The output is named
/// after it.
pub(super) fn base_name(subject: &BoxArgument) -> Result<Option<OsString>, ExportError> {
    let Ok(reference) = subject.parse() else { return Ok(None) };
    let Some(path) = reference.path() else { return Ok(reference.name().map(OsString::from)) };
    let directory = std::fs::canonicalize(path).map_err(FileError::of("find", path))?;
    let is_box = directory.extension().is_some_and(|it| it == "box");
    let name = if is_box { directory.file_stem() } else { directory.file_name() };
    Ok(name.map(OsStr::to_owned))
}

/// Returns the output path, by default in the working directory.
fn output(args: &Args, component: Option<ComponentName>) -> Result<PathBuf, ExportError> {
    if let Some(output) = &args.output {
        return Ok(output.clone());
    }
    // The name in the box's plan is foreign, so it is not used as a path.
    let mut name = base_name(&args.subject)?.unwrap_or_else(|| "box".into());
    if let Some(component) = component {
        name.push(format!("-{}", component.name()));
    }
    name.push(format!(".{}", args.format.name()));
    Ok(name.into())
}

fn export(args: &Args, opened: &OpenBox) -> Result<Exported, Failure> {
    let component = match args.format {
        Format::Oci => Some(component_of(opened, args.component)?),
        _ => args.component,
    };
    let mut exported = Exported {
        of: opened.digest,
        component,
        output: output(args, component)?,
        tree: opened.config.tree,
        written: None,
        left_out: LeftOut::default(),
        privileged: Privileged::default(),
    };
    if !is_stream(&exported.output) {
        stored::check_output(&exported.output)?;
    }
    if args.format == Format::Erofs {
        let written = to_file(&exported.output, |out| copy_rootfs(opened, out))?;
        return Ok(Exported { written: Some(written), ..exported });
    }
    if args.format == Format::Container {
        let launcher = installed::launcher(args.launcher.as_deref())?;
        write_image(&OciImage::container(opened, &launcher)?, &mut exported)?;
        return Ok(exported);
    }
    // The rootfs is verified before the first write, because an export reads only parts of it.
    opened::verify_rootfs(opened)?;
    let export = match component {
        Some(component) => Export::component(opened, component)?,
        None => Export::whole(opened)?,
    };
    exported.tree = export.tree().digest();
    write(args, &export, &mut exported)?;
    Ok(exported)
}

/// Writes the tree in the chosen format.
fn write(args: &Args, export: &Export, exported: &mut Exported) -> Result<(), ExportError> {
    let to = &exported.output;
    match args.format {
        Format::Dir => {
            exported.left_out = export.directory(to, ownership(args))?;
            exported.privileged = export.privileged(ownership(args));
        }
        Format::Oci => {
            return write_image(&OciImage::of(export)?, exported);
        }
        Format::Tar | Format::Erofs | Format::Container => {
            exported.written = Some(to_file(to, |out| export.tar(out))?);
        }
    }
    Ok(())
}

/// Writes an image as one file if its path ends in `.tar`, and as a directory otherwise.
fn write_image(image: &OciImage<'_>, exported: &mut Exported) -> Result<(), ExportError> {
    let to = &exported.output;
    if is_stream(to) || to.extension().is_some_and(|it| it == "tar") {
        to_file(to, |out| image.write_archive(out))?;
    } else {
        image.write_directory(to)?;
    }
    exported.written = Some(image.manifest());
    Ok(())
}

/// Writes a new file, or to standard output.
pub(super) fn to_file<T>(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<T, ExportError>,
) -> Result<T, ExportError> {
    if !is_stream(path) {
        return file(path, fill);
    }
    let mut out = BufWriter::with_capacity(1 << 20, terminal::data(true));
    let written = fill(&mut out)?;
    out.flush().map_err(ExportError::Write)?;
    Ok(written)
}

fn ownership(args: &Args) -> Ownership {
    let is_root = rustix::process::geteuid().is_root();
    if is_root && !args.no_owner { Ownership::Box } else { Ownership::Caller }
}

/// Reports the result.
fn report(args: &Args, exported: &Exported) {
    let Exported { output, component, .. } = exported;
    if args.json {
        let is_dir = args.format == Format::Dir;
        let report = json!({
            "box": exported.of,
            "format": args.format.name(),
            "component": component.map(|it| it.name()),
            "output": output.display().to_string(),
            "tree": exported.tree,
            "digest": exported.written.map(|it| it.digest),
            "bytes": exported.written.map(|it| it.size),
            "privileged": is_dir.then_some(exported.privileged),
            "left_out": is_dir.then_some(exported.left_out),
        });
        return terminal::json(&report.to_string());
    }
    if is_stream(output) {
        return;
    }
    exported.left_out.notes().iter().for_each(|it| terminal::note(it));
    exported.privileged.warning().iter().for_each(|it| terminal::note(it));
    terminal::note(&format!("exported: {}", output.display()));
    let digest = exported.written.map(|it| it.digest.to_string());
    terminal::result(&digest.unwrap_or_else(|| exported.tree.to_string()));
}
