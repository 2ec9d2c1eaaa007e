//! The directories and files of boxbuild among a user's files, the user's files that affect a build, and the
//! installed programs. boxlaunch uses the same list: no box may write to these paths.
//!
//! All other modules and programs use these constants for the names of the variables.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::{absolute_path, named_path, user_directory};

/// The variable for the directory of the store.
pub const STORE: &str = "BOXBUILD_STORE";
/// The variable for the directory of a read-only store, such as a store for all users of a host.
pub const STORE_RO: &str = "BOXBUILD_STORE_RO";
/// The variable for the path of the init.
pub const INIT: &str = "BOXBUILD_INIT";
/// The variable for the guest kernel: a path, or a word such as `lean`.
pub const KERNEL: &str = "BOXBUILD_KERNEL";
/// The variable for the path of the configuration of registries.
pub const REGISTRIES: &str = "BOXBUILD_REGISTRIES";
/// The variable for the file of certificates to trust, which OpenSSL reads as well.
pub const CERTIFICATES: &str = "SSL_CERT_FILE";
/// The variable for the file with credentials of registries, which podman reads as well.
pub const AUTH_FILE: &str = "REGISTRY_AUTH_FILE";
/// The variable for the directory of docker's configuration, which contains credentials.
pub const DOCKER: &str = "DOCKER_CONFIG";

/// The path of the administrator's policy. No variable can change it.
pub const POLICY: &str = "/etc/boxbuild/policy.toml";

/// All variables that this module reads.
pub const VARIABLES: [&str; 13] = [
    STORE,
    STORE_RO,
    INIT,
    KERNEL,
    REGISTRIES,
    CERTIFICATES,
    AUTH_FILE,
    DOCKER,
    "HOME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
];

/// The name of boxbuild's subdirectory in the XDG directories.
const NAME: &str = "boxbuild";
/// The name of the subdirectory with the settings of boxlaunch alone.
const LAUNCHER: &str = "boxlaunch";

/// The name of the init's program.
pub const BOX_INIT: &str = "box-init";
/// The path of the installed init, relative to the directory that has `bin/boxbuild`.
pub const INSTALLED_INIT: &str = "lib/boxbuild/box-init";
/// The path of the lean kernel of a release, relative to the directory that has `bin/boxbuild`.
pub const INSTALLED_KERNEL: &str = "lib/boxbuild/lean-kernel";
/// The path of the documents of a release, relative to the directory that has `bin/boxbuild`.
pub const INSTALLED_DOCUMENTS: &str = "share/doc/boxbuild";
/// The programs that a user starts.
const PROGRAMS: [&str; 2] = ["boxbuild", "boxlaunch"];
/// The file that marks a directory as cargo's output.
const CARGO_NOTES: &str = ".rustc_info.json";

/// The purpose of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// boxbuild or boxlaunch.
    Program,
    /// The first process of boxes.
    Init,
    /// The kernel of boxes. Instead of a path, it can be a word such as `lean`.
    Kernel,
    /// The configuration of registries.
    Registries,
    /// The certificates of trusted authorities.
    Certificates,
    /// Credentials for registries.
    Credentials,
}

/// A program of boxbuild, or a file of the user that affects what boxbuild builds or its permissions. It need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnFile {
    /// The purpose of the file.
    pub purpose: Purpose,
    /// The path.
    pub path: PathBuf,
    /// The variable that contains the path. `None` for a default path.
    pub named_by: Option<&'static str>,
}

/// Returns the user's files that environment variables name, and the default files with credentials of docker and podman.
/// `variable` returns a variable's value.
pub fn files(variable: impl Fn(&str) -> Option<OsString>) -> Vec<OwnFile> {
    let named = [
        (Purpose::Init, INIT),
        (Purpose::Kernel, KERNEL),
        (Purpose::Registries, REGISTRIES),
        (Purpose::Certificates, CERTIFICATES),
    ];
    let file = |(purpose, name)| {
        let path = named_path(variable(name))?;
        Some(OwnFile { purpose, path, named_by: Some(name) })
    };
    let credentials = credentials(&variable).into_iter().map(|(path, named_by)| OwnFile {
        purpose: Purpose::Credentials,
        path,
        named_by,
    });
    named.into_iter().filter_map(file).chain(credentials).collect()
}

/// Returns `program`, the candidates for boxbuild and boxlaunch, the candidates for the init, and the kernel of a release.
pub fn installed(program: &Path) -> Vec<OwnFile> {
    let file = |purpose| move |path| OwnFile { purpose, path, named_by: None };
    let others = PROGRAMS.iter().flat_map(|name| built_places(program, name));
    let programs = [program.to_owned()].into_iter().chain(others).map(file(Purpose::Program));
    let inits = init_places(program).into_iter().map(file(Purpose::Init));
    programs.chain(inits).chain([kernel_place(program)].map(file(Purpose::Kernel))).collect()
}

/// Returns the paths at which box-init may be, if boxbuild is at `program`: the installed path and the results of
/// [`built_places`].
pub fn init_places(program: &Path) -> Vec<PathBuf> {
    let mut places = vec![installation(program).join(INSTALLED_INIT)];
    places.extend(built_places(program, BOX_INIT));
    places
}

/// Returns the path at which the lean kernel of a release is, if boxbuild is at `program`.
pub fn kernel_place(program: &Path) -> PathBuf {
    installation(program).join(INSTALLED_KERNEL)
}

/// Returns the path at which the documents of a release are, if boxbuild is at `program`.
pub fn documents_place(program: &Path) -> PathBuf {
    installation(program).join(INSTALLED_DOCUMENTS)
}

/// Returns the directory that has `bin/boxbuild`, if boxbuild is at `program`.
fn installation(program: &Path) -> &Path {
    program.parent().and_then(Path::parent).unwrap_or(program)
}

/// Returns the paths at which the program `name` may be: in the directory of `program`, and, if that directory is in cargo's
/// output, in the output for static programs.
pub fn built_places(program: &Path, name: &str) -> Vec<PathBuf> {
    let beside = program.parent().unwrap_or(program);
    let above = beside.parent().unwrap_or(beside);
    let mut places = vec![beside.join(name)];
    if above.join(CARGO_NOTES).is_file() {
        places.push(above.join("x86_64-unknown-linux-musl/release").join(name));
    }
    places
}

/// Returns the files that may have credentials, in the order of the search: podman's, then docker's. Each comes with the
/// variable that names it, or `None` for a default path.
pub fn credentials(
    variable: impl Fn(&str) -> Option<OsString>,
) -> Vec<(PathBuf, Option<&'static str>)> {
    let path = |name| named_path(variable(name));
    let runtime = absolute_path(variable("XDG_RUNTIME_DIR"));
    let podman = [runtime, user_directory("XDG_CONFIG_HOME", ".config", &variable)];
    let podman = podman.into_iter().flatten().map(|it| (it.join("containers/auth.json"), None));
    let of_home = || path("HOME").map(|home| (home.join(".docker"), None));
    let docker = path(DOCKER).map(|it| (it, Some(DOCKER))).or_else(of_home);
    let docker = docker.map(|(directory, named_by)| (directory.join("config.json"), named_by));
    path(AUTH_FILE)
        .map(|it| (it, Some(AUTH_FILE)))
        .into_iter()
        .chain(podman)
        .chain(docker)
        .collect()
}

/// Returns the directory of the store: the one from the command line, or else `$BOXBUILD_STORE`, or else the default
/// in the user's cache directory. `variable` returns a variable's value.
pub fn store(named: Option<&Path>, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let users = || user_directory("XDG_CACHE_HOME", ".cache", &variable);
    let named = named.map(Path::to_owned).or_else(|| named_path(variable(STORE)));
    named.or_else(|| Some(users()?.join(NAME)))
}

/// Returns the directory of the read-only store from `$BOXBUILD_STORE_RO`. `variable` returns a variable's value.
pub fn base_store(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    named_path(variable(STORE_RO))
}

/// Returns the directory of the user's configuration, with `registries.toml` and `policy.toml`.
pub fn configuration(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    Some(user_directory("XDG_CONFIG_HOME", ".config", variable)?.join(NAME))
}

/// Returns the directory of the user's settings for boxlaunch alone, with `config.toml`.
pub fn launcher_configuration(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    Some(user_directory("XDG_CONFIG_HOME", ".config", variable)?.join(LAUNCHER))
}

/// Returns the path of the user's policy, which applies if there is no administrator's policy at [`POLICY`].
pub fn policy(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    Some(configuration(variable)?.join("policy.toml"))
}

/// Returns the directory for the guest kernels that `boxbuild setup` fetches.
pub fn data(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    Some(user_directory("XDG_DATA_HOME", ".local/share", variable)?.join(NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_comes_before_the_home_directory() {
        let with = |set: &'static [(&str, &str)]| {
            move |name: &str| set.iter().find(|it| it.0 == name).map(|it| it.1.into())
        };
        let all = with(&[
            ("BOXBUILD_STORE", "s"),
            ("XDG_CACHE_HOME", "/c"),
            ("XDG_CONFIG_HOME", "/e"),
            ("XDG_DATA_HOME", "/d"),
        ]);
        assert_eq!(store(None, all), Some("s".into()));
        assert_eq!(store(Some(Path::new("n")), all), Some("n".into()));
        assert_eq!(configuration(all), Some("/e/boxbuild".into()));
        assert_eq!(launcher_configuration(all), Some("/e/boxlaunch".into()));
        assert_eq!(data(all), Some("/d/boxbuild".into()));
        assert_eq!(store(None, with(&[("XDG_CACHE_HOME", "/c")])), Some("/c/boxbuild".into()));
        let home = with(&[("HOME", "/h"), ("BOXBUILD_STORE", "")]);
        assert_eq!(store(None, home), Some("/h/.cache/boxbuild".into()));
        assert_eq!(configuration(home), Some("/h/.config/boxbuild".into()));
        assert_eq!(data(home), Some("/h/.local/share/boxbuild".into()));
        assert_eq!(store(None, with(&[])), None);
    }

    #[test]
    fn a_file_is_named_by_its_variable_or_is_where_others_have_it() {
        let found = |set: &'static [(&str, &str)]| {
            let value = |name: &str| set.iter().find(|it| it.0 == name).map(|it| it.1.into());
            let show = |OwnFile { purpose, path, named_by }| {
                format!("{purpose:?} {} {}", path.display(), named_by.unwrap_or("-"))
            };
            files(value).into_iter().map(show).collect::<Vec<_>>()
        };
        let named = found(&[
            (INIT, "i"),
            (KERNEL, "k"),
            (REGISTRIES, "r"),
            (CERTIFICATES, "c"),
            (AUTH_FILE, "a"),
            (DOCKER, "d"),
            ("XDG_RUNTIME_DIR", "/run"),
            ("XDG_CONFIG_HOME", "/e"),
        ]);
        let expected = [
            "Init i BOXBUILD_INIT",
            "Kernel k BOXBUILD_KERNEL",
            "Registries r BOXBUILD_REGISTRIES",
            "Certificates c SSL_CERT_FILE",
            "Credentials a REGISTRY_AUTH_FILE",
            "Credentials /run/containers/auth.json -",
            "Credentials /e/containers/auth.json -",
            "Credentials d/config.json DOCKER_CONFIG",
        ];
        assert_eq!(named, expected);
        let of_home = found(&[("HOME", "/h"), ("XDG_RUNTIME_DIR", "relative"), (INIT, "")]);
        let expected = ["/h/.config/containers/auth.json", "/h/.docker/config.json"];
        assert_eq!(of_home, expected.map(|it| format!("Credentials {it} -")));
        assert!(found(&[]).is_empty());
    }

    /// boxlaunch reads no secret from these variables, because it needs them itself.
    #[test]
    fn every_variable_is_listed() {
        let asked = std::cell::RefCell::new(std::collections::BTreeSet::new());
        let none = |name: &str| {
            asked.borrow_mut().insert(name.to_owned());
            None
        };
        files(none);
        store(None, none);
        base_store(none);
        configuration(none);
        data(none);
        let listed = VARIABLES.map(str::to_owned);
        assert_eq!(asked.into_inner(), listed.into_iter().collect());
    }
}
