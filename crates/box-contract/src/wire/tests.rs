//! Tests that frames read back, and that hostile frames are refused.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use super::*;
use crate::{ComponentName, Scope};
use proptest::prelude::*;

fn round_trip(message: &GuestMessage) -> GuestMessage {
    let mut bytes = Vec::new();
    message.write(&mut bytes).unwrap();
    GuestMessage::read(&mut bytes.as_slice()).unwrap().unwrap()
}

fn question() -> Question {
    let exec = Exec { workdir: Some("/w".into()), ..Exec::new(ComponentName::Business, ["git"]) };
    let question = Question::about(&exec, Caller::Host, (Some("git *"), ""));
    Question { question: 1, id: Some(ProgramId(7)), timeout_ms: 5, ..question }
}

#[test]
fn questions_are_on_the_wire_as_clients_read_them() {
    let mut bytes = Vec::new();
    GuestMessage::Question(question()).write(&mut bytes).unwrap();
    let json = r#"{"question":1,"id":7,"component":"business","by":"host","argv":["git"],"workdir":"/w","rule":"git *","reason":"","timeout_ms":5}"#;
    assert_eq!(bytes, frame(13, json));
    for (message, kind, json) in [
        (
            ClientMessage::Approvals(ApprovalsQuery { questions: FollowQuestions::All }),
            134,
            r#"{"questions":"all"}"#,
        ),
        (
            ClientMessage::Decide(Answer { question: 2, reply: Reply::ApproveAlways }),
            135,
            r#"{"question":2,"reply":"approve-always"}"#,
        ),
    ] {
        let mut bytes = Vec::new();
        message.write(&mut bytes).unwrap();
        assert_eq!(bytes, frame(kind, json));
        assert_eq!(ClientMessage::read(&mut bytes.as_slice()).unwrap(), Some(message));
    }
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
    assert_eq!(spoken, [OLDEST_PROTOCOL, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, PROTOCOL]);
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
            fenced: None,
        }),
        GuestMessage::Credit(Credit { id: ProgramId(255), bytes: u32::MAX }),
        GuestMessage::Failed(Failed { step: "mount".into(), message: "no".into() }),
        GuestMessage::Usage(Usage { components: Vec::new() }),
        GuestMessage::Event(GuestEvent::new(ComponentName::Agent, GuestEventKind::Start)),
        GuestMessage::Trajectory(Trajectory { name: "a.json".into(), data: vec![0, 255] }),
        GuestMessage::Trajectory(Trajectory { name: "a".into(), data: Vec::new() }),
        GuestMessage::Question(question()),
        GuestMessage::QuestionsListed(QuestionsListed {}),
        GuestMessage::QuestionEnded(QuestionEnded { question: 1, denial: None }),
        GuestMessage::QuestionEnded(QuestionEnded { question: 1, denial: Some(Denial::Person) }),
        GuestMessage::Verification(Verification::Started),
        GuestMessage::Verification(Verification::Ended(VerificationEnd::default())),
    ] {
        assert_eq!(round_trip(&message), message);
    }
}

#[test]
fn the_longest_texts_of_a_verification_fit_into_a_frame() {
    let end = VerificationEnd {
        output: "\u{1}".repeat(MAX_VERIFICATION_OUTPUT),
        reason: Some("\u{1}".repeat(MAX_VERIFICATION_REASON)),
        ..VerificationEnd::default()
    };
    assert!(end.is_bounded());
    let message = GuestMessage::Verification(Verification::Ended(end.clone()));
    assert_eq!(round_trip(&message), message);
    assert!(!VerificationEnd { output: end.output.clone() + "x", ..end }.is_bounded());
}

#[test]
fn memory_was_lacked_by_what_has_failed() {
    let exited = Exited {
        id: ProgramId(1),
        status: 3,
        oom_killed: false,
        disk_full: false,
        timed_out: false,
        fenced: None,
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
        fenced: None,
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
    let exec = Exec::new(ComponentName::Business, ["sh", "-c", "exit 3"]);
    let size = TerminalSize { rows: 24, columns: 80 };
    let long = Exec::new(ComponentName::Agent, vec!["a\n".repeat(MAX_FRAME / 2); 3]);
    let bytes = Exec { workdir: Some(OsString::from_vec(vec![b'/', 0xFF])), ..exec.clone() };
    let pack = Exec { builtin: Some(Builtin::Pack), ..exec.clone() };
    let load = Exec { builtin: Some(Builtin::Skills(SkillTask::Load)), ..exec.clone() };
    let list = Exec { builtin: Some(Builtin::List), ..exec.clone() };
    let mount = Mount { source: MountSource::Disk(1), guest: "/data".into(), scope: Scope::Both };
    let mounts = Mounts { uid: 7, gid: 0, mounts: vec![mount], ..Mounts::default() };
    let source = MountSource::Together(0);
    let mount = Mount { source, guest: "/data".into(), scope: Scope::Both };
    let together = Mounts { uid: 7, gid: 0, mounts: vec![mount], ..Mounts::default() };
    let file = HostFile { guest: "/f".into(), scope: Scope::Agent, mode: 0o640, size: 2 };
    let files = Mounts { files: vec![file], ..Mounts::default() };
    let socket = HostSocket { guest: "/s".into(), scope: Scope::Business };
    let sockets = Mounts { sockets: vec![socket], ..files.clone() };
    let skills = Mounts { skills: vec!["notes".into()], ..sockets.clone() };
    for (message, since) in [
        (HostMessage::Exec(exec.clone()), 2),
        (HostMessage::Exec(Exec { terminal: Some(size), stdin: true, ..exec }), 2),
        (HostMessage::Exec(long), 10),
        (HostMessage::Exec(bytes), 10),
        (HostMessage::Exec(pack), 3),
        (HostMessage::Exec(load), 4),
        (HostMessage::Exec(list), 13),
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
        (HostMessage::Mounts(sockets), 11),
        (HostMessage::Mounts(skills), 15),
        (HostMessage::FilePart(FilePart { data: vec![0, 255] }), 10),
        (HostMessage::Variable(Variable { index: 0, value: None }), 8),
        (HostMessage::Answer(Answer { question: 1, reply: Reply::ApproveAlways }), 14),
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
        fenced: None,
    };
    let size = TerminalSize { rows: 24, columns: 80 };
    let json = r#"{"id":255,"status":3,"oom_killed":false,"timed_out":true}"#;
    assert_eq!(written(&GuestMessage::Output(output)), b"\x04\0\0\0\x03\xFF\x02\x07");
    assert_eq!(written(&GuestMessage::Exited(exited)), frame(4, json));
    let credit = Credit { id: ProgramId(255), bytes: 9 };
    assert_eq!(written(&GuestMessage::Credit(credit)), frame(6, r#"{"id":255,"bytes":9}"#));
    let exec = Exec::new(ComponentName::Agent, ["true"]);
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
    let exec = Exec::new(ComponentName::Agent, ["true"]);
    let json = exec.encoded().unwrap();
    assert_eq!(json, br#"{"id":1,"component":"agent","argv":["true"]}"#);
    let exec = Exec { env: vec!["A=1".into()], workdir: Some("/".into()), ..exec };
    let json = r#"{"id":1,"component":"agent","argv":["true"],"env":["A=1"],"workdir":"/"}"#;
    assert_eq!(exec.encoded().unwrap(), json.as_bytes());
}

#[test]
fn a_command_is_as_long_as_linux_can_pass_on_and_no_longer() {
    let words = |size| {
        let whole = vec!["x".repeat(99_991); size / 100_000];
        Exec::new(ComponentName::Agent, whole.into_iter().chain(["x".repeat(size % 100_000 - 9)]))
    };
    let mut frame = Vec::new();
    let longest = HostMessage::Exec(words(MAX_WORDS));
    longest.write(&mut frame).unwrap();
    assert_eq!(HostMessage::read(&mut frame.as_slice()).unwrap(), Some(longest));
    let error = words(MAX_WORDS + 1).encoded().unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("need 2097153 bytes, 9 of them") && error.ends_with("2097152"),
        "{error}"
    );
    let short = |count| Exec::new(ComponentName::Agent, vec![""; count]);
    let most = MAX_WORDS / 9;
    assert_eq!(Exec::decoded(short(most).encoded().unwrap()).unwrap().argv.len(), most);
    assert_eq!(short(most + 1).encoded().unwrap_err().kind(), io::ErrorKind::InvalidInput);
    let nul = Exec::new(ComponentName::Agent, [OsString::from_vec(b"\xFF\0".to_vec())]);
    assert!(nul.encoded().unwrap_err().to_string().contains("NUL"));
}

#[test]
fn a_long_frame_arrives_in_parts() {
    let exec = Exec::new(ComponentName::Agent, vec!["x".repeat(100_000); 20]);
    let mut bytes = Vec::new();
    HostMessage::Exec(exec.clone()).write(&mut bytes).unwrap();
    HostMessage::Measure(Measure {}).write(&mut bytes).unwrap();
    let (mut frames, mut read) = (Frames::default(), Vec::new());
    for part in bytes.chunks(4099) {
        frames.push(part);
        while let Some(message) = frames.next(|rest| HostMessage::read(rest)).unwrap() {
            read.push(message);
        }
    }
    assert_eq!(read, [HostMessage::Exec(exec), HostMessage::Measure(Measure {})]);
    assert!(!frames.is_inside_frame());
}

#[test]
fn only_a_command_may_be_long() {
    let long = |kind: u8| {
        let length = u32::try_from(MAX_FRAME + 1).unwrap();
        [&length.to_le_bytes()[..], &[kind]].concat()
    };
    for kind in [3_u8, 4, 65, 200] {
        let error = GuestMessage::read(&mut long(kind).as_slice()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{kind}");
        let error = ClientMessage::read(&mut long(kind).as_slice()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{kind}");
    }
    for kind in [66_u8, 68, 74, 200] {
        let error = HostMessage::read(&mut long(kind).as_slice()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{kind}");
    }
    let error = HostMessage::read(&mut long(65).as_slice()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    let length = u32::try_from(MAX_FRAME + MAX_WORDS + 1).unwrap().to_le_bytes();
    let error = HostMessage::read(&mut [&length[..], &[65]].concat().as_slice()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}

#[test]
fn a_malformed_long_command_is_refused() {
    let head = br#"{"id":1,"component":"agent","argv":[]}"#;
    let body = |arguments: u32, variables: u32, rest: &[u8]| {
        let (arguments, variables) = (arguments.to_le_bytes(), variables.to_le_bytes());
        [&[0][..], &arguments, &variables, rest].concat()
    };
    let with = |words: &[u8]| [&head[..], &[0], words].concat();
    let read = Exec::decoded(body(2, 1, &with(b"a\0\xFF\0A=1\0/tmp\0"))).unwrap();
    assert_eq!(read.argv, [b"a".to_vec(), vec![0xFF]].map(OsString::from_vec));
    assert_eq!((read.env.len(), read.workdir), (1, Some("/tmp".into())));
    // As many words as bytes would be kept in 24 bytes of memory each, and more.
    let most = u32::try_from(MAX_WORDS / 9).unwrap();
    let empty = |count: u32| body(count, 0, &with(&vec![0; count as usize]));
    assert_eq!(Exec::decoded(empty(most)).unwrap().argv.len(), MAX_WORDS / 9);
    for count in [most + 1, u32::try_from(MAX_WORDS).unwrap()] {
        let error = Exec::decoded(empty(count)).unwrap_err();
        assert_eq!(error.to_string(), invalid("a long command with too many words").to_string());
    }
    for malformed in [
        vec![0],
        vec![0; 9],
        body(0, 0, head),
        body(1, 0, &with(b"a")),
        body(2, 0, &with(b"a\0")),
        body(0, 0, &with(b"a\0b\0")),
        body(u32::MAX, u32::MAX, &with(b"a\0")),
        body(1, u32::MAX, &with(b"a\0")),
        body(0, 0, &[0; 100]),
        body(1, 0, b"{}\0a\0"),
        vec![b' '; MAX_FRAME],
        body(0, 0, &[&vec![b' '; MAX_FRAME][..], head, &[0]].concat()),
    ] {
        let error = Exec::decoded(malformed.clone()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{:?}", malformed.get(..99));
    }
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

/// Words as a command can have them: without NUL bytes.
fn words(count: usize) -> impl Strategy<Value = Vec<OsString>> {
    let word = proptest::collection::vec(1_u8.., 0..40).prop_map(OsString::from_vec);
    proptest::collection::vec(word, 0..count)
}

proptest! {
    #[test]
    fn every_command_reads_back(
        argv in words(5),
        env in words(4),
        workdir in proptest::option::of(words(1)),
        many in 0..3_usize,
    ) {
        let argv = argv.into_iter().chain(vec!["\u{1}".repeat(30_000).into(); many]);
        let workdir = workdir.and_then(|it| it.into_iter().next());
        let exec = Exec { env, workdir, ..Exec::new(ComponentName::Business, argv) };
        let mut frame = Vec::new();
        HostMessage::Exec(exec.clone()).write(&mut frame).unwrap();
        prop_assert_eq!(HostMessage::read(&mut frame.as_slice()).unwrap(), Some(HostMessage::Exec(exec)));
    }

    #[test]
    fn no_long_command_makes_the_reader_panic(rest in proptest::collection::vec(any::<u8>(), 0..80)) {
        drop(Exec::decoded([&[0][..], &rest].concat()));
        let counts = rest.first_chunk::<8>().copied().unwrap_or_default().map(|it| it % 2);
        let head = br#"{"id":1,"component":"agent","argv":[]}"#;
        drop(Exec::decoded([&[0][..], &counts, head, &[0], &rest].concat()));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        drop(GuestMessage::read(&mut bytes.as_slice()));
        drop(HostMessage::read(&mut bytes.as_slice()));
    }
}
