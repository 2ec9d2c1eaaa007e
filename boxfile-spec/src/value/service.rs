//! Reads the URL of a service.

use box_contract::rules::ServiceUrl;

use super::{text, unfit};
use crate::syntax::tree::Value;
use diagnostics::Diagnostic;

/// Reads a URL. The help of an error names the first fault.
pub(super) fn url(value: &Value, name: &str) -> Result<String, Diagnostic> {
    let text = text(value, name)?;
    if ServiceUrl::parse(text).is_some() {
        return Ok(text.to_owned());
    }
    let error = unfit(value, text, "service-url");
    Err(fault(text).into_iter().fold(error, |error, help| error.with_help(help)))
}

/// Returns the help for a fault that many URLs have.
fn fault(text: &str) -> Option<String> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or_default();
    let better = |better: String| ServiceUrl::parse(&better).map(|_| format!("write \"{better}\""));
    if host.contains('@') {
        Some(
            "a service takes no user and no password: remove what is in front of the `@`"
                .to_owned(),
        )
    } else if text.starts_with("http://") {
        Some("write `https://`: without TLS, the secret would be readable on the way".to_owned())
    } else if text.contains(['?', '#']) {
        Some("remove the query: each request has its own".to_owned())
    } else {
        better(text.trim_end_matches('/').to_owned())
            .or_else(|| better(text.replacen(host, &host.to_lowercase(), 1)))
            .or_else(|| better(format!("https://{rest}")))
    }
}
