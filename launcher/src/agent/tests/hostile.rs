//! Servers that violate the interface.

use std::time::Instant;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::server::{Answer, Served, client, listening, patient_client, served};
use super::*;

/// Returns the error of a health request, which must fail within two seconds.
fn error(served: &Served) -> String {
    let started = Instant::now();
    let error = client(served).health().unwrap_err();
    assert!(started.elapsed().as_secs() < 2, "{error}");
    assert!(!matches!(error, AgentError::Os(_) | AgentError::Stream(_)), "{error:?}");
    error.to_string()
}

/// Starts a server that sends these bytes to each client, and then hangs or closes the connection.
fn sending(bytes: &'static [u8], hangs: bool) -> Served {
    listening(move |listener, _| async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut start = [0; 24];
            stream.read_exact(&mut start).await.unwrap();
            stream.write_all(bytes).await.unwrap();
            if hangs {
                std::mem::forget(stream);
            } else {
                stream.shutdown().await.unwrap();
                // Read all input first: closing a socket with unread input sends a reset that overtakes the answer.
                drop(stream.read_to_end(&mut Vec::new()).await);
            }
        }
    })
}

#[test]
fn something_other_than_grpc_is_named() {
    let http = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    let expected =
        "the agent does not speak gRPC: its answer begins with \"HTTP/1.1 400 Bad Request\"";
    assert_eq!(error(&sending(http, false)), expected);
    assert_eq!(error(&sending(http, true)), expected);
    let page = served(|_, _| Answer { kind: "text/html", ..Answer::raw(vec![b'<'; 100]) });
    let expected = "the agent does not speak gRPC: its answer to HealthCheck is text/html";
    assert_eq!(error(&page), expected);
    let page = served(|_, _| Answer { http: 404, ..Answer::raw(Vec::new()) });
    let expected =
        "the agent does not speak gRPC: its answer to HealthCheck has the HTTP status 404";
    assert_eq!(error(&page), expected);
}

#[test]
fn an_end_that_comes_too_early_is_an_error() {
    let closed = "the agent ended the connection before its answer to HealthCheck was complete";
    assert_eq!(error(&sending(b"", false)), closed);
    // The server closes the connection after its SETTINGS frame.
    assert_eq!(error(&sending(b"\0\0\0\x04\0\0\0\0\0", false)), closed);
    let broken = served(|_, _| Answer { end: Vec::new(), ..Answer::raw(vec![0; 3]) });
    assert_eq!(error(&broken), closed);
    let untold =
        served(|_, _| Answer { end: vec![("x-other", String::new())], ..Answer::raw(vec![0; 5]) });
    assert_eq!(error(&untold), closed);
    let early = served(|_, _| Answer { ends_first: true, ..Answer::raw(vec![0; 5]) });
    assert_eq!(error(&early), closed, "it said that all is well before its answer");
}

#[test]
fn nobody_is_waited_for_longer_than_was_asked() {
    let expected = "the agent did not answer HealthCheck within 1 s";
    assert_eq!(error(&sending(b"", true)), expected);
    let hanging = served(|_, _| Answer { hangs: true, ..Answer::raw(vec![0; 3]) });
    assert_eq!(error(&hanging), expected);
}

#[test]
fn nobody_listening_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("agent.sock");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let client = AgentClient::new(&socket, std::time::Duration::from_secs(1)).unwrap();
    let expected = "cannot connect to the agent's socket: Connection refused (os error 111)";
    assert_eq!(client.health().unwrap_err().to_string(), expected);
}

#[test]
fn sizes_are_bounded() {
    let large = served(|_, _| Answer::raw(vec![0, 0, 0x20, 0, 0]));
    let expected = "the agent's answer to HealthCheck is larger than 1048576 bytes";
    assert_eq!(error(&large), expected);
    // Many messages, of which each is small enough.
    let many =
        served(|_, _| Answer::of(&vec![chunk(ChunkType::Metadata, &"x".repeat(60_000)); 300]));
    let (text, _, ended) = generated(&patient_client(&many), Some("s"));
    let expected = "the agent's answer to StreamGenerate is larger than 16777216 bytes";
    assert_eq!((text.as_str(), ended.unwrap_err().to_string().as_str()), ("", expected));
    // Very many empty messages, which take more memory than their transmitted bytes.
    let tiny = served(|_, _| Answer::of(&vec![chunk(ChunkType::Metadata, ""); 250_000]));
    assert_eq!(generated(&patient_client(&tiny), Some("s")).2.unwrap_err().to_string(), expected);
    let heads = served(|_, _| Answer::failed("5", &"x".repeat(64 << 10)));
    let closed = "the agent ended the connection before its answer to HealthCheck was complete";
    assert_eq!(error(&heads), closed);
    let words = served(|_, _| Answer::failed("5", &"x".repeat(8 << 10)));
    assert!(error(&words).len() < 5000);
}

#[test]
fn messages_that_are_none_are_refused() {
    let compressed = served(|_, _| Answer::raw(vec![1, 0, 0, 0, 0]));
    let expected =
        "the agent's answer to HealthCheck is compressed, and no compression was offered";
    assert_eq!(error(&compressed), expected);
    let malformed = |served: &Served, end: &str| {
        let error = error(served);
        let start = "the agent's answer to HealthCheck is malformed: ";
        assert!(error.starts_with(start) && error.ends_with(end), "{error}");
    };
    malformed(&served(|_, _| Answer::raw(vec![0, 0, 0, 0, 9, 1])), "in the middle of a message");
    malformed(&served(|_, _| Answer::raw(Vec::new())), "there is no message in it");
    malformed(&served(|_, _| Answer::raw(vec![0; 10])), "there are several messages in it");
    malformed(&served(|_, _| Answer::raw(vec![0, 0, 0, 0, 2, 0x12, 99])), "");
    malformed(&served(|_, _| Answer::raw(vec![0, 0, 0, 0, 3, 0x12, 1, 0xff])), "");
}

#[test]
fn an_error_of_the_agent_has_its_words() {
    let refusing = served(|_, _| Answer::failed("16", "go%0Aaway %1b"));
    assert_eq!(error(&refusing), "the agent refused HealthCheck: UNAUTHENTICATED: go\naway \u{1b}");
    let strange = served(|_, _| Answer::failed("99", ""));
    assert_eq!(error(&strange), "the agent refused HealthCheck: status 99");
}

#[test]
fn text_that_came_before_an_agent_hangs_is_kept_and_its_session_ended() {
    let half = served(|method, _| match method {
        "CreateSession" => Answer::of(&[CreateSessionResponse { session_id: "s".to_owned() }]),
        _ => Answer { hangs: true, ..Answer::of(&[chunk(ChunkType::Content, "half")]) },
    });
    let (text, _, ended) = generated(&client(&half), None);
    let expected = "the agent did not answer StreamGenerate within 1 s";
    assert_eq!((text.as_str(), ended.unwrap_err().to_string().as_str()), ("half", expected));
    assert_eq!(half.calls().last().unwrap().0, "DestroySession");
}
