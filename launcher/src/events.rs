//! The events of a running machine, one at a time.
//!
//! One thread waits on everything at once: the listener or the control channel, the VMM process's
//! log, the signals, and the input and the terminal of a command. The log ends when the process does.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use box_image::wire::{GuestMessage, HostMessage, TerminalSize};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::LaunchError;
use crate::console::Console;
use crate::control::{CHUNK, Channel, Listener, Nonce};
use crate::input::Input;
use crate::signals::StopSignals;
use crate::tty::Tty;
use crate::vmm::Vmm;

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// Init said something.
    Message(GuestMessage),
    /// Init closed the control channel; said once.
    HungUp,
    /// The VMM process has ended, and everything that it said was delivered.
    VmmEnded(ExitStatus),
    /// A signal asks for the end.
    Signal(i32),
    /// Bytes for the command came; none at the end of its input, which comes once.
    Input(Vec<u8>),
    /// The terminal that the command has got has this size now.
    Resized(TerminalSize),
    /// The deadline has passed.
    Deadline,
}

/// The control connection's life.
#[derive(Debug)]
enum Control {
    Awaited(Listener, Nonce),
    Open(Channel),
    Closed,
}

/// Everything that a run waits on.
#[derive(Debug)]
pub(crate) struct Events<'a> {
    vmm: Vmm,
    control: Control,
    pub(crate) console: Console,
    pub(crate) signals: &'a StopSignals,
    /// The standard input of the command.
    pub(crate) input: Option<Input>,
    /// Where it shows what it writes, if that is a terminal.
    pub(crate) tty: Option<Tty>,
}

/// Which of the sources have something.
#[derive(Debug, Default)]
struct Sources {
    control: bool,
    log: bool,
    signals: bool,
    input: bool,
    tty: bool,
}

impl<'a> Events<'a> {
    pub(crate) const fn new(
        vmm: Vmm,
        listener: Listener,
        nonce: Nonce,
        console: Console,
        signals: &'a StopSignals,
    ) -> Self {
        let control = Control::Awaited(listener, nonce);
        Self { vmm, control, console, signals, input: None, tty: None }
    }

    /// Sends a request to init.
    pub(crate) fn send(&mut self, message: &HostMessage) -> Result<(), LaunchError> {
        match &mut self.control {
            Control::Open(channel) => channel.send(message),
            Control::Awaited(..) | Control::Closed => {
                let gone = io::Error::from(ErrorKind::NotConnected);
                Err(LaunchError::system("send a request to init")(gone))
            }
        }
    }

    /// Kills what is left of the machine, and keeps what it has still said.
    pub(crate) fn kill(&mut self) -> Result<(), LaunchError> {
        self.vmm.kill();
        while self.vmm.log_fd().is_some() {
            self.read_log()?;
        }
        Ok(())
    }

    /// Waits for the next event. A message that has arrived comes before the machine's end.
    pub(crate) fn next(&mut self, deadline: Option<Instant>) -> Result<Event, LaunchError> {
        loop {
            if let Control::Open(channel) = &mut self.control
                && let Some(message) = channel.message()?
            {
                return Ok(Event::Message(message));
            }
            let patience = match (self.vmm.log_fd().is_some(), deadline) {
                // The process is gone: what it left in the socket is there already.
                (false, _) => Some(Duration::ZERO),
                (true, Some(deadline)) => Some(deadline.saturating_duration_since(Instant::now())),
                (true, None) => None,
            };
            let ready = self.wait(patience)?;
            if let Some(event) = self.take(&ready)? {
                return Ok(event);
            }
            if self.vmm.log_fd().is_none() && !ready.control {
                return self.vmm.wait().map(Event::VmmEnded);
            }
            if self.vmm.log_fd().is_some() && patience == Some(Duration::ZERO) {
                return Ok(Event::Deadline);
            }
        }
    }

    /// Reads from the sources that have something.
    fn take(&mut self, ready: &Sources) -> Result<Option<Event>, LaunchError> {
        if ready.log {
            self.read_log()?;
        }
        if ready.signals
            && let Some(signal) = self.signals.next()?
        {
            return Ok(Some(Event::Signal(signal)));
        }
        if ready.control {
            return self.read_control();
        }
        if ready.input {
            return self.read_input();
        }
        Ok(self.tty.as_ref().filter(|_| ready.tty).map(|tty| {
            tty.clear_resized();
            Event::Resized(tty.size())
        }))
    }

    fn wait(&mut self, patience: Option<Duration>) -> Result<Sources, LaunchError> {
        let control = match &self.control {
            Control::Awaited(listener, _) => Some(listener.as_fd()),
            Control::Open(channel) => Some(channel.as_fd()),
            Control::Closed => None,
        };
        // The signals stand in for a source that is closed, whose answer is then not looked at.
        let fallback = self.signals.as_fd();
        let log = self.vmm.log_fd();
        let input = self.input.as_ref().and_then(Input::wanted);
        let tty = self.tty.as_ref().map(Tty::as_fd);
        let mut fds = [control, log, Some(fallback), input, tty]
            .map(|fd| PollFd::new(fd.unwrap_or(fallback), PollFlags::POLLIN));
        match poll(&mut fds, timeout(patience)) {
            Err(nix::Error::EINTR) => return Ok(Sources::default()),
            polled => polled.map_err(LaunchError::system("wait for the machine"))?,
        };
        let [on_control, on_log, signals, on_input, on_tty] =
            fds.map(|fd| fd.any().unwrap_or(true));
        let (control, log) = (control.is_some() && on_control, log.is_some() && on_log);
        let (input, tty) = (input.is_some() && on_input, tty.is_some() && on_tty);
        Ok(Sources { control, log, signals, input, tty })
    }

    fn read_control(&mut self) -> Result<Option<Event>, LaunchError> {
        match std::mem::replace(&mut self.control, Control::Closed) {
            Control::Awaited(listener, nonce) => {
                let stream = listener.accept(self.vmm.pid())?;
                self.control = Control::Open(Channel::new(stream, nonce));
            }
            Control::Open(mut channel) => {
                if !channel.receive()? {
                    return Ok(Some(Event::HungUp));
                }
                self.control = Control::Open(channel);
            }
            Control::Closed => {}
        }
        Ok(None)
    }

    fn read_input(&mut self) -> Result<Option<Event>, LaunchError> {
        let read = self.input.as_mut().map_or(Ok(None), Input::read);
        Ok(read.map_err(LaunchError::Input)?.map(Event::Input))
    }

    fn read_log(&mut self) -> Result<(), LaunchError> {
        let mut chunk = [0; CHUNK];
        let action = "keep the machine's console";
        match self.vmm.read_log(&mut chunk) {
            Ok(0) => self.console.finish().map_err(LaunchError::system(action)),
            Ok(length) => self.console.push(&chunk[..length]).map_err(LaunchError::system(action)),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(LaunchError::system("read the machine's console")(error)),
        }
    }
}

/// Rounds up, so that a wait never ends just before its deadline.
fn timeout(patience: Option<Duration>) -> PollTimeout {
    let Some(patience) = patience else { return PollTimeout::NONE };
    let ms = patience.as_nanos().div_ceil(1_000_000);
    PollTimeout::try_from(ms).unwrap_or(PollTimeout::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use testkit::test_box::{TestBox, config};

    /// Runs a program in the VMM's place.
    fn events<'a>(program: &str, made: &TestBox, signals: &'a StopSignals) -> Events<'a> {
        let vmm = Vmm::spawn(Path::new(program), &crate::open(made.path()).unwrap()).unwrap();
        let listener = Listener::bind(made.path().join("control.sock")).unwrap();
        Events::new(vmm, listener, Nonce::random().unwrap(), Console::new(None), signals)
    }

    fn soon() -> Option<Instant> {
        Some(Instant::now() + Duration::from_millis(5))
    }

    #[test]
    fn the_end_of_the_vmm_comes_after_its_last_words() {
        let (made, signals) = (TestBox::new(&config()), StopSignals::block().unwrap());
        // `cat vmm` finds no such file.
        let mut events = events("/bin/cat", &made, &signals);
        match events.next(None).unwrap() {
            Event::VmmEnded(status) => assert_eq!(status.code(), Some(1)),
            other => panic!("{other:?}"),
        }
        assert!(events.console.tail().contains("vmm: No such file"));
        assert!(matches!(events.next(None).unwrap(), Event::VmmEnded(_)));
    }

    #[test]
    fn a_silent_machine_meets_the_deadline() {
        let (made, signals) = (TestBox::new(&config()), StopSignals::block().unwrap());
        let mut events = events("/usr/bin/yes", &made, &signals);
        assert!(matches!(events.next(soon()).unwrap(), Event::Deadline));
        let shutdown = HostMessage::Shutdown(box_image::wire::Shutdown { grace_ms: 0 });
        assert!(events.send(&shutdown).is_err());
    }

    #[test]
    fn another_process_on_the_control_socket_ends_the_run() {
        let (made, signals) = (TestBox::new(&config()), StopSignals::block().unwrap());
        let mut events = events("/usr/bin/yes", &made, &signals);
        let _intruder = UnixStream::connect(made.path().join("control.sock")).unwrap();
        let error = events.next(None).unwrap_err().to_string();
        assert!(error.contains("not the VMM, connected first"), "{error}");
    }

    #[test]
    fn a_signal_is_an_event() {
        let (made, signals) = (TestBox::new(&config()), StopSignals::block().unwrap());
        let mut events = events("/usr/bin/yes", &made, &signals);
        nix::sys::pthread::pthread_kill(
            nix::sys::pthread::pthread_self(),
            nix::sys::signal::SIGTERM,
        )
        .unwrap();
        assert!(matches!(events.next(None).unwrap(), Event::Signal(15)));
    }

    #[test]
    fn waits_are_rounded_up() {
        assert_eq!(timeout(None), PollTimeout::NONE);
        assert_eq!(timeout(Some(Duration::ZERO)), PollTimeout::ZERO);
        assert_eq!(timeout(Some(Duration::from_nanos(1_000_001))), PollTimeout::from(2u8));
        assert_eq!(timeout(Some(Duration::MAX)), PollTimeout::MAX);
    }
}
