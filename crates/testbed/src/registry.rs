//! Runs Debian's `docker-registry` on the loopback device during a test.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::prerequisites::{Package, Say, docker_registry, packages};
use crate::{KitError, Result, Workspace, program};

/// The text before the port in the server's message that it is ready.
const READY: &str = "listening on 127.0.0.1:";
/// The timeout for the message [`READY`].
const PATIENCE: Duration = Duration::from_secs(60);

/// A running registry without TLS. Dropping it stops it and deletes its data.
#[derive(Debug)]
pub struct DockerRegistry {
    child: Child,
    port: u16,
    /// The credentials for skopeo: `NAME:PASSWORD`.
    login: Option<String>,
    data: tempfile::TempDir,
}

impl DockerRegistry {
    /// The only user of a closed registry.
    pub const USER: &'static str = "ali";
    /// The password of [`Self::USER`].
    pub const PASSWORD: &'static str = "open sesame";
    /// The user and the password in the format of `htpasswd -nbB`.
    const HTPASSWD: &'static str =
        "ali:$2y$05$abcdefghijklmnopqrstuupx2xBUC4954936wVIjyyPHmUBFu0wCW\n";

    /// Starts a registry without authentication. Missing programs are fetched first.
    ///
    /// # Errors
    /// A program cannot be fetched, or the registry does not start.
    pub fn open(workspace: &Workspace, say: Say<'_>) -> Result<Self> {
        Self::start(workspace, None, say)
    }

    /// Starts a registry that requires a name and a password.
    ///
    /// # Errors
    /// The errors of [`Self::open`].
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
        // From here on, dropping `registry` stops the server.
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

    /// Returns the directory with the pushed data: the server's `rootdirectory`.
    pub fn data(&self) -> PathBuf {
        self.data.path().join("data")
    }

    /// Copies an image, or all images of an index, from an OCI image layout into the registry, unchanged.
    ///
    /// # Errors
    /// skopeo fails.
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
        // The server may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Writes the server's configuration, and returns its path.
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

/// Waits for the server's port in its log, and returns it. A thread reads the log to its end, so that the server does not block.
fn port(stderr: ChildStderr) -> Option<u16> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(std::io::Result::ok) {
            if let Some((_, rest)) = line.split_once(READY) {
                let digits = rest.split(|it: char| !it.is_ascii_digit()).next();
                // The receiver may have timed out.
                sender.send(digits.and_then(|digits| digits.parse().ok())).ok();
            }
        }
    });
    receiver.recv_timeout(PATIENCE).ok().flatten()
}
