//! The errors of variables that a box does not declare for launch, with suggestions.

use box_contract::plan::SSH_AGENT_VARIABLE;
use box_contract::rules::{VARIABLE_FORM, is_variable};
use box_contract::{ComponentName, RunPlan, Scope};
use safe_text::secrets::looks_secret;

use super::{Assigned, EnvOption};
use crate::cli::error::{Failure, usage};

/// A variable that an option or a file names.
pub(super) struct Named<'a> {
    pub(super) component: Option<ComponentName>,
    pub(super) name: &'a str,
    value: Option<&'a str>,
    /// The file and line, if a file names the variable.
    place: Option<&'a str>,
}

impl<'a> From<&'a Assigned> for Named<'a> {
    fn from(it: &'a Assigned) -> Self {
        let (component, name, value) = (it.component, it.name.as_str(), it.value.to_str());
        Self { component, name, value, place: it.place.as_deref() }
    }
}

impl<'a> From<&'a EnvOption> for Named<'a> {
    fn from(it: &'a EnvOption) -> Self {
        let (component, name, value) =
            (it.component, it.name.as_str(), it.value.as_ref().and_then(|it| it.to_str()));
        Self { component, name, value, place: None }
    }
}

impl Named<'_> {
    /// Returns the error of a variable that `plan` does not declare for launch.
    pub(super) fn undeclared(&self, plan: &RunPlan) -> Failure {
        let name = self.name;
        let place = self.place.map_or_else(String::new, |it| format!("{it}: "));
        let concerns = |of: Scope| self.component.is_none_or(|it| of.includes(it));
        if plan.secrets.iter().any(|it| it.name == name && concerns(it.scope)) {
            let message = format!("{place}{name} is a secret of the box");
            return usage(&message, &format!("give it with `--secret {name}=env:{name}`"));
        }
        let what = match self.component {
            Some(component) => format!("the {} component", component.name()),
            None => "the box".to_owned(),
        };
        let message = format!("{place}{what} takes no variable {name}");
        usage(&message, &self.help(plan))
    }

    /// Returns the help for the undeclared variable.
    fn help(&self, plan: &RunPlan) -> String {
        let Self { component, name, .. } = *self;
        if name.contains('/') {
            return "what is in front of a `/` is a component: `agent/NAME` or `business/NAME`"
                .to_owned();
        }
        if !is_variable(name) {
            return format!("the name of a variable {VARIABLE_FORM}");
        }
        if let Some(service) = plan.services.iter().find(|it| it.env.as_deref() == Some(name)) {
            return format!(
                "{name} is the address of the service {}, which only the Boxfile changes",
                service.name
            );
        }
        if plan.ssh_agent.is_some() && name == SSH_AGENT_VARIABLE {
            return "another agent is given with `--ssh-agent=PATH`".to_owned();
        }
        if self.looks_secret() {
            let of = match component {
                Some(_) if plan.secrets.iter().any(|it| it.name == name) => " component=\"both\"",
                Some(ComponentName::Business) => " component=\"business\"",
                _ => "",
            };
            return format!(
                "{name} looks like a secret: declare `secret \"{name}\"{of}` in the Boxfile, build the box again, and give it \
                 with `--secret {name}=env:{name}`"
            );
        }
        let mut names: Vec<_> = plan
            .launch_variables()
            .filter(|(it, _)| component.is_none_or(|component| component == *it))
            .map(|(_, name)| name)
            .collect();
        names.sort_unstable();
        names.dedup();
        let place = match component.map(ComponentName::name) {
            Some(name) => format!("`{name}`"),
            None if plan.business.is_some() => "`agent` or `business`".to_owned(),
            None => "`agent`".to_owned(),
        };
        let declaration = format!("add `env {name}` to {place} in the Boxfile, and build again");
        match names.as_slice() {
            [] => declaration,
            names => format!("it takes {}; or {declaration}", names.join(", ")),
        }
    }

    /// Returns whether the variable looks like a secret, which a Boxfile cannot declare as a plain variable.
    fn looks_secret(&self) -> bool {
        // `given` stands for the unknown value of a variable that is set at launch.
        self.value.into_iter().chain(["given"]).any(|value| looks_secret(self.name, value))
    }
}

#[cfg(test)]
mod tests {
    use box_contract::{SecretDelivery, SecretPlan};

    use super::*;

    fn refused(option: &str, place: Option<&str>) -> String {
        let mut plan = testkit::test_box::config().plan;
        let (name, scope, delivery) = ("API_KEY".to_owned(), Scope::Agent, SecretDelivery::Env);
        plan.secrets = vec![SecretPlan { name, scope, delivery }];
        plan.agent.launch_env = vec!["LOG".to_owned()];
        let option = EnvOption::parse(std::ffi::OsStr::new(option)).unwrap();
        let error = Named { place, ..Named::from(&option) }.undeclared(&plan);
        assert_eq!(error.exit, 2);
        error.text()
    }

    #[test]
    fn a_secret_is_given_in_its_own_way() {
        insta::assert_snapshot!(refused("API_KEY=canary", None), @"
        error: API_KEY is a secret of the box
          = help: give it with `--secret API_KEY=env:API_KEY`
        ");
        insta::assert_snapshot!(refused("API_TOKEN=canary", None), @r#"
        error: the box takes no variable API_TOKEN
          = help: API_TOKEN looks like a secret: declare `secret "API_TOKEN"` in the Boxfile, build the box again, and give it with `--secret API_TOKEN=env:API_TOKEN`
        "#);
        insta::assert_snapshot!(refused("business/API_KEY=canary", None), @r#"
        error: the business component takes no variable API_KEY
          = help: API_KEY looks like a secret: declare `secret "API_KEY" component="both"` in the Boxfile, build the box again, and give it with `--secret API_KEY=env:API_KEY`
        "#);
        insta::assert_snapshot!(refused("URL=postgres://u:canary@db/x", None), @r#"
        error: the box takes no variable URL
          = help: URL looks like a secret: declare `secret "URL"` in the Boxfile, build the box again, and give it with `--secret URL=env:URL`
        "#);
    }

    #[test]
    fn what_can_be_no_name_is_said() {
        insta::assert_snapshot!(refused("9X=1", None), @"
        error: the box takes no variable 9X
          = help: the name of a variable has letters, digits and `_`, and does not begin with a digit
        ");
        insta::assert_snapshot!(refused("other/X=1", None), @"
        error: the box takes no variable other/X
          = help: what is in front of a `/` is a component: `agent/NAME` or `business/NAME`
        ");
    }

    #[test]
    fn the_line_of_a_file_is_named() {
        insta::assert_snapshot!(refused("FOO=1", Some("l.env:3")), @"
        error: l.env:3: the box takes no variable FOO
          = help: it takes LOG; or add `env FOO` to `agent` or `business` in the Boxfile, and build again
        ");
        insta::assert_snapshot!(refused("API_KEY=1", Some("l.env:4")), @"
        error: l.env:4: API_KEY is a secret of the box
          = help: give it with `--secret API_KEY=env:API_KEY`
        ");
    }
}
