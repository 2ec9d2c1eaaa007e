//! Finds the files that every box needs and no Boxfile has to name: box-init and the guest kernel.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use box_contract::Platform;
use box_contract::{ErrorCode, KernelName};
use box_inspect::export::container::Launcher;
use boxbuild::binary::{Program, inspect};
use boxbuild::{InputFile, NamedBy};
use boxfile_spec::Boxfile;
use diagnostics::Spanned;
use guest_kernel::SYSTEM_LIBRARIES;
use host_fs::read::{Links, open_regular};
use host_fs::trust::Trusted;
use host_fs::{FileError, own};

use super::failure::{Failure, chain};
use super::{search, terminal};

const INIT: Companion = Companion {
    name: own::BOX_INIT,
    code: ErrorCode::InitNotFound,
    help: "install a static box-init: `cargo xtask install` in the source of boxbuild; or name one with `boxbuild build --init PATH` or in the variable BOXBUILD_INIT",
};
const LAUNCHER: Companion = Companion {
    name: "boxlaunch",
    code: ErrorCode::VirtualHostMissing,
    help: "install a static boxlaunch: `cargo xtask install` in the source of boxbuild",
};
/// The same program for the image of a container.
const CONTAINERS: Companion = Companion {
    code: ErrorCode::LauncherInvalid,
    help: "name a static boxlaunch with `--launcher FILE`: the one of a release, or of `cargo xtask install` in the source of \
           boxbuild",
    ..LAUNCHER
};

/// A static program that is installed with boxbuild.
struct Companion {
    name: &'static str,
    code: ErrorCode,
    help: &'static str,
}

/// Returns the init: the named one, or the first installed one that is static and that no untrusted user could have put
/// there. A dynamic init, as `cargo build` writes next to boxbuild, cannot start in a guest.
pub(crate) fn init(named: Option<&Path>) -> Result<InputFile, Failure> {
    if let Some(path) = named {
        return Ok(named_file(path, "--init", own::INIT));
    }
    let program = env::current_exe().unwrap_or_default();
    Ok(InputFile::found(first_static(&INIT, &own::init_places(&program), &trusted(&program))?))
}

/// Returns the boxlaunch next to boxbuild, in cargo's output, or in `PATH`. It has to be static, because the virtual host
/// has no shared libraries.
pub(crate) fn boxlaunch() -> Result<PathBuf, Failure> {
    installed_launcher(&LAUNCHER)
}

/// Returns the boxlaunch for the image of a container: the named file, or the one that [`boxlaunch`] returns. It has to be
/// static, because the image has no shared libraries.
pub(crate) fn launcher(named: Option<&Path>) -> Result<Launcher, Failure> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => installed_launcher(&CONTAINERS)?,
    };
    let file = open_regular(&path, Links::Follow).map_err(FileError::of("open", &path))?;
    if let Some(reason) = unusable(&file) {
        let message = format!("{} cannot start in a container: {reason}", path.display());
        return Err(Failure::new((CONTAINERS.code, CONTAINERS.help), message));
    }
    Ok(Launcher::new(&path, file)?)
}

fn installed_launcher(wanted: &Companion) -> Result<PathBuf, Failure> {
    let program = env::current_exe().unwrap_or_default();
    let path = env::var_os("PATH").unwrap_or_default();
    let places = with_path(own::built_places(&program, wanted.name), &path, wanted.name);
    first_static(wanted, &places, &trusted(&program))
}

/// Adds the paths of a program in `PATH`, without duplicates. Relative entries are left out, because a box may have
/// written to the working directory.
fn with_path(mut places: Vec<PathBuf>, path: &OsStr, name: &str) -> Vec<PathBuf> {
    for place in env::split_paths(path).map(|it| it.join(name)) {
        if place.is_absolute() && !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// Returns the users whose programs may be used without naming them.
fn trusted(program: &Path) -> Trusted {
    let mut trusted = search::trusted();
    // The owners of boxbuild and of its directory could change everything that it does, so their files are trusted,
    // too.
    let owners = program.ancestors().take(2).filter_map(|it| it.metadata().ok());
    trusted.users.extend(owners.map(|it| it.uid()));
    trusted
}

/// Returns the file at `path`, which `option` or else the environment variable `variable` names.
fn named_file(path: &Path, option: &'static str, variable: &'static str) -> InputFile {
    let is_variable = env::var_os(variable).is_some_and(|value| Path::new(&value) == path);
    let named_by = if is_variable { NamedBy::Variable(variable) } else { NamedBy::Option(option) };
    InputFile { path: path.to_owned(), named_by }
}

fn first_static(
    wanted: &Companion,
    places: &[PathBuf],
    trusted: &Trusted,
) -> Result<PathBuf, Failure> {
    let name = wanted.name;
    let mut skipped = Vec::new();
    for place in places.iter().filter(|place| place.is_file()) {
        let Some(reason) = search::distrust(place, trusted).or_else(|| unusable_at(place)) else {
            return Ok(place.clone());
        };
        let reason = format!("{} cannot be used: {reason}", place.display());
        terminal::detail(name, &reason);
        skipped.push(reason);
    }
    let message = match skipped.is_empty() {
        true => format!("{name} is not installed"),
        false => skipped.join("; "),
    };
    Err(Failure::new((wanted.code, wanted.help), message))
}

fn unusable_at(path: &Path) -> Option<String> {
    match File::open(path) {
        Ok(file) => unusable(&file),
        Err(error) => Some(error.to_string()),
    }
}

/// Returns why a file cannot start where no other file is, as in a new box, or `None` if it can. A dynamic program has a
/// `PT_INTERP` segment ([elf(5)](https://man7.org/linux/man-pages/man5/elf.5.html)).
fn unusable(file: &File) -> Option<String> {
    match inspect(file, Platform::BUILT) {
        Ok(Program::Static) => None,
        Ok(Program::By(_)) => Some("it is linked dynamically".to_owned()),
        Err(error) => Some(chain(&error)),
    }
}

/// Returns the kernel: the one that the Boxfile names, the one that the command line names, or the installed libkrunfw.
pub(crate) fn kernel(
    named: Option<&Path>,
    boxfile: &Boxfile,
    base: &Path,
) -> Result<InputFile, Failure> {
    let declared = boxfile.kernel.as_ref().and_then(|kernel| kernel.path.as_ref());
    let mut file = match (declared, named) {
        (Some(Spanned { value, span }), _) => {
            InputFile { path: PathBuf::from(value), named_by: NamedBy::Boxfile(*span) }
        }
        (None, Some(path)) => named_file(path, "--kernel", own::KERNEL),
        (None, None) => default_kernel(),
    };
    file.path = match file.path.to_str().and_then(KernelName::of) {
        Some(name) => first_kernel(name, kernel_places(name))?,
        None if declared.is_some() => base.join(file.path),
        None => file.path,
    };
    Ok(file)
}

/// Returns the kernel of a build for which none is named: the lean kernel if it came with this program, as in a release, and
/// libkrunfw otherwise.
fn default_kernel() -> InputFile {
    release_kernel().map_or_else(|| InputFile::found(KernelName::Krunfw.name()), InputFile::found)
}

/// Returns the path of the lean kernel that came with this program, unless an untrusted user could have put it there.
pub(crate) fn release_kernel() -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    let path = own::kernel_place(&program);
    (path.is_file() && search::distrust(&path, &trusted(&program)).is_none()).then_some(path)
}

/// Returns the paths where a kernel may be. The path to which `boxbuild setup` writes comes first, then the kernel of the release
/// or the system's libraries.
fn kernel_places(name: KernelName) -> impl Iterator<Item = PathBuf> {
    let is_krunfw = name == KernelName::Krunfw;
    let of_release = if is_krunfw { None } else { release_kernel() };
    let of_system = SYSTEM_LIBRARIES.iter().filter(move |_| is_krunfw);
    set_up_kernel(name).into_iter().chain(of_release).chain(of_system.map(PathBuf::from))
}

fn first_kernel(
    name: KernelName,
    places: impl IntoIterator<Item = PathBuf>,
) -> Result<PathBuf, Failure> {
    places.into_iter().find(|path| path.is_file()).ok_or_else(|| match name {
        KernelName::Krunfw => {
            let help = "run `boxbuild setup`, which gets one, or name a libkrunfw.so.5 or an ELF \
                        kernel with --kernel PATH or BOXBUILD_KERNEL";
            Failure::new((ErrorCode::KernelNotFound, help), "no guest kernel is installed")
        }
        KernelName::Lean => {
            let help = "run `cargo xtask kernel` in the source of boxbuild, which takes minutes the \
                        first time, then `boxbuild setup --kernel lean --from FILE` with the file that it prints";
            Failure::new((ErrorCode::KernelNotFound, help), "the lean kernel is not installed")
        }
    })
}

/// Returns the path to which `boxbuild setup` writes a kernel, if there is a directory for the user's data.
pub(crate) fn set_up_kernel(name: KernelName) -> Option<PathBuf> {
    Some(own::data(|name| env::var_os(name))?.join(name.file()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_place_is_looked_at_once() {
        let places = with_path(vec!["/a/p".into()], OsStr::new("/b:/a:/b"), "p");
        assert_eq!(places, ["/a/p", "/b/p"].map(PathBuf::from));
    }

    /// An [ELF](https://man7.org/linux/man-pages/man5/elf.5.html) program for x86-64 with one segment of type `PT_LOAD`,
    /// and one of type `PT_INTERP` if it is dynamic.
    fn program(dynamic: bool) -> Vec<u8> {
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(16, 0);
        file.extend([2, 0, 62, 0, 1, 0, 0, 0]); // ET_EXEC, EM_X86_64, version
        file.extend([1u64, 64, 0].iter().flat_map(|it| it.to_le_bytes())); // entry, phoff, shoff
        file.extend([0, 0, 0, 0, 64, 0, 56, 0, 1 + u8::from(dynamic), 0, 0, 0, 0, 0, 0, 0]);
        let segment = |kind: u32, offset: u64, size: u64| {
            let fields = [offset, 0, 0, size, size, 1];
            let words = fields.iter().flat_map(|it| it.to_le_bytes());
            [kind, 4].iter().flat_map(|it| it.to_le_bytes()).chain(words).collect::<Vec<u8>>()
        };
        file.extend(segment(1, 0, 64));
        if dynamic {
            file.extend(segment(3, 176, 8));
            file.extend(b"/lib/ld\0");
        }
        file
    }

    fn write(path: &Path, bytes: &[u8]) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn found(program: &Path) -> Result<PathBuf, Failure> {
        first_static(&INIT, &own::init_places(program), &Trusted::this_user())
    }

    /// An empty directory, and the path of the program in it.
    fn layout(program: &str) -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let program = root.path().join(program);
        (root, program)
    }

    #[test]
    fn a_named_init_is_taken_as_it_is() {
        let named_by = NamedBy::Option("--init");
        assert_eq!(init(Some(Path::new("own"))), Ok(InputFile { path: "own".into(), named_by }));
    }

    #[test]
    fn an_installed_init_comes_before_one_beside_the_program() {
        let (root, boxbuild) = layout("bin/boxbuild");
        let beside = root.path().join("bin/box-init");
        write(&beside, &program(false));
        assert_eq!(found(&boxbuild), Ok(beside));
        let installed = root.path().join("lib/boxbuild/box-init");
        write(&installed, &program(false));
        assert_eq!(found(&boxbuild), Ok(installed));
    }

    #[test]
    fn a_dynamic_init_is_skipped_for_the_static_one_of_a_checkout() {
        let (root, boxbuild) = layout("target/release/boxbuild");
        write(&root.path().join("target/release/box-init"), &program(true));
        let built = root.path().join("target/x86_64-unknown-linux-musl/release/box-init");
        write(&built, &program(false));
        assert!(found(&boxbuild).is_err(), "nothing says that cargo made it");
        write(&root.path().join("target/.rustc_info.json"), b"{}");
        assert_eq!(found(&boxbuild), Ok(built));
    }

    #[test]
    fn where_no_init_can_be_used_the_error_says_why() {
        let (root, boxbuild) = layout("bin/boxbuild");
        let failed = || format!("{:?}", found(&boxbuild).unwrap_err());
        assert!(failed().contains("\"box-init is not installed\""), "{}", failed());
        let dynamic = root.path().join("lib/boxbuild/box-init");
        let text = boxbuild.with_file_name("box-init");
        write(&dynamic, &program(true));
        write(&text, b"text");
        let (dynamic, text) = (dynamic.display(), text.display());
        let expected = format!(
            "{dynamic} cannot be used: it is linked dynamically; \
             {text} cannot be used: it is neither an ELF program nor a script"
        );
        assert!(failed().contains(&expected), "{}", failed());
    }

    #[test]
    fn an_init_that_others_could_have_put_there_is_skipped() {
        use std::os::unix::fs::PermissionsExt;

        let (root, boxbuild) = layout("bin/boxbuild");
        let beside = root.path().join("bin/box-init");
        write(&beside, &program(false));
        assert_eq!(found(&boxbuild), Ok(beside));
        let open = fs::Permissions::from_mode(0o1777);
        fs::set_permissions(root.path().join("bin"), open).unwrap();
        let failed = format!("{:?}", found(&boxbuild).unwrap_err());
        assert!(
            failed.contains("bin/box-init cannot be used: everybody can write to "),
            "{failed}"
        );
    }

    #[test]
    fn the_first_kernel_that_is_there_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let places = ["set-up", "system"].map(|it| root.path().join(it));
        let missing = |name| format!("{:?}", first_kernel(name, places.clone()).unwrap_err());
        let missing = KernelName::ALL.map(missing);
        assert!(missing[0].contains("run `cargo xtask kernel`"), "{}", missing[0]);
        assert!(missing[1].contains("run `boxbuild setup`"), "{}", missing[1]);
        for place in places.iter().rev() {
            write(place, b"kernel");
            assert_eq!(first_kernel(KernelName::Krunfw, places.clone()), Ok(place.clone()));
        }
    }

    #[test]
    fn a_boxfile_decides_before_the_command_line() {
        let kernel = |more: &str| {
            let text = format!("box \"x\"\nagent {{\n    image \"oci:agent\"\n}}\n{more}");
            let boxfile = boxfile_spec::parse(&text).unwrap();
            let kernel = kernel(Some(Path::new("named")), &boxfile, Path::new("/base")).unwrap();
            (kernel.path, kernel.named_by.span().is_some())
        };
        assert_eq!(kernel(""), ("named".into(), false));
        assert_eq!(kernel("kernel \"own.so\"\n"), ("/base/own.so".into(), true));
        assert_eq!(kernel("kernel \"./lean\"\n"), ("/base/./lean".into(), true), "a path");
    }
}
