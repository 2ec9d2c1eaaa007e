//! A registry on the loopback device, for as long as a test runs: Debian's `docker-registry`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::prerequisites::{Package, Say, docker_registry, packages};
use crate::{KitError, Result, Workspace, program};

/// The server's message when it is ready; the address follows.
const READY: &str = "listening on 127.0.0.1:";
/// How long it may take to say so.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running registry that speaks plain http. It ends, and loses what it holds, when this is
/// dropped.
#[derive(Debug)]
pub struct DockerRegistry {
    child: Child,
    port: u16,
    /// The credentials that skopeo needs: `NAME:PASSWORD`.
    login: Option<String>,
    data: tempfile::TempDir,
}

impl DockerRegistry {
    /// The only name that a closed registry lets in.
    pub const USER: &'static str = "ali";
    /// The password of that name.
    pub const PASSWORD: &'static str = "open sesame";
    /// Both as `htpasswd -nbB` writes them.
    const HTPASSWD: &'static str =
        "ali:$2y$05$abcdefghijklmnopqrstuupx2xBUC4954936wVIjyyPHmUBFu0wCW\n";

    /// Starts a registry that everybody may read and write. Fetches the programs that are missing.
    ///
    /// # Errors
    /// They cannot be fetched, or the registry does not start.
    pub fn open(workspace: &Workspace, say: Say<'_>) -> Result<Self> {
        Self::start(workspace, None, say)
    }

    /// Starts a registry that asks for a name and a password.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn closed(workspace: &Workspace, say: Say<'_>) -> Result<Self> {
        Self::start(workspace, Some(format!("{}:{}", Self::USER, Self::PASSWORD)), say)
    }

    fn start(workspace: &Workspace, login: Option<String>, say: Say<'_>) -> Result<Self> {
        let server = docker_registry(workspace, say)?;
        packages(&[Package::Skopeo], say)?;
        let data = tempfile::tempdir().map_err(KitError::file("make", Path::new("a directory")))?;
        let config = configure(data.path(), login.is_some())?;
        let mut command = Command::new(server);
        command.arg("serve").arg(config);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|source| program::not_started(&command, source))?;
        // From here on it is stopped whatever happens.
        let mut registry = Self { child, port: 0, login, data };
        let stderr = registry.child.stderr.take();
        registry.port = stderr.and_then(port).ok_or_else(|| {
            KitError::malformed("the log of docker-registry", "it does not say where it listens")
        })?;
        Ok(registry)
    }

    /// Returns the registry's host and port.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the directory with what was pushed: the server's `rootdirectory`.
    pub fn data(&self) -> PathBuf {
        self.data.path().join("data")
    }

    /// Copies an image of an OCI layout directory, or all images of its tag's index, into the
    /// registry, as it is.
    ///
    /// # Errors
    /// skopeo cannot.
    pub fn push(&self, layout: &Path, tag: &str, name: &str) -> Result<()> {
        let mut skopeo = Command::new("skopeo");
        skopeo.args(["copy", "--all", "--preserve-digests", "--dest-tls-verify=false"]);
        if let Some(login) = &self.login {
            skopeo.args(["--dest-creds", login]);
        }
        skopeo.arg(format!("oci:{}:{tag}", layout.display()));
        program::run(skopeo.arg(format!("docker://{}/{name}", self.host()))).map(drop)
    }
}

impl Drop for DockerRegistry {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Writes the server's configuration, and returns its file.
fn configure(data: &Path, closed: bool) -> Result<PathBuf> {
    let write = |name: &str, text: &str| {
        let path = data.join(name);
        fs::write(&path, text).map_err(KitError::file("write", &path)).map(|()| path)
    };
    let passwords = write("htpasswd", DockerRegistry::HTPASSWD)?;
    let blobs = data.join("data");
    let mut config = format!(
        "version: 0.1\nlog:\n  level: info\n  accesslog:\n    disabled: true\n\
         storage:\n  filesystem:\n    rootdirectory: {blobs:?}\nhttp:\n  addr: 127.0.0.1:0\n"
    );
    if closed {
        config += &format!("auth:\n  htpasswd:\n    realm: test\n    path: {passwords:?}\n");
    }
    write("config.yml", &config)
}

/// Waits until the server says where it listens; reads on what it says, so that it never waits.
fn port(stderr: ChildStderr) -> Option<u16> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(std::io::Result::ok) {
            if let Some((_, rest)) = line.split_once(READY) {
                let digits = rest.split(|it: char| !it.is_ascii_digit()).next();
                // Whoever waited may have given up.
                sender.send(digits.and_then(|digits| digits.parse().ok())).ok();
            }
        }
    });
    receiver.recv_timeout(PATIENCE).ok().flatten()
}
