//! Makes one health check inside a component.

mod grpc;

use std::io::{self, Error, ErrorKind, Read as _, Write as _};
use std::time::{Duration, Instant};

use box_contract::Health;

use crate::connection::Connection;
use crate::inside;
use grpc::Check;

/// The time limit of one check, from the connection to the end of the answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// How many bytes of a status line are read: the version and the status.
const STATUS_LINE: usize = "HTTP/1.1 200 ".len();
/// Makes a check that needs no program.
///
/// # Errors
/// Why the check does not pass, as a text for the user.
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

/// Returns why a check of a port has failed, as a text for the user.
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
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    inside::connect(port, |to| Connection::open(to, deadline))
}

/// Sends a request and returns the beginning of the answer: the version and the status.
fn request(port: u16, path: &str) -> io::Result<[u8; STATUS_LINE]> {
    let mut stream = connect(port)?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut start = [0; STATUS_LINE];
    stream.read_exact(&mut start)?;
    Ok(start)
}

/// Returns the status of a status line, or the line itself if it has no status.
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

/// Returns whether a status line ([RFC 9112, section 4](https://www.rfc-editor.org/rfc/rfc9112#section-4)) has a status
/// from 200 to 299. For example, `HTTP/1.1 204 ` has one.
fn is_success(line: &[u8]) -> bool {
    matches!(
        line,
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0' | b'1', b' ', b'2', tens, units, b' ' | b'\r']
            if tens.is_ascii_digit() && units.is_ascii_digit()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};
    use std::thread::sleep;

    #[test]
    fn an_answer_in_small_pieces_gets_no_more_time_than_another() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // A frame of 16 KiB, sent one byte at a time.
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

    /// Serves one connection with `answer` and returns the request.
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
            let reason = format!("port {port}: GET /ready is answered with 503");
            assert_eq!(checked.join().unwrap(), if expected { Ok(()) } else { Err(reason) });
        }
        drop(listener);
        // A test that runs in parallel and starts a program can have a copy of the socket until the program is
        // executed.
        let reason = (0..10_000).find_map(|_| {
            sleep(Duration::from_millis(1));
            ask(&Health::Tcp { port }).err()
        });
        let reason = reason.unwrap();
        assert!(
            reason.starts_with(&format!("port {port}: Connection refused")),
            "nobody listens: {reason}"
        );
    }
}
