//! Connections that fail, and downloads that are resumed.

use std::net::TcpListener;

use super::server::{Reply, Server, Step, file, length, reply};
use super::*;

const TAG: &str = "ETag: \"one\"";
/// The bytes of [`DATA`] that are sent before the connection breaks.
const HALF: usize = 7;

/// Declares the length of [`DATA`] and an entity tag, and sends the first half.
fn half(tag: &str) -> Reply {
    reply("200 OK", &[tag, &length(DATA.len())], &DATA[..HALF])
}

/// Sends `body` with a `Content-Range` that begins at the byte `first`.
fn rest(first: usize, tag: &str, body: &[u8]) -> Reply {
    let all = DATA.len();
    let range = format!("Content-Range: bytes {first}-{}/{all}", all - 1);
    reply("206 Partial Content", &[tag, &range, &length(body.len())], body)
}

/// Fetches [`DATA`] from a server with these replies. Returns the result, and the `range` and `if-range` headers of the requests.
fn asked(options: &FetchOptions, replies: &[Reply]) -> (Result<Fetched, FetchError>, Vec<String>) {
    let server = Server::http(|_| replies.to_vec());
    let fetched = fetch_new(&server.url("/"), options);
    let ranges = |request: &String| {
        let ranges = request
            .lines()
            .filter(|line| line.starts_with("range:") || line.starts_with("if-range:"));
        ranges.collect::<Vec<_>>().join(", ")
    };
    (fetched, server.requests().iter().map(ranges).collect())
}

const RESUMED: &str = "range: bytes=7-, if-range: \"one\"";

#[test]
fn the_rest_is_asked_for_where_the_file_has_a_strong_tag() {
    let (fetched, asked) = asked(&quick(), &[half(TAG), rest(HALF, TAG, &DATA[HALF..])]);
    fetched.unwrap();
    assert_eq!(asked, ["", RESUMED]);
}

#[test]
fn a_part_may_break_again() {
    let second = rest(HALF, TAG, &DATA[HALF..]);
    let mut broken = second.clone();
    broken[1] = Step::Send(DATA[HALF..10].to_vec());
    let (fetched, asked) = asked(&quick(), &[half(TAG), broken, rest(10, TAG, &DATA[10..])]);
    fetched.unwrap();
    assert_eq!(asked, ["", RESUMED, "range: bytes=10-, if-range: \"one\""]);
}

#[test]
fn received_data_is_kept_while_the_server_fails() {
    let busy = reply("503 Service Unavailable", &["Content-Length: 0"], b"");
    let (fetched, asked) = asked(&quick(), &[half(TAG), busy, rest(HALF, TAG, &DATA[HALF..])]);
    fetched.unwrap();
    assert_eq!(asked, ["", RESUMED, RESUMED]);
}

#[test]
fn without_a_strong_tag_all_is_asked_for_again() {
    for tag in ["ETag: W/\"one\"", "X-Tag: none", "Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT"] {
        let (fetched, asked) = asked(&quick(), &[half(tag), file(DATA)]);
        fetched.unwrap();
        assert_eq!(asked, ["", ""]);
    }
}

#[test]
fn a_file_that_changed_meanwhile_comes_whole() {
    let other = reply("200 OK", &["ETag: \"two\"", &length(DATA.len())], DATA);
    let old = reply("200 OK", &[TAG, &length(20)], b"stale");
    let (fetched, asked) = asked(&quick(), &[old, other]);
    fetched.unwrap();
    assert_eq!(asked, ["", "range: bytes=5-, if-range: \"one\""]);
}

#[test]
fn a_part_that_does_not_fit_is_not_used() {
    let body = &DATA[HALF..];
    let no_range = reply("206 Partial Content", &[TAG, &length(body.len())], body);
    let total = format!("Content-Range: bytes {HALF}-98/99");
    let longer = reply("206 Partial Content", &[TAG, &total, &length(body.len())], body);
    let gone = reply("416 Range Not Satisfiable", &["Content-Length: 0"], b"");
    for wrong in
        [rest(3, TAG, &DATA[3..]), rest(HALF, "ETag: \"two\"", body), no_range, longer, gone]
    {
        let (fetched, asked) = asked(&quick(), &[half(TAG), wrong, file(DATA)]);
        fetched.unwrap();
        assert_eq!(asked, ["", RESUMED, ""]);
    }
}

#[test]
fn parts_of_different_files_do_not_condemn_the_file() {
    let lie = rest(HALF, TAG, &vec![b'?'; DATA.len() - HALF]);
    let (fetched, asked) = asked(&quick(), &[half(TAG), lie, file(DATA)]);
    fetched.unwrap();
    assert_eq!(asked, ["", RESUMED, ""]);
}

#[test]
fn parts_of_the_wrong_length_do_not_condemn_the_file() {
    let size = Size::Exactly(DATA.len() as u64);
    let options = FetchOptions { size, ..quick() };
    let long = [&DATA[HALF..], b"?"].concat();
    for wrong in [&DATA[HALF..DATA.len() - 1], &long] {
        let script = [half(TAG), rest(HALF, TAG, wrong), file(DATA)];
        let (fetched, asked) = asked(&options, &script);
        fetched.unwrap();
        assert_eq!(asked, ["", RESUMED, ""]);
    }
}

#[test]
fn three_tries_are_all() {
    let server = Server::http(|_| vec![half("X-Tag: none"); 3]);
    let url = server.url("/");
    let error = fetch_new(&url, &quick()).unwrap_err();
    assert_eq!(error.to_string(), format!("the download of {url} broke off after 7 bytes"));
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn chunks_without_an_end_are_a_broken_file() {
    let chunk = [format!("{:x}\r\n", DATA.len()).as_bytes(), DATA, b"\r\n"].concat();
    let broken = reply("200 OK", &["Transfer-Encoding: chunked"], &chunk);
    let (fetched, _) = asked(&quick(), &vec![broken; 3]);
    let error = fetched.unwrap_err().to_string();
    assert!(error.ends_with("broke off after 18 bytes"), "{error}");
}

#[test]
fn a_server_that_falls_silent_is_given_up() {
    let silent = vec![Step::Hang];
    let mut stalls = half("X-Tag: none");
    stalls.push(Step::Hang);
    for reply in [silent, stalls] {
        let server = Server::http(|_| vec![reply.clone(); 3]);
        let error = fetch_new(&server.url("/"), &patient(Duration::from_millis(100))).unwrap_err();
        let host = server.url("").replace("http://", "");
        assert_eq!(error.to_string(), format!("{host} has sent nothing for 100ms"));
    }
}

#[test]
fn a_stalled_download_is_resumed() {
    let mut stalls = half(TAG);
    stalls.push(Step::Hang);
    // The patience must be longer than the second response takes.
    let options = patient(Duration::from_millis(500));
    let (fetched, asked) = asked(&options, &[stalls, rest(HALF, TAG, &DATA[HALF..])]);
    fetched.unwrap();
    assert_eq!(asked, ["", RESUMED]);
}

#[test]
fn a_slow_server_is_waited_for_as_long_as_it_sends() {
    let mut drips = reply("200 OK", &[&length(DATA.len())], b"");
    for byte in DATA {
        drips.extend([Step::Pause(Duration::from_millis(70)), Step::Send(vec![*byte])]);
    }
    let server = Server::http(|_| vec![drips.clone()]);
    // The patience is shorter than the whole download, and much longer than each pause.
    let mut options = patient(Duration::from_secs(1));
    options.network.policy.least_rate = 1;
    fetch_new(&server.url("/"), &options).unwrap();
}

/// Sends a byte every 10 ms.
fn drip() -> Reply {
    let mut drips = reply("200 OK", &[&length(1000)], b"");
    for _ in 0..1000 {
        drips.extend([Step::Pause(Duration::from_millis(10)), Step::Send(vec![b'x'])]);
    }
    drips
}

#[test]
fn a_server_that_drips_is_given_up() {
    let server = Server::http(|_| vec![drip()]);
    let mut options = patient(Duration::from_secs(1));
    options.network.policy = Policy { least_rate: 1 << 20, tries: 1, ..options.network.policy };
    let error = fetch_new(&server.url("/"), &options).unwrap_err();
    let too_slow = error.to_string().ends_with("sends less than 1048576 bytes per second");
    assert!(too_slow && server.requests().len() == 1, "{error}");
}

#[test]
fn a_download_takes_no_longer_than_its_size_allows() {
    let server = Server::http(|_| vec![drip(); 3]);
    let mut options = quick();
    options.network.policy = Policy {
        grace: Duration::from_millis(200),
        least_rate: 0,
        overall_rate: 1 << 20,
        ..options.network.policy
    };
    let error = fetch_new(&server.url("/"), &options).unwrap_err();
    let overdue = error.to_string().contains("is not complete after");
    assert!(overdue && server.requests().len() == 1, "{error}");
}

#[test]
fn nobody_there() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = fetch_new(&format!("http://127.0.0.1:{port}/x?key=secret"), &quick()).unwrap_err();
    assert!(matches!(error, FetchError::Download(DownloadError::Http(HttpError::Refused { .. }))));
    let text = chain(&error);
    let start = format!("cannot connect to 127.0.0.1:{port}: Connection refused");
    assert!(text.starts_with(&start), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn something_else_than_http_is_not_asked_again() {
    let header = b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n";
    for garbage in [b"SSH-2.0-x\r\n".as_slice(), header] {
        let (fetched, asked) = asked(&quick(), &vec![vec![Step::Send(garbage.to_vec())]; 3]);
        let error = chain(&fetched.unwrap_err());
        assert!(error.contains("answers, but not with valid HTTP: "), "{error}");
        assert_eq!(asked.len(), 1);
    }
}

#[test]
fn a_connection_that_closes_at_once_is_tried_again() {
    let (fetched, asked) = asked(&quick(), &[vec![], file(DATA)]);
    fetched.unwrap();
    assert_eq!(asked.len(), 2);
}
