//! `ssh-agent …`: the SSH agent of the host, with whose keys components sign.

use box_contract::plan::SSH_AGENT_VARIABLE;
use box_contract::{ComponentName, Scope, SshAgentPlan};

use crate::errors::DECLARATION_ERRORS;
use crate::parse::component::env::variables_of;
use crate::parse::run::scope;
use crate::parse::run::secret::Secret;
use crate::parse::run::service::Service;
use crate::parse::{Children, Reader, read_fields};
use crate::schema;
use crate::syntax::tree::Node;
use diagnostics::{Sink, Span, Spanned};
use safe_text::quote;

/// The declarations that may set a variable.
pub(in crate::parse) struct Others<'d> {
    pub(in crate::parse) components: [Option<&'d Node>; 2],
    pub(in crate::parse) services: &'d [Service],
    pub(in crate::parse) secrets: &'d [Secret],
}

/// Reads the declaration, whose span is that of its name. Reports what the `others` set, too.
pub(in crate::parse) fn read(
    top: &Children<'_>,
    others: &Others<'_>,
) -> Option<Spanned<SshAgentPlan>> {
    let agent = Reader::sole(top, &schema::SSH_AGENT, |reader| {
        let span = reader.span();
        let value = read_fields!(reader => SshAgentPlan { scope = scope(reader, top) })?;
        Some(Spanned { value, span })
    })?;
    check_variable(&agent, others, top.sink());
    Some(agent)
}

/// Reports each other declaration that sets [`SSH_AGENT_VARIABLE`] in a component with the SSH agent.
fn check_variable(agent: &Spanned<SshAgentPlan>, others: &Others<'_>, sink: &Sink) {
    for span in others.variables(agent.value.scope) {
        let name = quote(SSH_AGENT_VARIABLE);
        let error = DECLARATION_ERRORS.about("ssh-agent-variable", &name, span);
        sink.report(error.with_label(agent.span, "set to the path of the agent's socket"));
    }
}

impl Others<'_> {
    /// Returns the spans of [`SSH_AGENT_VARIABLE`] in the declarations for the components of a scope.
    fn variables(&self, scope: Scope) -> impl Iterator<Item = Span> {
        let has = move |it: &&&Node| {
            ComponentName::of(&it.name.value).is_some_and(|name| scope.includes(name))
        };
        let own = self.components.iter().flatten().filter(has).flat_map(|it| variables_of(it));
        let own = own.filter(|it| it.name == SSH_AGENT_VARIABLE).map(|it| it.span);
        let services = self.services.iter().filter(move |it| scope.includes(it.component()));
        let services = services.filter_map(Service::env);
        let secrets = self.secrets.iter().filter(move |it| it.path.is_none());
        let secrets = secrets.filter(move |it| overlap(it.scope, scope));
        let secrets = secrets.filter_map(|it| it.name.as_ref());
        let named = services.chain(secrets).filter(|it| it.value == SSH_AGENT_VARIABLE);
        own.chain(named.map(|it| it.span))
    }
}

/// Returns whether a component is in both scopes.
fn overlap(one: Scope, other: Scope) -> bool {
    ComponentName::ALL.into_iter().any(|it| one.includes(it) && other.includes(it))
}
