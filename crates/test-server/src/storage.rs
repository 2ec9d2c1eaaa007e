//! A second server that serves a registry's blobs, as an object store does.

use std::sync::{Arc, Mutex};

use crate::registry::{Held, error, read};
use crate::{Identity, Request, Server};

/// A running object store. The blobs are in the registry's memory.
#[derive(Debug)]
pub(crate) struct Storage(Server);

impl Storage {
    /// Starts the server. Its port, and so its origin, differs from the registry's.
    pub(crate) fn start(held: &Arc<Mutex<Held>>) -> Self {
        let held = Arc::clone(held);
        Self(Server::start(Identity::None, |_| {
            move |request: &Request| {
                let (path, query) = request.path().split_once('?').unwrap_or_default();
                let path = path.trim_start_matches('/');
                let mut held = held.lock().unwrap();
                match (request.method(), path.split_once("/blobs/")) {
                    ("GET", Some((name, digest))) => {
                        let blob = held.blobs.get(&(name.to_owned(), digest.to_owned()));
                        blob.map_or_else(
                            || error("404 Not Found", "BLOB_UNKNOWN"),
                            |it| read(request, it, false),
                        )
                    }
                    ("PUT", Some((name, _))) => held.finish(name, query, &request.bytes),
                    _ => error("403 Forbidden", "DENIED"),
                }
            }
        }))
    }

    /// Returns the URL of a path on this server.
    pub(crate) fn url(&self, path: &str) -> String {
        self.0.url(path)
    }

    /// Returns the requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.0.requests()
    }
}
