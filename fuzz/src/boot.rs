//! Targets for the run plan that box-init reads, and for the messages between box-init and boxlaunch.

use std::fmt::Debug;
use std::io;

use box_contract::RunPlan;
use box_contract::wire::{ClientMessage, Frames, GuestMessage, HostMessage};

/// Parses the bytes as a run plan. Init and the launcher must accept the same plans, and an accepted plan must survive a round
/// trip.
pub fn plan(bytes: &[u8]) {
    let parsed = box_init::plan::parse(bytes);
    let launched = serde_json::from_slice::<RunPlan>(bytes);
    let launched = launched.is_ok_and(|it| it.check().is_ok() && it.unsupported().is_empty());
    assert_eq!(parsed.is_ok(), launched);
    if let Ok(plan) = parsed {
        let text = serde_json::to_vec(&plan).expect("a plan can be written");
        let again = box_init::plan::parse(&text).expect("a plan that was accepted stays so");
        assert_eq!(again, plan);
    }
}

/// Parses all bytes but the first as frames of each kind: as a whole, and in pieces. The first byte is the length of a piece,
/// minus one.
pub fn frames(bytes: &[u8]) {
    let Some((length, stream)) = bytes.split_first() else { return };
    let length = usize::from(*length) + 1;
    check(stream, length, |rest| GuestMessage::read(rest), |message, out| message.write(out));
    check(stream, length, |rest| HostMessage::read(rest), |message, out| message.write(out));
    check(stream, length, |rest| ClientMessage::read(rest), |message, out| message.write(out));
}

/// Checks that the split of a stream into pieces makes no difference, and that messages survive a round trip.
fn check<T: Debug + PartialEq>(
    stream: &[u8],
    length: usize,
    read: impl Fn(&mut &[u8]) -> io::Result<Option<T>>,
    write: impl Fn(&T, &mut Vec<u8>) -> io::Result<()>,
) {
    let (mut whole, mut rest) = (Vec::new(), stream);
    while let Ok(Some(message)) = read(&mut rest) {
        whole.push(message);
    }
    assert_eq!(in_pieces(stream, length, &read), whole);
    for message in whole {
        let mut frame = Vec::new();
        // Serialized JSON may be longer than the parsed text, and too long for a frame.
        if write(&message, &mut frame).is_ok() {
            let again = read(&mut frame.as_slice()).expect("what was written can be read");
            assert_eq!(again, Some(message));
        }
    }
}

fn in_pieces<T>(
    stream: &[u8],
    length: usize,
    read: impl Fn(&mut &[u8]) -> io::Result<Option<T>>,
) -> Vec<T> {
    let (mut frames, mut found) = (Frames::default(), Vec::new());
    for piece in stream.chunks(length) {
        frames.push(piece);
        loop {
            match frames.next(&read) {
                Ok(Some(message)) => found.push(message),
                Ok(None) => break,
                Err(_) => return found,
            }
        }
    }
    found
}
