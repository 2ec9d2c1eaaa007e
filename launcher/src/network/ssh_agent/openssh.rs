//! Tests with OpenSSH's programs and git, which connect to OpenSSH's agent through [`serve`].

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Output;
use std::sync::Arc;
use std::{fs, thread};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use egress_proxy::ssh_agent::fingerprint;
use testbed::{OpenSsh, Workspace, program};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Builder;

use super::*;

/// A socket as a component has it.
struct Component {
    openssh: OpenSsh,
    socket: PathBuf,
    decisions: Arc<Mutex<Vec<Decision>>>,
}

impl Component {
    fn new() -> Self {
        let openssh = OpenSsh::start(&Workspace::find(), &mut |_| {}).unwrap();
        let (socket, agent) = (openssh.at("component.sock"), openssh.agent());
        let decisions = Arc::<Mutex<Vec<Decision>>>::default();
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        let kept = Arc::clone(&decisions);
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(accept(listener, agent, kept));
        });
        Self { openssh, socket, decisions }
    }

    /// Runs a program that connects to the agent through the filter.
    fn run(&self, words: &[&str]) -> Output {
        let mut command = self.openssh.command(words[0], &self.socket);
        program::finish(command.args(&words[1..])).unwrap()
    }

    /// Runs such a program, which must succeed. Returns its standard output.
    fn succeed(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let log = fs::read_to_string(self.openssh.at("log")).unwrap_or_default();
        assert!(output.status.success(), "{words:?}: {output:?}\n{log}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns the list of keys of the agent itself.
    fn keys(&self) -> String {
        let mut command = self.openssh.command("ssh-add", &self.openssh.agent());
        String::from_utf8(program::run(command.arg("-l")).unwrap()).unwrap()
    }

    /// Takes the purposes of the signatures so far, each with its verdict.
    fn purposes(&self) -> Vec<(String, Verdict)> {
        let decisions = std::mem::take(&mut *self.decisions.lock().unwrap());
        let keys = self.keys();
        let purpose = |it: Decision| {
            assert!(keys.contains(&it.host.unwrap()), "{keys}");
            (it.purpose.unwrap(), it.verdict)
        };
        decisions.into_iter().map(purpose).collect()
    }
}

/// Accepts connections until the test ends.
async fn accept(
    listener: std::os::unix::net::UnixListener,
    agent: PathBuf,
    kept: Arc<Mutex<Vec<Decision>>>,
) {
    let listener = UnixListener::from_std(listener).unwrap();
    let pace = Arc::new(Mutex::new(Pace::new(MAX_SIGNATURES, Instant::now())));
    while let Ok((guest, _)) = listener.accept().await {
        let Ok(agent) = UnixStream::connect(&agent).await else { return };
        let (pace, kept) = (Arc::clone(&pace), Arc::clone(&kept));
        tokio::spawn(async move {
            let note = |it: &Decision| kept.lock().unwrap().push(it.clone());
            let component = ComponentName::Agent;
            serve(guest, agent, &Signatures { component, pace: &pace, lists: &pace, note: &note })
                .await;
        });
    }
}

#[test]
fn ssh_and_git_work_with_the_keys_and_cannot_change_them() {
    let component = Component::new();
    let before = component.keys();
    assert_eq!(component.succeed(&["ssh-add", "-l"]), before);
    assert_eq!(before.lines().count(), 2 * OpenSsh::TYPES.len(), "keys and certificates");

    let at = |name: &str| component.openssh.at(name).display().to_string();
    let (origin, work, key) = (at("origin.git"), at("work"), at("ed25519.pub"));
    let url = format!("{}{origin}", OpenSsh::URL);
    component.succeed(&["git", "init", "-q", "--bare", "-b", "main", &origin]);
    component.succeed(&["git", "clone", "-q", &url, &work]);
    let login = ("login as git".to_owned(), Verdict::Allowed);
    assert_eq!(component.purposes(), std::slice::from_ref(&login));
    let signed = format!("user.signingkey={key}");
    let commit = ["commit", "-q", "-S", "--allow-empty", "-m", "one"];
    let git = ["git", "-C", &work, "-c", "gpg.format=ssh", "-c", &signed];
    component.succeed(&[&git[..], &commit].concat());
    assert_eq!(component.purposes(), [("signature for git".to_owned(), Verdict::Allowed)]);
    component.succeed(&["git", "-C", &work, "push", "-q", "origin", "HEAD:main"]);
    assert_eq!(component.purposes(), [login]);
    let pushed = component.succeed(&["git", "-C", &origin, "rev-parse", "main"]);
    assert_eq!(component.succeed(&["git", "-C", &work, "rev-parse", "HEAD"]), pushed);

    component.succeed(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "other"]);
    let permissions = fs::metadata(component.openssh.at("other")).unwrap().permissions();
    assert_eq!(permissions.mode() & 0o777, 0o600, "ssh-add takes it");
    for words in [&["ssh-add", "-D"][..], &["ssh-add", "other"], &["ssh-add", "-d", &key]] {
        let output = component.run(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {output:?}");
    }
    assert_eq!(component.keys(), before);
    assert!(component.purposes().is_empty());
}

#[test]
fn fingerprints_are_those_that_openssh_prints() {
    let component = Component::new();
    for path in component.openssh.public_keys() {
        let text = fs::read_to_string(&path).unwrap();
        let key = text.split(' ').nth(1).unwrap();
        let key = BASE64_STANDARD.decode(key).unwrap();
        let printed = component.succeed(&["ssh-keygen", "-l", "-f", path.to_str().unwrap()]);
        assert_eq!(printed.split(' ').nth(1), Some(&*fingerprint(&key)), "{printed}");
    }
}
