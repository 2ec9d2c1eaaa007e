//! Environment variables that are set for components at launch.

use box_contract::wire::Variable;
use box_contract::{ComponentName, RunPlan};
use safe_text::secrets::{MASK, looks_secret};
use serde::{Deserialize, Serialize};

/// An environment variable of a component that is set at launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenVariable {
    /// The component whose programs get the variable.
    pub component: ComponentName,
    /// The variable's name.
    pub name: String,
    /// The variable's value. In a record, [`MASK`] replaces a value that looks like a secret.
    pub value: String,
}

impl GivenVariable {
    /// Returns the variable for a record: [`MASK`] replaces its value if that looks like a secret.
    #[must_use]
    pub fn masked(mut self) -> Self {
        if looks_secret(&self.name, &self.value) {
            MASK.clone_into(&mut self.value);
        }
        self
    }
}

/// Returns the messages to init: one for each variable that the plan permits to set at launch, with its value in
/// `given`, if any.
pub(crate) fn messages(plan: &RunPlan, given: &[GivenVariable]) -> Vec<Variable> {
    let value = |component, name: &str| {
        let found = given.iter().find(|it| it.component == component && it.name == name);
        found.map(|it| it.value.clone())
    };
    let declared = (0..).zip(plan.launch_variables());
    declared.map(|(index, (of, name))| Variable { index, value: value(of, name) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_of_the_plan_has_its_message_in_order() {
        let mut plan = testkit::test_box::config().plan;
        plan.agent.launch_env = ["A", "B"].map(str::to_owned).to_vec();
        plan.business.as_mut().unwrap().launch_env = vec!["A".to_owned()];
        let given = |component, name: &str| GivenVariable {
            component,
            name: name.to_owned(),
            value: "x".to_owned(),
        };
        let all = [given(ComponentName::Business, "A"), given(ComponentName::Agent, "B")];
        let sent: Vec<_> =
            messages(&plan, &all).into_iter().map(|it| (it.index, it.value.is_some())).collect();
        assert_eq!(sent, [(0, false), (1, true), (2, true)]);
    }

    #[test]
    fn what_looks_like_a_secret_is_not_recorded() {
        let shown = |name: &str, value: &str| {
            let (component, name, value) =
                (ComponentName::Agent, name.to_owned(), value.to_owned());
            GivenVariable { component, name, value }.masked().value
        };
        assert_eq!(shown("LOG", "debug"), "debug");
        assert_eq!(shown("URL", "https://me:hunter2hunter2@a.example/"), MASK);
    }
}
