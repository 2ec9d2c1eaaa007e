//! A server with a list of replies: each request gets the next one.

use std::sync::Mutex;

use test_server::Identity;
pub(super) use test_server::{Reply, Step, file, length, redirect, reply};

/// A running server.
#[derive(Debug)]
pub(super) struct Server(test_server::Server);

impl Server {
    /// Starts a server for plain HTTP.
    pub(super) fn http(replies: impl FnOnce(u16) -> Vec<Reply>) -> Self {
        Self::start(Identity::None, replies)
    }

    /// Starts a server for https, with a valid certificate.
    pub(super) fn https(replies: impl FnOnce(u16) -> Vec<Reply>) -> Self {
        Self::start(Identity::Valid, replies)
    }

    /// Starts a server. `replies` gets the server's port and returns the replies, one for each request. Later requests get no
    /// reply.
    fn start(identity: Identity, replies: impl FnOnce(u16) -> Vec<Reply>) -> Self {
        Self(test_server::Server::start(identity, |port| {
            let replies = Mutex::new(replies(port).into_iter());
            move |_: &test_server::Request| replies.lock().unwrap().next().unwrap_or_default()
        }))
    }

    /// Returns the URL of a path on this server.
    pub(super) fn url(&self, path: &str) -> String {
        self.0.url(path)
    }

    /// Stops the server, and returns the heads of the requests in lower case.
    pub(super) fn requests(self) -> Vec<String> {
        self.0.requests().into_iter().map(|request| request.head.to_lowercase()).collect()
    }
}
