//! Component names on the command line.

use box_contract::ComponentName;
use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Returns the clap parser for a component's name.
pub fn component_name() -> impl TypedValueParser<Value = ComponentName> {
    PossibleValuesParser::new(ComponentName::ALL.map(ComponentName::name))
        .try_map(|name| ComponentName::of(&name).ok_or("no component has this name"))
}
