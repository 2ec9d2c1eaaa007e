//! Checks the HTTP APIs that a box reaches through the host.

use crate::plan::check::PlanError;
use crate::plan::{CapPlan, CredentialPlan, RunPlan, SecretDelivery, ServicePlan};
use crate::rules::{
    MAX_SERVICE_HEADERS, MAX_SERVICE_RULES, MAX_SERVICES, MAX_TIMEOUT, NAME_FORM, RequestRule,
    ServiceUrl, is_credential_header, is_credential_prefix, is_name, is_variable,
};

const WRONG_TIME: &str = "its time limit is not between 1 ms and a day";

impl RunPlan {
    /// Finds the fault of the capability `http`. [`RunPlan::unsupported`] has the others.
    pub(super) fn wrong_cap(&self) -> Option<PlanError> {
        let mut limits = self.caps.iter().filter_map(|cap| match cap {
            CapPlan::Http { timeout_ms } => Some(*timeout_ms),
            CapPlan::Ws { .. } | CapPlan::Nostr { .. } | CapPlan::Payments => None,
        });
        let limit = limits.next()?;
        let reason = if limits.next().is_some() {
            "it is there twice"
        } else if self.services.is_empty() {
            "the box has no service to send requests to; declare a `service`"
        } else if !is_time_limit(limit) {
            WRONG_TIME
        } else {
            return None;
        };
        Some(PlanError::Cap(reason))
    }

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
        ServicePlan { name: _, to, component, headers, allow, pass, timeout_ms, env }: &ServicePlan,
    ) -> Option<&'static str> {
        let is_sorted = headers.is_sorted_by(|one, other| one.name < other.name);
        if ServiceUrl::parse(to).is_none() {
            Some("its URL is not https://HOST[:PORT][/PATH]")
        } else if self.component(*component).is_none() {
            Some("it is for a business application, and the box has none")
        } else if headers.len() > MAX_SERVICE_HEADERS || allow.len() > MAX_SERVICE_RULES {
            Some("it has more than 8 headers or 64 rules")
        } else if !is_time_limit(*timeout_ms) {
            Some(WRONG_TIME)
        } else if !is_sorted {
            Some("its headers are not sorted, or one is there twice")
        } else if allow.iter().any(|it| RequestRule::parse(it).is_none()) {
            Some("one of its rules is not METHOD PATH")
        } else if pass.len() > MAX_SERVICE_RULES || !pass.iter().all(|it| is_credential_header(it))
        {
            Some("one of the names that pass is not that of a header in lower case")
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

/// Returns whether a number of milliseconds limits a request.
fn is_time_limit(timeout_ms: u64) -> bool {
    (1..=u64::from(MAX_TIMEOUT) * 1000).contains(&timeout_ms)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::ComponentName;
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

    #[test]
    fn requests_as_files_need_a_service_and_a_time() {
        let with = |caps: &str, services: &str| {
            grown(&format!(r#"{{"caps":[{caps}],"services":[{services}]}}"#))
        };
        let fault =
            |caps: &str, services: &str| with(caps, services).wrong_cap().map(|it| it.to_string());
        let (http, service) = (r#"{"http":{"timeout-ms":1000}}"#, service(r#""env":"A""#));
        let without =
            "its `cap \"http\"`: the box has no service to send requests to; declare a `service`";
        assert_eq!(fault(http, "").as_deref(), Some(without));
        assert_eq!(fault(r#""payments""#, ""), None);
        assert_eq!(fault(http, &service), None);
        let twice = fault(&format!("{http},{http}"), &service).unwrap_or_default();
        assert!(twice.ends_with("it is there twice"), "{twice}");
        for time in ["0", "18446744073709551615"] {
            let cap = format!(r#"{{"http":{{"timeout-ms":{time}}}}}"#);
            let found = fault(&cap, &service).unwrap_or_default();
            assert!(found.contains("time limit"), "{time}: {found}");
        }
        let plan = with(http, &service);
        assert_eq!(plan.file_requests(ComponentName::Agent), Some(Duration::from_secs(1)));
        assert_eq!(plan.file_requests(ComponentName::Business), None);
        assert_eq!(with("", &service).file_requests(ComponentName::Agent), None);
    }
}
