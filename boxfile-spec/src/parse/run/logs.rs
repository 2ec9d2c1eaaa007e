//! `logs …`: what is recorded under `/logs`.

use crate::parse::reader::Reader;
use crate::sink::Sink;
use crate::syntax::tree::Node;
use crate::{Logs, schema};

/// Reads what is recorded: everything that is not switched off.
pub(in crate::parse) fn read(node: &Node, sink: &Sink) -> Logs {
    let mut reader = Reader::new(node, &schema::LOGS, sink);
    let logs = Logs {
        stdout: reader.truth("stdout").unwrap_or(true),
        stderr: reader.truth("stderr").unwrap_or(true),
        events: reader.truth("events").unwrap_or(true),
        atif: reader.truth("atif").unwrap_or(true),
    };
    reader.finish();
    logs
}
