//! Open files that are attached to messages on a Unix socket: `SCM_RIGHTS` in
//! [unix(7)](https://man7.org/linux/man-pages/man7/unix.7.html).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The most files that the kernel attaches to a message: `SCM_MAX_FD`.
pub const MAX_ATTACHED: usize = 253;

/// Sends the beginning of `bytes`, to which `files` are attached. Returns how many bytes were sent.
///
/// # Errors
/// If the kernel refuses, for example because there are more than [`MAX_ATTACHED`] files.
pub(crate) fn send(to: impl AsFd, bytes: &[u8], files: &[OwnedFd]) -> io::Result<usize> {
    let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
    let mut space = vec![MaybeUninit::uninit(); cmsg_space!(ScmRights(files.len()))];
    let mut attached = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !attached.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(io::Error::other("too many files are attached"));
    }
    let parts = [IoSlice::new(bytes)];
    Ok(sendmsg(to, &parts, &mut attached, SendFlags::NOSIGNAL)?)
}

/// Receives bytes into `chunk`, and adds the files that are attached to them to `files`. Returns the number of bytes; zero
/// at the end.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn receive(
    from: impl AsFd,
    chunk: &mut [u8],
    files: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = vec![MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_ATTACHED))];
    let mut attached = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(chunk)];
    let received = recvmsg(from, &mut parts, &mut attached, RecvFlags::CMSG_CLOEXEC)?;
    for message in attached.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            files.extend(received);
        }
    }
    Ok(received.bytes)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_listening_socket_arrives_with_its_address() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let sockets: Vec<_> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<_> = sockets.iter().map(|it| it.local_addr().unwrap()).collect();
        let files: Vec<OwnedFd> = sockets.into_iter().map(Into::into).collect();
        assert_eq!(send(&ours, b"first", &files).unwrap(), 5);
        assert_eq!(send(&ours, b"second", &[]).unwrap(), 6);
        drop(files);
        let (mut chunk, mut received) = ([0; 16], Vec::new());
        assert!(receive(&theirs, &mut chunk, &mut received).unwrap() >= 5);
        let arrived: Vec<_> =
            received.into_iter().map(|it| TcpListener::from(it).local_addr().unwrap()).collect();
        assert_eq!(arrived, addresses, "in their order");
        // A client was not refused meanwhile: the sockets stayed open in the message.
    }

    #[test]
    fn more_files_than_the_kernel_attaches_are_refused() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let file = OwnedFd::from(UnixStream::pair().unwrap().0);
        let files: Vec<_> = (0..=MAX_ATTACHED).map(|_| file.try_clone().unwrap()).collect();
        send(&ours, b"x", &files).unwrap_err();
        send(&ours, b"x", &files[1..]).unwrap();
    }
}
