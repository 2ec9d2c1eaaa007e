use super::*;
use nix::sys::pthread::{pthread_kill, pthread_self};
use nix::sys::signal::Signal;

/// More bytes than fit into the pump, its pipe and the reader's pipe together.
const TOO_MUCH: usize = 4 * CHUNK;

fn outlet(signals: &Rc<StopSignals>) -> (Outlet, PipeReader) {
    let (reader, writer) = io::pipe().unwrap();
    (Outlet::with_linger(writer, signals, Duration::from_millis(1)), reader)
}

fn signals() -> Rc<StopSignals> {
    Rc::new(StopSignals::block().unwrap())
}

fn interrupt() {
    pthread_kill(pthread_self(), Signal::SIGTERM).unwrap();
}

#[test]
fn everything_arrives_in_order_at_the_readers_pace() {
    let signals = signals();
    let (outlet, mut reader) = outlet(&signals);
    let reading = thread::spawn(move || {
        let mut got = Vec::new();
        reader.read_to_end(&mut got).unwrap();
        got
    });
    let sent: Vec<u8> = (0..TOO_MUCH).map(|n| n.to_le_bytes()[0]).collect();
    for part in sent.chunks(1000) {
        outlet.clone().write_all(part).unwrap();
    }
    outlet.finish().unwrap();
    assert_eq!(reading.join().unwrap(), sent);
}

#[test]
fn a_signal_ends_the_wait_and_what_was_written_is_kept() {
    let signals = signals();
    let (mut outlet, mut reader) = outlet(&signals);
    interrupt();
    let error = outlet.write_all(&vec![b'a'; TOO_MUCH]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert_eq!(signals.next().unwrap(), Some(15));
    let reading = thread::spawn(move || {
        let mut got = Vec::new();
        reader.read_to_end(&mut got).unwrap();
        got.len()
    });
    // The reader reads again, and gets all output while it makes progress.
    outlet.0.borrow_mut().linger = Duration::from_secs(60);
    outlet.write_all(b"and more").unwrap();
    outlet.finish().unwrap();
    drop(outlet);
    assert_eq!(reading.join().unwrap(), TOO_MUCH + "and more".len());
}

#[test]
fn after_a_signal_a_reader_that_takes_nothing_is_left() {
    let signals = signals();
    let (mut outlet, _reader) = outlet(&signals);
    interrupt();
    signals.next().unwrap().unwrap();
    outlet.write_all(&vec![b'a'; TOO_MUCH]).unwrap();
    outlet.write_all(&vec![b'b'; TOO_MUCH]).unwrap();
    outlet.finish().unwrap();
}

#[test]
fn a_second_signal_needs_no_patience() {
    let signals = signals();
    let (mut outlet, _reader) = outlet(&signals);
    interrupt();
    signals.next().unwrap().unwrap();
    outlet.0.borrow_mut().linger = Duration::MAX;
    interrupt();
    outlet.write_all(&vec![b'a'; TOO_MUCH]).unwrap();
    assert_eq!(signals.next().unwrap(), Some(15), "it is left to the run");
}

#[test]
fn a_signal_ends_the_wait_for_the_last_of_it() {
    let signals = signals();
    let (mut outlet, _reader) = outlet(&signals);
    // One half fits into the reader's pipe, and the other half into ours.
    outlet.write_all(&vec![b'a'; CHUNK + CHUNK / 2]).unwrap();
    interrupt();
    assert_eq!(outlet.finish().unwrap_err().kind(), ErrorKind::WouldBlock);
    signals.next().unwrap().unwrap();
    outlet.finish().unwrap();
}

#[test]
fn a_reader_that_comes_back_after_a_signal_gets_the_last_of_it() {
    let signals = signals();
    let (mut outlet, mut reader) = outlet(&signals);
    outlet.write_all(&vec![b'a'; CHUNK + CHUNK / 2]).unwrap();
    interrupt();
    assert_eq!(outlet.finish().unwrap_err().kind(), ErrorKind::WouldBlock);
    signals.next().unwrap().unwrap();
    outlet.write_all(b"too late").unwrap();
    outlet.0.borrow_mut().linger = Duration::from_secs(60);
    let reading = thread::spawn(move || {
        let mut got = Vec::new();
        reader.read_to_end(&mut got).unwrap();
        got.len()
    });
    outlet.finish().unwrap();
    drop(outlet);
    assert_eq!(reading.join().unwrap(), CHUNK + CHUNK / 2);
}

#[test]
fn a_wait_lasts_as_long_as_something_is_taken() {
    let (drained, mut waits) = (AtomicUsize::new(0), 0);
    while_drained(&drained, || {
        waits += 1;
        drained.fetch_add(usize::from(waits < 4), Ordering::Relaxed);
        Ok(0)
    })
    .unwrap();
    assert_eq!(waits, 4, "the last one in vain");
    while_drained(&drained, || {
        waits += 1;
        drained.fetch_add(1, Ordering::Relaxed);
        Ok(libc::c_int::from(waits == 6))
    })
    .unwrap();
    assert_eq!(waits, 6, "until there is an event");
}

#[test]
fn the_pump_counts_what_was_taken_and_no_more() {
    let (mut reader, mut queue) = io::pipe().unwrap();
    let (mut sink, file) = io::pipe().unwrap();
    let drained = AtomicUsize::new(0);
    queue.write_all(&vec![b'a'; CHUNK]).unwrap();
    drop(queue);
    let mut file = File::from(OwnedFd::from(file));
    // Makes the pump fail when it would otherwise wait for the reader.
    fcntl(&file, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    let full = CHUNK - PIECE;
    file.write_all(&vec![b'b'; full]).unwrap();
    let error = pump(&mut reader, &mut file, &drained).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert_eq!(drained.load(Ordering::Relaxed), PIECE);
    drop(file);
    assert_eq!(io::copy(&mut sink, &mut io::sink()).unwrap(), CHUNK as u64);
}

#[test]
fn a_failure_is_reported_once() {
    let signals = signals();
    let (mut outlet, reader) = outlet(&signals);
    drop(reader);
    let error = outlet.write_all(&vec![b'a'; TOO_MUCH]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    outlet.write_all(b"more").unwrap();
    outlet.finish().unwrap();
}

#[test]
fn a_full_disk_is_reported_at_the_end() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut outlet = Outlet::new(full, &signals());
    outlet.write_all(b"result").unwrap();
    assert_eq!(outlet.finish().unwrap_err().kind(), ErrorKind::StorageFull);
}

#[test]
fn nothing_written_needs_no_thread() {
    let signals = signals();
    let (outlet, mut reader) = outlet(&signals);
    outlet.finish().unwrap();
    assert_eq!(reader.read(&mut [0; 1]).unwrap(), 0);
}
