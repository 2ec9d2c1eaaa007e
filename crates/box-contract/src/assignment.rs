//! Parses variables of a command line: `[COMPONENT/]NAME[=VALUE]`. For example, `business/PORT=80`.

use crate::ComponentName;
use crate::rules::check_variable;

/// A variable of a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assignment<'t> {
    /// The component that gets the variable. `None` means each component that declares it.
    pub component: Option<ComponentName>,
    /// The variable's name.
    pub name: &'t str,
    /// The variable's value, if the command line has one.
    pub value: Option<&'t str>,
}

impl<'t> Assignment<'t> {
    /// Parses a variable. If the text before `/` is not a component's name, it belongs to the variable's name: `agents/A` is the
    /// name of a variable.
    ///
    /// # Errors
    /// Returns the correct form, for an error message.
    pub fn parse(text: &'t str) -> Result<Self, &'static str> {
        let of = |it: ComponentName| Some((it, text.strip_prefix(it.name())?.strip_prefix('/')?));
        let narrow = ComponentName::ALL.into_iter().find_map(of);
        let (component, rest) = narrow.map_or((None, text), |(it, rest)| (Some(it), rest));
        check_variable(rest)?;
        let (name, value) = match rest.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (rest, None),
        };
        Ok(Self { component, name, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_a_name_and_a_value_are_told_apart() {
        let read = |text| {
            let Assignment { component, name, value } = Assignment::parse(text)?;
            Ok::<_, &str>((component.map(ComponentName::name), name, value))
        };
        assert_eq!(read("A"), Ok((None, "A", None)));
        assert_eq!(read("A=b=c"), Ok((None, "A", Some("b=c"))));
        assert_eq!(read("agent/A="), Ok((Some("agent"), "A", Some(""))));
        assert_eq!(read("business/A=agent/B"), Ok((Some("business"), "A", Some("agent/B"))));
        assert_eq!(read("agents/A=1"), Ok((None, "agents/A", Some("1"))));
        for wrong in ["", "=b", "agent/", "business/=b"] {
            assert_eq!(read(wrong), Err("write NAME=VALUE, or NAME"), "{wrong}");
        }
    }
}
