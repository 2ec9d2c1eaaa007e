//! An init that lists the rootfs as the guest's kernel shows it, for comparison with what was built.
//!
//! It sends one line of JSON per entry as the output of program 0, in the bytewise order of the paths, and follows no symbolic
//! link. Then it waits for the launcher's shutdown message and powers off.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use box_contract::plan::NEW_ROOT;
use box_contract::wire::{
    Exited, GuestMessage, HostMessage, MAX_OUTPUT, Output, ProgramId, Stream,
};
use box_init::boot::{self, Given};
use box_init::channel::Channel;
use box_init::error::InitError;
use box_init::time::{Clock, Milestones, now_ns};
use guest_tools::listing;

fn main() -> ExitCode {
    let clock = Clock::start();
    box_init::run_as_init(|slot| {
        boot::mount_devices()?;
        let nonce = Given::read()?.nonce;
        boot::mount_rootfs()?;
        let channel = slot.insert(Channel::open(nonce)?);
        let now = now_ns();
        let timing = clock.timing(Milestones { started_ns: now, ready_ns: now });
        send(channel, &GuestMessage::Ready(timing))?;
        list(channel)?;
        let exited = Exited {
            id: ProgramId::AGENT,
            status: 0,
            oom_killed: false,
            disk_full: false,
            timed_out: false,
            fenced: None,
        };
        send(channel, &GuestMessage::Exited(exited))?;
        wait_for_shutdown(channel);
        Ok(())
    })
}

fn send(channel: &mut Channel, message: &GuestMessage) -> Result<(), InitError> {
    channel.send(message).map_err(|error| InitError::new("report to the launcher", error))
}

fn list(channel: &mut Channel) -> Result<(), InitError> {
    let mut buffer = Vec::new();
    listing::walk(NEW_ROOT.as_ref(), &mut |line| {
        buffer.extend_from_slice(line.as_bytes());
        buffer.push(b'\n');
        while buffer.len() >= MAX_OUTPUT {
            let rest = buffer.split_off(MAX_OUTPUT);
            flush(channel, std::mem::replace(&mut buffer, rest))?;
        }
        Ok(())
    })?;
    flush(channel, buffer)
}

fn flush(channel: &mut Channel, data: Vec<u8>) -> Result<(), InitError> {
    send(
        channel,
        &GuestMessage::Output(Output { id: ProgramId::AGENT, stream: Stream::Stdout, data }),
    )
}

/// Waits for the launcher's shutdown message, or until the launcher hangs up.
fn wait_for_shutdown(channel: &mut Channel) {
    while let Ok(Some(message)) = channel.receive() {
        if matches!(message, HostMessage::Shutdown(_)) {
            break;
        }
    }
}
