//! OpenSSH for a test: the keys of a user, the user's agent, and a server to which git can push.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::prerequisites::{Package, Say, openssh_server, packages};
use crate::{KitError, Result, Workspace, program};

/// How often the socket of the agent is looked for, and the pause between two looks: a minute in all.
const LOOKS: u32 = 1200;
const PAUSE: Duration = Duration::from_millis(50);

/// The user of the server, in the server's user namespace.
const USER: u32 = 1000;

/// A directory with keys, repositories and the agent's socket. Dropping it ends the agent and removes the directory.
#[derive(Debug)]
pub struct OpenSsh {
    agent: Child,
    directory: tempfile::TempDir,
}

impl OpenSsh {
    /// The URL of the server, without a path. Every path of the host can follow.
    pub const URL: &'static str = "ssh://git@ssh.test.example";
    /// The types of the user's keys.
    pub const TYPES: [&'static str; 3] = ["ed25519", "ecdsa", "rsa"];

    /// Makes keys and certificates, and starts an agent that has them. Missing programs are fetched first.
    ///
    /// # Errors
    /// A program cannot be fetched, or fails.
    pub fn start(workspace: &Workspace, say: Say<'_>) -> Result<Self> {
        packages(&[Package::OpensshClient, Package::Git, Package::Libwrap], say)?;
        let server = openssh_server(workspace, say)?;
        let directory =
            tempfile::tempdir().map_err(KitError::file("make", Path::new("a directory")))?;
        let socket = directory.path().join("agent.sock");
        let mut command = Command::new("ssh-agent");
        command.arg("-D").arg("-a").arg(&socket);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let agent = command.spawn().map_err(|source| program::not_started(&command, source))?;
        // From here on, dropping `openssh` ends the agent.
        let openssh = Self { agent, directory };
        let is_there = (0..LOOKS).any(|at| {
            thread::sleep(if at > 0 { PAUSE } else { Duration::ZERO });
            socket.exists()
        });
        if !is_there {
            return Err(KitError::malformed("ssh-agent", "it has made no socket"));
        }
        openssh.make_keys()?;
        openssh.configure(&server)?;
        Ok(openssh)
    }

    /// Returns a path in the directory.
    pub fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the socket of the agent.
    pub fn agent(&self) -> PathBuf {
        self.at("agent.sock")
    }

    /// Returns the files with the public keys of the agent, and with their certificates.
    pub fn public_keys(&self) -> Vec<PathBuf> {
        let of = |kind| [format!("{kind}.pub"), format!("{kind}-cert.pub")];
        Self::TYPES.into_iter().flat_map(of).map(|name| self.at(&name)).collect()
    }

    /// Returns a command whose programs use the agent at `socket` and the server, and read no settings of the user.
    pub fn command(&self, program: impl AsRef<OsStr>, socket: &Path) -> Command {
        let directory = self.directory.path();
        let ssh = format!(
            "ssh -F none -o 'ProxyCommand=sh {0}/server.sh' -o UserKnownHostsFile={0}/known_hosts \
             -o StrictHostKeyChecking=no -o IdentityFile=none -o LogLevel=ERROR",
            directory.display()
        );
        let mut command = Command::new(program);
        command.current_dir(directory).stdin(Stdio::null());
        command.env("SSH_AUTH_SOCK", socket).env("GIT_SSH_COMMAND", ssh).env("HOME", directory);
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "Ada");
            command.env(format!("GIT_{role}_EMAIL"), "ada@test.example");
        }
        command
    }

    fn run(&self, program: &str, args: &[&str]) -> Result<()> {
        program::run(self.command(program, &self.agent()).args(args)).map(drop)
    }

    /// Makes the keys of the server and of the user, and gives the user's to the agent. Only the agent has them then.
    fn make_keys(&self) -> Result<()> {
        let key = |kind: &str, name: &str| {
            self.run("ssh-keygen", &["-q", "-t", kind, "-N", "", "-C", "test", "-f", name])
        };
        key("ed25519", "host_key")?;
        key("ed25519", "authority")?;
        let mut authorized = String::new();
        for kind in Self::TYPES {
            key(kind, kind)?;
            let public = format!("{kind}.pub");
            self.run("ssh-keygen", &["-q", "-s", "authority", "-I", "test", "-n", "git", &public])?;
            self.run("ssh-add", &["-q", kind])?;
            let path = self.at(&public);
            authorized += &fs::read_to_string(&path).map_err(KitError::file("read", &path))?;
            fs::remove_file(self.at(kind)).map_err(KitError::file("remove", &self.at(kind)))?;
        }
        self.write("authorized_keys", &authorized)
    }

    /// Writes the settings of the server, and the script that starts it for one client, with which it talks through its standard
    /// input and output.
    ///
    /// sshd knows its users from /etc/passwd, and root's sshd needs a further user. So it runs in a user namespace as [`USER`], with
    /// another /etc/passwd.
    fn configure(&self, server: &Path) -> Result<()> {
        let (home, server) = (self.directory.path().display(), server.display());
        self.write("passwd", &format!("git:x:{USER}:{USER}::{home}:/bin/sh\n"))?;
        self.write("group", &format!("git:x:{USER}:\n"))?;
        let mut settings = format!(
            "HostKey {home}/host_key\nAuthorizedKeysFile {home}/authorized_keys\nStrictModes no\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nPidFile none\n"
        );
        // Since OpenSSH 9.8, sshd starts other programs.
        for (name, program) in [("SshdSessionPath", "sshd-session"), ("SshdAuthPath", "sshd-auth")]
        {
            let path = PathBuf::from(format!("{server}/usr/lib/openssh/{program}"));
            if path.is_file() {
                settings += &format!("{name} {}\n", path.display());
            }
        }
        self.write("sshd_config", &settings)?;
        let sshd = format!("{server}/usr/sbin/sshd -i -e -f {home}/sshd_config 2>>{home}/log");
        let as_user = format!("unshare --user --map-user={USER} --map-group={USER} {sshd}");
        let mounts = ["passwd", "group"].map(|it| format!("mount --bind {home}/{it} /etc/{it}"));
        let inside = format!("{} && exec {as_user}", mounts.join(" && "));
        let script = format!("exec unshare --user --map-root-user --mount sh -c '{inside}'\n");
        self.write("server.sh", &script)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.at(name);
        fs::write(&path, text).map_err(KitError::file("write", &path))
    }
}

impl Drop for OpenSsh {
    fn drop(&mut self) {
        // The agent may have ended by itself.
        self.agent.kill().ok();
        self.agent.wait().ok();
    }
}
