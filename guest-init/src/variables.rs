//! The variables that a user sets at launch. They are received from the launcher before a component starts.

use box_contract::RunPlan;
use box_contract::wire::{HostMessage, Variable, check_value};

use crate::channel::Channel;
use crate::error::{InitError, Step as _};

/// Receives the value of each variable of the plan that can be set at launch, and adds it to the component's
/// environment.
///
/// # Errors
/// The launcher has sent another message or an invalid value, or no value for a variable without a default.
pub(crate) fn receive(channel: &mut Channel, plan: &mut RunPlan) -> Result<(), InitError> {
    let declared: Vec<_> =
        plan.launch_variables().map(|(component, name)| (component, name.to_owned())).collect();
    for (at, (component, name)) in declared.iter().enumerate() {
        let step = || format!("receive the variable {name:?} of {}", component.name());
        let value = match channel.receive().step_with(step)? {
            Some(HostMessage::Variable(Variable { index, value })) if usize::from(index) == at => {
                value
            }
            _ => return Err("the launcher has sent something else").step_with(step),
        };
        let Some(plan) = plan.component_mut(*component) else { continue };
        match value {
            Some(value) => {
                check_value(&value).step_with(step)?;
                plan.set_variable(name, &value);
            }
            None if plan.variable(name).is_some() => {}
            None => return Err("it has no default, and was not given").step_with(step),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::plan::tests::EXAMPLE;

    fn received(values: &[(u8, Option<&str>)]) -> Result<Vec<String>, String> {
        let (from, to) = (r#"["PATH=/bin"]"#, r#"["A=of the image", "AB=1"]"#);
        let text = EXAMPLE.replace(from, &format!(r#"{to}, "launch-env": ["A", "URL"]"#));
        let mut plan = crate::plan::parse(text.as_bytes()).unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        for (index, value) in values {
            let variable = Variable { index: *index, value: value.map(str::to_owned) };
            HostMessage::Variable(variable).write(&mut theirs).unwrap();
        }
        drop(theirs);
        let received = receive(&mut Channel::from(OwnedFd::from(ours)), &mut plan);
        received.map(|()| plan.agent.env).map_err(|error| error.to_string())
    }

    #[test]
    fn a_given_value_is_set_and_a_default_holds() {
        let env = received(&[(0, None), (1, Some("a=b"))]).unwrap();
        assert_eq!(env, ["A=of the image", "AB=1", "URL=a=b"]);
        let env = received(&[(0, Some("")), (1, Some("x"))]).unwrap();
        assert_eq!(env, ["AB=1", "A=", "URL=x"]);
    }

    #[test]
    fn what_is_no_variable_of_the_plan_or_lacks_a_value_is_refused() {
        let other = |name| {
            Err(format!(
                "receive the variable {name:?} of agent: the launcher has sent something else"
            ))
        };
        assert_eq!(received(&[]), other("A"));
        assert_eq!(received(&[(1, Some("x"))]), other("A"));
        assert_eq!(received(&[(0, None)]), other("URL"));
        let missing = received(&[(0, None), (1, None)]).unwrap_err();
        assert!(missing.ends_with("it has no default, and was not given"), "{missing}");
        let nul = received(&[(0, Some("a\0b"))]).unwrap_err();
        assert!(nul.contains("NUL"), "{nul}");
    }
}
