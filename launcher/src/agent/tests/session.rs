//! Sessions that outlive a call, and what is asked about them.

use super::super::messages::*;
use super::super::*;
use super::server::{Answer, client, served};

#[test]
fn a_session_is_made_listed_and_closed() {
    let agent = served(|method, _| match method {
        "CreateSession" => Answer::of(&[CreateSessionResponse { session_id: "s1".to_owned() }]),
        "ListSessions" => {
            let state = SessionState::Active.into();
            let session = Session { session_id: "s1".to_owned(), state, ..Session::default() };
            Answer::of(&[ListSessionsResponse { sessions: vec![session] }])
        }
        _ => Answer::of(&[DestroySessionResponse { success: true }]),
    });
    let client = client(&agent);
    assert_eq!(client.create_session(Some("s1")).unwrap(), "s1");
    let sessions = client.sessions().unwrap();
    assert_eq!((sessions.len(), sessions[0].state()), (1, SessionState::Active));
    client.close_session("s1").unwrap();
    let calls = agent.calls();
    let names: Vec<_> = calls.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["CreateSession", "ListSessions", "DestroySession"]);
    assert_eq!((&calls[0].1[..], &calls[2].1[..]), (&b"\x0a\x02s1"[..], &b"\x0a\x02s1"[..]));
}

#[test]
fn what_an_agent_did_not_do_is_an_error() {
    let agent = served(|method, _| match method {
        "CreateSession" => Answer::of(&[CreateSessionResponse::default()]),
        "ConfirmToolExecution" => {
            let error = "no tool waits".to_owned();
            Answer::of(&[ConfirmToolExecutionResponse { success: false, error }])
        }
        _ => Answer::of(&[CancelResponse { success: false }]),
    });
    let client = client(&agent);
    let error = client.create_session(None).unwrap_err().to_string();
    let expected = "the agent's answer to CreateSession is malformed: it has no ID of a session";
    assert_eq!(error, expected);
    let error = client.cancel("s", Some("o")).unwrap_err().to_string();
    assert_eq!(error, "the agent did not carry out Cancel");
    let request = ConfirmToolExecutionRequest { approved: true, ..Default::default() };
    let error = client.confirm(&request).unwrap_err().to_string();
    assert_eq!(error, "the agent did not carry out ConfirmToolExecution: no tool waits");
    let calls = agent.calls();
    assert_eq!(calls[1].1, b"\x0a\x01s\x12\x01o");
    assert_eq!(calls[2].1, b"\x18\x01");
}

fn event(message: &str) -> AgentEvent {
    let r#type = EventType::ToolCalled.into();
    AgentEvent { r#type, message: message.to_owned(), ..AgentEvent::default() }
}

fn watched(client: &AgentClient) -> (usize, Result<(), AgentError>) {
    let mut count = 0;
    let ended = client.events(Some("s"), &mut |event| {
        assert_eq!(event.r#type(), EventType::ToolCalled);
        count += 1;
        Ok(())
    });
    (count, ended)
}

#[test]
fn events_arrive_until_the_agent_or_the_time_ends() {
    let ending = served(|_, _| Answer::of(&[event("one"), event("two")]));
    let (count, ended) = watched(&client(&ending));
    assert_eq!(count, 2);
    ended.unwrap();
    assert_eq!(ending.calls(), [("SubscribeEvents".to_owned(), b"\x0a\x01s".to_vec())]);
    let hanging = served(|_, _| Answer { hangs: true, ..Answer::of(&[event("one")]) });
    let (count, ended) = watched(&client(&hanging));
    assert_eq!(count, 1);
    ended.unwrap();
}

#[test]
fn a_long_stream_of_events_has_no_greatest_size() {
    let many = served(|_, _| Answer::of(&vec![event(&"x".repeat(60_000)); 400]));
    let (count, ended) = watched(&super::server::patient_client(&many));
    ended.unwrap();
    assert_eq!(count, 400);
}
