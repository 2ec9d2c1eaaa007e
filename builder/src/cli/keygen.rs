//! `boxbuild keygen`: makes a key for signatures.

use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use box_contract::ErrorCode;
use box_trust::{Algorithm, PrivateKey};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use cli_common::output::check_links;
use host_fs::FileError;
use host_fs::publish::FileDraft;
use safe_text::shell_path;
use serde_json::json;

use super::failure::Failure;
use super::stored::PROGRAM;
use super::{signing, terminal};

/// Makes a private key for signatures, and its public key.
///
/// Writes NAME.key, which only you can read and which is not encrypted, and NAME.pub, which hosts need to verify boxes. Existing
/// files are never overwritten.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild keygen -o acme\n  \
    boxbuild sign hello --key acme.key\n  \
    boxbuild verify hello --key acme.pub")]
pub(crate) struct Args {
    /// The path of the files, without `.key` and `.pub`
    #[arg(short, long, value_name = "NAME", default_value = "boxbuild")]
    output: PathBuf,
    /// The algorithm of the key. cosign's own keys are of ecdsa-p256
    #[arg(long, value_name = "ALGORITHM", default_value = "ed25519", value_parser = algorithms())]
    algorithm: Algorithm,
    /// Print JSON, also for errors (except usage errors)
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    check_links(&PROGRAM, &args.output)?;
    let [private, public] = ["key", "pub"].map(|end| with_ending(&args.output, end));
    let (secret, open) = (Draft::new(&private, 0o600)?, Draft::new(&public, 0o644)?);
    signing::hide_memory()?;
    let key = PrivateKey::generate(args.algorithm)?;
    // If the second file appears meanwhile, only the private key is left, from which the public one can be made again.
    secret.write(key.to_pem().as_bytes())?;
    open.write(key.public().to_pem().as_bytes())?;
    let hint = key.public().hint();
    if args.json {
        let [private, public] = [&private, &public].map(|it| it.display().to_string());
        let report = json!({
            "private": private, "public": public, "algorithm": args.algorithm.name(), "key_hint": hint,
        });
        terminal::json(&report.to_string());
        return Ok(());
    }
    terminal::note(&format!("wrote {}; keep it secret", private.display()));
    terminal::note(&format!(
        "wrote {}; `boxbuild verify BOX --key {}` verifies signatures with it",
        public.display(),
        shell_path(&public)
    ));
    terminal::result(&hint);
    Ok(())
}

/// Returns the parser of an algorithm's name, which knows all names for `--help` and completion.
fn algorithms() -> impl TypedValueParser<Value = Algorithm> {
    let names = Algorithm::ALL.map(Algorithm::name);
    PossibleValuesParser::new(names).try_map(|name| {
        let found = Algorithm::ALL.into_iter().find(|it| it.name() == name);
        found.ok_or("it is no algorithm")
    })
}

/// Adds an ending to a path. `acme` and `acme.key` are the same name.
fn with_ending(path: &Path, end: &str) -> PathBuf {
    let is_ending = path.extension().is_some_and(|it| it == "key" || it == "pub");
    let mut name =
        if is_ending { path.with_extension("") } else { path.to_owned() }.into_os_string();
    name.push(".");
    name.push(end);
    name.into()
}

/// A new file.
struct Draft<'a> {
    path: &'a Path,
    draft: FileDraft,
}

impl<'a> Draft<'a> {
    /// Makes the draft of a file that must not exist.
    fn new(path: &'a Path, mode: u32) -> Result<Self, Failure> {
        if path.symlink_metadata().is_ok() {
            return Err(exists(path));
        }
        let draft = FileDraft::beside(path, mode).map_err(FileError::of("write", path))?;
        Ok(Self { path, draft })
    }

    fn write(self, bytes: &[u8]) -> Result<(), Failure> {
        let Self { path, draft } = self;
        let written = draft.file().write_all(bytes).and_then(|()| draft.finish_new(path));
        written.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => exists(path),
            _ => failed(path, error),
        })
    }
}

fn failed(path: &Path, error: io::Error) -> Failure {
    FileError::of("write", path)(error).into()
}

fn exists(path: &Path) -> Failure {
    let help = "name another one with `-o NAME`; a key that is overwritten is lost";
    Failure::new((ErrorCode::OutputExists, help), format!("{} exists already", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_link_that_a_box_left_leads_a_key_out_of_the_project() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().canonicalize().unwrap().join(path);
        fs::create_dir_all(at("project/.git")).unwrap();
        fs::create_dir_all(at("elsewhere")).unwrap();
        symlink("../elsewhere", at("project/out")).unwrap();
        let key = |output: &str| {
            let output = at(output);
            run(&Args { output, algorithm: Algorithm::Ed25519, json: false })
        };
        let refused = key("project/out/acme").unwrap_err().text();
        assert!(refused.contains("project/out is a link: the path leads to"), "{refused}");
        assert_eq!(fs::read_dir(at("elsewhere")).unwrap().count(), 0);
        key("project/acme").unwrap();
        assert!(at("project/acme.key").exists());
    }

    #[test]
    fn the_ending_is_added_once() {
        for (name, expected) in [
            ("acme", "acme.key"),
            ("acme.key", "acme.key"),
            ("a/acme.pub", "a/acme.key"),
            ("a.b", "a.b.key"),
        ] {
            assert_eq!(with_ending(Path::new(name), "key"), Path::new(expected));
        }
    }
}
