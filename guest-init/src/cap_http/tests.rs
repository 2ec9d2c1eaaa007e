//! Requests in files, sent to servers on loopback.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tempfile::TempDir;

use super::serve::Server;
use super::{REQUESTS, RESPONSES};

const ENOUGH: Duration = Duration::from_secs(20);

/// The directories of a service, whose requests are sent.
struct Files {
    root: TempDir,
}

impl Files {
    /// Sends requests to a server that handles each connection with `answer`.
    fn of(timeout: Duration, answer: impl Fn(TcpStream) + Clone + Send + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let answer = answer.clone();
                thread::spawn(move || answer(client));
            }
        });
        Self::at(address, timeout)
    }

    fn at(address: SocketAddr, timeout: Duration) -> Self {
        let files = Self { root: tempfile::tempdir().unwrap() };
        for directory in [REQUESTS, RESPONSES] {
            fs::create_dir_all(files.path(directory, "")).unwrap();
        }
        let services = [("own".to_owned(), address)];
        let server = Server::new(files.root.path(), services, timeout).unwrap();
        thread::spawn(move || server.run());
        files
    }

    fn path(&self, directory: &str, name: &str) -> PathBuf {
        self.root.path().join("own").join(directory).join(name)
    }

    fn ask(&self, name: &str, request: &str) {
        fs::write(self.path(REQUESTS, name), request).unwrap();
    }

    /// Waits for an answer, and until its request is gone.
    fn answer(&self, name: &str) -> String {
        let answer = until(|| fs::read_to_string(self.path(RESPONSES, name)).ok());
        until(|| (!self.path(REQUESTS, name).is_file()).then_some(()));
        answer
    }
}

/// Waits for a value.
fn until<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(start.elapsed() < ENOUGH, "nothing happens");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Receives a request, and returns its first line and its body.
fn receive(client: &mut TcpStream) -> (String, String) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|it| it.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |it| it.parse().unwrap())];
    client.read_exact(&mut body).unwrap();
    (head.lines().next().unwrap().to_owned(), String::from_utf8(body).unwrap())
}

/// Answers with the first line and the body of the request, as one chunk.
fn echo(mut client: TcpStream) {
    let (line, body) = receive(&mut client);
    let text = format!("{line}, {body}");
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nx-own: 1\r\n\r\n";
    write!(client, "{head}{:x}\r\n{text}\r\n0\r\n\r\n", text.len()).unwrap();
}

#[test]
fn a_request_in_a_file_is_answered_in_a_file() {
    let files = Files::of(ENOUGH, echo);
    files.ask("1", "POST /messages\n\nhello");
    assert_eq!(files.answer("1"), "200\nx-own: 1\n\nPOST /messages HTTP/1.1, hello");
    let hidden = files.path(REQUESTS, ".new");
    fs::write(&hidden, "GET /renamed").unwrap();
    fs::rename(&hidden, files.path(REQUESTS, "a name")).unwrap();
    assert_eq!(files.answer("a name"), "200\nx-own: 1\n\nGET /renamed HTTP/1.1, ");
    let large = "x".repeat(1 << 20);
    files.ask("large", &format!("PUT /\n\n{large}"));
    assert_eq!(files.answer("large"), format!("200\nx-own: 1\n\nPUT / HTTP/1.1, {large}"));
    files.ask("1", "GET /again");
    let again = "200\nx-own: 1\n\nGET /again HTTP/1.1, ";
    until(|| (files.answer("1") == again).then_some(()));
    let left = fs::read_dir(files.path(RESPONSES, "")).unwrap().count();
    assert_eq!(left, 3, "no unfinished answer is left");
}

#[test]
fn what_is_no_request_is_answered_and_does_no_harm() {
    let files = Files::of(ENOUGH, echo);
    files.ask("text", "please answer");
    assert!(
        files
            .answer("text")
            .starts_with("400\ncontent-type: text/plain\n\nthe request was not sent: ")
    );
    let secret = files.root.path().join("secret");
    fs::write(&secret, "GET /of-the-target").unwrap();
    let (link, pipe, directory) = (".link", ".pipe", ".directory");
    symlink(&secret, files.path(REQUESTS, link)).unwrap();
    mkfifo(&files.path(REQUESTS, pipe), Mode::S_IRWXU).unwrap();
    fs::create_dir(files.path(REQUESTS, directory)).unwrap();
    for name in [link, pipe, directory] {
        let shown = &name[1..];
        fs::rename(files.path(REQUESTS, name), files.path(REQUESTS, shown)).unwrap();
        let answer = files.answer(shown);
        assert!(answer.starts_with("400\n"), "{name}: {answer}");
    }
    assert_eq!(fs::read_to_string(secret).unwrap(), "GET /of-the-target");
    // An unfinished answer that a program has made leads nowhere, and a directory in the place of an answer is not replaced.
    let elsewhere = files.root.path().join("elsewhere");
    symlink(&elsewhere, files.path(RESPONSES, ".linked.part")).unwrap();
    files.ask("linked", "GET /");
    assert!(files.answer("linked").starts_with("200\n"));
    assert!(!elsewhere.exists());
    fs::create_dir_all(files.path(RESPONSES, "taken/inner")).unwrap();
    files.ask("taken", "GET /");
    until(|| (!files.path(REQUESTS, "taken").exists()).then_some(()));
    assert!(files.path(RESPONSES, "taken/inner").is_dir());
    files.ask("last", "GET /");
    assert!(files.answer("last").starts_with("200\n"));
}

#[test]
fn an_answer_that_cannot_be_had_has_the_reason() {
    let files = Files::of(ENOUGH, |mut client| {
        receive(&mut client);
        client.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort").unwrap();
    });
    files.ask("1", "GET /");
    let incomplete = "502\ncontent-type: text/plain\n\nthe answer is incomplete or malformed\n";
    assert_eq!(files.answer("1"), incomplete);

    let files = Files::of(Duration::from_millis(100), |mut client| {
        // A byte now and then gets no more time.
        while client.write_all(b"H").is_ok() {
            thread::sleep(Duration::from_millis(10));
        }
    });
    files.ask("1", "GET /");
    let late = "504\ncontent-type: text/plain\n\nthe request and its answer took longer than the `timeout` of `cap`\n";
    assert_eq!(files.answer("1"), late);

    // Port 0 is never listened on.
    let files = Files::at((Ipv4Addr::LOCALHOST, 0).into(), ENOUGH);
    files.ask("1", "GET /");
    let answer = files.answer("1");
    assert!(
        answer.starts_with("502\n") && answer.contains("the service does not answer: "),
        "{answer}"
    );
}

#[test]
fn an_answer_is_shown_while_it_arrives() {
    let turn = Arc::new(Barrier::new(2));
    let of_server = Arc::clone(&turn);
    let files = Files::of(ENOUGH, move |mut client| {
        receive(&mut client);
        let early = "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
        write!(client, "{early}data: one\n\n").unwrap();
        of_server.wait();
        client.write_all(b"data: two\n\n").unwrap();
    });
    files.ask("1", "GET /");
    let part = files.path(RESPONSES, ".1.part");
    let expected = "200\n\ndata: one\n\n";
    until(|| fs::read_to_string(&part).ok().filter(|it| it == expected));
    assert!(!files.path(RESPONSES, "1").exists());
    turn.wait();
    assert_eq!(files.answer("1"), format!("{expected}data: two\n\n"));
}

#[test]
fn eight_requests_are_sent_at_once_and_the_others_wait() {
    let all = Arc::new(Barrier::new(8));
    let files = Files::of(ENOUGH, move |client| {
        all.wait();
        echo(client);
    });
    let names: Vec<_> = (0..40).map(|number| number.to_string()).collect();
    for name in &names {
        files.ask(name, &format!("GET /{name}"));
    }
    for name in &names {
        assert!(files.answer(name).ends_with(&format!("GET /{name} HTTP/1.1, ")), "{name}");
    }
}
