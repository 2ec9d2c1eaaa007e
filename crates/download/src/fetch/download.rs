//! From answers to a verified blob: tries, sizes, and going on where a connection broke.

use std::io::{self, Read, Write};
use std::thread;

use box_cache::{BlobId, BlobWriter, Store};
use box_image::Digest;
use reqwest::StatusCode;
use reqwest::blocking::Response;
use reqwest::header::{CONTENT_RANGE, ETAG, HeaderMap, HeaderValue};

use super::client::{Answer, Client, Resume};
use super::{FetchError, FetchOptions, Progress, RemoteUrl};
use crate::http::{content_range, timed_out};

/// How often a file is asked for.
const TRIES: u32 = 3;
/// How much is read at once.
const PIECE: usize = 64 << 10;

/// Downloads a file into the store and returns its size in bytes.
pub(super) fn download(
    url: &RemoteUrl,
    sha256: &Digest,
    store: &Store,
    options: &FetchOptions<'_>,
) -> Result<u64, FetchError> {
    let client = Client::new(options)?;
    let mut download = Download { url, sha256, store, options, client, partial: None };
    let mut pause = options.backoff;
    for _ in 1..TRIES {
        match download.attempt() {
            Err(error) if error.is_passing() => thread::sleep(pause),
            result => return result,
        }
        pause *= 2;
    }
    download.attempt()
}

/// One download, through all its tries.
struct Download<'a> {
    url: &'a RemoteUrl,
    sha256: &'a Digest,
    store: &'a Store,
    options: &'a FetchOptions<'a>,
    client: Client,
    /// What an earlier try left, if a later one may go on with it.
    partial: Option<Partial<'a>>,
}

/// The first bytes of a file.
struct Partial<'a> {
    writer: BlobWriter<'a>,
    /// The file's strong entity tag.
    tag: Option<HeaderValue>,
    /// All bytes of the file, where the server tells.
    total: Option<u64>,
    /// Whether the bytes came in several answers.
    resumed: bool,
}

impl Download<'_> {
    /// Asks once for the file, or for what is missing of it.
    fn attempt(&mut self) -> Result<u64, FetchError> {
        let Answer { url, response } =
            self.client.get(self.url, self.partial.as_ref().and_then(Partial::resume))?;
        let mut partial = match (response.status(), self.partial.take()) {
            (StatusCode::OK, _) => Partial::whole(self.store.writer()?, &response),
            (StatusCode::PARTIAL_CONTENT, Some(partial)) => {
                match partial.followed_by(response.headers()) {
                    Some(partial) => partial,
                    None => return self.attempt(), // For the whole file now.
                }
            }
            (StatusCode::RANGE_NOT_SATISFIABLE, Some(_)) => return self.attempt(),
            (status, partial) => {
                self.partial = partial;
                return Err(refused(&url, status));
            }
        };
        if let Some(total) = partial.total {
            self.options.check_size(self.url, total)?;
        }
        match self.copy(&url, response, &mut partial) {
            Ok(()) => self.finish(partial),
            Err(error) => {
                self.partial = Some(partial).filter(|_| error.is_passing());
                Err(error)
            }
        }
    }

    /// Appends a body to what there is of the file.
    fn copy(
        &self,
        url: &RemoteUrl,
        mut body: Response,
        partial: &mut Partial<'_>,
    ) -> Result<(), FetchError> {
        let mut buffer = vec![0; PIECE];
        loop {
            let received = partial.writer.size();
            let length = match body.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(length) => length,
                Err(source) => return Err(self.broken(url, received, source)),
            };
            let received = received + length as u64;
            self.options.check_partial(self.url, received)?;
            partial.writer.write_all(&buffer[..length]).map_err(|source| self.unwritten(source))?;
            if let Some(progress) = self.options.progress {
                progress(Progress { received, total: partial.total });
            }
        }
    }

    /// Gives the file its name in the store, if it is the right one.
    ///
    /// Parts that do not belong together, from a server that breaks its word, prove nothing about
    /// the file: it is asked for once more as a whole.
    fn finish(&mut self, partial: Partial<'_>) -> Result<u64, FetchError> {
        let found = partial.writer.id();
        let right = found == BlobId(*self.sha256.as_bytes());
        if !right && partial.resumed {
            return self.attempt();
        }
        self.options.check_size(self.url, partial.writer.size())?;
        if !right {
            let (url, expected) = (self.url.clone(), *self.sha256);
            let found = Digest::from_bytes(found.0);
            return Err(FetchError::WrongDigest { url, expected, found });
        }
        let (_, size) = partial.writer.commit()?;
        Ok(size)
    }

    fn broken(&self, at: &RemoteUrl, received: u64, source: io::Error) -> FetchError {
        if timed_out(&source) {
            return self.client.stalled(at);
        }
        FetchError::Truncated { url: self.url.clone(), received, source }
    }

    fn unwritten(&self, source: io::Error) -> FetchError {
        FetchError::Write { url: self.url.clone(), source }
    }
}

impl<'a> Partial<'a> {
    /// Begins with an answer that has the whole file.
    fn whole(writer: BlobWriter<'a>, response: &Response) -> Self {
        let tag = response.headers().get(ETAG).filter(|tag| is_strong(tag)).cloned();
        Self { writer, tag, total: response.content_length(), resumed: false }
    }

    /// Returns what to ask for, where the server can tell whether the file is still the same.
    fn resume(&self) -> Option<Resume<'_>> {
        let from = self.writer.size();
        let tag = self.tag.as_ref().filter(|_| from > 0)?;
        Some(Resume { from, tag })
    }

    /// Goes on with an answer that has the rest of the same file; nothing where it has not.
    fn followed_by(mut self, headers: &HeaderMap) -> Option<Self> {
        let (first, total) = content_range(headers.get(CONTENT_RANGE)?)?;
        let same_tag = headers.get(ETAG).is_none_or(|tag| Some(tag) == self.tag.as_ref());
        let same_total = self.total.is_none() || total.is_none() || self.total == total;
        self.total = self.total.or(total);
        self.resumed = true;
        (first == self.writer.size() && same_tag && same_total).then_some(self)
    }
}

/// Whether an entity tag changes with every bit of the file (RFC 9110, section 8.8.3): it is a
/// quoted text without `W/` before it.
fn is_strong(tag: &HeaderValue) -> bool {
    matches!(tag.as_bytes(), [b'"', .., b'"'])
}

/// Returns the error for an answer without a file. Only a server's own failures and "too many
/// requests" pass by themselves.
fn refused(url: &RemoteUrl, status: StatusCode) -> FetchError {
    let passing = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
    FetchError::Status { url: url.without_query(), status: status.to_string(), passing }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_strong_tags_count() {
        let strong = |tag| is_strong(&HeaderValue::from_static(tag));
        assert!(strong("\"abc\"") && strong("\"\""));
        assert!(!strong("W/\"abc\"") && !strong("abc") && !strong("\"") && !strong(""));
    }
}
