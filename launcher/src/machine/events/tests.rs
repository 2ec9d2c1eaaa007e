use std::os::unix::net::UnixStream;
use std::path::Path;

use testkit::test_box::{TestBox, config};
use tokio::runtime::Builder;

use super::*;

/// Runs a program in the role of the VMM.
fn events(program: &str, made: &TestBox) -> Events {
    let vmm = Vmm::spawn(Path::new(program), &crate::opened::open(made.path()).unwrap(), &[], None)
        .unwrap();
    let listener = Listener::bind(made.path().join("control.sock")).unwrap();
    let secrets = (Nonce::random().unwrap(), Vec::new());
    Events::new(vmm, listener, secrets, Console::new(None)).unwrap()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn soon() -> Option<Instant> {
    Some(Instant::now() + Duration::from_millis(5))
}

#[test]
fn the_end_of_the_vmm_comes_after_its_last_words() {
    let made = TestBox::new(&config());
    block_on(async {
        // `cat vmm` fails: there is no such file.
        let mut events = events("/bin/cat", &made);
        match events.next(None, None).await.unwrap() {
            Event::VmmEnded(status) => assert_eq!(status.code(), Some(1)),
            other => panic!("{other:?}"),
        }
        assert!(events.console.tail().contains("vmm: No such file"));
        assert!(matches!(events.next(None, None).await.unwrap(), Event::VmmEnded(_)));
    });
}

#[test]
fn a_silent_machine_meets_the_deadline() {
    let made = TestBox::new(&config());
    block_on(async {
        let mut events = events("/usr/bin/yes", &made);
        assert!(matches!(events.next(soon(), None).await.unwrap(), Event::Deadline));
        let shutdown = HostMessage::Shutdown(box_contract::wire::Shutdown { grace_ms: 0 });
        assert!(events.send(&shutdown).is_err());
    });
}

#[test]
fn another_process_on_the_control_socket_ends_the_run() {
    let made = TestBox::new(&config());
    block_on(async {
        let mut events = events("/usr/bin/yes", &made);
        let path = made.path().join("control.sock");
        let _intruder = UnixStream::connect(&path).unwrap();
        let error = events.next(None, None).await.unwrap_err().to_string();
        assert!(error.contains("not the VMM, connected first"), "{error}");
        assert!(!path.exists(), "nobody else can connect");
    });
}

#[test]
fn a_signal_is_an_event_and_is_noted() {
    let (made, signals) = (TestBox::new(&config()), StopSignals::block().unwrap());
    block_on(async {
        let mut events = events("/usr/bin/yes", &made);
        let watched = WatchedSignals::new(&signals).unwrap();
        nix::sys::pthread::pthread_kill(
            nix::sys::pthread::pthread_self(),
            nix::sys::signal::Signal::SIGTERM,
        )
        .unwrap();
        let event = events.next(None, Some(&watched)).await.unwrap();
        assert!(matches!(event, Event::Signal(15)), "{event:?}");
    });
    assert!(signals.any_taken());
}

/// Fails if `next` or `kill` waits for the end of a log that another process has open.
#[test]
fn a_log_that_another_process_has_open_is_not_waited_for() {
    let made = TestBox::new(&config());
    block_on(async {
        for is_killed in [false, true] {
            let mut events = events("/bin/cat", &made);
            let (log, _other) = std::io::pipe().unwrap();
            events.log = Some(Receiver::from_owned_fd(log.into()).unwrap());
            if is_killed {
                events.kill().await.unwrap();
            } else {
                let event = events.next(None, None).await.unwrap();
                assert!(matches!(event, Event::VmmEnded(_)), "{event:?}");
            }
        }
    });
}
