//! `boxlaunch run --secret`: reads secrets, and passes them to the supervisor without leaving copies.
//!
//! First, this program reads the values and writes them to a file in memory
//! ([memfd_create(2)](https://man7.org/linux/man-pages/man2/memfd_create.2.html)). Then it executes itself again without the
//! environment variables that contained values, so the old environment and the old memory are gone. The executed program reads
//! the file and overwrites it.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek as _, Write as _, stdin};
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use box_contract::plan::SSH_AGENT_VARIABLE;
use box_contract::rules::{VARIABLE_FORM, is_variable};
use box_contract::wire::{MAX_SECRET, Secret, SecretError, check_secret};
use box_contract::{RunPlan, SecretDelivery, SecretPlan, ServicePlan};
use host_fs::{OsError, own};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::close;
use zeroize::Zeroizing;

use super::error::{Failure, usage};
use super::given_file;
use super::lacks::Lack;
use super::paths::SELF;
use super::run::RunArgs;

/// The environment variable that passes the descriptor of the file in memory to the executed program.
const FILE: &str = "BOXLAUNCH_SECRETS";

/// The help for a malformed `--secret`.
const FORM: &str =
    "write `--secret NAME=env:VARIABLE`, `--secret NAME=file:PATH` or `--secret NAME=-`";

/// The variables that this program reads, in addition to those in [`own`].
const OWN: [&str; 5] = ["BOXLAUNCH_STATE", FILE, "PATH", SSH_AGENT_VARIABLE, "XDG_STATE_HOME"];

/// Returns whether this program reads the variable.
fn is_own(variable: &str) -> bool {
    OWN.contains(&variable) || own::VARIABLES.contains(&variable)
}

/// A secret of the command line: `NAME=SOURCE`. For example, `API_KEY=env:OPENAI_KEY`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GivenSecret {
    name: String,
    source: Source,
}

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Variable(String),
    File(PathBuf),
    Stdin,
}

impl GivenSecret {
    /// Parses the option's value.
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let (name, source) = text.split_once('=').ok_or_else(|| malformed(text, FORM))?;
        if name == "id" {
            return Err(malformed(text, "that is docker's syntax; here it is NAME=file:PATH"));
        }
        if !is_variable(name) {
            return Err(malformed(text, &format!("a secret's name {VARIABLE_FORM}")));
        }
        let source = match source.split_once(':') {
            Some(("env", variable)) if is_own(variable) => {
                return Err(needed(name, variable));
            }
            Some(("env", variable)) if is_variable(variable) => Source::Variable(variable.into()),
            Some(("file", path)) if !path.is_empty() => Source::File(path.into()),
            None if source == "-" => Source::Stdin,
            _ => {
                let help = format!("{}; a value itself is never on a command line", forms(name));
                return Err(malformed(text, &help));
            }
        };
        Ok(Self { name: name.to_owned(), source })
    }

    /// Returns the option's value for another current directory: `NAME=SOURCE`. `None` if a path cannot be written.
    pub(super) fn word(&self) -> Option<String> {
        let source = match &self.source {
            Source::Variable(variable) => format!("env:{variable}"),
            Source::File(path) => format!("file:{}", std::path::absolute(path).ok()?.to_str()?),
            Source::Stdin => "-".to_owned(),
        };
        Some(format!("{}={source}", self.name))
    }

    /// Returns the name of this secret if its value cannot be read a second time, because it is not in a file.
    pub(super) fn only_once(&self) -> Option<&str> {
        (!matches!(self.source, Source::File(_))).then_some(self.name.as_str())
    }

    /// Returns the secret's name if its value comes from standard input.
    pub(super) fn of_stdin(&self) -> Option<&str> {
        (self.source == Source::Stdin).then_some(&self.name)
    }

    fn read(&self) -> Result<Zeroizing<Vec<u8>>, Failure> {
        let name = &self.name;
        let value = match &self.source {
            Source::Variable(variable) => {
                let value = env::var_os(variable).map(OsString::into_vec);
                value.ok_or_else(|| unset(name, variable))?
            }
            Source::File(path) => {
                let failed =
                    |error| given_file::unread(&format!("the secret {name}"), path, &error);
                bounded(given_file::open(path, failed)?).map_err(failed)?
            }
            Source::Stdin => bounded(stdin().lock())
                .map_err(OsError::system("read a secret from standard input"))?,
        };
        if value.len() > MAX_SECRET {
            return Err(refused(name, SecretError::TooLong));
        }
        Ok(Zeroizing::new(value))
    }
}

/// Returns the help that names the sources of a secret.
fn forms(name: &str) -> String {
    format!(
        "write `--secret {name}=env:{name}`, `--secret {name}=file:PATH` or `--secret {name}=-`"
    )
}

/// Returns the error of an unset variable.
fn unset(name: &str, variable: &str) -> Failure {
    let help = format!("run `export {variable}=…` first, or write `--secret {name}=file:PATH`");
    usage(&format!("--secret {name}: the variable {variable} is not set"), &help)
}

/// Returns the error of a malformed `--secret`. The error never repeats the text after the first `=`, which may be the secret. If
/// only `=` follows, the error does not repeat the name, either: the whole text may be a secret in base64, such as
/// `c2VjcmV0Cg==`.
fn malformed(text: &str, help: &str) -> Failure {
    let has_source = |source: &str| source.bytes().any(|it| it != b'=');
    match text.split_once('=') {
        Some((name, source)) if is_variable(name) && has_source(source) => {
            usage(&format!("--secret {name} has a malformed source"), help)
        }
        Some(_) => usage("a --secret is malformed", help),
        None => usage("a --secret has no source", help),
    }
}

/// Returns the error of a `--secret` without a source that is no name, either. The error does not repeat it, because it may be the secret.
fn unknown(plan: &RunPlan) -> Failure {
    let names: Vec<_> = plan.secrets.iter().map(|it| it.name.as_str()).collect();
    let help = match names.as_slice() {
        [] => "the box declares no secrets: leave it out".to_owned(),
        names => format!("the box declares {}; {FORM}", names.join(", ")),
    };
    usage("a --secret is neither a name of the box's secrets nor NAME=SOURCE", &help)
}

/// Returns the error of a variable that this program reads.
fn needed(name: &str, variable: &str) -> Failure {
    let message = format!(
        "the secret {name} cannot come from the variable {variable}, which boxlaunch itself needs"
    );
    usage(&message, &format!("copy it into another variable, or write `--secret {name}=file:PATH`"))
}

/// Reads to the end, but at most one byte more than [`MAX_SECRET`], so that the caller notices a value over the limit.
fn bounded(from: impl Read) -> io::Result<Vec<u8>> {
    let mut value = Vec::with_capacity(MAX_SECRET + 1);
    from.take(MAX_SECRET as u64 + 1).read_to_end(&mut value)?;
    Ok(value)
}

/// Returns the secrets of the command line, which the box must declare.
///
/// clap does not parse them, because the errors of clap repeat the values.
pub(super) fn checked(args: &RunArgs, plan: &RunPlan) -> Result<Vec<GivenSecret>, Failure> {
    // A name alone is the variable of that name. Only a name that the box declares is one: another word could be a value.
    let is_name = |text: &str| plan.secrets.iter().any(|it| it.name == text);
    let given = args.given.secrets.iter().map(|it| match is_name(it) {
        true => GivenSecret::parse(&format!("{it}=env:{it}")),
        false if !it.contains('=') => Err(unknown(plan)),
        false => GivenSecret::parse(it),
    });
    let given: Vec<_> = given.collect::<Result<_, _>>()?;
    check_names(&given, plan)?;
    check_env(&given, |variable| args.given.env.iter().any(|it| it.is_from(variable)))?;
    if args.options.interactive && given.iter().any(|it| it.source == Source::Stdin) {
        let help = "give the secret by file:PATH or env:VARIABLE";
        return Err(usage("standard input cannot be a secret and CMD's input", help));
    }
    Ok(given)
}

/// Checks that no variable is both the source of a secret and passed on to CMD with `-e`: [`restart`] removes the variable, so
/// CMD would not get it.
fn check_env(given: &[GivenSecret], passes_on: impl Fn(&str) -> bool) -> Result<(), Failure> {
    let passed_on = given.iter().find_map(|it| match &it.source {
        Source::Variable(variable) => Some(variable).filter(|it| passes_on(it)),
        Source::File(_) | Source::Stdin => None,
    });
    let Some(variable) = passed_on else { return Ok(()) };
    let message =
        format!("a secret comes from the variable {variable}, and `-e {variable}` passes it on");
    let help = "leave `-e` out: the component for which the Boxfile declares the secret has it";
    Err(usage(&message, help))
}

/// Checks that no secret is given twice, that at most one comes from standard input, and that the box declares each one.
fn check_names(given: &[GivenSecret], plan: &RunPlan) -> Result<(), Failure> {
    let declared = &plan.secrets;
    for (at, secret) in given.iter().enumerate() {
        let name = &secret.name;
        if given[..at].iter().any(|it| it.name == *name) {
            return Err(usage(&format!("the secret {name} is given twice"), "leave one out"));
        }
        if given[..at]
            .iter()
            .any(|it| (&it.source, &secret.source) == (&Source::Stdin, &Source::Stdin))
        {
            let help = "use file:PATH or env:VARIABLE for the others";
            return Err(usage("only one secret can come from standard input", help));
        }
        if !declared.iter().any(|it| it.name == *name) {
            let names: Vec<_> = declared.iter().map(|it| it.name.as_str()).collect();
            let is_variable = plan.launch_variables().any(|(_, it)| it == name);
            let help = match names.as_slice() {
                _ if is_variable => format!("it is a variable: `-e {name}=VALUE`"),
                [] => format!(
                    "leave it out, or write `secret \"{name}\"` into the Boxfile, and build again"
                ),
                names => format!("it declares {}", names.join(", ")),
            };
            return Err(usage(&format!("the box declares no secret {name}"), &help));
        }
    }
    Ok(())
}

/// Returns the missing options for the secrets of a box.
pub(super) fn lacking(given: &[GivenSecret], plan: &RunPlan) -> Option<Lack> {
    let is_given = |it: &&SecretPlan| given.iter().any(|secret| secret.name == it.name);
    let missing = plan.secrets.iter().filter(|it| !is_given(it));
    let missing: Vec<_> = missing.map(|it| &*it.name).collect();
    if missing.is_empty() {
        return None;
    }
    let words = missing.iter().map(|name| format!("--secret {name}=env:{name}"));
    let words = words.collect::<Vec<_>>().join(" ");
    Some(Lack {
        message: format!(
            "the box declares secrets that were not given: {}",
            missing.iter().map(|it| with_places(it, plan)).collect::<Vec<_>>().join(", ")
        ),
        help: format!(
            "add `{words}`; `NAME=file:PATH` reads a file instead, and `NAME=-` standard input"
        ),
        words,
    })
}

/// Returns the name of a secret, with the URLs of the services that get it.
fn with_places(name: &str, plan: &RunPlan) -> String {
    let gets_it = |it: &&ServicePlan| it.headers.iter().any(|header| header.secret == name);
    let places: Vec<_> = plan.services.iter().filter(gets_it).map(|it| it.to.as_str()).collect();
    if places.is_empty() {
        name.to_owned()
    } else {
        format!("{name} (for {})", places.join(" and "))
    }
}

/// Protects the memory of this process from other processes and from core dumps:
/// [prctl(2)](https://man7.org/linux/man-pages/man2/prctl.2.html), `PR_SET_DUMPABLE`.
pub(super) fn hide_memory() -> Result<(), OsError> {
    let none =
        |error| OsError::System { action: "hide the memory", source: io::Error::from(error) };
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(none)?;
    prctl::set_dumpable(false).map_err(none)
}

/// Reads the values, and executes this program again with them. Returns only on an error.
pub(super) fn restart(given: &[GivenSecret], words: Vec<OsString>) -> Failure {
    match hide_memory().map_err(Into::into).and_then(|()| gather(given)) {
        Ok(file) => {
            let mut again = Command::new(SELF);
            again.args(words).env(FILE, file.as_raw_fd().to_string());
            for secret in given {
                if let Source::Variable(variable) = &secret.source {
                    again.env_remove(variable);
                }
            }
            let (path, source) = (SELF.into(), again.exec());
            OsError::File { action: "start", path, source }.into()
        }
        Err(error) => error,
    }
}

/// Writes the values to a file in memory, each after its length in four bytes (little-endian).
fn gather(given: &[GivenSecret]) -> Result<File, Failure> {
    let action = "keep the secrets in memory";
    // Without close-on-exec, the file stays open in the executed program.
    let file =
        memfd_create("secrets", MFdFlags::MFD_ALLOW_SEALING).map_err(OsError::system(action))?;
    let mut file = File::from(file);
    for secret in given {
        let value = secret.read()?;
        let length = u32::try_from(value.len()).unwrap_or(u32::MAX).to_le_bytes();
        let written = file.write_all(&length).and_then(|()| file.write_all(&value));
        written.map_err(OsError::system(action))?;
    }
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals())).map_err(OsError::system(action))?;
    Ok(file)
}

/// Returns the descriptor of the file with the values, if [`restart`] has executed this program.
pub(super) fn handed_over() -> Option<RawFd> {
    env::var(FILE).ok()?.parse().ok().filter(|fd| *fd > 2)
}

/// Reads the values from the file of [`handed_over`], and returns them in the order of the plan.
pub(super) fn take(given: &[GivenSecret], plan: &RunPlan) -> Result<Vec<Secret>, Failure> {
    let Some(fd) = handed_over().filter(|_| !given.is_empty()) else { return Ok(Vec::new()) };
    hide_memory()?;
    let read = read_and_clear(fd, given.len()).map_err(OsError::system("take the secrets"))?;
    in_order(given, plan, read)
}

/// Reads the values from their files again, and returns them in the order of the plan.
pub(super) fn take_again(given: &[GivenSecret], plan: &RunPlan) -> Result<Vec<Secret>, Failure> {
    let read: Result<_, _> = given.iter().map(GivenSecret::read).collect();
    in_order(given, plan, read?)
}

/// Checks that the values of the secrets of a run can be read now.
pub(super) fn check_sources(args: &RunArgs, plan: &RunPlan) -> Result<(), Failure> {
    take_again(&checked(args, plan)?, plan).map(drop)
}

/// Returns the values of secrets in the order of the plan.
fn in_order(
    given: &[GivenSecret],
    plan: &RunPlan,
    read: Vec<Zeroizing<Vec<u8>>>,
) -> Result<Vec<Secret>, Failure> {
    let declared = &plan.secrets;
    let mut values: Vec<_> = given.iter().map(|it| &it.name).zip(read).collect();
    let in_order = (0..).zip(declared).filter_map(|(index, plan)| {
        let at = values.iter().position(|(name, _)| **name == plan.name)?;
        let (name, value) = values.swap_remove(at);
        Some(
            deliverable(value, &plan.delivery)
                .map(|value| Secret { index, value })
                .map_err(|error| refused(name, error)),
        )
    });
    in_order.collect()
}

/// Returns the value as the component gets it. A line break at the end of the value of a variable or of a header is removed.
fn deliverable(
    mut value: Zeroizing<Vec<u8>>,
    delivery: &SecretDelivery,
) -> Result<Zeroizing<Vec<u8>>, SecretError> {
    if matches!(delivery, SecretDelivery::Env | SecretDelivery::Host) {
        value.pop_if(|last| *last == b'\n').and_then(|_| value.pop_if(|last| *last == b'\r'));
    }
    check_secret(&value, delivery).map(|()| value)
}

/// Returns the seals of the file that [`gather`] creates. They fix its size, and [`take`] refuses a file without them.
fn seals() -> SealFlag {
    SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL
}

fn read_and_clear(fd: RawFd, count: usize) -> io::Result<Vec<Zeroizing<Vec<u8>>>> {
    let path = Path::new("/proc/self/fd").join(fd.to_string());
    let mut file = File::options().read(true).write(true).open(path)?;
    let found = fcntl(&file, FcntlArg::F_GET_SEALS).map(SealFlag::from_bits_retain);
    if found != Ok(seals()) {
        return Err(io::Error::other(format!(
            "{FILE} does not name the file that boxlaunch has made"
        )));
    }
    close(fd)?;
    let mut values = Vec::new();
    for _ in 0..count {
        let mut length = [0; 4];
        file.read_exact(&mut length)?;
        let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
        let mut value = Zeroizing::new(vec![0; length.min(MAX_SECRET)]);
        file.read_exact(&mut value)?;
        values.push(value);
    }
    // The file is overwritten, because the caller of a detached run has it open, too.
    let length = file.stream_position()?;
    file.rewind()?;
    io::copy(&mut io::repeat(0).take(length), &mut file)?;
    Ok(values)
}

fn refused(name: &str, error: SecretError) -> Failure {
    usage(&format!("the secret {name} cannot be handed over: {error}"), "give another value")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(names: &[&str]) -> Vec<SecretPlan> {
        let scope = box_contract::Scope::Agent;
        let plan = |name: &&str| SecretPlan {
            name: (*name).to_owned(),
            scope,
            delivery: SecretDelivery::Env,
        };
        names.iter().map(plan).collect()
    }

    fn given(options: &[&str]) -> Vec<GivenSecret> {
        options.iter().map(|it| GivenSecret::parse(it).unwrap()).collect()
    }

    #[test]
    fn a_source_is_named_and_a_value_never_repeated() {
        assert_eq!(given(&["A=env:B"])[0].source, Source::Variable("B".into()));
        assert_eq!(given(&["A=file:a=b:c"])[0].source, Source::File("a=b:c".into()));
        assert_eq!(given(&["A=-"])[0].source, Source::Stdin);
        for bad in ["A=canary", "A=canary:x", "A=env:", "A=env:a b", "A=file:", "A=", "A", "a b=-"]
        {
            let error = GivenSecret::parse(bad).unwrap_err().text();
            assert!(!error.contains("canary"), "{bad}: {error}");
        }
    }

    #[test]
    fn what_is_malformed_is_named_where_that_is_no_value() {
        let refused = |text: &str| GivenSecret::parse(text).unwrap_err().text();
        assert!(refused("canary").starts_with("error: a --secret has no source\n"));
        for base64 in ["canary=", "canary==", "can/ary=x"] {
            let error = refused(base64);
            assert!(error.starts_with("error: a --secret is malformed\n"), "{error}");
        }
        assert!(refused("A=canary").starts_with("error: --secret A has a malformed source\n"));
        insta::assert_snapshot!(refused("A=env:HOME"), @"
        error: the secret A cannot come from the variable HOME, which boxlaunch itself needs
          = help: copy it into another variable, or write `--secret A=file:PATH`
        ");
        insta::assert_snapshot!(given(&["A=env:NOT_THERE"])[0].read().unwrap_err().text(), @"
        error: --secret A: the variable NOT_THERE is not set
          = help: run `export NOT_THERE=…` first, or write `--secret A=file:PATH`
        ");
    }

    #[test]
    fn a_name_that_the_box_declares_is_a_variable() {
        let mut plan = testkit::test_box::config().plan;
        plan.secrets = declared(&["A"]);
        let refused = |option: &str| {
            let args = RunArgs::of_words(["x.box", "--secret", option]).unwrap();
            checked(&args, &plan).unwrap_err().text()
        };
        insta::assert_snapshot!(refused("B"), @"
        error: a --secret is neither a name of the box's secrets nor NAME=SOURCE
          = help: the box declares A; write `--secret NAME=env:VARIABLE`, `--secret NAME=file:PATH` or `--secret NAME=-`
        ");
        let args = RunArgs::of_words(["x.box", "--secret", "A"]).unwrap();
        assert_eq!(checked(&args, &plan).unwrap()[0].source, Source::Variable("A".into()));
    }

    #[test]
    fn a_variable_is_a_secret_or_passed_on() {
        let checked = |variable| check_env(&given(&["A=env:KEY"]), |it| it == variable).is_ok();
        assert!(checked("OTHER") && !checked("KEY"));
    }

    #[test]
    fn names_fit_those_that_are_declared() {
        let mut plan = testkit::test_box::config().plan;
        plan.secrets = declared(&["A", "B"]);
        plan.agent.launch_env = vec!["URL".to_owned()];
        let checked = |options: &[&str]| {
            check_names(&given(options), &plan).map_err(|error| error.text())?;
            let lacks = lacking(&given(options), &plan);
            Lack::check(lacks.as_slice()).map_err(|error| error.text())
        };
        assert_eq!(checked(&["B=-", "A=env:A"]), Ok(()));
        insta::assert_snapshot!(checked(&[]).unwrap_err(), @"
        error: the box declares secrets that were not given: A, B
          = help: add `--secret A=env:A --secret B=env:B`; `NAME=file:PATH` reads a file instead, and `NAME=-` standard input
        ");
        insta::assert_snapshot!(checked(&["URL=-"]).unwrap_err(), @"
        error: the box declares no secret URL
          = help: it is a variable: `-e URL=VALUE`
        ");
        insta::assert_snapshot!(checked(&["A=-", "A=-"]).unwrap_err(), @"
        error: the secret A is given twice
          = help: leave one out
        ");
        insta::assert_snapshot!(checked(&["A=-", "B=-"]).unwrap_err(), @"
        error: only one secret can come from standard input
          = help: use file:PATH or env:VARIABLE for the others
        ");
        insta::assert_snapshot!(checked(&["C=-"]).unwrap_err(), @"
        error: the box declares no secret C
          = help: it declares A, B
        ");
    }

    #[test]
    fn the_file_in_memory_is_read_in_order_and_left_empty() {
        let directory = tempfile::tempdir().unwrap();
        let options = ["A=first", "B=second"].map(|option| {
            let (name, value) = option.split_once('=').unwrap();
            let path = directory.path().join(name);
            std::fs::write(&path, value).unwrap();
            format!("{name}=file:{}", path.display())
        });
        let file = gather(&given(&[&options[0], &options[1]])).unwrap();
        let mut other = file.try_clone().unwrap();
        let fd = std::os::fd::IntoRawFd::into_raw_fd(file);
        assert!(read_and_clear(other_file(), 1).is_err(), "it is left alone");
        let values = read_and_clear(fd, 2).unwrap();
        assert_eq!([values[0].as_slice(), &values[1]], [b"first".as_slice(), b"second"]);
        let mut left = Vec::new();
        other.rewind().unwrap();
        other.read_to_end(&mut left).unwrap();
        assert!(left.iter().all(|byte| *byte == 0), "{left:?}");
    }

    fn other_file() -> RawFd {
        let file = tempfile::tempfile().unwrap();
        (&file).write_all(b"\x01\0\0\0x").unwrap();
        std::os::fd::IntoRawFd::into_raw_fd(file)
    }

    #[test]
    fn a_variable_does_without_the_last_line_feed() {
        let value = |text: &[u8]| Zeroizing::new(text.to_vec());
        let file = SecretDelivery::File { path: "/a".to_owned() };
        let env = SecretDelivery::Env;
        assert_eq!(deliverable(value(b"x\n\n"), &env).unwrap().as_slice(), b"x\n");
        assert_eq!(deliverable(value(b"x\r\n"), &env).unwrap().as_slice(), b"x");
        assert_eq!(deliverable(value(b"\n"), &env), Err(SecretError::Empty));
        assert_eq!(deliverable(value(b"x\n"), &file).unwrap().as_slice(), b"x\n");
        assert_eq!(deliverable(value(b"\xFF"), &env), Err(SecretError::Encoding));
    }
}
