//! The agent of the example: a sequential HTTP/1.1 server on loopback.
//!
//! `GET /health` answers the health check. `GET /` returns a greeting with the box's host name and
//! skills, for example `Hello from hello. Skills: greet.`
#![forbid(unsafe_code)]

mod http;

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use box_contract::defaults::AGENT_PORT;
use http::{Request, Response};

const SKILLS: &str = "/a3s/skills";
const HOSTNAME: &str = "/proc/sys/kernel/hostname";
/// The time limit of one read or write of a client.
const CLIENT_PATIENCE: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            complain(&message);
            ExitCode::FAILURE
        }
    }
}

/// Listens, and answers clients one after the other. Returns only if it cannot listen.
fn serve() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let port = port_of(&arguments)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map_err(|error| format!("cannot listen on 127.0.0.1:{port}: {error}"))?;
    for client in listener.incoming() {
        if let Err(error) = client.and_then(|stream| converse(&stream)) {
            complain(&format!("a client was lost: {error}"));
        }
    }
    Ok(())
}

fn port_of(arguments: &[String]) -> Result<u16, String> {
    match arguments {
        [] => Ok(AGENT_PORT),
        [flag, port] if flag == "--port" => {
            port.parse().map_err(|_| format!("{port:?} is not a port: give a number below 65536"))
        }
        _ => Err("usage: agent [--port PORT]".to_owned()),
    }
}

fn converse(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(CLIENT_PATIENCE))?;
    stream.set_write_timeout(Some(CLIENT_PATIENCE))?;
    let response = match http::read_request(&mut &*stream) {
        Ok(request) => respond(&request),
        Err(refusal) => refusal,
    };
    response.write_to(&mut &*stream)
}

fn respond(request: &Request) -> Response {
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/health") => Response::json(r#"{"status":"HEALTHY"}"#),
        ("GET", "/") => Response::text(&greeting(Path::new(HOSTNAME), Path::new(SKILLS))),
        ("GET", _) => Response::error(404, "Not Found"),
        _ => Response::error(405, "Method Not Allowed"),
    }
}

/// Returns the greeting. Files that cannot be read are ignored.
fn greeting(hostname: &Path, skills: &Path) -> String {
    let host = std::fs::read_to_string(hostname).unwrap_or_else(|_| "an unnamed host".to_owned());
    let names = skill_names(skills);
    let skills = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!("Hello from {}. Skills: {skills}.\n", host.trim())
}

/// Returns the sorted names of the directories that contain a `SKILL.md`.
fn skill_names(skills: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(skills) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().join("SKILL.md").is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Writes a line to the log.
#[allow(clippy::print_stderr)] // a server's log
fn complain(message: &str) {
    eprintln!("agent: {message}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    fn exchange(request: &[u8]) -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(request).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        converse(&listener.accept().unwrap().0).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn the_health_check_is_answered() {
        let answer = exchange(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\n{\"status\":\"HEALTHY\"}"), "{answer}");
    }

    #[test]
    fn what_is_not_served_is_refused() {
        for (request, status) in [
            (&b"GET /other HTTP/1.1\r\n\r\n"[..], "404"),
            (b"POST / HTTP/1.1\r\n\r\n", "405"),
            (b"nonsense\r\n\r\n", "400"),
            (b"GET / HTTP/1.1\r\n", "400"),
        ] {
            let answer = exchange(request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {answer}");
        }
    }

    #[test]
    fn the_greeting_names_the_host_and_the_skills() {
        let skills = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../skills"));
        assert_eq!(
            greeting(Path::new("/nowhere"), skills),
            "Hello from an unnamed host. Skills: greet.\n"
        );
        assert!(
            greeting(Path::new("/nowhere"), Path::new("/nowhere")).ends_with("Skills: none.\n")
        );
    }

    #[test]
    fn only_a_port_is_a_port() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(port_of(&[]), Ok(AGENT_PORT));
        assert_eq!(port_of(&words("--port 80")), Ok(80));
        assert!(port_of(&words("--port 65536")).is_err());
        assert!(port_of(&words("80")).is_err());
    }
}
