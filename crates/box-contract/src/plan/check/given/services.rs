//! Checks the HTTP APIs that a box reaches through the host.

use crate::plan::check::PlanError;
use crate::plan::{CredentialPlan, RunPlan, SecretDelivery, ServicePlan};
use crate::rules::{
    MAX_SERVICE_HEADERS, MAX_SERVICE_RULES, MAX_SERVICES, MAX_TIMEOUT, NAME_FORM, RequestRule,
    ServiceUrl, is_credential_header, is_credential_prefix, is_name, is_variable,
};

impl RunPlan {
    /// Finds the first HTTP API that the host could never serve.
    pub(super) fn wrong_service(&self) -> Option<PlanError> {
        let mut before: Option<&str> = None;
        let wrong = self.services.iter().enumerate().find_map(|(at, service)| {
            let is_sorted =
                before.replace(&service.name).is_none_or(|it| it < service.name.as_str());
            let reason = if at >= MAX_SERVICES {
                "a box has at most 64 services"
            } else if !is_name(&service.name) {
                NAME_FORM
            } else if !is_sorted {
                "the services are not sorted, or there are two of this name"
            } else {
                self.service_fault(service)?
            };
            Some((service, reason))
        });
        wrong.map(|(it, reason)| PlanError::Service { name: format!("{:?}", it.name), reason })
    }

    /// Returns the fault of a service with a valid name.
    fn service_fault(
        &self,
        ServicePlan { name: _, to, component, headers, allow, timeout_ms, env }: &ServicePlan,
    ) -> Option<&'static str> {
        let is_sorted = headers.is_sorted_by(|one, other| one.name < other.name);
        if ServiceUrl::parse(to).is_none() {
            Some("its URL is not https://HOST[:PORT][/PATH]")
        } else if self.component(*component).is_none() {
            Some("it is for a business application, and the box has none")
        } else if headers.len() > MAX_SERVICE_HEADERS || allow.len() > MAX_SERVICE_RULES {
            Some("it has more than 8 headers or 64 rules")
        } else if !(1..=u64::from(MAX_TIMEOUT) * 1000).contains(timeout_ms) {
            Some("its time limit is not between 1 ms and a day")
        } else if !is_sorted {
            Some("its headers are not sorted, or one is there twice")
        } else if allow.iter().any(|it| RequestRule::parse(it).is_none()) {
            Some("one of its rules is not METHOD PATH")
        } else if env.as_ref().is_some_and(|it| !is_variable(it)) {
            Some("its variable has no valid name")
        } else {
            headers.iter().find_map(|it| self.credential_fault(it))
        }
    }

    fn credential_fault(
        &self,
        CredentialPlan { name, secret, prefix }: &CredentialPlan,
    ) -> Option<&'static str> {
        let is_kept =
            self.secrets.iter().any(|it| it.name == *secret && it.delivery == SecretDelivery::Host);
        if !is_credential_header(name) {
            Some("one of its headers is not a lower-case name that can have a credential")
        } else if !is_credential_prefix(prefix) {
            Some("the text before its secret is not printable ASCII")
        } else if !is_kept {
            Some("its secret is not one that stays on the host")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::tests::grown;

    fn fault(service: &str) -> Option<String> {
        let secrets = r#""secrets":[{"name":"KEY","scope":"agent","delivery":"host"},{"name":"VAR","scope":"agent","delivery":"env"}]"#;
        let plan = grown(&format!("{{{secrets},\"services\":[{service}]}}"));
        plan.wrong_service().map(|it| it.to_string())
    }

    fn service(more: &str) -> String {
        let all = [
            ("name", r#""a""#),
            ("to", r#""https://a.example""#),
            ("component", r#""agent""#),
            ("timeout-ms", "1000"),
        ];
        let rest = all.iter().filter(|(name, _)| !more.starts_with(&format!("\"{name}\":")));
        let rest = rest.map(|(name, value)| format!(",\"{name}\":{value}"));
        format!("{{{more}{}}}", rest.collect::<String>())
    }

    #[test]
    fn a_service_that_no_host_could_serve_is_refused() {
        let header = |name: &str, secret: &str, more: &str| {
            self::service(&format!(r#""headers":[{{"name":"{name}","secret":"{secret}"{more}}}]"#))
        };
        assert_eq!(fault(&header("x-key", "KEY", "")), None);
        let two = format!("{},{}", service(r#""name":"b""#), service(r#""name":"a""#));
        for (service, reason) in [
            (service(r#""name":"A""#), "its service \"A\": "),
            (two, "not sorted"),
            (service(r#""to":"http://a.example""#), "its URL is not"),
            (service(r#""allow":["POST"]"#), "not METHOD PATH"),
            (service(r#""env":"a b""#), "no valid name"),
            (header("X-Key", "KEY", ""), "not a lower-case name"),
            (header("host", "KEY", ""), "not a lower-case name"),
            (header("x-key", "VAR", ""), "stays on the host"),
            (header("x-key", "NONE", ""), "stays on the host"),
            (header("x-key", "KEY", r#","prefix":"a\nb""#), "printable ASCII"),
        ] {
            let found = fault(&service).unwrap_or_default();
            assert!(found.contains(reason), "{service}: {found}");
        }
    }
}
