//! A minimal init: it greets the launcher, reports ready and powers off.
//!
//! The time by which a box starts slower than this is the cost of boxbuild and of its agent.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use box_image::wire::GuestMessage;
use box_init::boot;
use box_init::channel::Channel;
use box_init::error::InitError;
use box_init::time::{Clock, Milestones, now_ns};

fn main() -> ExitCode {
    let clock = Clock::start();
    box_init::run_as_init(|slot| {
        let channel = slot.insert(Channel::open(boot::read_nonce()?)?);
        let now = now_ns();
        let timing = clock.timing(Milestones { started_ns: now, ready_ns: now });
        channel
            .send(&GuestMessage::Ready(timing))
            .map_err(|error| InitError::new("report to the launcher", error))?;
        // The machine must not go before its word has arrived; whatever comes back says that it has.
        drop(channel.receive());
        Ok(())
    })
}
