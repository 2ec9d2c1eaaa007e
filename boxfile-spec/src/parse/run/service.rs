//! `service "NAME" …`: an HTTP API that a component reaches through the host.

use box_contract::rules::ServiceUrl;
use box_contract::{ComponentName, CredentialPlan, Scope, SecretDelivery, SecretPlan, ServicePlan};

use super::check_business;
use crate::errors::DECLARATION_ERRORS;
use crate::parse::component::env::variables_of;
use crate::parse::run::network::needs_consent;
use crate::parse::run::secret::Secret;
use crate::parse::{Children, Reader, names};
use crate::schema::{self, Declaration};
use crate::syntax::tree::{Data, Node};
use diagnostics::{Diagnostic, Sink, Spanned};
use safe_text::quote;

/// A service, with the spans of what other declarations must not have.
pub(in crate::parse) struct Service {
    plan: ServicePlan,
    /// The secrets of the headers.
    secrets: Vec<Spanned<String>>,
    env: Option<Spanned<String>>,
}

impl Service {
    /// Returns the service for the model.
    pub(in crate::parse) fn plan(self) -> ServicePlan {
        self.plan
    }

    /// Returns the component with the service.
    pub(in crate::parse) const fn component(&self) -> ComponentName {
        self.plan.component
    }

    /// Returns the variable that is set to the address of the service.
    pub(in crate::parse) const fn env(&self) -> Option<&Spanned<String>> {
        self.env.as_ref()
    }
}

/// Reads all services, and sorts them by name.
pub(in crate::parse) fn read(top: &Children<'_>) -> Vec<Service> {
    top.keyed(&schema::SERVICE).into_iter().filter_map(|node| read_one(node, top)).collect()
}

fn read_one(node: &Node, top: &Children<'_>) -> Option<Service> {
    let mut reader = Reader::new(node, &schema::SERVICE, top.sink());
    let name: Option<String> = reader.first();
    let to: Option<String> = reader.value("to");
    let env: Option<Spanned<String>> = reader.optional("env");
    let timeout_ms = reader.value("timeout");
    let component = reader.value("component");
    check_business(&mut reader, top, component == Some(ComponentName::Business));
    let children = reader.children();
    let mut headers = Reader::keyed(&children, &schema::HEADER, header);
    headers.sort_by(|one, other| one.0.name.cmp(&other.0.name));
    let allow = words(&children, &schema::ALLOW_REQUEST);
    let pass = words(&children, &schema::PASS);
    reader.finish_block(&children);
    let (headers, secrets) = headers.into_iter().unzip();
    let (name, to, component, timeout_ms) = (name?, to?, component?, timeout_ms?);
    let variable = env.as_ref().map(|it| it.value.clone());
    let plan = ServicePlan { name, to, component, headers, allow, pass, timeout_ms, env: variable };
    warn_of_consent(&plan, &reader);
    warn_of_twice(&plan, node, top.sink());
    Some(Service { plan, secrets, env })
}

/// Reads a header line, and the span of its secret.
pub(super) fn header(reader: &mut Reader<'_>) -> Option<(CredentialPlan, Spanned<String>)> {
    let name = reader.first();
    let secret: Option<Spanned<String>> = reader.value("secret");
    let prefix: Option<String> = reader.optional("prefix");
    let (name, secret, prefix) = (name?, secret?, prefix.unwrap_or_default());
    if prefix.ends_with(|it: char| it.is_ascii_alphanumeric()) {
        let warning = DECLARATION_ERRORS.at("prefix-end", reader.value_span("prefix"));
        reader.report(warning.into_warning());
    }
    Some((CredentialPlan { name, secret: secret.value.clone(), prefix }, secret))
}

/// Reads all words of a declaration that may be repeated.
fn words(children: &Children<'_>, declaration: &'static Declaration) -> Vec<String> {
    let read = |node| Reader::whole(node, declaration, children.sink(), Reader::all::<String>);
    names::unique(children.many(declaration).into_iter().filter_map(read).flatten().collect())
}

/// Warns of rules whose paths begin with the path of the URL, because the server would get that twice.
fn warn_of_twice(plan: &ServicePlan, node: &Node, sink: &Sink) {
    let path = ServiceUrl::parse(&plan.to).map_or("", |it| it.path);
    let rules = node.children().iter().filter(|it| it.name.value == schema::ALLOW_REQUEST.name);
    for value in rules.flat_map(|it| &it.args).filter(|_| !path.is_empty()) {
        let Data::Text(text) = &value.data else { continue };
        let Some((method, below)) = text.split_once(' ') else { continue };
        let Some(rest) = below.strip_prefix(path).filter(|it| it.starts_with('/')) else {
            continue;
        };
        let error =
            DECLARATION_ERRORS.about("request-twice", &format!("{path}{below}"), value.span);
        sink.report(error.with_help(format!("write \"{method} {rest}\"")).into_warning());
    }
}

/// Warns of a service that is not on the internet, because the box reaches it only with an option at launch.
fn warn_of_consent(plan: &ServicePlan, reader: &Reader<'_>) {
    let peer = plan.peer();
    let warning = peer.and_then(|it| needs_consent(&it.peer, it.port, reader.value_span("to")));
    warning.into_iter().for_each(|it| reader.report(it));
}

/// Returns the secrets of the model: those that the components get, and those of the services, which stay on the host. Reports a
/// secret that is both.
pub(in crate::parse) fn secrets(
    declared: Vec<Secret>,
    services: &[Service],
    sink: &Sink,
) -> Vec<SecretPlan> {
    for secret in services.iter().flat_map(|it| &it.secrets) {
        let named = declared.iter().filter_map(|it| it.name.as_ref());
        for own in named.filter(|it| it.value == secret.value) {
            let error = DECLARATION_ERRORS.about("secret-in-box", &quote(&own.value), own.span);
            sink.report(error.with_label(secret.span, "the host adds it here"));
        }
    }
    let mut all: Vec<SecretPlan> = declared.into_iter().filter_map(Secret::plan).collect();
    for Service { plan, .. } in services {
        plan.headers.iter().for_each(|it| keep(&mut all, &it.secret, plan.component));
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

/// Adds the secret of a component's service, unless it is there.
fn keep(all: &mut Vec<SecretPlan>, name: &str, component: ComponentName) {
    let scope = match component {
        ComponentName::Agent => Scope::Agent,
        ComponentName::Business => Scope::Business,
    };
    match all.iter_mut().find(|it| it.name == name) {
        Some(known) if known.scope != scope => known.scope = Scope::Both,
        Some(_) => {}
        None => {
            let delivery = SecretDelivery::Host;
            all.push(SecretPlan { name: name.to_owned(), scope, delivery });
        }
    }
}

/// Reports the variables of services that their components, other services or secrets set, too.
pub(in crate::parse) fn check_variables(
    components: [Option<&Node>; 2],
    services: &[Service],
    secrets: &[Secret],
    sink: &Sink,
) {
    for (at, service) in services.iter().enumerate() {
        let Some(env) = &service.env else { continue };
        let twice = |it: &&Service| {
            it.plan.component == service.plan.component && it.plan.env == service.plan.env
        };
        if let Some(Spanned { span, .. }) =
            services[..at].iter().find(twice).and_then(|it| it.env.as_ref())
        {
            sink.report(Diagnostic::twice(&env.value, *span, env.span));
        }
        let own = components.into_iter().flatten();
        let own =
            own.filter(|it| ComponentName::of(&it.name.value) == Some(service.plan.component));
        let own = own.flat_map(variables_of).filter(|it| it.name == env.value).map(|it| it.span);
        let of_component = |it: &&Secret| it.scope.includes(service.plan.component);
        let secrets = secrets.iter().filter(|it| it.path.is_none()).filter(of_component);
        let secrets = secrets.filter_map(|it| it.name.as_ref()).filter(|it| it.value == env.value);
        for span in own.chain(secrets.map(|it| it.span)) {
            let error = DECLARATION_ERRORS.about("service-variable", &quote(&env.value), span);
            sink.report(error.with_label(env.span, "set to the address of the service"));
        }
    }
}
