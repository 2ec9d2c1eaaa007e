//! Removes the credential from the answers of a service.

use std::fmt::{self, Debug, Formatter};
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::header::{CONTENT_ENCODING, HeaderMap, HeaderName, HeaderValue, LOCATION, SET_COOKIE};
use hyper::{Response, StatusCode};
use tokio::task::JoinSet;
use zeroize::Zeroizing;

use crate::attempt::Attempt;
use crate::http::{head, lock};
use crate::refusal::Refusal;

/// The byte that replaces those of a credential.
const MASK: u8 = b'*';

/// The credentials of a service, none of which is empty.
#[derive(Clone)]
pub struct Secrets(Arc<[Zeroizing<Vec<u8>>]>);

/// Shows only how many credentials there are.
impl Debug for Secrets {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("count", &self.0.len()).finish_non_exhaustive()
    }
}

impl Secrets {
    /// Creates the credentials. An empty one is none.
    pub fn new(secrets: Vec<Zeroizing<Vec<u8>>>) -> Self {
        Self(secrets.into_iter().filter(|it| !it.is_empty()).collect())
    }

    /// Returns an API's answer without the header lines that contain or set credentials.
    ///
    /// # Errors
    /// The answer is a redirect, compressed or ambiguous.
    pub fn checked<B>(
        &self,
        answer: Response<B>,
        credentials: &[(HeaderName, HeaderValue)],
    ) -> Result<Response<B>, Refusal> {
        let mut answer = head::to_client(answer)?;
        // A part of a body could end within a credential. The request has asked for no part.
        if answer.status() == StatusCode::PARTIAL_CONTENT {
            return Err(Refusal::Answer);
        }
        let headers = answer.headers_mut();
        let is_identity = |it: &HeaderValue| it.as_bytes().eq_ignore_ascii_case(b"identity");
        if !headers.get_all(CONTENT_ENCODING).iter().all(is_identity) {
            return Err(Refusal::Encoded);
        }
        headers.remove(SET_COOKIE);
        credentials.iter().for_each(|(name, _)| drop(headers.remove(name)));
        self.remove_from(headers);
        if answer.status().is_redirection() && answer.headers().contains_key(LOCATION) {
            return Err(Refusal::Redirected);
        }
        Ok(answer)
    }

    /// Removes the header lines that contain a credential, in their names or values. Names have lost their capitals.
    fn remove_from(&self, headers: &mut HeaderMap) {
        let small = Self(self.0.iter().map(|it| Zeroizing::new(it.to_ascii_lowercase())).collect());
        let has = |(name, value): &(&HeaderName, &HeaderValue)| {
            let in_name = small.places(name.as_str().as_bytes());
            !in_name.is_empty() || !self.places(value.as_bytes()).is_empty()
        };
        let named = headers.iter().filter(has).map(|(name, _)| name.clone());
        for name in named.collect::<Vec<_>>() {
            headers.remove(name);
        }
    }

    /// Returns the places of all credentials in a text.
    fn places(&self, text: &[u8]) -> Vec<Range<usize>> {
        let of = |secret: &Zeroizing<Vec<u8>>| {
            let length = secret.len();
            let starts = text.windows(length).enumerate();
            let starts = starts.filter(|(_, it)| *it == secret.as_slice());
            starts.map(|(at, _)| at..at + length).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(of).collect()
    }

    /// Returns how many bytes at the end of a text wait for the next ones. The number does not depend on the credentials, or else
    /// the sizes of the parts that are passed on would show whether a text that the component chose is the beginning of one. A
    /// credential has no other characters than these ([`check_secret`](box_contract::wire::check_secret)).
    fn waiting(&self, text: &[u8]) -> usize {
        let longest = self.0.iter().map(|it| it.len()).max().unwrap_or(1);
        let graphic = text.iter().rev().take_while(|byte| byte.is_ascii_graphic());
        graphic.count().min(longest - 1)
    }

    /// Adds `more` to `held`, and returns its first bytes, masked.
    pub fn pass(&self, held: &mut Held, more: &[u8]) -> Bytes {
        held.bytes.extend_from_slice(more);
        held.masked.resize(held.bytes.len(), false);
        for place in self.places(&held.bytes) {
            held.masked[place].fill(true);
        }
        held.take(held.bytes.len() - self.waiting(&held.bytes))
    }
}

/// The bytes of a body that are not passed on yet.
#[derive(Default)]
pub struct Held {
    bytes: Vec<u8>,
    /// Whether a byte belongs to a credential. The beginning of the credential may be passed on already.
    masked: Vec<bool>,
}

/// Shows no bytes: they can be the beginning of a credential.
impl Debug for Held {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("length", &self.bytes.len()).finish_non_exhaustive()
    }
}

impl Held {
    /// Takes the bytes that are left at the end of a body, masked.
    pub fn rest(&mut self) -> Bytes {
        self.take(self.bytes.len())
    }

    /// Takes the first `count` bytes, masked.
    fn take(&mut self, count: usize) -> Bytes {
        let bytes = self.bytes.drain(..count).zip(self.masked.drain(..count));
        bytes.map(|(byte, masked)| if masked { MASK } else { byte }).collect()
    }
}

/// The body of an API's answer, without the credentials.
pub(super) struct Masked {
    body: Incoming,
    secrets: Secrets,
    held: Held,
    /// The attempt, and the task with the connection to the API. Dropping them reports the one and ends the other.
    open: Option<(Arc<Mutex<Attempt>>, JoinSet<()>)>,
}

impl Masked {
    pub(super) fn new(
        body: Incoming,
        secrets: Secrets,
        open: (Arc<Mutex<Attempt>>, JoinSet<()>),
    ) -> Self {
        Self { body, secrets, held: Held::default(), open: Some(open) }
    }

    /// Ends the connection, and reports the attempt.
    fn end(&mut self, reason: Option<&Refusal>) {
        if let (Some((attempt, _)), Some(reason)) = (self.open.take(), reason) {
            lock(&attempt).ends(reason);
        }
    }
}

impl Body for Masked {
    type Data = Bytes;
    type Error = Refusal;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Refusal>>> {
        let this = self.get_mut();
        loop {
            if this.open.is_none() {
                return Poll::Ready(None);
            }
            let passed = match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.secrets.pass(&mut this.held, &data),
                    // Trailers are not passed on.
                    Err(_) => continue,
                },
                Some(Err(_)) => {
                    this.end(Some(&Refusal::Closed));
                    return Poll::Ready(Some(Err(Refusal::Closed)));
                }
                None => {
                    this.end(None);
                    this.held.rest()
                }
            };
            if !passed.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(passed))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper::ext::ReasonPhrase;
    use proptest::prelude::*;

    use super::*;

    fn secrets(all: &[&str]) -> Secrets {
        Secrets::new(all.iter().map(|it| Zeroizing::new(it.as_bytes().to_vec())).collect())
    }

    fn passed(secrets: &Secrets, pieces: &[&[u8]]) -> Vec<String> {
        let mut held = Held::default();
        let pass = |piece: &&[u8]| secrets.pass(&mut held, piece);
        let mut all: Vec<Bytes> = pieces.iter().map(pass).collect();
        all.push(held.rest());
        all.iter().map(|it| String::from_utf8_lossy(it).into_owned()).collect()
    }

    #[test]
    fn a_credential_is_masked_also_if_it_comes_in_pieces() {
        let secrets = secrets(&["secret-1", "1-other"]);
        assert_eq!(passed(&secrets, &[b"a secret-1 b"]).concat(), "a ******** b");
        assert_eq!(passed(&secrets, &[b"a sec", b"ret-", b"1!"]).concat(), "a ********!");
        assert_eq!(passed(&secrets, &[b"a sec", b"ond"]).concat(), "a second");
        // Text of a whole line is passed on at once, so that events are not delayed.
        assert_eq!(passed(&secrets, &[b"data: {}\n\n"]), ["data: {}\n\n", ""]);
        assert_eq!(passed(&secrets, &[b"secret-1-other"]).concat(), "**************");
        assert_eq!(passed(&secrets, &[b"secret-1", b"-other\n"]).concat(), "**************\n");
        assert_eq!(passed(&Secrets::new(Vec::new()), &[b"text"]), ["text", ""]);
    }

    /// The sizes of the parts would show a component the credential, one byte at a time.
    #[test]
    fn the_sizes_of_parts_do_not_depend_on_the_credential() {
        let sizes = |secret: &str, pieces: &[&[u8]]| -> Vec<usize> {
            passed(&secrets(&[secret]), pieces).iter().map(String::len).collect()
        };
        for guess in ["s", "sk", "sk-a", "sk-abcd", "sk-abcde"] {
            let pieces = [b"> ".as_slice(), guess.as_bytes(), b"\n"];
            assert_eq!(sizes("sk-abcde", &pieces), sizes("xx-01234", &pieces), "{guess}");
        }
    }

    #[test]
    fn headers_with_a_credential_are_removed() {
        let credentials =
            [(HeaderName::from_static("x-key"), HeaderValue::from_static("secret-1"))];
        let answer = Response::builder()
            .header("x-key", "other")
            .header("x-echo", "the secret-1")
            .header("SECRET-1-is-unknown", "v")
            .header("set-cookie", "a=b")
            .header("x-request-id", "7")
            .extension(ReasonPhrase::from_static(b"bad key secret-1"));
        let answer =
            secrets(&["secret-1"]).checked(answer.body(()).unwrap(), &credentials).unwrap();
        let names: Vec<_> = answer.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["x-request-id"]);
        assert!(answer.extensions().get::<ReasonPhrase>().is_none());
        let refused = |name: &str, value: &str, status: u16| {
            let answer = Response::builder().status(status).header(name, value).body(()).unwrap();
            secrets(&[]).checked(answer, &[]).map(drop)
        };
        assert!(matches!(refused("content-encoding", "gzip", 200), Err(Refusal::Encoded)));
        assert!(matches!(refused("location", "https://b.example", 302), Err(Refusal::Redirected)));
        assert!(refused("location", "/v1/files/7", 201).is_ok());
        assert!(matches!(refused("upgrade", "x", 101), Err(Refusal::Answer)));
        assert!(matches!(refused("content-range", "bytes 0-9/20", 206), Err(Refusal::Answer)));
    }

    proptest! {
        /// However a text is cut, its credentials are masked and the rest arrives.
        #[test]
        fn cuts_do_not_matter(parts in prop::collection::vec("(abcabd|[abcd]{0,3})", 0..8), cuts in prop::collection::vec(0_usize..40, 0..6)) {
            let text = parts.concat();
            let secrets = secrets(&["abcabd"]);
            let mut cuts: Vec<_> = cuts.into_iter().map(|it| it.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<_> = cuts.windows(2).map(|it| &text.as_bytes()[it[0]..it[1]]).collect();
            let all = passed(&secrets, &pieces).concat();
            prop_assert_eq!(all, text.replace("abcabd", "******"));
        }
    }
}
