//! The connections of clients. Each client has a task that reads its messages, and a task that writes its queue.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use box_contract::wire::{
    Answer, CLIENT_PROTOCOL, ClientMessage, FRAME_COST, Follow, FollowQuestions, Frames,
    GuestMessage, HostMessage, PublishPort, RuleChange, TakeOver,
};
use host_fs::OsError;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{
    Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel,
};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::programs::Grant;
use crate::streams::attached;
use crate::streams::control::CHUNK;

/// How long a client may take to send its greeting.
const GREETING: Duration = Duration::from_secs(10);
/// How long to wait while no client reads anything after the box has ended, and how long a removed client may read its
/// queue.
const LINGER: Duration = Duration::from_secs(1);
/// The greatest size of a client's queue, as a sum of [`Output::cost`](box_contract::wire::Output::cost). This exceeds
/// the sum of the windows of the agent and a command.
const MAX_QUEUED: usize = 1 << 20;
/// While a client's queue is larger than this, clients get no messages that they do not need, such as denials.
const BEHIND: usize = 128 << 10;
/// How many clients may be connected.
pub(super) const MAX_CLIENTS: usize = 512;
/// How many messages from clients may wait for the supervisor.
const MAX_ASKED: usize = 64;
/// The pause after a failure to accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// An event of a client.
#[derive(Debug)]
pub(super) enum FromClient {
    /// A client has connected.
    Connected(UnixStream),
    /// A client has sent its greeting, which contains the output that the client follows.
    Greeted { client: u64, follow: Follow },
    /// A client has sent a request.
    Asked { client: u64, message: Box<HostMessage> },
    /// A client has sent changes of the rules for the box's filter.
    Rules { client: u64, rules: RuleChange },
    /// A client asks for a published port.
    Publish { client: u64, port: PublishPort },
    /// A client asks for the questions about commands that wait.
    Approvals { client: u64, of: FollowQuestions },
    /// A client answers a question.
    Decide { client: u64, answer: Answer },
    /// A client, the supervisor of a box that replaces this one, asks for the sockets of the published ports.
    HandOver { client: u64 },
    /// That client now has this box's name and accepts the clients of its ports.
    TakeOver { client: u64, take: TakeOver },
    /// A client has sent something that clients never send.
    Misused { client: u64, reason: String },
    /// A client has disconnected.
    Gone { client: u64 },
}

/// A frame on its way to a client.
#[derive(Debug)]
struct Frame {
    bytes: Vec<u8>,
    /// The files that are attached to the frame.
    files: Vec<OwnedFd>,
    _grant: Option<Arc<Grant>>,
}

/// A client.
#[derive(Debug)]
struct Client {
    follow: Follow,
    /// The further questions that the client gets. `None` if it gets none.
    questions: Option<FollowQuestions>,
    queue: UnboundedSender<Frame>,
    /// The cost of the queue.
    queued: Arc<AtomicUsize>,
    /// Aborts the client's writing task.
    writer: AbortHandle,
}

/// The connected clients.
#[derive(Debug)]
pub(super) struct Clients {
    connected: BTreeMap<u64, Client>,
    next: u64,
    asked: Sender<FromClient>,
    messages: Receiver<FromClient>,
    /// The writing tasks of all clients except the first.
    writers: JoinSet<()>,
    /// The writing task of the client in this process. [`Self::close`] waits for it without a time limit.
    first: JoinSet<()>,
    /// The number of frames that were written to clients.
    delivered: Arc<AtomicUsize>,
}

impl Clients {
    /// Starts to accept clients.
    pub(super) fn new(listener: UnixListener) -> Result<Self, OsError> {
        let listen = || -> io::Result<_> {
            listener.set_nonblocking(true)?;
            tokio::net::UnixListener::from_std(listener)
        };
        let listener = listen().map_err(OsError::system("listen for clients"))?;
        let (asked, messages) = channel(MAX_ASKED);
        drop(tokio::spawn(accept(listener, asked.clone())));
        let (connected, next, delivered) = (BTreeMap::new(), 0, Arc::default());
        let (writers, first) = (JoinSet::new(), JoinSet::new());
        Ok(Self { connected, next, asked, messages, writers, first, delivered })
    }

    /// Returns whether a client follows the agent's output, or waits for the agent's end.
    pub(super) fn follow_any(&self) -> bool {
        self.connected.values().any(|client| client.follow != Follow::Nothing)
    }

    /// Waits for the next event of a client.
    pub(super) async fn next(&mut self) -> FromClient {
        match self.messages.recv().await {
            Some(message) => message,
            // Unreachable: this struct has a sender.
            None => std::future::pending().await,
        }
    }

    /// Adds the client in this process, which must not miss any output.
    pub(super) fn welcome_first(&mut self, stream: UnixStream) {
        self.welcome(stream, Follow::Output);
        std::mem::swap(&mut self.writers, &mut self.first);
    }

    /// Adds a client. If there are too many, the client only gets the refusal.
    pub(super) fn welcome_or(&mut self, stream: UnixStream, refusal: &GuestMessage) {
        let is_full = self.connected.len() >= MAX_CLIENTS;
        self.welcome(stream, Follow::Nothing);
        if is_full {
            self.send(self.next, refusal, None);
            self.remove(self.next);
        }
    }

    /// Adds a client.
    fn welcome(&mut self, stream: UnixStream, follow: Follow) {
        while self.writers.try_join_next().is_some() {}
        let (reader, writer) = stream.into_split();
        let (queue, frames) = unbounded_channel();
        let queued = Arc::new(AtomicUsize::new(0));
        let writing = write(writer, frames, Arc::clone(&queued), Arc::clone(&self.delivered));
        let writer = self.writers.spawn(writing);
        self.next += 1;
        let client = Client { follow, questions: None, queue, queued, writer };
        self.connected.insert(self.next, client);
        drop(tokio::spawn(read(reader, self.next, self.asked.clone())));
    }

    /// Returns whether a client is connected and was not removed.
    pub(super) fn knows(&self, client: u64) -> bool {
        self.connected.contains_key(&client)
    }

    /// Returns whether the queue of any client is larger than [`BEHIND`].
    pub(super) fn are_behind(&self) -> bool {
        self.connected.values().any(|client| client.queued.load(Ordering::Relaxed) > BEHIND)
    }

    /// Sets the output that a client follows.
    pub(super) fn follow(&mut self, client: u64, follow: Follow) {
        if let Some(client) = self.connected.get_mut(&client) {
            client.follow = follow;
        }
    }

    /// Sets the further questions that a client gets. [`FollowQuestions::Waiting`] is about none of them.
    pub(super) fn follow_questions(&mut self, client: u64, of: FollowQuestions) {
        let client = self.connected.get_mut(&client).filter(|_| of != FollowQuestions::Waiting);
        client.into_iter().for_each(|it| it.questions = Some(of));
    }

    /// Returns whether a client answers questions about a command of `owner`.
    pub(super) fn can_answer(&self, owner: Option<u64>) -> bool {
        self.connected.iter().any(|(id, client)| match client.questions {
            Some(FollowQuestions::All) => true,
            Some(FollowQuestions::Own) => owner == Some(*id),
            Some(FollowQuestions::Shown | FollowQuestions::Waiting) | None => false,
        })
    }

    /// Returns the clients that get questions about a command of `owner`.
    pub(super) fn of_questions(&self, owner: Option<u64>) -> Vec<u64> {
        let gets = |id: u64, client: &Client| match client.questions {
            Some(FollowQuestions::All) => true,
            Some(FollowQuestions::Own | FollowQuestions::Shown) => owner == Some(id),
            Some(FollowQuestions::Waiting) | None => false,
        };
        self.connected.iter().filter(|(id, it)| gets(**id, it)).map(|(id, _)| *id).collect()
    }

    /// Sends a message to a client, unless half of the client's queue is used. No window limits the number of these messages.
    pub(super) fn offer(&mut self, client: u64, message: &GuestMessage) {
        let queued = self.connected.get(&client).map(|it| it.queued.load(Ordering::Relaxed));
        if queued.is_some_and(|it| it < MAX_QUEUED / 2) {
            self.send(client, message, None);
        }
    }

    /// Removes a client, which can still read its queue for [`LINGER`].
    pub(super) fn remove(&mut self, client: u64) {
        if let Some(Client { writer, .. }) = self.connected.remove(&client) {
            drop(tokio::spawn(async move {
                sleep(LINGER).await;
                writer.abort();
            }));
        }
    }

    /// Sends a message to a client; removes the client if its queue is too large.
    pub(super) fn send(&mut self, client: u64, message: &GuestMessage, grant: Option<&Arc<Grant>>) {
        self.send_with(client, message, Vec::new(), grant);
    }

    /// Sends a message to which files are attached.
    pub(super) fn send_files(&mut self, client: u64, message: &GuestMessage, files: Vec<OwnedFd>) {
        self.send_with(client, message, files, None);
    }

    fn send_with(
        &mut self,
        client: u64,
        message: &GuestMessage,
        files: Vec<OwnedFd>,
        grant: Option<&Arc<Grant>>,
    ) {
        let mut bytes = Vec::new();
        let fits = message.write(&mut bytes).is_ok();
        let Some(to) = self.connected.get(&client).filter(|_| fits) else { return };
        let cost = cost(&bytes);
        let queued = to.queued.fetch_add(cost, Ordering::Relaxed) + cost;
        let sent = to.queue.send(Frame { bytes, files, _grant: grant.cloned() });
        if sent.is_err() || queued > MAX_QUEUED {
            self.remove(client);
        }
    }

    /// Sends a message to all clients whose `follow` is in this list.
    pub(super) fn tell(
        &mut self,
        follow: &[Follow],
        message: &GuestMessage,
        grant: Option<&Arc<Grant>>,
    ) {
        let followers = self.connected.iter().filter(|(_, client)| follow.contains(&client.follow));
        let followers: Vec<u64> = followers.map(|(id, _)| *id).collect();
        followers.into_iter().for_each(|id| self.send(id, message, grant));
    }

    /// Sends a message to all clients.
    pub(super) fn tell_all(&mut self, message: &GuestMessage) {
        self.tell(&[Follow::Nothing, Follow::End, Follow::Output], message, None);
    }

    /// Disconnects all clients after they have read their queues, or when none of them has read anything for
    /// [`LINGER`].
    pub(super) async fn close(&mut self) {
        self.connected.clear();
        let mut delivered = self.delivered.load(Ordering::Relaxed);
        while let Some(ended) = timeout(LINGER, self.writers.join_next()).await.transpose() {
            let before = std::mem::replace(&mut delivered, self.delivered.load(Ordering::Relaxed));
            // Give up, because no client has read anything for that time.
            if ended.is_err() && before == delivered {
                break;
            }
        }
        // A signal can end this wait.
        while self.first.join_next().await.is_some() {}
    }
}

/// Returns the cost of a frame in a queue: its bytes and the memory to manage it.
fn cost(bytes: &[u8]) -> usize {
    bytes.len() + FRAME_COST as usize
}

/// Accepts connections until the supervisor ends.
async fn accept(listener: tokio::net::UnixListener, clients: Sender<FromClient>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                if clients.send(FromClient::Connected(stream)).await.is_err() {
                    return;
                }
            }
            // Retry after a pause: for example, too many files are open, and another connection may close soon.
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Writes the queue of a client.
async fn write(
    mut stream: OwnedWriteHalf,
    mut frames: UnboundedReceiver<Frame>,
    queued: Arc<AtomicUsize>,
    delivered: Arc<AtomicUsize>,
) {
    while let Some(frame) = frames.recv().await {
        let Ok(sent) = attach(stream.as_ref(), &frame).await else { return };
        if stream.write_all(&frame.bytes[sent..]).await.is_err() {
            return;
        }
        queued.fetch_sub(cost(&frame.bytes), Ordering::Relaxed);
        delivered.fetch_add(1, Ordering::Relaxed);
    }
}

/// Sends the beginning of a frame that has files. Returns how many bytes were sent: none of a frame without files.
async fn attach(stream: &UnixStream, frame: &Frame) -> io::Result<usize> {
    if frame.files.is_empty() {
        return Ok(0);
    }
    let send = || attached::send(stream, &frame.bytes, &frame.files);
    stream.async_io(Interest::WRITABLE, send).await
}

/// Reads a client's messages until it disconnects or sends something invalid.
async fn read(mut stream: OwnedReadHalf, client: u64, to: Sender<FromClient>) {
    // Ignore that `to` refuses an event, which means that the supervisor is about to end.
    if let Err(error) = pass_on(&mut stream, client, &to).await {
        let reason = error.to_string();
        drop(to.send(FromClient::Misused { client, reason }).await);
    }
    drop(to.send(FromClient::Gone { client }).await);
}

async fn pass_on(
    stream: &mut OwnedReadHalf,
    client: u64,
    to: &Sender<FromClient>,
) -> io::Result<()> {
    let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
    let mut frames = Frames::default();
    let greeting = next(stream, &mut frames, |rest| ClientMessage::read(rest));
    let Some(ClientMessage::Greeting(greeting)) = timeout(GREETING, greeting).await?? else {
        return Ok(());
    };
    if greeting.protocol != CLIENT_PROTOCOL {
        let reason = format!("it speaks protocol {CLIENT_PROTOCOL}, and not {}", greeting.protocol);
        return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
    }
    to.send(FromClient::Greeted { client, follow: greeting.agent }).await.map_err(gone)?;
    while let Some(message) = next(stream, &mut frames, |rest| asked(client, rest)).await? {
        to.send(message).await.map_err(gone)?;
    }
    Ok(())
}

/// Parses a message after the greeting, for init or for the supervisor itself.
fn asked(client: u64, rest: &mut &[u8]) -> io::Result<Option<FromClient>> {
    let mut own = *rest;
    match ClientMessage::read(&mut own) {
        Ok(Some(ClientMessage::Rules(rules))) => {
            *rest = own;
            Ok(Some(FromClient::Rules { client, rules }))
        }
        Ok(Some(ClientMessage::Publish(port))) => {
            *rest = own;
            Ok(Some(FromClient::Publish { client, port }))
        }
        Ok(Some(ClientMessage::Approvals(query))) => {
            *rest = own;
            Ok(Some(FromClient::Approvals { client, of: query.questions }))
        }
        Ok(Some(ClientMessage::Decide(answer))) => {
            *rest = own;
            Ok(Some(FromClient::Decide { client, answer }))
        }
        Ok(Some(ClientMessage::HandOver(_))) => {
            *rest = own;
            Ok(Some(FromClient::HandOver { client }))
        }
        Ok(Some(ClientMessage::TakeOver(take))) => {
            *rest = own;
            Ok(Some(FromClient::TakeOver { client, take }))
        }
        _ => {
            let message = HostMessage::read(rest)?;
            Ok(message.map(|it| FromClient::Asked { client, message: Box::new(it) }))
        }
    }
}

/// Reads the next message; `None` if the client has disconnected.
async fn next<T>(
    stream: &mut OwnedReadHalf,
    frames: &mut Frames,
    read: impl Fn(&mut &[u8]) -> io::Result<Option<T>>,
) -> io::Result<Option<T>> {
    loop {
        if let Some(message) = frames.next(&read)? {
            return Ok(Some(message));
        }
        let mut chunk = [0; CHUNK];
        let length = stream.read(&mut chunk).await?;
        if length == 0 {
            return Ok(None);
        }
        frames.push(&chunk[..length]);
    }
}
