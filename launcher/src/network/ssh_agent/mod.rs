//! The SSH agent of the host for the components of a box: they can list its keys and sign with them, and nothing else.
//!
//! ```text
//! ssh, git ── init ══ vsock ══ serve ── agent of the user
//!                                └────── network log: each signature, with its key and its purpose
//! ```
//!
//! The agent gets whole messages, one at a time, which [`egress_proxy::ssh_agent`] has read and understood. A component could otherwise add keys
//! that the user's own `ssh` would use, remove the user's keys, or lock the agent.

use std::io::{self, ErrorKind};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use box_contract::ComponentName;
use box_contract::pace::Pace;
use egress_proxy::ssh_agent::{Message, Messages, Misuse, REFUSAL, Request, Signature};
use egress_proxy::{Channel, Decision, Verdict};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::sleep;

/// How many signatures a box may ask for per second. A program that asks for more waits, so that it does not push older entries out
/// of the network log.
pub(super) const MAX_SIGNATURES: u32 = 20;
/// How many bytes are read at once.
const CHUNK: usize = 16 << 10;
/// How many lists of keys a box may ask for per second. A program that asks for more waits, so that the agent has time for its user.
pub(super) const MAX_LISTS: u32 = 50;
/// How many connections to the agent a component may have. An agent has few of them for all programs of its user.
pub(super) const MAX_CONNECTIONS: usize = 8;
/// The reason of a signature that the agent refuses, for example because its user has not confirmed it.
const REFUSED: &str = "the agent refuses to sign";
/// The reason of a signature with a key that the agent does not list.
const UNKNOWN_KEY: &str = "the agent does not list this key";
/// The reason of a signature whose program does not wait for it.
const GONE: &str = "the program has hung up before the agent has answered";

/// The signatures of a component: their record, and their rate.
pub(super) struct Signatures<'a> {
    pub(super) component: ComponentName,
    /// The rate of signatures of the whole box.
    pub(super) pace: &'a Mutex<Pace>,
    /// The rate of lists of the whole box.
    pub(super) lists: &'a Mutex<Pace>,
    /// Records the result of a signature.
    pub(super) note: &'a (dyn Fn(&Decision) + Send + Sync),
}

/// Serves a connection of a program (`guest`) to the agent of the host, until one of them hangs up or sends what ends the
/// connection.
pub(super) async fn serve(
    guest: impl AsyncRead + AsyncWrite + Unpin,
    agent: impl AsyncRead + AsyncWrite + Unpin,
    signatures: &Signatures<'_>,
) {
    // After an error, both connections are only closed.
    drop(pass_on(Peer::new(guest), Peer::new(agent), signatures).await);
}

async fn pass_on(
    mut guest: Peer<impl AsyncRead + AsyncWrite + Unpin>,
    mut agent: Peer<impl AsyncRead + AsyncWrite + Unpin>,
    signatures: &Signatures<'_>,
) -> io::Result<()> {
    let mut keys = None;
    while let Some(message) = guest.next().await? {
        let request = Request::read(&message)?;
        let answer = match &request {
            Request::Other => None,
            Request::List => {
                wait(signatures.lists).await;
                let answer = agent.answer(&request, &message).await?;
                keys = Some(answer.clone());
                Some(answer)
            }
            Request::Sign(signature) => {
                wait(signatures.pace).await;
                let mut attempt = signatures.begin(signature, &message);
                let listed = agent.has_key(&signature.blob, &mut keys).await;
                if let Err(error) = &listed {
                    attempt.refuse(&error.to_string());
                }
                if listed? {
                    let answer = agent.answer(&request, &message).await;
                    attempt.end(&answer);
                    Some(answer?)
                } else {
                    attempt.refuse(UNKNOWN_KEY);
                    None
                }
            }
        };
        guest.send(answer.as_ref().map_or(&REFUSAL[..], Message::bytes)).await?;
    }
    Ok(())
}

/// One end of a connection, whose bytes are cut into messages.
struct Peer<S> {
    stream: S,
    messages: Messages,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    fn new(stream: S) -> Self {
        Self { stream, messages: Messages::default() }
    }

    /// Returns the next message. `None` if the peer has hung up.
    async fn next(&mut self) -> io::Result<Option<Message>> {
        let mut chunk = vec![0; CHUNK];
        loop {
            if let Some(message) = self.messages.take()? {
                return Ok(Some(message));
            }
            match self.stream.read(&mut chunk).await? {
                0 => return Ok(None),
                length => self.messages.push(&chunk[..length]),
            }
        }
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Returns whether this peer, which is the agent, lists a key with exactly these bytes. The log would otherwise name a fingerprint
    /// that no list has, because agents read keys leniently. `keys` is its last list.
    async fn has_key(&mut self, key: &[u8], keys: &mut Option<Message>) -> io::Result<bool> {
        if keys.as_ref().is_some_and(|it| it.lists(key)) {
            return Ok(true);
        }
        let list = self.answer(&Request::List, &Message::list()).await?;
        Ok(keys.insert(list).lists(key))
    }

    /// Sends a request to this peer, which is the agent, and returns its answer.
    async fn answer(&mut self, request: &Request, message: &Message) -> io::Result<Message> {
        self.send(message.bytes()).await?;
        let hung_up = || io::Error::new(ErrorKind::UnexpectedEof, "the agent has hung up");
        let answer = self.next().await?.ok_or_else(hung_up)?;
        if request.is_answered_by(&answer) { Ok(answer) } else { Err(Misuse::Answer.into()) }
    }
}

/// Waits until the box may ask again.
async fn wait(pace: &Mutex<Pace>) {
    loop {
        let now = Instant::now();
        let wait = {
            let mut pace = pace.lock().unwrap_or_else(PoisonError::into_inner);
            if pace.take(now) {
                return;
            }
            pace.wait(now)
        };
        sleep(wait.unwrap_or_default()).await;
    }
}

impl Signatures<'_> {
    /// Begins the record of a signature, for which the agent gets `message`.
    fn begin(
        &self,
        Signature { key, purpose, blob: _ }: &Signature,
        message: &Message,
    ) -> Attempt<'_> {
        let decision = Decision {
            component: self.component,
            way: Channel::SshAgent,
            host: Some(key.clone()),
            port: None,
            address: None,
            request: None,
            purpose: Some(purpose.clone()),
            verdict: Verdict::Failed { reason: GONE.to_owned() },
            sent: message.bytes().len() as u64,
            received: 0,
            milliseconds: 0,
        };
        Attempt { decision, started: Instant::now(), note: self.note }
    }
}

/// A signature that the agent was asked for. It is recorded on drop, also if the program hangs up while the agent asks its user.
struct Attempt<'a> {
    decision: Decision,
    started: Instant,
    note: &'a (dyn Fn(&Decision) + Send + Sync),
}

impl Attempt<'_> {
    /// Sets the reason why the agent was not asked.
    fn refuse(&mut self, reason: &str) {
        self.decision.verdict = Verdict::Failed { reason: reason.to_owned() };
    }

    /// Sets the result.
    fn end(&mut self, answer: &io::Result<Message>) {
        let failed = |reason: String| Verdict::Failed { reason };
        self.decision.verdict = match answer {
            Ok(answer) if answer.is_failure() => failed(REFUSED.to_owned()),
            Ok(_) => Verdict::Allowed,
            Err(error) => failed(error.to_string()),
        };
        self.decision.received = answer.as_ref().map_or(0, |it| it.bytes().len() as u64);
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let milliseconds = self.started.elapsed().as_millis();
        self.decision.milliseconds = u64::try_from(milliseconds).unwrap_or(u64::MAX);
        (self.note)(&self.decision);
    }
}

#[cfg(test)]
mod openssh;
#[cfg(test)]
mod tests;
