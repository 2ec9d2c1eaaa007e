//! `health …`: how the launcher finds out that the agent is ready.

use box_image::AgentKind;
use box_image::rules::is_request_path;

use crate::diagnostic::quote;
use crate::parse::reader::Reader;
use crate::sink::Sink;
use crate::syntax::tree::{Node, Value};
use crate::{Diagnostic, Health, Spanned, Syntax, form, rules, schema, value};

/// Where OpenCode answers that it is well.
const OPENCODE_PATH: &str = "/global/health";

/// Reads the health check; without a declaration, that of the agent's kind.
pub(super) fn read(node: Option<&Node>, kind: AgentKind, sink: &Sink) -> Option<Health> {
    let Some(node) = node else { return Some(default(kind)) };
    let mut reader = Reader::new(node, &schema::HEALTH, sink);
    let kind: Option<String> = reader.choice_arg();
    let health = match kind.as_deref() {
        Some("tcp") => {
            reader.refuse(&["path"]);
            Some(Health::Tcp { port: reader.integer("port") })
        }
        Some("http") => {
            let port = reader.integer("port");
            reader.read_prop("path", http_path).map(|path| Health::Http { port, path })
        }
        Some("exec") => read_exec(&mut reader),
        Some(_) => {
            reader.refuse(&["port", "path"]);
            None
        }
        // Of an unknown kind, nothing can be said about the rest.
        None => return None,
    };
    reader.finish();
    health
}

fn default(kind: AgentKind) -> Health {
    match kind {
        AgentKind::Opencode => Health::Http { port: None, path: OPENCODE_PATH.to_owned() },
        _ => Health::Tcp { port: None },
    }
}

fn read_exec(reader: &mut Reader<'_>) -> Option<Health> {
    reader.refuse(&["port", "path"]);
    let span = reader.next_span();
    let mut argv = reader.read_args(value::owned_text)?;
    if argv.first().is_none_or(String::is_empty) {
        let example = match reader.syntax() {
            Syntax::Kdl => "health \"exec\" \"/bin/check\"",
            Syntax::Toml => "health = { kind = \"exec\", command = [\"/bin/check\"] }",
        };
        let message = "the health check `exec` needs a program to run";
        reader.report_missing_as(message, "without a program", &format!("write `{example}`"));
        argv.clear();
    }
    (!argv.is_empty()).then_some(Health::Exec { argv: Spanned { value: argv, span } })
}

fn http_path(value: &Value, name: &str) -> Result<String, Diagnostic> {
    let path = value::text(value, name)?;
    if is_request_path(path) {
        return Ok(path.to_owned());
    }
    let message = format!("{} is not the path of a request", quote(path));
    let help = match rules::intended_http_path(path) {
        Some(path) => {
            let encoded = if path.contains('%') { "percent-encode it: " } else { "" };
            format!("{encoded}{}", form::write_text(value.syntax, name, &path))
        }
        None => "it begins with `/` and consists of visible ASCII: \"/health\"".to_owned(),
    };
    Err(Diagnostic::new(message, value.span, "not a path").with_help(help))
}
