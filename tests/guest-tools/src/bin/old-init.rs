//! Stands in for the init of epoch 3: reads the nonce from the first root, and the run plan from the rootfs.
//!
//! Sends the box's name in that plan as the output of program 0, and ends.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, Read as _};
use std::process::ExitCode;

use box_contract::plan::{NEW_ROOT, NONCE_LENGTH, NONCE_PATH, PLAN_PATH};
use box_contract::wire::{Exited, GuestMessage, HostMessage, Output, ProgramId, Stream};
use box_init::boot;
use box_init::channel::Channel;
use box_init::error::InitError;
use box_init::time::{Clock, Milestones, now_ns};

fn main() -> ExitCode {
    let clock = Clock::start();
    box_init::run_as_init(|slot| {
        boot::mount_devices()?;
        let nonce = nonce().map_err(failed("read the nonce"))?;
        boot::mount_rootfs()?;
        let channel = slot.insert(Channel::open(nonce)?);
        let name = name().map_err(failed("read the run plan"))?;
        report(channel, &clock, &name).map_err(failed("report to the launcher"))
    })
}

fn failed(step: &str) -> impl FnOnce(io::Error) -> InitError {
    move |error| InitError::new(step, error)
}

/// Reads the nonce as the init of epoch 3 does: the nonce and the byte after it, and nothing more.
fn nonce() -> io::Result<String> {
    let mut text = [0; NONCE_LENGTH + 1];
    File::open(NONCE_PATH)?.read_exact(&mut text)?;
    Ok(String::from_utf8_lossy(&text[..NONCE_LENGTH]).into_owned())
}

/// Returns the box's name in the rootfs's plan.
fn name() -> io::Result<String> {
    let plan = File::open(format!("{NEW_ROOT}{PLAN_PATH}"))?;
    let plan: serde_json::Value = serde_json::from_reader(plan)?;
    Ok(format!("{}\n", plan["name"]))
}

fn report(channel: &mut Channel, clock: &Clock, line: &str) -> io::Result<()> {
    let now = now_ns();
    let timing = clock.timing(Milestones { started_ns: now, ready_ns: now });
    channel.send(&GuestMessage::Ready(timing))?;
    let (stream, data) = (Stream::Stdout, line.as_bytes().to_vec());
    channel.send(&GuestMessage::Output(Output { id: ProgramId::AGENT, stream, data }))?;
    let exited = Exited {
        id: ProgramId::AGENT,
        status: 0,
        oom_killed: false,
        disk_full: false,
        timed_out: false,
        fenced: None,
    };
    channel.send(&GuestMessage::Exited(exited))?;
    while !matches!(channel.receive()?, None | Some(HostMessage::Shutdown(_))) {}
    Ok(())
}
