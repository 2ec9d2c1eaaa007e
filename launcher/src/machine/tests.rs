use std::ffi::OsStr;
use std::io::PipeReader;
use std::rc::Rc;

use box_contract::wire::{ProgramId, Stream};
use nix::sys::pthread::{pthread_kill, pthread_self};
use nix::sys::signal::Signal;
use vmm::signals::Stopped;

use super::*;
use crate::opened::OpenBoxError;
use crate::opened::receipt::Receipts;
use crate::opened::verify::{Trust, Verification, Verified};
use crate::streams::StreamError;
use crate::streams::console::Console;
use crate::streams::control::Listener;
use crate::streams::output::Outlet;
use testkit::test_box::{TestBox, config};
use vmm::jail::{Policy, Report};
use vmm::{Nonce, Vmm};

/// More bytes than fit into all pipes to a reader that does not read.
const TOO_MUCH: usize = 1 << 20;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Returns a route to a reader that does not read.
fn unread(signals: &Rc<StopSignals>) -> (Route, PipeReader) {
    let (reader, writer) = io::pipe().unwrap();
    let outlet = || Box::new(Outlet::new(writer.try_clone().unwrap(), signals));
    (Route::Pass { stdout: outlet(), stderr: outlet() }, reader)
}

/// A VM that never ends by itself.
fn machine(made: &TestBox) -> Machine {
    let listener = Listener::bind(made.path().join("control.sock")).unwrap();
    let opened = crate::opened::open(made.path()).unwrap();
    let vmm = Vmm::spawn(Path::new("/usr/bin/yes"), &opened, &[], None).unwrap();
    let (nonce, console) = (Nonce::random().unwrap(), Console::new(None));
    Machine {
        events: Events::new(vmm, listener, (nonce, Vec::new()), console).unwrap(),
        _volumes: Vec::new(),
        _roots_disk: None,
        device: None,
        agent_socket: None,
        network: None,
        _runtime: RuntimeDir::create(made.path()).unwrap(),
        agent_argv: vec!["/agent".to_owned(), "--fast".to_owned()],
        has_check: true,
        agent_spoke: false,
        agent_window: Window::default(),
        early_questions: Vec::new(),
        logs: Logs::nowhere(),
        facts: RunFacts::new(
            Verification { verified: Verified::Receipt, hashing: Duration::ZERO },
            Report::default(),
        ),
    }
}

fn interrupt() {
    pthread_kill(pthread_self(), Signal::SIGTERM).unwrap();
}

fn output(length: usize) -> Output {
    Output { id: ProgramId::AGENT, stream: Stream::Stdout, data: vec![b'x'; length] }
}

#[test]
fn signals_end_a_start_whose_output_is_not_read() {
    let (made, signals) = (TestBox::new(&config()), Rc::new(StopSignals::block().unwrap()));
    let runtime = runtime();
    let _entered = runtime.enter();
    let (mut machine, (mut route, _reader)) = (machine(&made), unread(&signals));
    interrupt();
    let wrote = GuestMessage::Output(output(TOO_MUCH));
    let error = machine.starting(wrote, &mut route, &signals).unwrap_err();
    assert!(matches!(error, MachineError::Stopped(Stopped(15))), "{error}");
}

#[test]
fn output_that_cannot_be_written_ends_a_start() {
    let (made, signals) = (TestBox::new(&config()), Rc::new(StopSignals::block().unwrap()));
    let runtime = runtime();
    let _entered = runtime.enter();
    let (mut machine, (mut route, reader)) = (machine(&made), unread(&signals));
    drop(reader);
    let wrote = GuestMessage::Output(output(TOO_MUCH));
    let error = machine.starting(wrote, &mut route, &signals).unwrap_err();
    assert!(matches!(error, MachineError::Stream(StreamError::Output(_))), "{error}");
}

#[test]
fn an_agent_that_ended_early_is_named_with_its_arguments() {
    let made = TestBox::new(&config());
    let runtime = runtime();
    let _entered = runtime.enter();
    let mut machine = machine(&made);
    let exit = Exited {
        id: ProgramId::AGENT,
        status: 0,
        oom_killed: false,
        disk_full: false,
        timed_out: false,
        fenced: None,
    };
    let silent = machine.agent_ended(exit);
    let message = "the agent (/agent --fast) ended with status 0 before it was ready";
    assert_eq!(silent.to_string(), message);
    assert!(matches!(silent, MachineError::AgentEnded { was_silent: true, .. }));
    machine.agent_argv.push("--password=hunter2".to_owned());
    assert!(machine.agent_ended(exit).to_string().contains("(/agent --fast --password=****)"));
    machine.agent_wrote(&output(1), &mut Route::Nowhere).unwrap();
    let killed = Exited { status: 137, oom_killed: true, ..exit };
    let ended = machine.agent_ended(killed);
    let MachineError::AgentEnded { was_silent, lacked_memory, .. } = ended else { panic!() };
    assert!(!was_silent && lacked_memory);
}

#[test]
fn a_start_is_stopped_by_the_limit_that_comes_first() {
    let seconds = Duration::from_secs;
    let (made, signals) = (TestBox::new(&config()), StopSignals::block().unwrap());
    runtime().block_on(async {
        let mut machine = machine(&made);
        let signals = WatchedSignals::new(&signals).unwrap();
        let started = Instant::now().checked_sub(seconds(5)).unwrap();
        let budget = Limits { started, timeout: seconds(60), total: Some(seconds(5)) };
        let mut route = Route::Nowhere;
        machine.await_ready(budget, &(), &mut route, &signals).await.unwrap();
        assert!(!machine.facts.is_ready && machine.facts.phases.total >= 5000.0);
        for total in [None, Some(seconds(60))] {
            let limits = Limits { started, timeout: seconds(5), total };
            let ready = machine.await_ready(limits, &(), &mut route, &signals).await;
            let error = ready.unwrap_err();
            assert!(matches!(error, MachineError::Timeout { seconds: 5, reason: None }), "{error}");
        }
    });
}

#[test]
fn a_box_that_is_not_enforced_is_refused_before_anything_is_done() {
    let mut config = config();
    config.plan.caps = vec![box_contract::CapPlan::Payments];
    let (made, signals) = (TestBox::new(&config), StopSignals::block().unwrap());
    let (opened, receipts) =
        (crate::opened::open(made.path()).unwrap(), Receipts::new(Path::new("/nowhere")));
    let runtime_dir = RuntimeDir::create(made.path()).unwrap();
    let mut agent_output = Route::Nowhere;
    let run = BoxToRun {
        opened: &opened,
        size: opened.plan().vm,
        program: Path::new("/nowhere"),
        programs: OsStr::new(""),
        device: Path::new("/nowhere"),
        receipts: &receipts,
        trust: Trust::Nothing,
        runtime: runtime_dir,
    };
    let policy = StartPolicy {
        console: None,
        logs: Logs::nowhere(),
        agent_output: &mut agent_output,
        signals: &signals,
        started: Instant::now(),
        startup_timeout: Duration::ZERO,
        enforced_total: None,
        jail: Policy::BestEffort,
        watch: &(),
    };
    let refused = runtime().block_on(Machine::start(run, HostResources::default(), policy));
    let error = refused.unwrap_err().error;
    assert!(
        matches!(&error, MachineError::Opened(OpenBoxError::Unsupported(declared)) if declared.len() == 1),
        "{error}"
    );
}
