//! The SOCKS5 proxy ([RFC 1928](https://www.rfc-editor.org/rfc/rfc1928)), which supports CONNECT without
//! authentication.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use box_contract::ComponentName;
use egress_rules::Target;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::attempt::Attempt;
use crate::decision::Channel;
use crate::refusal::Refusal;
use crate::state::Filter;

const VERSION: u8 = 5;
/// The method without authentication, and the answer to a client that does not offer that method.
const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;

/// Answers to a request (RFC 1928, section 6).
const DONE: u8 = 0;
const FAILED: u8 = 1;
const NOT_ALLOWED: u8 = 2;
const HOST_UNREACHABLE: u8 = 4;
const REFUSED: u8 = 5;
const EXPIRED: u8 = 6;
const NO_SUCH_COMMAND: u8 = 7;
const NO_SUCH_ADDRESS: u8 = 8;

/// Serves a client.
pub(crate) async fn serve<S>(filter: &Arc<Filter>, component: ComponentName, mut stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Ok(Ok(Some((host, port)))) = timeout(filter.settings.request, handshake(&mut stream)).await
    else {
        return;
    };
    let mut attempt = Attempt::new(filter, component, Channel::Socks);
    attempt.asks(&host, Some(port));
    let connected = match Target::parse(&format!("{host}:{port}")) {
        Ok(target) => attempt.connect(&target).await,
        Err(reason) => {
            let reason = Refusal::from(reason);
            attempt.refuse(&reason);
            Err(reason)
        }
    };
    match connected {
        Ok(upstream) => {
            if answer(&mut stream, DONE).await.is_ok() {
                upstream.tunnel(&filter.settings, &mut attempt, stream).await;
            }
        }
        Err(reason) => {
            // Ignore a failure, which means that the client is gone.
            let _gone = timeout(filter.settings.request, end(&mut stream, code(&reason))).await;
        }
    }
}

/// Reads a client's request. `None` if the request is unsupported.
async fn handshake<S>(stream: &mut S) -> io::Result<Option<(String, u16)>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if !greeting(stream).await? {
        return Ok(None);
    }
    let [version, command, _, kind] = bytes(stream).await?;
    if version != VERSION {
        return Ok(None);
    }
    if command != CONNECT {
        end(stream, NO_SUCH_COMMAND).await?;
        return Ok(None);
    }
    let Some(host) = host(stream, kind).await? else {
        end(stream, NO_SUCH_ADDRESS).await?;
        return Ok(None);
    };
    Ok(Some((host, stream.read_u16().await?)))
}

/// Agrees with the client on no authentication. Returns `false` if the client does not offer that.
async fn greeting<S>(stream: &mut S) -> io::Result<bool>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let [version, count] = bytes(stream).await?;
    if version != VERSION {
        return Ok(false);
    }
    let mut methods = vec![0; count.into()];
    stream.read_exact(&mut methods).await?;
    let is_agreed = methods.contains(&NO_AUTHENTICATION);
    let method = if is_agreed { NO_AUTHENTICATION } else { NO_METHOD };
    stream.write_all(&[VERSION, method]).await?;
    if !is_agreed {
        stream.shutdown().await?;
    }
    Ok(is_agreed)
}

/// Reads a host: an IPv4 address, an IPv6 address or a name. Returns it as [`Target::parse`] expects it; `None` if
/// `kind` is unknown.
async fn host<S: AsyncRead + Unpin>(stream: &mut S, kind: u8) -> io::Result<Option<String>> {
    Ok(Some(match kind {
        1 => Ipv4Addr::from(bytes::<4, _>(stream).await?).to_string(),
        4 => format!("[{}]", Ipv6Addr::from(bytes::<16, _>(stream).await?)),
        3 => {
            let mut name = vec![0; stream.read_u8().await?.into()];
            stream.read_exact(&mut name).await?;
            // A name that is not UTF-8 is malformed, and is refused later.
            String::from_utf8_lossy(&name).into_owned()
        }
        _ => return Ok(None),
    }))
}

async fn bytes<const N: usize, S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Answers a request. The bound address in the answer is zero, because a client in a box cannot use it.
async fn answer<S: AsyncWrite + Unpin>(stream: &mut S, code: u8) -> io::Result<()> {
    stream.write_all(&[VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]).await
}

async fn end<S: AsyncWrite + Unpin>(stream: &mut S, code: u8) -> io::Result<()> {
    answer(stream, code).await?;
    stream.shutdown().await
}

fn code(refusal: &Refusal) -> u8 {
    match refusal {
        Refusal::Target(_) | Refusal::Rules(_) | Refusal::Hello(_) | Refusal::Request(_) => {
            NOT_ALLOWED
        }
        Refusal::Unresolved(_) | Refusal::NoAddress => HOST_UNREACHABLE,
        Refusal::Unreachable(reason) if reason.kind() == io::ErrorKind::ConnectionRefused => {
            REFUSED
        }
        Refusal::Unreachable(_) | Refusal::Proxy(_) => HOST_UNREACHABLE,
        Refusal::Timeout(_) => EXPIRED,
        Refusal::Connections(_) | Refusal::Names(_) => FAILED,
        Refusal::NotOffered { .. }
        | Refusal::Parameter(_)
        | Refusal::Tls(_)
        | Refusal::Redirected => FAILED,
        Refusal::Encoded | Refusal::Answer | Refusal::Closed | Refusal::Gone => FAILED,
    }
}
