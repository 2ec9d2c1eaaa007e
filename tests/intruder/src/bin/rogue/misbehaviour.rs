//! The misbehaviours.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use box_contract::wire::{
    Failed, GuestMessage, MAX_OUTPUT, MAX_VERIFICATION_OUTPUT, ProgramId, Verification,
    VerificationEnd,
};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::close;

use crate::mutation::Mutations;
use crate::peer::{Peer, exited, output, put, question, ready, send};

/// The agent's exit status after everything was sent. A supervisor that reports it has read all messages before it.
const ALL_SENT: u8 = 42;
/// How often each mutated frame is sent.
const TIMES: usize = 10;

/// Misbehaves as `program` is named. A parameter follows a dash: a variant, a seed, a number of frames, or seconds.
/// Examples are `greeting-late`, `mutated-10000` and `output-10`.
pub(crate) fn misbehave(program: &Path) {
    // Leaves no process behind if a test fails.
    set_pdeathsig(Signal::SIGKILL).unwrap();
    let name = program.file_name().unwrap().to_str().unwrap();
    let (name, which) = name.split_once('-').unwrap_or((name, ""));
    let number = || which.parse().unwrap();
    let flood_end = || Instant::now() + Duration::from_secs(number());
    let peer = Peer::configured();
    match name {
        "silent" => live_on(),
        "hidden" => hidden(&peer),
        "hidden_early" => {
            close(2).unwrap();
            live_on();
        }
        "deaf" => {
            let _stream = peer.deaf();
            live_on();
        }
        "greeting" => greeting(&peer, which),
        "twice" => twice(&peer),
        "length" => length(&peer),
        "malformed" => malformed(&peer, number()),
        "mutated" => mutated(&peer, number()),
        "output" => flood(peer.ready(), &outputs(), flood_end()),
        "events" => flood(peer.ready(), &ends(), flood_end()),
        "questions" => flood(peer.ready(), &questions(), flood_end()),
        "verification" => verification(&peer, which),
        "words" => flood(peer.ready(), &[failure()], flood_end()),
        "lines" => console_flood(&peer, b'\n', flood_end()),
        "line" => console_flood(&peer, b'y', flood_end()),
        _ => panic!("{name} is no misbehaviour"),
    }
}

/// Blocks all signals and sleeps forever.
fn live_on() -> ! {
    SigSet::all().thread_block().unwrap();
    loop {
        thread::sleep(Duration::from_secs(1000));
    }
}

/// Becomes ready, closes the log (stderr), and does not exit.
fn hidden(peer: &Peer) {
    let _stream = peer.ready();
    thread::sleep(Duration::from_millis(300));
    close(2).unwrap();
    live_on();
}

/// Sends an invalid greeting: with a wrong nonce, after another message, twice, or cut.
fn greeting(peer: &Peer, which: &str) {
    let mut stream = peer.connect().unwrap();
    let wrong = Peer { nonce: "0".repeat(64), socket: peer.socket.clone() };
    match which {
        "wrong" => send(&mut stream, &wrong.hello()),
        "late" => send(&mut stream, &ready()),
        "again" => {
            send(&mut stream, &peer.hello());
            send(&mut stream, &peer.hello());
        }
        _ => put(&mut stream, &[200, 0, 0, 0, 1]),
    }
    live_on();
}

/// Tries 10,000 further connections after the first.
fn twice(peer: &Peer) {
    let mut stream = peer.ready();
    thread::sleep(Duration::from_millis(300));
    let accepted = (0..10_000).filter(|_| peer.connect().is_ok()).count();
    eprintln!("accepted {accepted} more");
    finish(&mut stream);
}

/// Announces a frame of 4 GiB, and sends it until the supervisor hangs up.
fn length(peer: &Peer) {
    let mut stream = peer.ready();
    put(&mut stream, &u32::MAX.to_le_bytes());
    loop {
        put(&mut stream, &[7; 1 << 16]);
    }
}

/// Sends mutated frames until one makes the supervisor end the run.
fn malformed(peer: &Peer, seed: u64) {
    let (mut stream, mut mutations) = (peer.ready(), Mutations::new(seed));
    for _ in 0..10_000 {
        put(&mut stream, &mutations.next());
    }
    live_on();
}

/// Sends `count` mutated frames, each `TIMES` times. None may end the run.
fn mutated(peer: &Peer, count: u64) {
    let (mut stream, mut mutations) = (peer.ready(), Mutations::new(1));
    let frames: Vec<u8> = (0..count).flat_map(|_| mutations.harmless()).collect();
    (0..TIMES).for_each(|_| put(&mut stream, &frames));
    finish(&mut stream);
}

/// Returns output messages. A flood of them exceeds the credit that the supervisor has granted.
fn outputs() -> [GuestMessage; 3] {
    [0, 255, 3].map(|id| output(id, MAX_OUTPUT))
}

/// Returns end messages, with each status, of programs that never ran.
fn ends() -> Vec<GuestMessage> {
    (0..=255).flat_map(|it| [exited(ProgramId::BUSINESS, it), exited(ProgramId(9), it)]).collect()
}

/// Returns more questions than can wait at a time, with long texts, and which never end.
fn questions() -> Vec<GuestMessage> {
    (0..256).map(|number| GuestMessage::Question(question(number, 10_000))).collect()
}

/// Verifies a task as `which` says, and reports that the agent has ended with success.
fn verification(peer: &Peer, which: &str) {
    let mut stream = peer.ready();
    let ended = |length| {
        let end = VerificationEnd { output: "x".repeat(length), ..VerificationEnd::default() };
        Verification::Ended(end)
    };
    let steps = match which {
        "whole" => vec![Verification::Started, ended(MAX_VERIFICATION_OUTPUT)],
        "begun" => vec![Verification::Started],
        "early" => vec![ended(0)],
        "twice" => vec![Verification::Started, Verification::Started],
        "again" => vec![Verification::Started, ended(0), ended(0)],
        "long" => vec![Verification::Started, ended(MAX_VERIFICATION_OUTPUT + 1)],
        _ => panic!("{which} is no verification"),
    };
    steps.into_iter().for_each(|step| send(&mut stream, &GuestMessage::Verification(step)));
    send(&mut stream, &exited(ProgramId::AGENT, 0));
    live_on();
}

/// Returns the failure of a start, with texts about as long as a frame allows.
fn failure() -> GuestMessage {
    GuestMessage::Failed(Failed { step: "s".repeat(30_000), message: "m".repeat(30_000) })
}

/// Sends `messages` repeatedly until `until`, and then the agent's end.
fn flood(mut stream: UnixStream, messages: &[GuestMessage], until: Instant) {
    let mut frames = Vec::new();
    messages.iter().for_each(|message| message.write(&mut frames).unwrap());
    while Instant::now() < until {
        put(&mut stream, &frames);
    }
    finish(&mut stream);
}

/// Writes `byte` to the console until `until`.
fn console_flood(peer: &Peer, byte: u8, until: Instant) {
    let mut stream = peer.ready();
    while Instant::now() < until {
        io::stderr().write_all(&[byte; 1 << 16]).unwrap();
    }
    finish(&mut stream);
}

/// Reports that the agent has ended with status [`ALL_SENT`].
fn finish(stream: &mut UnixStream) {
    send(stream, &exited(ProgramId::AGENT, ALL_SENT));
    live_on();
}
