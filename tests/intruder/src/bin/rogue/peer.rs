//! The guest's end of the control channel.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;

use box_contract::ComponentName;
use box_contract::wire::{
    Caller, Exited, GuestMessage, Hello, Output, PROTOCOL, ProgramId, Question, Stream, Timing,
};
use nix::unistd::close;
use serde_json::Value;
use vmm::jail::Report;

/// The values of the VMM's configuration that the control channel needs.
pub(crate) struct Peer {
    pub(crate) nonce: String,
    pub(crate) socket: PathBuf,
}

impl Peer {
    /// Reads the configuration from stdin, and reports a complete jail on stdout.
    pub(crate) fn configured() -> Self {
        // Reads one JSON value: the supervisor closes stdin only after it has read the report.
        let config = serde_json::Deserializer::from_reader(io::stdin().lock()).into_iter().next();
        let config: Value = config.unwrap().unwrap();
        let runtime = PathBuf::from(config["jail"]["runtime"].as_str().unwrap());
        let nonce = config["nonce"].as_str().unwrap().to_owned();
        serde_json::to_writer(io::stdout(), &Report::default()).unwrap();
        io::stdout().flush().unwrap();
        // Ends the report, as the real VMM does.
        close(1).unwrap();
        Self { nonce, socket: runtime.join("vmm/control.sock") }
    }

    pub(crate) fn connect(&self) -> io::Result<UnixStream> {
        UnixStream::connect(&self.socket)
    }

    /// Connects, greets, reports that the agent is ready, and reads no request.
    pub(crate) fn deaf(&self) -> UnixStream {
        let mut stream = self.connect().unwrap();
        send(&mut stream, &self.hello());
        send(&mut stream, &ready());
        stream
    }

    /// Does the same as [`Self::deaf`], and reads and drops all requests.
    pub(crate) fn ready(&self) -> UnixStream {
        let stream = self.deaf();
        let mut requests = stream.try_clone().unwrap();
        thread::spawn(move || io::copy(&mut requests, &mut io::sink()));
        stream
    }

    pub(crate) fn hello(&self) -> GuestMessage {
        GuestMessage::Hello(Hello { protocol: PROTOCOL, nonce: self.nonce.clone() })
    }
}

pub(crate) fn ready() -> GuestMessage {
    GuestMessage::Ready(Timing { kernel_ns: 1, init_ns: 2, ready_ns: 3, sent_ns: 4 })
}

pub(crate) fn output(id: u8, length: usize) -> GuestMessage {
    GuestMessage::Output(Output { id: id.into(), stream: Stream::Stdout, data: vec![b'x'; length] })
}

pub(crate) fn exited(id: ProgramId, status: u8) -> GuestMessage {
    GuestMessage::Exited(Exited {
        id,
        status,
        oom_killed: true,
        disk_full: false,
        timed_out: false,
        fenced: None,
    })
}

/// Returns a question about a command of the agent, whose text has this length.
pub(crate) fn question(number: u32, length: usize) -> Question {
    Question {
        question: number,
        id: None,
        component: ComponentName::Business,
        by: Caller::Agent,
        argv: vec!["x".repeat(length)],
        is_cut: false,
        env: Vec::new(),
        has_input: false,
        user: None,
        workdir: None,
        rule: None,
        reason: String::new(),
        timeout_ms: u64::MAX,
    }
}

/// Sends a message. Exits if the supervisor has hung up.
pub(crate) fn send(stream: &mut UnixStream, message: &GuestMessage) {
    let mut frame = Vec::new();
    message.write(&mut frame).unwrap();
    put(stream, &frame);
}

/// Sends bytes. Exits if the supervisor has hung up.
pub(crate) fn put(stream: &mut UnixStream, bytes: &[u8]) {
    if stream.write_all(bytes).is_err() {
        std::process::exit(0);
    }
}
