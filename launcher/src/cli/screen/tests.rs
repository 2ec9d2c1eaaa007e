use std::fs::File;
use std::io::{PipeReader, Read, pipe};
use std::thread;

use boxlaunch::streams::StreamError;
use nix::sys::pthread::{pthread_kill, pthread_self};
use nix::sys::signal::Signal;

use super::*;

/// More bytes than all pipes to a reader can hold.
const TOO_MUCH: usize = 1 << 20;

fn signals() -> Rc<StopSignals> {
    Rc::new(StopSignals::block().unwrap())
}

/// Returns a screen, and the reader of its standard error.
fn screen(stdout: impl Into<OwnedFd>, signals: &Rc<StopSignals>) -> (Screen, PipeReader) {
    let (reader, stderr) = pipe().unwrap();
    (Screen::over([stdout.into(), stderr.into()], signals), reader)
}

fn gone() -> OwnedFd {
    pipe().unwrap().1.into()
}

fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

/// Closes a screen. Returns the exit code and the messages.
fn closed((screen, mut stderr): (Screen, PipeReader), code: u8) -> (u8, String) {
    let code = screen.close(code);
    drop(screen);
    let mut reported = String::new();
    stderr.read_to_string(&mut reported).unwrap();
    (code, reported)
}

#[test]
fn a_programs_lost_output_is_a_failure_however_short() {
    let short = screen(gone(), &signals());
    short.0.program_stdout().write_all(b"x").unwrap();
    assert_eq!(closed(short, 0), (141, String::new()));

    let long = screen(gone(), &signals());
    let error = long.0.program_stdout().write_all(&vec![b'x'; TOO_MUCH]).unwrap_err();
    let code = long.0.report(&StreamError::Output(error).into(), false);
    assert_eq!(closed(long, code), (141, String::new()));
}

#[test]
fn the_same_holds_for_standard_error() {
    let screen = Screen::over([full().into(), gone()], &signals());
    let mut program = screen.program_stderr();
    program.write_all(b"x").unwrap();
    // This write may report the closed pipe or not.
    screen.notice("boxlaunch: ready\n");
    assert_eq!(screen.close(0), 141);
}

#[test]
fn a_notice_that_takes_the_error_does_not_hide_it() {
    let screen = Screen::over([full().into(), gone()], &signals());
    screen.program_stderr().write_all(b"x").unwrap();
    screen.notice(&"n".repeat(TOO_MUCH));
    assert_eq!(screen.close(0), 141);
}

#[test]
fn boxlaunchs_own_output_may_be_lost() {
    let result = screen(gone(), &signals());
    result.0.program_stdout().write_all(b"").unwrap();
    for text in ["{}\n".to_owned(), "x".repeat(TOO_MUCH)] {
        result.0.print(&text);
    }
    assert_eq!(closed(result, 0), (0, String::new()));
    let screen = Screen::over([full().into(), gone()], &signals());
    screen.notice("boxlaunch: ready\n");
    assert_eq!(screen.close(0), 0);
}

#[test]
fn a_programs_status_outlives_its_output() {
    for (file, reported) in [
        (full().into(), "error: cannot pass on the program's output: No space left on device"),
        (gone(), ""),
    ] {
        let screen = screen(file, &signals());
        screen.0.program_stdout().write_all(b"x").unwrap();
        let (code, text) = closed(screen, 7);
        assert_eq!(code, 7);
        assert!(text.starts_with(reported) && text.is_empty() == reported.is_empty(), "{text}");
    }
}

#[test]
fn a_full_disk_is_reported_as_a_failure() {
    for length in [1, TOO_MUCH] {
        let reported = "error: cannot write to standard output: No space left on device";
        for (before, after) in [(0, 1), (7, 7)] {
            let screen = screen(full(), &signals());
            screen.0.print(&"x".repeat(length));
            let (code, text) = closed(screen, before);
            assert_eq!(code, after);
            assert!(text.starts_with(reported), "{text}");
        }
    }
}

#[test]
fn a_signal_leaves_the_other_stream_its_words() {
    let (signals, (_reader, stdout)) = (signals(), pipe().unwrap());
    let (screen, mut stderr) = screen(stdout, &signals);
    // The reader's pipe holds 64 KiB, so the remainder of each text waits in the outlet's pipe.
    screen.print(&"x".repeat(96 << 10));
    screen.notice(&"y".repeat(96 << 10));
    pthread_kill(pthread_self(), Signal::SIGTERM).unwrap();
    let reading = thread::spawn(move || {
        let mut reported = String::new();
        stderr.read_to_string(&mut reported).unwrap();
        reported.len()
    });
    assert_eq!(screen.close(0), 143);
    drop(screen);
    assert_eq!(reading.join().unwrap(), 96 << 10);
}

#[test]
fn a_status_line_gives_way_to_whatever_else_is_written() {
    let (screen, stderr) = screen(gone(), &signals());
    screen.show_status("not on a pipe");
    screen.status.is_possible.set(true);
    screen.show_status("starting a… 0 s");
    screen.show_status("starting a… 1 s");
    screen.notice("a notice\n");
    screen.clear_status();
    screen.show_status("again");
    screen.program_stderr().write_all(b"half a line").unwrap();
    screen.show_status("never more");
    let line = "\r\x1b[Kstarting a… 0 s\r\x1b[Kstarting a… 1 s\r\x1b[Ka notice\n";
    let expected = format!("{line}\r\x1b[Kagain\r\x1b[Khalf a line");
    assert_eq!(closed((screen, stderr), 0), (0, expected));
}

/// Returns a screen whose two streams are one terminal, and the reader of that terminal.
fn on_a_terminal(is_raw: bool) -> (Screen, PipeReader) {
    let (mut screen, reader) = screen(gone(), &signals());
    screen.stdout.outlet = screen.stderr.outlet.clone();
    (screen.stdout.is_terminal, screen.stderr.is_terminal) = (true, true);
    screen.is_raw = is_raw;
    (screen, reader)
}

#[test]
fn no_program_moves_a_terminals_cursor_or_hides_what_boxlaunch_says() {
    let (screen, reader) = on_a_terminal(false);
    {
        let Route::Pass { mut stdout, mut stderr } = screen.route() else { unreachable!() };
        stdout.write_all(b"\x1b]0;pwned\x07\x1b[2J\rboxlaunch: verified\n").unwrap();
        stdout.write_all(b"\x1b[30;40mhid").unwrap();
        screen.notice("boxlaunch: the agent component: denied\n");
        // U+009B, a control character, in two writes, and then a control sequence without its end.
        stdout.write_all(b"den\n\xc2").unwrap();
        stdout.write_all(b"\x9b\x1b[3").unwrap();
        stderr.write_all(b"\x1b[31mred").unwrap();
    }
    screen.notice("boxlaunch: stopped\n");
    let expected = "\u{fffd}]0;pwned\u{fffd}\u{fffd}[2J\nboxlaunch: verified\n\
                    \u{1b}[30;40mhid\u{1b}[0m\nboxlaunch: the agent component: denied\n\
                    den\n\u{fffd}\u{1b}[31mred\u{1b}[0m\u{fffd}[3\nboxlaunch: stopped\n";
    assert_eq!(closed((screen, reader), 0), (0, expected.to_owned()));
}

#[test]
fn a_terminal_gets_everything_where_that_is_asked_for_and_a_pipe_always() {
    let written = b"\x1b]0;t\x07\r\n\xc2";
    let (shown, reader) = on_a_terminal(true);
    shown.program_stdout().write_all(written).unwrap();
    let (piped, pipe) = screen(gone(), &signals());
    piped.program_stderr().write_all(written).unwrap();
    for (screen, mut reader) in [(shown, reader), (piped, pipe)] {
        screen.close(0);
        drop(screen);
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, written);
    }
}
