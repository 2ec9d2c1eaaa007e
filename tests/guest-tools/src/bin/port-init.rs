//! An init that tries to reach the host over other connections than the control channel, or misuses the control channel.
//!
//! The last argument of the plan's agent selects the attempt:
//! - `scan` connects to all ports, before its greeting and after it.
//! - `second` greets on a second connection.
//! - `wrong`, `again` and `half` send a greeting with a wrong nonce, two greetings, and a part of one.
//!
//! `scan` and `second` send their results as the agent's output, and keep their connections.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use box_contract::plan::{CONTROL_PORT, NONCE_LENGTH};
use box_contract::wire::{GuestMessage, Hello, HostMessage, Output, PROTOCOL, ProgramId, Stream};
use box_init::boot::{self, Given};
use box_init::channel::Channel;
use box_init::error::InitError;
use box_init::time::{Clock, Milestones, now_ns};
use guest_tools::ports::{begin, try_many};
use nix::fcntl::{FcntlArg, OFlag, fcntl};

/// How long to wait for the answer to a greeting.
const PATIENCE: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    let clock = Clock::start();
    box_init::run_as_init(|_| {
        boot::mount_devices()?;
        let given = Given::read()?;
        boot::mount_rootfs()?;
        attempt(&clock, given).map_err(|error| InitError::new("reach the host", error))
    })
}

/// Makes the attempt that the plan selects.
fn attempt(clock: &Clock, Given { nonce, config, .. }: Given) -> io::Result<()> {
    let config: serde_json::Value = serde_json::from_slice(&config)?;
    let last = config["plan"]["agent"]["argv"].as_array().and_then(|argv| argv.last()?.as_str());
    let greeting = greeting(nonce);
    match last {
        Some("scan") => scan(clock, &greeting),
        Some("second") => second(clock, &greeting),
        Some("wrong") => send(&self::greeting("0".repeat(NONCE_LENGTH))),
        Some("again") => send(&greeting.repeat(2)),
        Some("half") => send(&greeting[..NONCE_LENGTH]),
        _ => Err(io::Error::other("the plan names no attempt")),
    }
}

/// Returns the frame with which init proves that it has the nonce.
fn greeting(nonce: String) -> Vec<u8> {
    let mut frame = Vec::new();
    // Writing to a vector does not fail.
    drop(GuestMessage::Hello(Hello { protocol: PROTOCOL, nonce }).write(&mut frame));
    frame
}

fn scan(clock: &Clock, greeting: &[u8]) -> io::Result<()> {
    let mut before = try_many()?;
    let output = before.line();
    let control = before.connected.iter().position(|(port, _)| *port == CONTROL_PORT);
    let (_, first) = before.connected.swap_remove(control.ok_or(ErrorKind::NotFound)?);
    let mut channel = start(clock, first, greeting)?;
    say(&mut channel, &format!("before the greeting: {output}"))?;
    let after = try_many()?;
    say(&mut channel, &format!("after it: {}", after.line()))?;
    let others = after.connected.into_iter().map(|(_, other)| other).collect();
    greet_and_hold(channel, others, greeting)
}

fn second(clock: &Clock, greeting: &[u8]) -> io::Result<()> {
    let (first, second) = (begin(CONTROL_PORT)?, begin(CONTROL_PORT)?);
    let (second, answer) = greet(second, greeting)?;
    let mut channel = start(clock, first, greeting)?;
    say(&mut channel, &format!("bytes of an answer before the greeting: {answer}"))?;
    greet_and_hold(channel, vec![second.into()], greeting)
}

/// Sends `bytes` on the control channel, and waits until the host closes it.
fn send(bytes: &[u8]) -> io::Result<()> {
    let mut connection = File::from(begin(CONTROL_PORT)?);
    thread::sleep(PATIENCE);
    block(&connection)?;
    connection.write_all(bytes)?;
    connection.read_to_end(&mut Vec::new()).map(drop)
}

/// Makes reads and writes on the connection blocking.
fn block(connection: &File) -> io::Result<()> {
    Ok(fcntl(connection, FcntlArg::F_SETFL(OFlag::empty())).map(drop)?)
}

/// Greets on the first connection as box-init does, and reports that the agent is ready.
fn start(clock: &Clock, first: OwnedFd, greeting: &[u8]) -> io::Result<Channel> {
    let mut connection = File::from(first);
    block(&connection)?;
    connection.write_all(greeting)?;
    let mut channel = Channel::from(OwnedFd::from(connection));
    let now = now_ns();
    let timing = clock.timing(Milestones { started_ns: now, ready_ns: now });
    channel.send(&GuestMessage::Ready(timing))?;
    Ok(channel)
}

/// Sends a greeting on a connection that the host should not serve. Returns it and the number of bytes that came back.
fn greet(connection: OwnedFd, greeting: &[u8]) -> io::Result<(File, usize)> {
    let mut connection = File::from(connection);
    thread::sleep(PATIENCE);
    // The write may fail: the test checks only the answer.
    drop(connection.write_all(greeting));
    thread::sleep(PATIENCE);
    let length = match connection.read(&mut [0; 4096]) {
        Err(error)
            if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionReset) =>
        {
            0
        }
        read => read?,
    };
    Ok((connection, length))
}

/// Greets on all connections except the first, and keeps them open until the host shuts the box down.
fn greet_and_hold(mut channel: Channel, others: Vec<OwnedFd>, greeting: &[u8]) -> io::Result<()> {
    let greeted: io::Result<Vec<_>> = others.into_iter().map(|it| greet(it, greeting)).collect();
    let (_kept, answers): (Vec<File>, Vec<usize>) = greeted?.into_iter().unzip();
    say(&mut channel, &format!("bytes of answers on the others: {answers:?}"))?;
    while let Some(message) = channel.receive()? {
        if matches!(message, HostMessage::Shutdown(_)) {
            break;
        }
    }
    Ok(())
}

fn say(channel: &mut Channel, line: &str) -> io::Result<()> {
    let data = format!("{line}\n").into_bytes();
    channel.send(&GuestMessage::Output(Output {
        id: ProgramId::AGENT,
        stream: Stream::Stdout,
        data,
    }))
}
