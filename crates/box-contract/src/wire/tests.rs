//! Tests that frames read back, and that hostile frames are refused.

use super::*;
use crate::{ComponentName, Scope};
use proptest::prelude::*;

fn round_trip(message: &GuestMessage) -> GuestMessage {
    let mut bytes = Vec::new();
    message.write(&mut bytes).unwrap();
    GuestMessage::read(&mut bytes.as_slice()).unwrap().unwrap()
}

#[test]
fn the_mark_of_box_init_names_the_versions() {
    let epoch = crate::manifest::FORMAT_EPOCH;
    let mark = format!("boxbuild box-init for protocol {PROTOCOL} and format epoch {epoch}");
    assert_eq!(INIT_MARK, mark);
}

#[test]
fn a_host_speaks_its_protocol_and_older_ones() {
    let spoken: Vec<u32> = (0..=PROTOCOL + 2).filter(|it| is_spoken(*it)).collect();
    assert_eq!(spoken, [OLDEST_PROTOCOL, 3, 4, 5, 6, 7, 8, 9, PROTOCOL]);
}

#[test]
fn guest_messages_read_back() {
    let timing = Timing { kernel_ns: 1, init_ns: 2, ready_ns: 3, sent_ns: 4 };
    for message in [
        GuestMessage::Hello(Hello { protocol: PROTOCOL, nonce: "n".into() }),
        GuestMessage::Ready(timing),
        GuestMessage::Output(Output {
            id: ProgramId(3),
            stream: Stream::Stderr,
            data: vec![0, 255],
        }),
        GuestMessage::Exited(Exited {
            id: ProgramId(1),
            status: 137,
            oom_killed: true,
            disk_full: false,
            timed_out: true,
        }),
        GuestMessage::Credit(Credit { id: ProgramId(255), bytes: u32::MAX }),
        GuestMessage::Failed(Failed { step: "mount".into(), message: "no".into() }),
        GuestMessage::Usage(Usage { components: Vec::new() }),
        GuestMessage::Event(GuestEvent::new(ComponentName::Agent, GuestEventKind::Start)),
        GuestMessage::Trajectory(Trajectory { name: "a.json".into(), data: vec![0, 255] }),
        GuestMessage::Trajectory(Trajectory { name: "a".into(), data: Vec::new() }),
    ] {
        assert_eq!(round_trip(&message), message);
    }
}

#[test]
fn memory_was_lacked_by_what_has_failed() {
    let exited = Exited {
        id: ProgramId(1),
        status: 3,
        oom_killed: false,
        disk_full: false,
        timed_out: false,
    };
    let killed = Exited { oom_killed: true, ..exited };
    assert!(killed.lacked_memory() && !exited.lacked_memory());
    assert!(!Exited { status: 0, ..killed }.lacked_memory());
    assert!(lacked_memory(true, None) && !lacked_memory(false, None));
}

#[test]
fn a_caller_reads_what_init_sends_about_a_command() {
    let output = Output { id: ProgramId(1), stream: Stream::Stdout, data: vec![1] };
    let exited = Exited {
        id: ProgramId(1),
        status: 3,
        oom_killed: false,
        disk_full: false,
        timed_out: false,
    };
    let credit = Credit { id: ProgramId(1), bytes: 7 };
    for (sent, read) in [
        (GuestMessage::Output(output.clone()), CallMessage::Output(output)),
        (GuestMessage::Exited(exited), CallMessage::Exited(exited)),
        (GuestMessage::Credit(credit), CallMessage::Credit(credit)),
    ] {
        let mut bytes = Vec::new();
        sent.write(&mut bytes).unwrap();
        assert_eq!(CallMessage::read(&mut bytes.as_slice()).unwrap(), Some(read));
    }
}

#[test]
fn host_messages_read_back_and_name_their_protocol() {
    let argv = vec!["sh".to_owned(), "-c".to_owned(), "exit 3".to_owned()];
    let exec = Exec::new(ComponentName::Business, argv);
    let size = TerminalSize { rows: 24, columns: 80 };
    let pack = Exec { builtin: Some(Builtin::Pack), ..exec.clone() };
    let load = Exec { builtin: Some(Builtin::Skills(SkillTask::Load)), ..exec.clone() };
    let mount = Mount { source: MountSource::Disk(1), guest: "/data".into(), scope: Scope::Both };
    let mounts = Mounts { uid: 7, gid: 0, mounts: vec![mount], ..Mounts::default() };
    let source = MountSource::Together(0);
    let mount = Mount { source, guest: "/data".into(), scope: Scope::Both };
    let together = Mounts { uid: 7, gid: 0, mounts: vec![mount], ..Mounts::default() };
    let file = HostFile { guest: "/f".into(), scope: Scope::Agent, mode: 0o640, size: 2 };
    let files = Mounts { files: vec![file], ..Mounts::default() };
    for (message, since) in [
        (HostMessage::Exec(exec.clone()), 2),
        (HostMessage::Exec(Exec { terminal: Some(size), stdin: true, ..exec }), 2),
        (HostMessage::Exec(pack), 3),
        (HostMessage::Exec(load), 4),
        (HostMessage::Signal(Signal { id: ProgramId::AGENT, signal: 15 }), 2),
        (HostMessage::Shutdown(Shutdown { grace_ms: 2000 }), 2),
        (HostMessage::Input(Input { id: ProgramId(9), data: vec![0, 255] }), 2),
        (HostMessage::InputEnd(InputEnd { id: ProgramId(9) }), 2),
        (HostMessage::Credit(Credit { id: ProgramId(9), bytes: 1 }), 2),
        (HostMessage::Resize(Resize { id: ProgramId(9), size }), 2),
        (HostMessage::Measure(Measure {}), 3),
        (HostMessage::Clock(HostTime { now_ns: u64::MAX }), 3),
        (HostMessage::Mounts(mounts), 4),
        (HostMessage::Mounts(together), 9),
        (HostMessage::Mounts(files), 10),
        (HostMessage::FilePart(FilePart { data: vec![0, 255] }), 10),
        (HostMessage::Variable(Variable { index: 0, value: None }), 8),
    ] {
        assert_eq!(message.since(), since, "{message:?}");
        let mut bytes = Vec::new();
        message.write(&mut bytes).unwrap();
        assert_eq!(HostMessage::read(&mut bytes.as_slice()).unwrap(), Some(message));
    }
}

/// Programs of every protocol version since the second send these bytes: an id is one byte, or in JSON a number that
/// fits into one byte, except in exits and signals.
#[test]
fn ids_of_programs_are_on_the_wire_as_they_have_always_been() {
    let written = |message: &GuestMessage| {
        let mut bytes = Vec::new();
        message.write(&mut bytes).unwrap();
        bytes
    };
    let sent = |message: &HostMessage| {
        let mut bytes = Vec::new();
        message.write(&mut bytes).unwrap();
        bytes
    };
    let output = Output { id: ProgramId(255), stream: Stream::Stderr, data: vec![7] };
    let exited = Exited {
        id: ProgramId(255),
        status: 3,
        oom_killed: false,
        disk_full: false,
        timed_out: true,
    };
    let size = TerminalSize { rows: 24, columns: 80 };
    let json = r#"{"id":255,"status":3,"oom_killed":false,"timed_out":true}"#;
    assert_eq!(written(&GuestMessage::Output(output)), b"\x04\0\0\0\x03\xFF\x02\x07");
    assert_eq!(written(&GuestMessage::Exited(exited)), frame(4, json));
    let credit = Credit { id: ProgramId(255), bytes: 9 };
    assert_eq!(written(&GuestMessage::Credit(credit)), frame(6, r#"{"id":255,"bytes":9}"#));
    let exec = Exec::new(ComponentName::Agent, vec!["true".into()]);
    let exec = Exec { id: ProgramId(254), ..exec };
    let json = r#"{"id":254,"component":"agent","argv":["true"]}"#;
    assert_eq!(sent(&HostMessage::Exec(exec)), frame(65, json));
    let signal = Signal { id: ProgramId(255), signal: 15 };
    assert_eq!(sent(&HostMessage::Signal(signal)), frame(66, r#"{"id":255,"signal":15}"#));
    let input = Input { id: ProgramId(254), data: vec![7] };
    assert_eq!(sent(&HostMessage::Input(input)), b"\x03\0\0\0\x44\xFE\x07");
    let end = InputEnd { id: ProgramId(254) };
    assert_eq!(sent(&HostMessage::InputEnd(end)), frame(69, r#"{"id":254}"#));
    assert_eq!(sent(&HostMessage::Credit(credit)), frame(70, r#"{"id":255,"bytes":9}"#));
    let json = r#"{"id":254,"size":{"rows":24,"columns":80}}"#;
    assert_eq!(sent(&HostMessage::Resize(Resize { id: ProgramId(254), size })), frame(71, json));
}

#[test]
fn an_id_that_its_message_cannot_have_is_refused() {
    let exited = frame(4, r#"{"id":256,"status":3,"oom_killed":false,"timed_out":true}"#);
    GuestMessage::read(&mut exited.as_slice()).unwrap();
    HostMessage::read(&mut frame(66, r#"{"id":256,"signal":15}"#).as_slice()).unwrap();
    GuestMessage::read(&mut frame(6, r#"{"id":256,"bytes":9}"#).as_slice()).unwrap_err();
    let size = r#"{"id":256,"size":{"rows":24,"columns":80}}"#;
    let exec = r#"{"id":256,"component":"agent","argv":["true"]}"#;
    for (kind, json) in [(65, exec), (69, r#"{"id":256}"#), (71, size)] {
        let error = HostMessage::read(&mut frame(kind, json).as_slice()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}

fn frame(kind: u8, body: &str) -> Vec<u8> {
    let length = u32::try_from(body.len() + 1).unwrap();
    [&length.to_le_bytes(), &[kind][..], body.as_bytes()].concat()
}

/// An init of the previous protocol version refuses unknown fields.
#[test]
fn a_command_is_as_the_previous_protocol_has_it() {
    let exec = Exec::new(ComponentName::Agent, vec!["true".into()]);
    let json = serde_json::to_string(&exec).unwrap();
    assert_eq!(json, r#"{"id":1,"component":"agent","argv":["true"]}"#);
}

#[test]
fn a_frame_over_the_limit_is_refused_before_it_is_read() {
    let huge = u32::MAX.to_le_bytes();
    let error = GuestMessage::read(&mut huge.as_slice()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    let data = vec![0; MAX_FRAME];
    let message =
        GuestMessage::Output(Output { id: ProgramId::AGENT, stream: Stream::Stdout, data });
    let error = message.write(&mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn the_largest_output_and_input_fit() {
    let data = vec![7; MAX_OUTPUT];
    let stream = Stream::Stdout;
    let message = GuestMessage::Output(Output { id: ProgramId::AGENT, stream, data: data.clone() });
    assert_eq!(round_trip(&message), message);
    HostMessage::Input(Input { id: ProgramId::AGENT, data }).write(&mut Vec::new()).unwrap();
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        drop(GuestMessage::read(&mut bytes.as_slice()));
        drop(HostMessage::read(&mut bytes.as_slice()));
    }
}
