//! Finds out, from inside a component, whether it is well: at the start until the agent is ready, and whenever the host
//! asks.

mod grpc;

use std::io::{self, Error, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::thread::sleep;
use std::time::{Duration, Instant};

use box_contract::Health;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use super::spawn::{self, Base, Streams, Workload};
use crate::sys;
use grpc::Check;

/// The pause after the first failed check. Each is an eighth longer than the one before, so that an
/// agent waits for its next check for little more than an eighth of the time that it took to start.
const FIRST_PAUSE: Duration = Duration::from_micros(250);
const LONGEST_PAUSE: Duration = Duration::from_millis(25);
/// How long one check may take from the connection to the end of the answer before it is retried.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// How much of a status line is looked at.
const STATUS_LINE: usize = "HTTP/1.1 200 ".len();
/// How long a check's program may run, in milliseconds. One that hangs is killed and started again.
const PROGRAM_TIMEOUT_MS: u16 = 10_000;

/// Checks again and again until the check passes.
///
/// There is no limit to the whole: the launcher has one, and the holder ends this process when the agent ends.
pub(crate) fn wait_until_healthy(health: &Health, base: Base<'_>) {
    let mut pause = FIRST_PAUSE;
    while !passes(health, base) {
        sleep(pause);
        pause = (pause * 9 / 8).min(LONGEST_PAUSE);
    }
}

fn passes(health: &Health, base: Base<'_>) -> bool {
    match health {
        Health::Exec { argv } => succeeds(argv, base),
        asked => ask(asked).is_ok(),
    }
}

/// Makes a check that needs no program.
///
/// # Errors
/// Why it does not pass, for people.
pub(crate) fn ask(health: &Health) -> Result<(), String> {
    match health {
        Health::Tcp { port } => connect(*port).map(drop).map_err(failed(*port)),
        Health::Http { port, path } => {
            let start = request(*port, path).map_err(failed(*port))?;
            if is_success(&start) {
                return Ok(());
            }
            Err(format!("port {port}: GET {path} is answered with {}", answer(&start)))
        }
        Health::Grpc { port, service } => call(*port, &Check::standard(service)),
        Health::A3s { port } => call(*port, &Check::a3s()),
        Health::Exec { .. } => Err("the check is a program".to_owned()),
    }
}

/// Returns why a check of a port has failed, for people.
fn failed(port: u16) -> impl Fn(Error) -> String {
    move |error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => format!("port {port}: no answer"),
        _ => format!("port {port}: {error}"),
    }
}

/// Makes a check by gRPC.
fn call(port: u16, check: &Check) -> Result<(), String> {
    let asked = connect(port).and_then(|mut stream| check.make(&mut stream));
    match asked.map_err(failed(port))? {
        None => Ok(()),
        Some(status) => Err(format!("port {port}: its status is {status}")),
    }
}

fn connect(port: u16) -> io::Result<Connection> {
    let end = Instant::now() + ANSWER_TIMEOUT;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stream = TcpStream::connect_timeout(&address, ANSWER_TIMEOUT)?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    Ok(Connection { stream, end })
}

/// A connection that is read until a time, in however small pieces the other side sends.
struct Connection {
    stream: TcpStream,
    end: Instant,
}

impl Read for Connection {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        // To the socket, zero is no limit.
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(to)
    }
}

impl Write for Connection {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.stream.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the beginning of the answer to a request: the version and the status.
fn request(port: u16, path: &str) -> io::Result<[u8; STATUS_LINE]> {
    let mut stream = connect(port)?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut start = [0; STATUS_LINE];
    stream.read_exact(&mut start)?;
    Ok(start)
}

/// Returns the status of a status line, or the line where it has none.
fn answer(line: &[u8]) -> String {
    match line {
        [b'H', b'T', b'T', b'P', b'/', _, b'.', _, b' ', status @ .., _]
            if status.iter().all(u8::is_ascii_digit) =>
        {
            String::from_utf8_lossy(status).into_owned()
        }
        _ => format!("\"{}\"", line.escape_ascii()),
    }
}

/// Says whether a status line (RFC 9112, section 4) begins with a status of 200 to 299.
fn is_success(line: &[u8]) -> bool {
    matches!(
        line,
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0' | b'1', b' ', b'2', tens, units, b' ' | b'\r']
            if tens.is_ascii_digit() && units.is_ascii_digit()
    )
}

fn succeeds(argv: &[String], base: Base<'_>) -> bool {
    let Ok(streams) = Streams::discard(base.null) else { return false };
    let workload = Workload::planned(argv);
    // The report is open until the end: who writes to a closed one is killed.
    let Ok(spawned) = spawn::spawn(base, workload, &streams) else { return false };
    ends_well(spawned.pid, PROGRAM_TIMEOUT_MS)
}

/// Reaps a child that leads a process group; one that takes too long is killed with its group.
fn ends_well(pid: Pid, timeout_ms: u16) -> bool {
    if !ends_within(pid, timeout_ms).unwrap_or(false) {
        // It is not reaped yet, so the number is still its own.
        spawn::kill_group(pid);
    }
    waitpid(pid, None) == Ok(WaitStatus::Exited(pid, 0))
}

fn ends_within(pid: Pid, timeout_ms: u16) -> nix::Result<bool> {
    let process = sys::open_process(pid)?;
    let mut fds = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::from(timeout_ms)).map(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    /// Starts a program that leads a process group of its own; `ends_well` reaps it.
    #[expect(clippy::zombie_processes, reason = "the code under test reaps it")]
    fn start(program: &str, argument: &str) -> Pid {
        let child = Command::new(program).arg(argument).process_group(0).spawn().unwrap();
        Pid::from_raw(i32::try_from(child.id()).unwrap())
    }

    #[test]
    fn a_program_is_judged_by_its_status_and_has_a_time_limit() {
        assert!(ends_well(start("true", ""), PROGRAM_TIMEOUT_MS));
        assert!(!ends_well(start("false", ""), PROGRAM_TIMEOUT_MS));
        let endless = start("sleep", "infinity");
        assert!(!ends_well(endless, 1));
        assert_eq!(waitpid(endless, None), Err(nix::errno::Errno::ECHILD), "it was reaped");
    }

    #[test]
    fn an_answer_in_small_pieces_gets_no_more_time_than_another() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // A frame of 16 KiB, of which a byte comes now and then.
            while stream.write_all(&[0]).is_ok() {
                sleep(ANSWER_TIMEOUT / 10);
            }
        });
        let check = Health::A3s { port };
        assert_eq!(ask(&check), Err(format!("port {port}: no answer")));
        server.join().unwrap();
    }

    #[test]
    fn only_a_status_of_2xx_is_success() {
        assert!(is_success(b"HTTP/1.1 200 "));
        assert!(is_success(b"HTTP/1.0 204 "));
        for line in
            ["HTTP/1.1 301 ", "http/1.1 200 ", "HTTP/1.1 20x ", "HTTP/2.0 200 ", "HTTP/1.1 2000"]
        {
            assert!(!is_success(line.as_bytes()), "{line}");
        }
    }

    /// Serves one connection with `answer` and returns what was asked.
    fn serve_once(listener: &TcpListener, answer: &str) -> String {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 512];
        let length = stream.read(&mut request).unwrap();
        stream.write_all(answer.as_bytes()).unwrap();
        String::from_utf8_lossy(&request[..length]).into_owned()
    }

    #[test]
    fn a_server_is_asked_and_judged() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        for (answer, expected) in [("HTTP/1.1 503 No\r\n\r\n", false), ("HTTP/1.1 200 OK", true)] {
            let check = Health::Http { port, path: "/ready".to_owned() };
            let checked = std::thread::spawn(move || ask(&check));
            let asked = serve_once(&listener, answer);
            assert!(asked.starts_with("GET /ready HTTP/1.1\r\n"), "{asked}");
            let why = format!("port {port}: GET /ready is answered with 503");
            assert_eq!(checked.join().unwrap(), if expected { Ok(()) } else { Err(why) });
        }
        drop(listener);
        // A test beside this one that starts a program holds a copy until that program is executed.
        let why = (0..10_000).find_map(|_| {
            sleep(Duration::from_millis(1));
            ask(&Health::Tcp { port }).err()
        });
        let why = why.unwrap();
        assert!(
            why.starts_with(&format!("port {port}: Connection refused")),
            "nobody listens: {why}"
        );
    }
}
