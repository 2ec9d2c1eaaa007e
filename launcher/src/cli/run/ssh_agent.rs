//! `--ssh-agent`: the SSH agent of the user, for a box that declares `ssh-agent`.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::path::{Path, PathBuf};

use box_contract::plan::{SSH_AGENT_SOCKET, SSH_AGENT_VARIABLE};
use box_contract::{ErrorCode, RunPlan, Scope};
use boxlaunch::mounts::sockets::SharedSocket;
use host_fs::named_path;
use nix::unistd::geteuid;
use safe_text::shown;

use super::RunArgs;
use crate::cli::error::{Failure, usage};
use crate::cli::given_file;
use crate::cli::lacks::Lack;

/// The value that stands for the agent of the environment, also if the option has no value.
pub(super) const ENV: &str = "env";
/// The value that stands for no agent.
const NONE: &str = "none";

const FORM: &str =
    "write the path of a socket, or `none`; `--ssh-agent` alone is for the agent of SSH_AUTH_SOCK";
const START: &str = "start an agent and give it your key: `eval $(ssh-agent); ssh-add`; or `--ssh-agent=none` starts the box without it";
const UNDECLARED: &str = "declare `ssh-agent` in its Boxfile, and build it again; or `-v \"$SSH_AUTH_SOCK\":/ssh.sock` lets it connect to the \
                          agent without a filter";

/// The SSH agent of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum AgentChoice {
    /// The agent whose socket boxlaunch's environment names, which is read at each start of the box.
    Env,
    /// No agent.
    None,
    /// The agent with this socket.
    Socket(PathBuf),
}

impl AgentChoice {
    /// Parses a value of `--ssh-agent`.
    pub(super) fn parse(value: &OsStr) -> Result<Self, &'static str> {
        match value.to_str() {
            Some("") => Err(FORM),
            Some(ENV) => Ok(Self::Env),
            Some(NONE) => Ok(Self::None),
            _ => Ok(Self::Socket(value.into())),
        }
    }

    /// Returns the option's value, unless it is a path.
    pub(super) const fn keyword(&self) -> Option<&'static str> {
        match self {
            Self::Env => Some(ENV),
            Self::None => Some(NONE),
            Self::Socket(_) => None,
        }
    }

    /// Returns the option's value, if it is a path.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Env | Self::None => None,
            Self::Socket(path) => Some(path),
        }
    }

    /// Finds the socket, for the components of `scope`. `variable` returns the value of a variable.
    fn find(
        &self,
        scope: Scope,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Option<SharedSocket>, Failure> {
        let path = match self {
            Self::None => return Ok(None),
            Self::Socket(path) => path.clone(),
            Self::Env => named_path(variable(SSH_AGENT_VARIABLE)).ok_or_else(unset)?,
        };
        let real = given_file::real_path(&path, |error| absent(&path, &error))?;
        let socket = SharedSocket::new(real, SSH_AGENT_SOCKET, scope);
        let socket = socket.map_err(|error| absent(&path, &error.source))?;
        if socket.owner() != geteuid().as_raw() {
            return Err(foreign(&path, socket.owner()));
        }
        if !socket.is_served() {
            return Err(absent(&path, &"no program listens there"));
        }
        Ok(Some(socket.of_ssh_agent()))
    }
}

/// Returns the error of an environment without an agent.
fn unset() -> Failure {
    let message = format!("there is no SSH agent: the variable {SSH_AGENT_VARIABLE} is not set");
    usage(&message, START)
}

/// Returns the error of an agent that does not run, or of another file.
fn absent(path: &Path, reason: &dyn Display) -> Failure {
    let message = format!("there is no SSH agent at {}: {reason}", path.display());
    Failure::new((ErrorCode::Io, START), shown(&message))
}

/// Returns the error of the agent of another user.
fn foreign(path: &Path, owner: u32) -> Failure {
    let message = format!("the SSH agent at {} belongs to the user {owner}", path.display());
    usage(&message, START)
}

/// Checks that the box declares the agent that the command line gives. Returns the option that the command line lacks.
pub(super) fn lacking(args: &RunArgs, plan: &RunPlan) -> Result<Option<Lack>, Failure> {
    match (&args.given.ssh_agent, plan.ssh_agent) {
        (Some(_), None) => Err(usage("the box declares no `ssh-agent`", UNDECLARED)),
        (None, Some(_)) => Ok(Some(missing())),
        (Some(_), Some(_)) | (None, None) => Ok(None),
    }
}

fn missing() -> Lack {
    let help = "add `--ssh-agent` if it may log in and sign as you with each of these keys, for as long as it runs; \
                `--ssh-agent=none` starts it without them";
    Lack {
        message: "the box wants to use the keys of your SSH agent".to_owned(),
        help: help.to_owned(),
        words: "--ssh-agent".to_owned(),
    }
}

/// Returns the socket of the agent that a box gets.
pub(in crate::cli) fn socket(
    args: &RunArgs,
    plan: &RunPlan,
) -> Result<Option<SharedSocket>, Failure> {
    let (Some(choice), Some(agent)) = (&args.given.ssh_agent, plan.ssh_agent) else {
        return Ok(None);
    };
    choice.find(agent.scope, |name| env::var_os(name))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::net::UnixListener;

    use box_contract::SshAgentPlan;

    use super::*;

    fn args(options: &[&str]) -> RunArgs {
        RunArgs::of_words(["x.box"].iter().chain(options)).unwrap()
    }

    #[test]
    fn a_value_is_a_word_or_a_path() {
        for (options, choice) in [
            (&[] as &[&str], None),
            (&["--ssh-agent"], Some(AgentChoice::Env)),
            (&["--ssh-agent=env"], Some(AgentChoice::Env)),
            (&["--ssh-agent=none"], Some(AgentChoice::None)),
            (&["--ssh-agent=./none"], Some(AgentChoice::Socket("./none".into()))),
            (&["--ssh-agent=/run/a=b"], Some(AgentChoice::Socket("/run/a=b".into()))),
        ] {
            assert_eq!(args(options).given.ssh_agent, choice, "{options:?}");
        }
        let command = args(&["--ssh-agent", "--", "true"]);
        assert_eq!((command.given.ssh_agent, command.command.len()), (Some(AgentChoice::Env), 1));
        let error = RunArgs::of_words(["x.box", "--ssh-agent="]).unwrap_err().to_string();
        assert!(error.contains("write the path of a socket, or `none`"), "{error}");
    }

    #[test]
    fn the_option_is_for_a_box_that_declares_it_and_never_implied() {
        let mut plan = testkit::test_box::config().plan;
        let lacking = |plan: &RunPlan, options: &[&str]| {
            let lack = super::lacking(&args(options), plan).map_err(|error| error.text())?;
            Lack::check(lack.as_slice()).map_err(|error| error.text())
        };
        assert_eq!(lacking(&plan, &[]), Ok(()));
        insta::assert_snapshot!(lacking(&plan, &["--ssh-agent"]).unwrap_err(), @r#"
        error: the box declares no `ssh-agent`
          = help: declare `ssh-agent` in its Boxfile, and build it again; or `-v "$SSH_AUTH_SOCK":/ssh.sock` lets it connect to the agent without a filter
        "#);
        assert!(lacking(&plan, &["--ssh-agent=none"]).is_err());
        plan.ssh_agent = Some(SshAgentPlan { scope: Scope::Agent });
        insta::assert_snapshot!(lacking(&plan, &[]).unwrap_err(), @"
        error: the box wants to use the keys of your SSH agent
          = help: add `--ssh-agent` if it may log in and sign as you with each of these keys, for as long as it runs; `--ssh-agent=none` starts it without them
        ");
        for option in ["--ssh-agent", "--ssh-agent=none", "--ssh-agent=/a"] {
            assert_eq!(lacking(&plan, &[option]), Ok(()), "{option}");
        }
        assert!(socket(&args(&["--ssh-agent=none"]), &plan).unwrap().is_none());
    }

    #[test]
    fn an_agent_is_a_socket_of_this_user_at_which_a_program_listens() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().canonicalize().unwrap();
        let at = |name: &str| real.join(name);
        fs::write(at("file"), "").unwrap();
        drop(UnixListener::bind(at("ended")).unwrap());
        let _agent = UnixListener::bind(at("agent")).unwrap();
        let find = |choice: AgentChoice, variable: Option<&str>| {
            let variable: Option<OsString> =
                variable.map(|it| if it.is_empty() { it.into() } else { at(it).into() });
            let found = choice.find(Scope::Business, |name| {
                assert_eq!(name, "SSH_AUTH_SOCK");
                variable.clone()
            });
            found.map_err(|error| error.text().replace(&real.display().to_string(), "HERE"))
        };
        for found in [
            find(AgentChoice::Env, Some("agent")),
            find(AgentChoice::Socket(at("agent")), Some("ended")),
        ] {
            let socket = found.unwrap().unwrap();
            assert!(socket.is_ssh_agent() && socket.host() == at("agent"));
        }
        assert!(find(AgentChoice::None, Some("agent")).unwrap().is_none());
        let refused = |name| find(AgentChoice::Env, name).unwrap_err();
        let all = [None, Some(""), Some("none"), Some("ended"), Some("file")].map(refused);
        insta::assert_snapshot!(all.concat(), @"
        error: there is no SSH agent: the variable SSH_AUTH_SOCK is not set
          = help: start an agent and give it your key: `eval $(ssh-agent); ssh-add`; or `--ssh-agent=none` starts the box without it
        error: there is no SSH agent: the variable SSH_AUTH_SOCK is not set
          = help: start an agent and give it your key: `eval $(ssh-agent); ssh-add`; or `--ssh-agent=none` starts the box without it
        error: there is no SSH agent at HERE/none: No such file or directory (os error 2)
          = help: start an agent and give it your key: `eval $(ssh-agent); ssh-add`; or `--ssh-agent=none` starts the box without it
        error: there is no SSH agent at HERE/ended: no program listens there
          = help: start an agent and give it your key: `eval $(ssh-agent); ssh-add`; or `--ssh-agent=none` starts the box without it
        error: there is no SSH agent at HERE/file: it is not a socket
          = help: start an agent and give it your key: `eval $(ssh-agent); ssh-add`; or `--ssh-agent=none` starts the box without it
        ");
        insta::assert_snapshot!(foreign(Path::new("/tmp/agent"), 1000).text(), @"
        error: the SSH agent at /tmp/agent belongs to the user 1000
          = help: start an agent and give it your key: `eval $(ssh-agent); ssh-add`; or `--ssh-agent=none` starts the box without it
        ");
    }
}
