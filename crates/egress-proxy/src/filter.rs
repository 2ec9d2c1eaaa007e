//! The filter of a box's network.

use std::sync::Arc;

use box_contract::ComponentName;
use egress_rules::Target;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::attempt::Attempt;
use crate::decision::Channel;
use crate::refusal::Refusal;
use crate::state::Filter;
use crate::{http, socks};

/// How a client asks for a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientKind {
    /// By a request to an HTTP/1 proxy: CONNECT, or a request with an absolute `http://` URI (RFC 9110, section 9.3.6;
    /// RFC 9112, 3.2.2).
    Http,
    /// By a CONNECT request of SOCKS5 without authentication (RFC 1928).
    Socks,
    /// By connecting to an address that stands for this target. The client sends no request.
    Direct(Target),
}

impl Filter {
    /// Returns the allowed ports of a name for the resolver in the box: sorted, and at least one. The name is not
    /// resolved, but it is included in the limit of names per minute.
    ///
    /// # Errors
    /// [`Refusal`] if the name is not allowed at any port. The decision was already reported.
    pub fn look_up(
        self: &Arc<Self>,
        component: ComponentName,
        name: &str,
    ) -> Result<Vec<u16>, Refusal> {
        let mut attempt = Attempt::new(self, component, Channel::Dns);
        attempt.asks(name, None);
        attempt.look_up(name)
    }

    /// Serves a client until it or its server ends the connection.
    ///
    /// Dropping the future ends all connections of the client. The future must run in a tokio runtime.
    pub async fn serve<S>(self: Arc<Self>, component: ComponentName, way: ClientKind, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Ok(_client) = self.clients.try_acquire() else {
            return self.turn_away(component, &way);
        };
        match way {
            ClientKind::Http => http::serve(&self, component, stream).await,
            ClientKind::Socks => socks::serve(&self, component, stream).await,
            ClientKind::Direct(target) => self.carry(component, target, stream).await,
        }
    }

    async fn carry<S>(self: &Arc<Self>, component: ComponentName, target: Target, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut attempt = Attempt::new(self, component, Channel::Direct);
        if let Ok(upstream) = attempt.connect(&target).await {
            upstream.tunnel(&self.settings, &mut attempt, stream).await;
        }
    }

    /// Reports a client that exceeds the limit of clients, without reading its request.
    fn turn_away(self: &Arc<Self>, component: ComponentName, way: &ClientKind) {
        let channel = match way {
            ClientKind::Http => Channel::Http,
            ClientKind::Socks => Channel::Socks,
            ClientKind::Direct(_) => Channel::Direct,
        };
        let mut attempt = Attempt::new(self, component, channel);
        if let ClientKind::Direct(target) = way {
            attempt.asks(&target.host.to_string(), Some(target.port));
        }
        attempt.refuse(&Refusal::Connections(self.limits.connections));
    }
}
