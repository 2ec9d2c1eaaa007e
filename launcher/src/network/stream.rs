//! One stream between a component and a peer on the host: the filter, a client of a published port, or a socket.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use box_contract::wire::{
    HostNetwork, MAX_STREAM_DATA, STREAM_WINDOW, StreamCredit, StreamData, StreamId,
};
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf, split,
};
use tokio::sync::mpsc::Sender;
use tokio::sync::{Notify, Semaphore, TryAcquireError};
use tokio::time::timeout;

/// The half of a stream that receives the component's frames.
#[derive(Debug)]
pub(super) struct Inlet {
    upward: Arc<Upward>,
    /// One permit for each byte that the component still accepts.
    credit: Arc<Semaphore>,
    closed: Arc<Notify>,
}

/// The bytes of a component on their way to the host: at most one window.
#[derive(Debug)]
struct Upward {
    state: Mutex<State>,
    /// Notified when bytes or the end have arrived.
    ready: Notify,
    /// How many bytes the component may still send.
    window: AtomicU32,
    /// How many bytes of all streams of the component are on their way to the host.
    held: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    has_ended: bool,
}

/// The half of a stream that passes bytes between the component and the peer.
#[derive(Debug)]
pub(super) struct Carrier {
    number: u32,
    upward: Arc<Upward>,
    credit: Arc<Semaphore>,
    closed: Arc<Notify>,
    out: Sender<HostNetwork>,
}

/// Creates the stream `number`. Its frames for the component are sent to `out`, and its bytes are included in `held`.
pub(super) fn stream(
    number: u32,
    out: Sender<HostNetwork>,
    held: &Arc<AtomicUsize>,
) -> (Inlet, Carrier) {
    let upward = Arc::new(Upward {
        state: Mutex::default(),
        ready: Notify::new(),
        window: AtomicU32::new(STREAM_WINDOW),
        held: Arc::clone(held),
    });
    let credit = Arc::new(Semaphore::new(STREAM_WINDOW as usize));
    let closed = Arc::new(Notify::new());
    let carrier = Carrier {
        number,
        upward: Arc::clone(&upward),
        credit: Arc::clone(&credit),
        closed: Arc::clone(&closed),
        out,
    };
    (Inlet { upward, credit, closed }, carrier)
}

impl Inlet {
    /// Adds bytes from the component. Returns `false` if there are none, if they are more than the component may send,
    /// or if they arrive after the end.
    pub(super) fn push(&self, data: &[u8]) -> bool {
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let reserved =
            self.upward.window.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(length).filter(|_| length > 0)
            });
        if reserved.is_err() {
            return false;
        }
        self.upward.held.fetch_add(data.len(), Ordering::Relaxed);
        let mut state = self.upward.lock();
        state.bytes.extend_from_slice(data);
        self.upward.ready.notify_one();
        !state.has_ended
    }

    /// Records the end of the component's bytes. Returns `false` if the end was already recorded.
    pub(super) fn end(&self) -> bool {
        self.upward.end()
    }

    /// Records that the component has aborted the stream.
    pub(super) fn close(&self) {
        self.closed.notify_one();
    }

    /// Permits the host to send `bytes` more. Returns `false` if it could then send more than a window.
    pub(super) fn grant(&self, bytes: u32) -> bool {
        let most = STREAM_WINDOW as usize;
        let is_sound = self.credit.available_permits() + bytes as usize <= most;
        if is_sound {
            self.credit.add_permits(bytes as usize);
        }
        is_sound
    }
}

impl Upward {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Use even a poisoned lock, because no code panics while it has the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the end of the bytes. Returns `false` if it was already recorded.
    fn end(&self) -> bool {
        let before = std::mem::replace(&mut self.lock().has_ended, true);
        self.ready.notify_one();
        !before
    }

    /// Waits for bytes. Returns `None` at the end.
    async fn next(&self) -> Option<Vec<u8>> {
        loop {
            {
                let mut state = self.lock();
                if !state.bytes.is_empty() {
                    return Some(std::mem::take(&mut state.bytes));
                }
                if state.has_ended {
                    return None;
                }
            }
            self.ready.notified().await;
        }
    }

    /// Records that bytes were passed on. Returns how many more bytes the component may send now.
    fn passed(&self, length: usize) -> u32 {
        let bytes = u32::try_from(length).unwrap_or(u32::MAX);
        self.held.fetch_sub(length, Ordering::Relaxed);
        self.window.fetch_add(bytes, Ordering::Relaxed);
        bytes
    }
}

impl Drop for Upward {
    fn drop(&mut self) {
        let left = STREAM_WINDOW - self.window.load(Ordering::Relaxed);
        self.held.fetch_sub(left as usize, Ordering::Relaxed);
    }
}

impl Carrier {
    /// Passes bytes between the component and `io`, whose other end `work` drives. Returns when both directions have
    /// ended, when either side breaks the stream off, or when `work` is done and the component has received all bytes. For
    /// `linger` after an abort, passes on what the component has sent before.
    pub(super) async fn carry(
        self,
        io: impl AsyncRead + AsyncWrite,
        work: impl Future<Output = ()>,
        linger: Duration,
    ) {
        let Self { number, upward, credit, closed, out } = self;
        let (reader, writer) = split(io);
        let mut upwards = pin!(pass_up(&upward, writer, (number, &out)));
        let mut lost = pin!(discard(&upward, (number, &out)));
        let mut downwards = pin!(pass_down(reader, (number, &out, &credit)));
        let mut work = pin!(work);
        let (mut is_up_done, mut is_down_done, mut is_work_done) = (false, false, false);
        let mut is_deaf = false;
        while !(is_down_done && (is_up_done || is_work_done)) {
            tokio::select! {
                is_passed = &mut upwards, if !is_up_done => (is_up_done, is_deaf) = (true, !is_passed),
                // The component gets to the end of its bytes, and then of the peer's.
                () = &mut lost, if is_deaf => is_deaf = false,
                is_whole = &mut downwards, if !is_down_done => {
                    is_down_done = true;
                    if !is_whole {
                        break;
                    }
                }
                () = &mut work, if !is_work_done => is_work_done = true,
                () = closed.notified() => {
                    upward.end();
                    if !is_up_done {
                        // After that time, the peer loses what it has not accepted.
                        let _late = timeout(linger, &mut upwards).await;
                    }
                    break;
                }
            }
        }
        // A failure means that the component has hung up.
        drop(out.send(HostNetwork::Close(StreamId { stream: number })).await);
    }

    /// Closes the stream without a peer.
    pub(super) async fn refuse(self) {
        let Self { number, out, .. } = self;
        drop(out.send(HostNetwork::Close(StreamId { stream: number })).await);
    }
}

/// Passes the component's bytes to the peer. Returns `false` if the peer takes no more.
async fn pass_up(
    upward: &Upward,
    mut writer: WriteHalf<impl AsyncWrite>,
    to: (u32, &Sender<HostNetwork>),
) -> bool {
    while let Some(data) = upward.next().await {
        let is_passed = writer.write_all(&data).await.is_ok();
        if !(permit(upward, data.len(), to).await && is_passed) {
            return is_passed;
        }
    }
    // A failure means that the peer has closed its end.
    drop(writer.shutdown().await);
    true
}

/// Discards the component's bytes.
async fn discard(upward: &Upward, to: (u32, &Sender<HostNetwork>)) {
    while let Some(data) = upward.next().await {
        if !permit(upward, data.len(), to).await {
            return;
        }
    }
}

/// Lets the component send as many bytes as it has sent. Returns `false` if it has hung up.
async fn permit(
    upward: &Upward,
    length: usize,
    (stream, out): (u32, &Sender<HostNetwork>),
) -> bool {
    let bytes = upward.passed(length);
    out.send(HostNetwork::Credit(StreamCredit { stream, bytes })).await.is_ok()
}

/// Passes the peer's bytes to the component, at most as many as the component accepts. Returns `false` if the peer breaks off: then the
/// component gets no end, and takes the frame that closes the stream for a reset.
async fn pass_down(
    mut reader: ReadHalf<impl AsyncRead>,
    (stream, out, credit): (u32, &Sender<HostNetwork>, &Semaphore),
) -> bool {
    let mut chunk = vec![0; MAX_STREAM_DATA];
    loop {
        let Some(most) = acquired(credit).await else { return true };
        let Ok(length) = reader.read(&mut chunk[..most]).await else { return false };
        credit.add_permits(most - length);
        let message = match length {
            0 => HostNetwork::End(StreamId { stream }),
            _ => HostNetwork::Data(StreamData { stream, data: chunk[..length].to_vec() }),
        };
        if out.send(message).await.is_err() || length == 0 {
            return true;
        }
    }
}

/// Waits until the component accepts bytes. Returns the number of bytes to read for it.
async fn acquired(credit: &Semaphore) -> Option<usize> {
    credit.acquire().await.ok()?.forget();
    let more = credit.available_permits().min(MAX_STREAM_DATA - 1);
    match credit.try_acquire_many(u32::try_from(more).ok()?) {
        Ok(permits) => permits.forget(),
        // No other code takes permits.
        Err(TryAcquireError::NoPermits) => return Some(1),
        Err(TryAcquireError::Closed) => return None,
    }
    Some(more + 1)
}
