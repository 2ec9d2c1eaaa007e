use std::io::PipeReader;
use std::rc::Rc;

use box_image::wire::Stream;
use nix::sys::pthread::{pthread_kill, pthread_self};
use nix::sys::signal::Signal;

use super::*;
use crate::output::Outlet;
use testkit::test_box::{TestBox, config};

/// Shows nothing.
#[derive(Debug)]
struct Unseen;

impl Watch for Unseen {
    fn see(&self, _: Progress) {}
}

/// More than all pipes on the way to a reader that takes nothing.
const TOO_MUCH: usize = 1 << 20;

/// A session whose agent's output nobody reads, over a machine that never ends by itself.
fn unread<'a>(made: &TestBox, signals: &'a Rc<StopSignals>) -> (Session<'a>, PipeReader) {
    let (reader, writer) = io::pipe().unwrap();
    let outlet = || Box::new(Outlet::new(writer.try_clone().unwrap(), signals));
    let listener = Listener::bind(made.path().join("control.sock")).unwrap();
    let opened = crate::open(made.path()).unwrap();
    let vmm = Vmm::spawn(Path::new("/usr/bin/yes"), &opened).unwrap();
    let nonce = Nonce::random().unwrap();
    let session = Session {
        events: Events::new(vmm, listener, nonce, Console::new(None), signals),
        agent_socket: None,
        _runtime: RuntimeDir::create(made.path()).unwrap(),
        agent_argv: vec!["/agent".to_owned(), "--fast".to_owned()],
        agent_spoke: false,
        agent_window: Window::default(),
        facts: RunFacts {
            verification: Verification { verified: Verified::Receipt, hashing: Duration::ZERO },
            phases: Phases::default(),
            is_ready: true,
            agent_status: None,
            agent_output: Route::Pass { stdout: outlet(), stderr: outlet() },
        },
    };
    (session, reader)
}

fn interrupt() {
    pthread_kill(pthread_self(), Signal::SIGTERM).unwrap();
}

fn output(length: usize) -> Output {
    Output { id: 0, stream: Stream::Stdout, data: vec![b'x'; length] }
}

#[test]
fn signals_end_a_run_whose_output_is_not_read() {
    let (made, signals) = (TestBox::new(&config()), Rc::new(StopSignals::block().unwrap()));
    let (mut session, _reader) = unread(&made, &signals);
    interrupt();
    let error = session.agent_wrote(&output(TOO_MUCH)).unwrap_err();
    assert!(matches!(error, LaunchError::Signal(15)), "{error}");
    // The second signal ends the orderly stop, whatever the agent still has to say.
    interrupt();
    session.agent_wrote(&output(TOO_MUCH)).unwrap();
    session.stop(Duration::from_secs(1 << 20)).unwrap();
}

#[test]
fn output_that_cannot_be_written_ends_a_run() {
    let (made, signals) = (TestBox::new(&config()), Rc::new(StopSignals::block().unwrap()));
    let (mut session, reader) = unread(&made, &signals);
    drop(reader);
    let error = session.agent_wrote(&output(TOO_MUCH)).unwrap_err();
    assert!(matches!(error, LaunchError::Output(_)), "{error}");
}

#[test]
fn an_agent_that_ended_early_is_named_with_its_arguments() {
    let (made, signals) = (TestBox::new(&config()), Rc::new(StopSignals::block().unwrap()));
    let (mut session, _reader) = unread(&made, &signals);
    let silent = session.agent_ended(0);
    let message = "the agent (/agent --fast) ended with status 0 before it was ready";
    assert_eq!(silent.to_string(), message);
    assert!(matches!(silent, LaunchError::AgentEnded { was_silent: true, .. }));
    session.agent_argv.push("--password=hunter2".to_owned());
    assert!(session.agent_ended(0).to_string().contains("(/agent --fast --password=****)"));
    session.agent_wrote(&output(1)).unwrap();
    let LaunchError::AgentEnded { was_silent, .. } = session.agent_ended(0) else { panic!() };
    assert!(!was_silent);
}

#[test]
fn a_start_is_stopped_by_the_limit_that_comes_first() {
    let seconds = Duration::from_secs;
    let (made, signals) = (TestBox::new(&config()), Rc::new(StopSignals::block().unwrap()));
    let (mut session, _reader) = unread(&made, &signals);
    session.facts.is_ready = false;
    let began = || Instant::now().checked_sub(seconds(5)).unwrap();
    let budget = Limits { timeout: seconds(60), total: Some(seconds(5)) };
    session.await_ready(began(), budget, &Unseen).unwrap();
    assert!(!session.facts.is_ready && session.facts.phases.total >= 5000.0);
    for total in [None, Some(seconds(60))] {
        let limits = Limits { timeout: seconds(5), total };
        let error = session.await_ready(began(), limits, &Unseen).unwrap_err();
        assert!(matches!(error, LaunchError::Timeout(5)), "{error}");
    }
}

#[test]
fn a_box_that_is_not_enforced_is_refused_before_anything_is_done() {
    let mut config = config();
    config.plan.network.mode = box_image::NetworkMode::Shared;
    let (made, signals) = (TestBox::new(&config), StopSignals::block().unwrap());
    let (opened, receipts) =
        (crate::open(made.path()).unwrap(), Receipts::new(Path::new("/nowhere")));
    let refused = Session::start(Setup {
        opened: &opened,
        program: Path::new("/nowhere"),
        receipts: &receipts,
        trust: Trust::Nothing,
        runtime_base: "/nowhere".into(),
        agent_socket: None,
        console: None,
        agent_output: Route::Capture(crate::output::Captured::default()),
        signals: &signals,
        started: Instant::now(),
        startup_timeout: Duration::ZERO,
        enforced_total: None,
        watch: &Unseen,
    });
    let error = refused.unwrap_err().error;
    assert!(matches!(&error, LaunchError::Unsupported(declared) if declared.len() == 1), "{error}");
}
