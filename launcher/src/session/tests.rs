use std::io::PipeReader;
use std::rc::Rc;

use box_image::wire::Stream;
use nix::sys::pthread::{pthread_kill, pthread_self};
use nix::sys::signal::Signal;

use super::*;
use crate::output::Outlet;
use crate::verify::Verified;
use testkit::test_box::{TestBox, config};

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
        facts: RunFacts {
            verified: Verified::Receipt,
            phases: Phases::default(),
            agent_status: None,
            agent_output: Route::Pass { stdout: outlet(), stderr: outlet() },
        },
    };
    (session, reader)
}

#[test]
fn the_agents_socket_needs_a_free_place() {
    let (made, runtime) = (TestBox::new(&config()), tempfile::tempdir().unwrap());
    let runtime = RuntimeDir::create(runtime.path()).unwrap();
    let plan = |path: &str| agent_port(80, Some(made.path().join(path)), &runtime);
    let free = plan("a.sock").unwrap();
    assert_eq!(free.socket, made.path().join("a.sock"));
    fs::write(&free.socket, "another run's").unwrap();
    assert!(AgentSocket::new(free).is_err());
    assert!(made.path().join("a.sock").exists());
    for (path, reason) in [
        ("index.json", "it exists already"),
        ("missing/a.sock", "No such file or directory (os error 2)"),
        ("index.json/a.sock", "Not a directory (os error 20)"),
    ] {
        let error = plan(path).unwrap_err().to_string();
        let path = made.path().join(path);
        assert_eq!(error, format!("cannot make the agent's socket {}: {reason}", path.display()));
    }
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
    });
    let error = refused.unwrap_err().error;
    assert!(matches!(&error, LaunchError::Unsupported(declared) if declared.len() == 1), "{error}");
}
