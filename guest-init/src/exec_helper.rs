//! `box-exec`: runs a command in the business component, for the agent.
//!
//! It is the program of init under another name in the agent's root. It connects to init over a Unix socket that only
//! the agent's user can open, relays the standard streams and signals, and exits with the command's status. For
//! example, `box-exec -w /srv ls` lists a directory of the business component.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use box_contract::ComponentName;
use box_contract::plan::EXEC_SOCKET_PATH;
use box_contract::rules::{MAX_TIMEOUT, check_directory, check_user, check_variable};
use box_contract::wire::{
    self, CallMessage, Credit, Exec, Frames, HostMessage, INPUT_WINDOW, InputEnd, MAX_OUTPUT,
    Output, ProgramId, Signal, Stream, Window,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal as Number};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// The file name under which init's program runs as `box-exec`.
pub(crate) const NAME: &str = "box-exec";
const USAGE: &str = "usage: box-exec [-i] [-w DIR] [-e NAME=VALUE]… [-u USER[:GROUP]] [--timeout SECONDS] [--] COMMAND…

Runs COMMAND in the box's business component, with its environment, user and limits, and ends with its status.

  -i                   pass standard input on
  -w DIR               the working directory
  -e NAME=VALUE        a variable; NAME alone has the value that it has here
  -u USER[:GROUP]      the user, and the group
  --timeout SECONDS    kill the command and its process group after so long; the status is then 124
";
/// The status if no command could be requested, as with `docker run`.
const FAILED: u8 = 125;
/// The status if the output's reader has gone: 128 + SIGPIPE.
const PIPE_CLOSED: u8 = 141;
/// How many bytes are read at a time.
const CHUNK: usize = 16 << 10;

/// Runs `box-exec` and returns its status.
pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let status = match parse(arguments.collect()) {
        Ok(Some(command)) => run(command).unwrap_or_else(|error| complain(&error.to_string())),
        Ok(None) => {
            drop(io::stdout().write_all(USAGE.as_bytes()));
            0
        }
        Err(error) => complain(&format!("{error}\n{USAGE}")),
    };
    ExitCode::from(status)
}

/// Prints an error on standard error.
fn complain(what: &str) -> u8 {
    drop(writeln!(io::stderr(), "box-exec: {}", what.trim_end()));
    FAILED
}

/// Parses the arguments. Returns `None` if they ask for help.
fn parse(mut words: VecDeque<OsString>) -> Result<Option<Exec>, String> {
    let mut exec = Exec::new(ComponentName::Business, [""; 0]);
    while let Some(option) = words.pop_front_if(|word| word.as_bytes().starts_with(b"-")) {
        let option = option.to_string_lossy();
        let mut value = || words.pop_front().ok_or_else(|| format!("{option} needs a value"));
        match &*option {
            "-h" | "--help" => return Ok(None),
            "-i" => exec.stdin = true,
            "-w" => exec.workdir = Some(checked(value()?, check_directory)?),
            "-e" => exec.env.extend(with_value(checked(value()?, check_variable)?)),
            "-u" => exec.user = checked(value()?, check_user)?.into_string().ok(),
            "--timeout" => {
                let seconds = value()?.to_str().and_then(|it| it.parse::<u32>().ok());
                let seconds = seconds.filter(|it| (1..=MAX_TIMEOUT).contains(it));
                let seconds =
                    seconds.ok_or("--timeout needs a number of seconds, at most a day")?;
                exec.timeout_ms = Some(u64::from(seconds) * 1000);
            }
            "--" => break,
            other => return Err(format!("there is no option {other}")),
        }
    }
    exec.argv = words.into();
    if exec.argv.is_empty() { Err("which command?".to_owned()) } else { Ok(Some(exec)) }
}

/// Returns the value if it follows the rule.
fn checked(
    value: OsString,
    rule: impl FnOnce(&str) -> Result<(), &'static str>,
) -> Result<OsString, String> {
    // The rules are about ASCII characters, and refuse the replacement character in a name of a user.
    let shown = value.to_string_lossy();
    rule(&shown).map_err(|how| format!("{shown:?}: {how}"))?;
    Ok(value)
}

/// Returns a variable with its value. `NAME` alone gets the value of this process's variable. Returns `None` if this
/// process has no such variable.
fn with_value(mut variable: OsString) -> Option<OsString> {
    if variable.as_bytes().contains(&b'=') {
        return Some(variable);
    }
    let value = std::env::var_os(&variable)?;
    variable.push("=");
    variable.push(value);
    Some(variable)
}

/// Runs a command and returns its status.
fn run(exec: Exec) -> io::Result<u8> {
    let stream = UnixStream::connect(EXEC_SOCKET_PATH).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot reach the box's init: {error}"))
    })?;
    let signals = signals()?;
    let input = exec.stdin.then_some(INPUT_WINDOW);
    let mut caller =
        Caller { stream, frames: Frames::default(), signals, input, written: Window::default() };
    HostMessage::Exec(exec).write(&mut caller.stream)?;
    loop {
        match caller.serve() {
            Ok(Some(status)) => return Ok(status),
            // The output's reader has gone. The status is the same as after SIGPIPE, and init kills the command.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(PIPE_CLOSED),
            served => drop(served?),
        }
    }
}

/// Returns the signals that are relayed to the command.
fn signals() -> io::Result<SignalFd> {
    let set: SigSet =
        [Number::SIGINT, Number::SIGTERM, Number::SIGHUP, Number::SIGQUIT].into_iter().collect();
    set.thread_block()?;
    Ok(SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?)
}

/// The connection to init.
struct Caller {
    stream: UnixStream,
    frames: Frames,
    signals: SignalFd,
    /// How many bytes of input can be sent now. `None` after the end of the input.
    input: Option<u32>,
    /// Counts the output that was written but not granted again.
    written: Window,
}

impl Caller {
    /// Waits for an event and serves it. Returns the command's status when the command has ended.
    fn serve(&mut self) -> io::Result<Option<u8>> {
        let stdin = io::stdin();
        let sources = [
            Some(self.stream.as_fd()),
            Some(self.signals.as_fd()),
            Some(stdin.as_fd()).filter(|_| self.input > Some(0)),
        ];
        let mut fds: Vec<_> =
            sources.into_iter().flatten().map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        match poll(&mut fds, PollTimeout::NONE) {
            Err(nix::Error::EINTR) => return Ok(None),
            polled => polled?,
        };
        let ready: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(true)).collect();
        if ready[1] {
            self.pass_signals_on();
        }
        if ready.get(2) == Some(&true) {
            self.send_input()?;
        }
        if ready[0] { self.receive() } else { Ok(None) }
    }

    fn pass_signals_on(&mut self) {
        while let Ok(Some(signal)) = self.signals.read_signal() {
            let signal = signal.ssi_signo.cast_signed();
            self.tell(&HostMessage::Signal(Signal { id: ProgramId::COMMAND, signal }));
        }
    }

    fn send_input(&mut self) -> io::Result<()> {
        let mut data = vec![0; (self.input.unwrap_or(0) as usize).min(MAX_OUTPUT)];
        let length = match io::stdin().read(&mut data) {
            Err(error)
                if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) =>
            {
                return Ok(());
            }
            read => read?,
        };
        data.truncate(length);
        if data.is_empty() {
            self.input = None;
            self.tell(&HostMessage::InputEnd(InputEnd { id: ProgramId::COMMAND }));
            return Ok(());
        }
        let sent = u32::try_from(length).unwrap_or(u32::MAX);
        self.input = self.input.map(|left| left.saturating_sub(sent));
        self.tell(&HostMessage::Input(wire::Input { id: ProgramId::COMMAND, data }));
        Ok(())
    }

    /// Reads init's messages. Returns the command's status when the command has ended.
    fn receive(&mut self) -> io::Result<Option<u8>> {
        let mut chunk = [0; CHUNK];
        let length = self.stream.read(&mut chunk)?;
        if length == 0 {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "the box's init has hung up"));
        }
        self.frames.push(&chunk[..length]);
        while let Some(message) = self.frames.next(|rest| CallMessage::read(rest))? {
            match message {
                CallMessage::Output(output) => self.write(&output)?,
                CallMessage::Credit(credit) => {
                    self.input = self.input.map(|left| left.saturating_add(credit.bytes));
                }
                CallMessage::Exited(ended) => return Ok(Some(ended.code())),
            }
        }
        Ok(None)
    }

    /// Writes output to its stream, and grants the command as many bytes again.
    fn write(&mut self, output: &Output) -> io::Result<()> {
        match output.stream {
            Stream::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(&output.data)?;
                stdout.flush()?;
            }
            Stream::Stderr => io::stderr().write_all(&output.data)?,
        }
        if let Some(bytes) = self.written.passed(output.cost()) {
            self.tell(&HostMessage::Credit(Credit { id: ProgramId::COMMAND, bytes }));
        }
        Ok(())
    }

    /// Sends a message and ignores errors. If init has hung up, `receive` still reads its last messages, and then the
    /// end.
    fn tell(&mut self, message: &HostMessage) {
        drop(message.write(&mut self.stream));
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn parsed(line: &str) -> Result<Option<Exec>, String> {
        parse(line.split_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn options_come_before_the_command() {
        let exec = parsed("-i -w /tmp -e A=1 -e B=2 -u app --timeout 5 -- ls -l").unwrap().unwrap();
        assert_eq!(exec.argv, ["ls", "-l"]);
        assert_eq!((exec.stdin, exec.workdir.as_deref()), (true, Some(OsStr::new("/tmp"))));
        assert_eq!((exec.env.len(), exec.user.as_deref()), (2, Some("app")));
        assert_eq!((exec.timeout_ms, exec.component), (Some(5000), ComponentName::Business));
        assert_eq!(parsed("ls -l").unwrap().unwrap().argv, ["ls", "-l"]);
        assert_eq!(parsed("--help"), Ok(None));
    }

    #[test]
    fn words_need_not_be_utf_8() {
        let word = |it: &[u8]| OsString::from_vec(it.to_vec());
        let words = [b"-e", &b"A=\xFF"[..], b"-w", b"/\xFE", b"ls", b"\xFD"].map(word);
        let exec = parse(words.to_vec().into()).unwrap().unwrap();
        assert_eq!((exec.argv, exec.env), (words[4..].to_vec(), vec![word(b"A=\xFF")]));
        assert_eq!(exec.workdir, Some(word(b"/\xFE")));
        let user = parse([b"-u", &b"\xFF"[..], b"ls"].map(word).to_vec().into());
        assert!(user.unwrap_err().starts_with("\"\u{fffd}\": "));
    }

    #[test]
    fn what_cannot_be_meant_is_said() {
        for (line, reason) in [
            ("", "which command?"),
            ("-i", "which command?"),
            ("-x ls", "there is no option -x"),
            ("-w", "-w needs a value"),
            ("--timeout 0 ls", "--timeout needs a number of seconds, at most a day"),
            (
                "-u :1 ls",
                "\":1\": write `USER` or `USER:GROUP`, names or numbers: \"app:app\", \"1000\"",
            ),
            ("-w tmp ls", "\"tmp\": write a path that starts with /"),
        ] {
            assert_eq!(parsed(line), Err(reason.to_owned()), "{line}");
        }
    }
}
