use std::io::Write;

use box_contract::ComponentName;
use box_contract::wire::{
    Builtin, Exec, Failed, HostTime, OLDEST_PROTOCOL, Output, PROTOCOL, ProgramId, Secret,
    Shutdown, Stream, Timing,
};
use host_fs::OsError;
use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::streams::StreamError;

const TIMING: Timing = Timing { kernel_ns: 1, init_ns: 2, ready_ns: 3, sent_ns: 4 };

/// A channel with its runtime, and the guest's end of it.
struct Pair {
    runtime: Runtime,
    channel: Channel,
    guest: UnixStream,
}

impl Pair {
    fn new() -> Self {
        let (guest, host) = UnixStream::pair().unwrap();
        Self::of(guest, host, nonce(), Vec::new())
    }

    fn of(guest: UnixStream, host: UnixStream, nonce: Nonce, first: Vec<HostMessage>) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let channel =
            runtime.block_on(async { Channel::new(watched(host).unwrap(), nonce, first) });
        Self { runtime, channel, guest }
    }

    fn receive(&mut self) -> Result<bool, StreamError> {
        self.runtime.block_on(self.channel.receive())
    }

    /// Returns the next message that the guest has received. Returns `None` at once if there is none.
    fn sent(&self) -> Option<HostMessage> {
        self.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(1)).await });
        HostMessage::read(&mut &self.guest).ok().flatten()
    }
}

fn hello(nonce: &str, protocol: u32) -> GuestMessage {
    GuestMessage::Hello(Hello { protocol, nonce: nonce.to_owned() })
}

fn good_hello() -> GuestMessage {
    hello(&"ab".repeat(32), PROTOCOL)
}

/// Sends the bytes and returns the messages of the channel until it is closed or fails.
fn outcome(bytes: &[u8]) -> Result<Vec<GuestMessage>, StreamError> {
    let mut pair = Pair::new();
    pair.guest.write_all(bytes).unwrap();
    pair.guest.shutdown(std::net::Shutdown::Both).unwrap();
    let mut messages = Vec::new();
    loop {
        let more = pair.receive()?;
        while let Some(message) = pair.channel.message()? {
            messages.push(message);
        }
        if !more {
            return Ok(messages);
        }
    }
}

fn bytes_of(messages: &[GuestMessage]) -> Vec<u8> {
    let mut bytes = Vec::new();
    messages.iter().for_each(|message| message.write(&mut bytes).unwrap());
    bytes
}

fn protocol_error(bytes: &[u8]) -> String {
    match outcome(bytes) {
        Err(StreamError::Protocol(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn init_is_heard_after_its_greeting() {
    let output = Output { id: ProgramId::COMMAND, stream: Stream::Stdout, data: vec![b'x'; 9] };
    let sent = [good_hello(), GuestMessage::Ready(TIMING), GuestMessage::Output(output)];
    assert_eq!(outcome(&bytes_of(&sent)).unwrap(), sent[1..]);
}

#[test]
fn frames_may_arrive_in_pieces() {
    let mut pair = Pair::new();
    for byte in bytes_of(&[good_hello(), GuestMessage::Ready(TIMING)]) {
        assert_eq!(pair.channel.message().unwrap(), None);
        pair.guest.write_all(&[byte]).unwrap();
        assert!(pair.receive().unwrap());
    }
    assert_eq!(pair.channel.message().unwrap(), Some(GuestMessage::Ready(TIMING)));
}

#[test]
fn a_peer_without_the_nonce_is_refused() {
    let wrong = "ac".repeat(32);
    for nonce in ["", "ab", &wrong, &"ab".repeat(33)] {
        let reason = protocol_error(&bytes_of(&[hello(nonce, PROTOCOL)]));
        assert_eq!(reason, "it got a greeting without this boot's nonce");
    }
}

#[test]
fn an_init_of_another_protocol_is_named() {
    let next = PROTOCOL + 1;
    let error = outcome(&bytes_of(&[hello(&"ab".repeat(32), next)])).unwrap_err();
    let expected = format!("the box's init speaks protocol {next}");
    assert!(error.to_string().contains(&expected), "{error}");
}

#[test]
fn an_init_of_the_previous_protocol_is_asked_for_nothing_that_it_does_not_know() {
    let mut pair = Pair::new();
    pair.guest.write_all(&bytes_of(&[hello(&"ab".repeat(32), OLDEST_PROTOCOL)])).unwrap();
    assert!(pair.receive().unwrap());
    assert_eq!(pair.channel.message().unwrap(), None);
    let exec = Exec::new(ComponentName::Agent, vec!["true".to_owned()]);
    let channel = &pair.channel;
    channel.send(&HostMessage::Clock(HostTime { now_ns: 1 })).unwrap();
    let builtin = Some(Builtin::Check);
    let error = channel.send(&HostMessage::Exec(Exec { builtin, ..exec.clone() })).unwrap_err();
    assert!(matches!(error, StreamError::OlderBox(OLDEST_PROTOCOL)), "{error}");
    let plain = HostMessage::Exec(exec);
    channel.send(&plain).unwrap();
    assert_eq!(pair.sent(), Some(plain), "it is all that was sent");
}

#[test]
fn secrets_are_for_the_init_of_this_boot_alone() {
    let secret = Secret { index: 0, value: b"canary".to_vec().into() };
    let greeted = |given: &str| {
        let (guest, host) = UnixStream::pair().unwrap();
        let mut pair = Pair::of(guest, host, nonce(), vec![HostMessage::Secret(secret.clone())]);
        pair.guest.set_nonblocking(true).unwrap();
        assert!(pair.sent().is_none(), "before the greeting");
        pair.guest.write_all(&bytes_of(&[hello(given, PROTOCOL)])).unwrap();
        assert!(pair.receive().unwrap());
        drop(pair.channel.message());
        pair.sent()
    };
    assert_eq!(greeted(&"ab".repeat(32)), Some(HostMessage::Secret(secret.clone())));
    assert_eq!(greeted(&"ac".repeat(32)), None);
}

#[test]
fn the_greeting_comes_first_and_once() {
    let failed = Failed { step: "s".into(), message: "m".into() };
    let reason = protocol_error(&bytes_of(&[GuestMessage::Failed(failed)]));
    assert_eq!(reason, "it got a message before the greeting");
    let reason = protocol_error(&bytes_of(&[good_hello(), good_hello()]));
    assert_eq!(reason, "it got a second greeting");
}

#[test]
fn hostile_bytes_are_errors() {
    let greeting = bytes_of(&[good_hello()]);
    let with = |tail: &[u8]| [greeting.as_slice(), tail].concat();
    assert_eq!(protocol_error(&with(&[0, 0, 0, 0])), "a frame of 0 bytes");
    assert_eq!(protocol_error(&with(&[255; 4])), "a frame of 4294967295 bytes");
    assert!(protocol_error(&with(&[1, 0, 0, 0, 99])).contains("unknown kind 99"));
    assert!(protocol_error(&with(&[2, 0, 0, 0, 2, b'{'])).contains("EOF"));
    assert_eq!(protocol_error(&with(&[9, 0, 0, 0, 3])), "it ended inside a frame");
    assert_eq!(protocol_error(&[1, 0]), "it ended inside a frame");
}

#[test]
fn only_the_vmm_may_connect_and_only_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("control.sock");
    let listener = Listener::bind(path.clone()).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    let _client = UnixStream::connect(&path).unwrap();
    let own = std::process::id();
    assert!(matches!(listener.accept(own + 1), Err(StreamError::Protocol(_))));
    assert!(!path.exists());

    let listener = Listener::bind(path.clone()).unwrap();
    let client = UnixStream::connect(&path).unwrap();
    let accepted = listener.accept(own).unwrap();
    assert!(UnixStream::connect(&path).is_err());
    let pair = Pair::of(client, accepted, Nonce::random().unwrap(), Vec::new());
    let shutdown = HostMessage::Shutdown(Shutdown { grace_ms: 1 });
    pair.channel.send(&shutdown).unwrap();
    assert_eq!(pair.sent(), Some(shutdown));
}

#[test]
fn nonces_differ_and_are_not_shown() {
    let (one, two) = (Nonce::random().unwrap(), Nonce::random().unwrap());
    assert_ne!(one.text(), two.text());
    assert_eq!(one.text().len(), 64);
    assert!(one.matches(one.text()) && !one.matches(two.text()));
    assert_eq!(format!("{one:?}"), "Nonce(…)");
}

#[test]
fn a_guest_that_reads_no_requests_stops_nothing_and_is_noticed() {
    let mut pair = Pair::new();
    let input = box_contract::wire::Input {
        id: ProgramId::COMMAND,
        data: vec![0; box_contract::wire::MAX_OUTPUT],
    };
    let request = HostMessage::Input(input);
    // More bytes than fit into a socket's buffer.
    (0..100).for_each(|_| pair.channel.send(&request).unwrap());
    pair.guest.write_all(&bytes_of(&[good_hello()])).unwrap();
    assert!(pair.receive().unwrap());
    let error = pair.receive().unwrap_err().to_string();
    assert!(error.contains("does not read its requests"), "{error}");
}

#[test]
fn a_socket_is_this_users_from_the_first_and_no_other_file_goes_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sock");
    let listener = Listener::bind(path.clone()).unwrap();
    assert_eq!(fs::symlink_metadata(&path).unwrap().mode() & 0o7777, 0o600);
    drop(UnixStream::connect(&path).unwrap());
    // A link is not followed, and an existing file is not replaced.
    let link = directory.path().join("link.sock");
    std::os::unix::fs::symlink(directory.path().join("other"), &link).unwrap();
    for taken in [&path, &link] {
        let error = Listener::bind(taken.clone()).unwrap_err();
        let OsError::File { source, .. } = error else { panic!("{error}") };
        assert_eq!(source.kind(), ErrorKind::AddrInUse);
    }
    fs::rename(&path, directory.path().join("moved")).unwrap();
    fs::write(&path, "somebody else's").unwrap();
    drop(listener);
    assert!(path.exists());
    let gone = directory.path().join("b.sock");
    drop(Listener::bind(gone.clone()).unwrap());
    assert!(!gone.exists());
}

/// A fixed nonce.
fn nonce() -> Nonce {
    serde_json::from_value("ab".repeat(32).into()).unwrap()
}
