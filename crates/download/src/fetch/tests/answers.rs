//! Responses: files, errors, and wrong content.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use super::server::{Server, Step, file, length, reply};
use super::*;

#[test]
fn a_file_comes_whole_and_its_request_gives_nothing_away() {
    let server = Server::http(|_| vec![file(DATA)]);
    let fetched = fetch_new(&server.url("/agent?v=1#part"), &quick()).unwrap();
    assert!(fetched.downloaded);
    let request = server.requests().remove(0);
    assert!(request.starts_with("get /agent?v=1 http/1.1\r\n"), "{request}");
    let mut names: Vec<_> = request
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(':'))
        .map(|(name, _)| name)
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["accept", "accept-encoding", "host", "user-agent"]);
}

#[test]
fn https_needs_a_trusted_certificate() {
    let server = Server::https(|_| vec![file(DATA)]);
    let root = roots();
    let options = reached(NetworkOptions { roots: Some(root), ..quick().network });
    assert!(fetch_new(&server.url("/"), &options).is_ok());

    let server = Server::https(|_| vec![file(DATA)]);
    let error = fetch_new(&server.url("/"), &quick()).unwrap_err();
    let untrusted = matches!(
        error,
        FetchError::Download(DownloadError::Http(HttpError::NoRoots { .. }))
    ) || matches!(error, FetchError::Download(DownloadError::Http(HttpError::Untrusted { .. })) if chain(&error).contains("UnknownIssuer"));
    assert!(untrusted, "{}", chain(&error));
}

#[test]
fn pieces_come_in_chunks_and_are_counted() {
    let chunked = |_| {
        let (first, second) = DATA.split_at(5);
        let body = [
            format!("{:x}\r\n", first.len()).as_bytes(),
            first,
            format!("\r\n{:x}\r\n", second.len()).as_bytes(),
            second,
            b"\r\n0\r\n\r\n",
        ]
        .concat();
        vec![reply("200 OK", &["Transfer-Encoding: chunked"], &body)]
    };
    let server = Server::http(chunked);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let progress = Arc::new(move |progress| log.lock().unwrap().push(progress));
    let options = reached(NetworkOptions { progress: Some(progress), ..quick().network });
    fetch_new(&server.url("/"), &options).unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen.is_sorted_by_key(|it| it.received));
    let all = DATA.len() as u64;
    let last = Progress { digest: digest(DATA), received: all, total: Some(all) };
    assert_eq!(seen.last(), Some(&last));
    assert!(seen[..seen.len() - 1].iter().all(|it| it.total.is_none()), "{seen:?}");
}

#[test]
fn progress_has_the_total_where_the_server_sends_it() {
    let server = Server::http(|_| vec![file(DATA)]);
    let last = Arc::new(Mutex::new(None));
    let log = Arc::clone(&last);
    let progress = Arc::new(move |progress| *log.lock().unwrap() = Some(progress));
    let options = reached(NetworkOptions { progress: Some(progress), ..quick().network });
    fetch_new(&server.url("/"), &options).unwrap();
    let all = DATA.len() as u64;
    let expected = Progress { digest: digest(DATA), received: all, total: Some(all) };
    assert_eq!(*last.lock().unwrap(), Some(expected));
}

#[test]
fn an_encoding_is_left_as_it_is() {
    let headers = ["Content-Encoding: gzip", &length(DATA.len())];
    let server = Server::http(|_| vec![reply("200 OK", &headers, DATA)]);
    assert!(fetch_new(&server.url("/"), &quick()).is_ok());
}

#[test]
fn another_file_is_refused() {
    let server = Server::http(|_| vec![file(b"another")]);
    let url = server.url("/agent");
    let error = fetch_new(&url, &quick()).unwrap_err();
    assert!(matches!(error, FetchError::Download(DownloadError::WrongDigest { .. })));
    let (expected, found) = (digest(DATA), digest(b"another"));
    let text = format!("{url} is damaged, or another file: its digest is {found}, not {expected}");
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_refusal_is_final() {
    for status in [
        "404 Not Found",
        "403 Forbidden",
        "204 No Content",
        "206 Partial Content",
        "416 Range Not Satisfiable",
    ] {
        // The server has one reply only: a second request would not get this status.
        let server = Server::http(|_| vec![reply(status, &["Content-Length: 0"], b"")]);
        let url = server.url("/agent");
        let error = fetch_new(&format!("{url}?key=secret"), &quick()).unwrap_err();
        let host = url.parse::<RemoteUrl>().unwrap().host();
        assert_eq!(error.to_string(), format!("{host} answers \"{status}\" for {url}"));
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_server_in_trouble_is_asked_again() {
    for status in [
        "408 Request Timeout",
        "429 Too Many Requests",
        "500 Internal Server Error",
        "503 Service Unavailable",
    ] {
        let busy = || reply(status, &["Content-Length: 0"], b"");
        let server = Server::http(|_| vec![busy(), busy(), file(DATA)]);
        fetch_new(&server.url("/"), &quick()).unwrap();
        assert_eq!(server.requests().len(), 3);

        let server = Server::http(|_| vec![busy(), busy(), busy()]);
        let error = fetch_new(&server.url("/"), &quick()).unwrap_err();
        assert!(
            matches!(error, FetchError::Download(DownloadError::Status { transient: true, .. })),
            "{error}"
        );
        assert_eq!(server.requests().len(), 3);
    }
}

#[test]
fn a_server_may_ask_for_a_pause_but_not_for_too_long_a_one() {
    let busy = |seconds: u32| {
        let pause = format!("Retry-After: {seconds}");
        reply("429 Too Many Requests", &[&pause, "Content-Length: 0"], b"")
    };
    let server = Server::http(|_| vec![busy(1), file(DATA)]);
    let start = std::time::Instant::now();
    fetch_new(&server.url("/"), &quick()).unwrap();
    assert!(start.elapsed() >= Duration::from_secs(1));

    let server = Server::http(|_| vec![busy(3600), file(DATA)]);
    let error = fetch_new(&server.url("/"), &quick()).unwrap_err();
    assert!(error.to_string().ends_with("and asks to wait 3600 s"), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_file_may_not_be_too_large() {
    let options = FetchOptions { size: Size::AtMost(10), ..quick() };
    let announced = reply("200 OK", &[&length(DATA.len())], b"");
    let streamed = reply("200 OK", &[], DATA);
    for reply in [announced, streamed] {
        let server = Server::http(|_| vec![reply.clone()]);
        let url = server.url("/");
        let error = fetch_new(&url, &options).unwrap_err();
        let text = format!("{url} is larger than the 10 bytes that it may have");
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn a_stream_without_an_end_is_cut_off() {
    let mut endless = reply("200 OK", &[], b"");
    endless.extend(vec![Step::Send(vec![0; 8 << 10]); 64]);
    endless.push(Step::Hang);
    let server = Server::http(|_| vec![endless.clone()]);
    let options = FetchOptions { size: Size::AtMost(100 << 10), ..quick() };
    let error = fetch_new(&server.url("/"), &options).unwrap_err();
    assert!(matches!(error, FetchError::Download(DownloadError::TooLarge { .. })), "{error}");
    assert_eq!(server.requests().len(), 1, "the client must have hung up");
}

#[test]
fn a_known_size_must_be_met() {
    let all = DATA.len() as u64;
    let server = Server::http(|_| vec![file(DATA)]);
    assert!(
        fetch_new(&server.url("/"), &FetchOptions { size: Size::Exactly(all), ..quick() }).is_ok()
    );
    for (known, announced) in [(all - 1, true), (all + 1, true), (all - 1, false)] {
        let headers = [length(DATA.len())];
        let headers: Vec<_> = headers.iter().map(String::as_str).filter(|_| announced).collect();
        let server = Server::http(|_| vec![reply("200 OK", &headers, DATA)]);
        let url = server.url("/");
        let error =
            fetch_new(&url, &FetchOptions { size: Size::Exactly(known), ..quick() }).unwrap_err();
        assert_eq!(error.to_string(), format!("{url} should have {known} bytes, but has {all}"));
    }
}

#[test]
fn an_unannounced_end_before_the_known_size_is_a_broken_connection() {
    let short = reply("200 OK", &[], DATA);
    let server = Server::http(|_| vec![short; 3]);
    let size = Size::Exactly(DATA.len() as u64 + 1);
    let error = fetch_new(&server.url("/"), &FetchOptions { size, ..quick() }).unwrap_err();
    let truncated =
        matches!(error, FetchError::Download(DownloadError::Interrupted { transient: true, .. }));
    assert!(truncated && server.requests().len() == 3, "{error}");
}

#[test]
fn a_proxy_is_used_only_where_one_is_named() {
    let proxy = Server::http(|_| vec![file(DATA)]);
    let url = proxy.url("").replace("http://", "http://user:secret@");
    let options = reached(NetworkOptions { proxy: Some(url), ..quick().network });
    assert!(!format!("{options:?}").contains("secret"));
    fetch_new("http://files.invalid/agent", &options).unwrap();
    let request = proxy.requests().remove(0);
    assert!(request.starts_with("get http://files.invalid/agent http/1.1\r\n"), "{request}");
    assert!(request.contains("proxy-authorization: basic "), "{request}");
}

#[test]
fn no_proxy_is_asked_for_this_machine() {
    let (proxy, server) = (Server::http(|_| vec![file(DATA)]), Server::http(|_| vec![file(DATA)]));
    let url = proxy.url("");
    let options = reached(NetworkOptions { proxy: Some(url), ..quick().network });
    fetch_new(&server.url("/"), &options).unwrap();
    assert_eq!((proxy.requests().len(), server.requests().len()), (0, 1));
}

#[test]
fn a_proxy_that_does_not_answer_is_named_without_its_password() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let proxy = Some(format!("http://me:canary@{nobody}"));
    let options = reached(NetworkOptions { proxy, ..quick().network });
    let failed = |url: &str| chain(&fetch_new(url, &options).unwrap_err());
    let error = failed("http://files.invalid/agent");
    let start = format!("cannot connect to files.invalid through the proxy {nobody}: Connection");
    assert!(error.starts_with(&start) && !error.contains("canary"), "{error}");
    for host in ["127.0.0.1:1", "localhost:1"] {
        let error = failed(&format!("http://{host}/"));
        assert!(error.starts_with(&format!("cannot connect to {host}: Connection")), "{error}");
    }
}

#[test]
fn a_proxy_that_cannot_be_used_is_refused() {
    for bad in ["", "socks5://127.0.0.1:1", "127.0.0.1:1"] {
        let options = reached(NetworkOptions { proxy: Some(bad.to_owned()), ..quick().network });
        let error = fetch_new("http://files.invalid/", &options).unwrap_err();
        assert!(
            matches!(error, FetchError::Download(DownloadError::Http(HttpError::Proxy(_)))),
            "{bad:?}: {error}"
        );
    }
}
