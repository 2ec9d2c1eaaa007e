//! `mcp "NAME" { … }`: a server of the Model Context Protocol that the agent uses.

use std::collections::BTreeMap;

use box_contract::rules::{MAX_MCP_SERVERS, McpUrl};
use box_contract::{ComponentName, CredentialPlan, McpPlan, NetworkMode, NetworkPlan};
use egress_rules::{Local, Rules, Target, USUAL_PORTS};

use super::service::header;
use crate::errors::DECLARATION_ERRORS;
use crate::form;
use crate::parse::component::command;
use crate::parse::component::env::assigned;
use crate::parse::run::secret::Secret;
use crate::parse::{Children, Reader};
use crate::schema;
use crate::syntax::tree::Node;
use diagnostics::{Diagnostic, Span, Spanned, Syntax, in_quotes};
use safe_text::quote;

/// The declarations on which a server depends.
struct Others<'d> {
    network: &'d NetworkPlan,
    /// The span of the network's mode, if a network is declared.
    mode: Option<Span>,
    secrets: &'d [Secret],
}

/// Reads all servers, and sorts them by name. Each span is that of the program or URL.
pub(in crate::parse) fn read(
    top: &Children<'_>,
    network: &NetworkPlan,
    secrets: &[Secret],
) -> Vec<Spanned<McpPlan>> {
    if let Some(further) = top.many(&schema::MCP).get(MAX_MCP_SERVERS) {
        let limit = MAX_MCP_SERVERS.to_string();
        top.sink().report(DECLARATION_ERRORS.about("mcp-servers", &limit, further.name.span));
    }
    let declared = top.many(&schema::NETWORK).into_iter().next();
    let mode = declared.map(|it| it.args.first().map_or(it.name.span, |mode| mode.span));
    let others = Others { network, mode, secrets };
    let nodes = top.keyed(&schema::MCP).into_iter();
    nodes.filter_map(|node| read_one(node, top, &others)).collect()
}

fn read_one(node: &Node, top: &Children<'_>, others: &Others<'_>) -> Option<Spanned<McpPlan>> {
    let mut reader = Reader::new(node, &schema::MCP, top.sink());
    let name: Option<String> = reader.first();
    let children = reader.children();
    let server = Server { children: &children, syntax: node.syntax, others };
    let plan = match (children.one(&schema::MCP_COMMAND), children.one(&schema::MCP_URL)) {
        (None, None) => {
            let shown = name.as_deref().map(quote).unwrap_or_default();
            let error = DECLARATION_ERRORS.about("mcp-program", &shown, reader.span());
            reader.report_missing_error(error.with_help(reader.usage()));
            // The rest is read, so that each part reports its errors.
            server.program();
            None
        }
        (Some(command), Some(url)) => {
            let error = DECLARATION_ERRORS.at("mcp-both", url.name.span);
            reader.report(error.with_label(command.name.span, "a program"));
            server.program();
            None
        }
        (Some(_), None) => server.program(),
        (None, Some(_)) => server.remote(),
    };
    reader.finish_block(&children);
    let (name, plan) = (name?, plan?);
    Some(Spanned { value: McpPlan { name, ..plan.value }, span: plan.span })
}

/// The block of a server that is being read.
struct Server<'b> {
    children: &'b Children<'b>,
    syntax: Syntax,
    others: &'b Others<'b>,
}

impl Server<'_> {
    /// Reads a server that is a program. The plan has no name.
    fn program(&self) -> Option<Spanned<McpPlan>> {
        let command = Reader::sole(self.children, &schema::MCP_COMMAND, command::entrypoint);
        let env = self.env();
        let secrets = self.secrets(&env);
        if let Some(node) = self.children.many(&schema::MCP_HEADER).first()
            && self.children.one(&schema::MCP_COMMAND).is_some()
        {
            self.report(DECLARATION_ERRORS.at("mcp-remote", node.name.span));
        }
        let Spanned { value: argv, span } = command?;
        let env = env.into_iter().map(|(name, (_, value))| format!("{name}={value}")).collect();
        Some(Spanned { value: McpPlan { argv, env, secrets, ..unnamed() }, span })
    }

    /// Reads a remote server. The plan has no name.
    fn remote(&self) -> Option<Spanned<McpPlan>> {
        let url: Option<Spanned<String>> =
            Reader::sole(self.children, &schema::MCP_URL, Reader::first);
        for declaration in [&schema::MCP_ENV, &schema::MCP_SECRET] {
            if let Some(node) = self.children.many(declaration).first() {
                let error = DECLARATION_ERRORS.about("mcp-local", declaration.name, node.name.span);
                self.report(error);
            }
        }
        let headers = self.headers();
        let Spanned { value: url, span } = url?;
        self.check_reach(&url, span);
        Some(Spanned { value: McpPlan { url: Some(url), headers, ..unnamed() }, span })
    }

    /// Reads the variables, by name. Each span is that of the name.
    fn env(&self) -> BTreeMap<String, (Span, String)> {
        let sink = self.children.sink();
        let mut all: BTreeMap<String, (Span, String)> = BTreeMap::new();
        for node in self.children.many(&schema::MCP_ENV) {
            let mut reader = Reader::new(node, &schema::MCP_ENV, sink);
            if reader.props().is_empty() && node.args.is_empty() && node.block.is_none() {
                reader.report_missing("a variable");
            }
            // The reader reports arguments, which are variables that are given at launch.
            let props = if node.args.is_empty() { node.props.as_slice() } else { &[] };
            for prop in props {
                let Some((name, value)) = assigned(prop, sink) else { continue };
                let span = prop.name.span;
                if let Some((first, _)) = all.insert(name.clone(), (span, value)) {
                    sink.report(Diagnostic::twice(&name, first.min(span), first.max(span)));
                }
            }
            reader.finish();
        }
        all
    }

    /// Reads the names of the secrets, sorted, each once.
    fn secrets(&self, env: &BTreeMap<String, (Span, String)>) -> Vec<String> {
        let declaration = &schema::MCP_SECRET;
        let sink = self.children.sink();
        let read = |node| Reader::whole(node, declaration, sink, Reader::all::<Spanned<String>>);
        let nodes = self.children.many(declaration).into_iter();
        let mut all: BTreeMap<String, Span> = BTreeMap::new();
        for Spanned { value, span } in nodes.filter_map(read).flatten() {
            self.check_secret(&value, span, false);
            if let Some((plain, _)) = env.get(&value) {
                let error = DECLARATION_ERRORS.about("secret-and-plain", &quote(&value), *plain);
                self.report(error.with_label(span, "a secret here"));
            }
            all.insert(value, span);
        }
        all.into_keys().collect()
    }

    /// Reads the header lines, sorted by name.
    fn headers(&self) -> Vec<CredentialPlan> {
        let mut all = Reader::keyed(self.children, &schema::MCP_HEADER, header);
        all.sort_by(|one, other| one.0.name.cmp(&other.0.name));
        for (_, secret) in &all {
            self.check_secret(&secret.value, secret.span, true);
        }
        all.into_iter().map(|(header, _)| header).collect()
    }

    /// Checks that the agent gets a secret, and in a variable if the secret is for a header.
    fn check_secret(&self, name: &str, span: Span, is_header: bool) {
        let is_it = |it: &&Secret| it.name.as_ref().is_some_and(|own| own.value == name);
        let Some(secret) = self.others.secrets.iter().find(is_it) else {
            let keyed = form::keyed(self.syntax, schema::SECRET.name, name);
            let error = DECLARATION_ERRORS.about("mcp-secret", &quote(name), span);
            self.children
                .sink()
                .report_missing(error.with_help(format!("declare it at the top level: `{keyed}`")));
            return;
        };
        let declared = secret.name.as_ref().map_or(span, |it| it.span);
        if !secret.scope.includes(ComponentName::Agent) {
            let error = DECLARATION_ERRORS.about("mcp-secret-agent", &quote(name), span);
            self.report(error.with_label(declared, "for the business application alone"));
        } else if let Some(path) = secret.path.as_ref().filter(|_| is_header) {
            let error = DECLARATION_ERRORS.about("mcp-secret-file", &quote(name), span);
            self.report(error.with_label(path.span, "its file"));
        }
    }

    /// Checks that the box may connect to a remote server.
    fn check_reach(&self, text: &str, span: Span) {
        let Some(url) = McpUrl::parse(text) else { return };
        if url.is_loopback() {
            return;
        }
        if !url.is_tls {
            self.report(DECLARATION_ERRORS.about("mcp-http", &quote(text), span));
            return;
        }
        let reason = match self.others.network.mode {
            NetworkMode::Shared => return,
            NetworkMode::None => "the box has no network".to_owned(),
            NetworkMode::CapOnly => "the box reaches its services alone".to_owned(),
            NetworkMode::Filtered => match denial(self.others.network, &url) {
                None => return,
                Some(denial) => denial,
            },
        };
        let error = DECLARATION_ERRORS.about("mcp-network", &quote(&url.target), span);
        let label = |error: Diagnostic, mode: Span| error.with_label(mode, reason.as_str());
        let error = self.others.mode.into_iter().fold(error, label);
        self.children.sink().report_missing(error.with_help(self.allowing(&url)));
    }

    /// Returns the help with the declaration that allows a server.
    fn allowing(&self, url: &McpUrl) -> String {
        let host = in_quotes(self.syntax, url.host());
        let port = url.port().to_string();
        let port =
            (!USUAL_PORTS.contains(&url.port())).then(|| form::prop(self.syntax, "port", &port));
        let rule = match (self.syntax, port) {
            (Syntax::Kdl, None) => format!("allow {host}"),
            (Syntax::Kdl, Some(port)) => format!("allow {host} {port}"),
            (Syntax::Toml, None) => format!("allow = [{host}]"),
            (Syntax::Toml, Some(port)) => {
                format!("allow = [{{ {}, {port} }}]", form::prop(self.syntax, "peer", &host))
            }
        };
        match self.syntax {
            Syntax::Kdl => format!("write `{rule}` in `network \"filtered\" {{ … }}`"),
            Syntax::Toml => format!("write `{rule}` in `[network]` with `mode = \"filtered\"`"),
        }
    }

    fn report(&self, error: Diagnostic) {
        self.children.sink().report(error);
    }
}

/// Returns why a filter denies a server. `None` if it allows the server, perhaps with the consent of the box's user.
fn denial(network: &NetworkPlan, url: &McpUrl) -> Option<String> {
    let target = Target::parse(&url.target).ok()?;
    let mut rules = Rules::try_from(network).ok()?;
    // Whether the user consents to an address of a private network is known only at launch.
    rules.local = Local::parse(url.host()).into_iter().collect();
    rules.check(&target).err().map(|denial| denial.to_string())
}

/// Returns the plan of a server without a program, a URL and a name.
fn unnamed() -> McpPlan {
    McpPlan {
        name: String::new(),
        argv: Vec::new(),
        url: None,
        env: Vec::new(),
        secrets: Vec::new(),
        headers: Vec::new(),
    }
}
