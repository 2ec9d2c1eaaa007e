//! The JSON Schema of a Boxfile in TOML, generated from the schema of the language.

#[cfg(test)]
mod tests;
#[cfg(test)]
mod validator;
mod values;

use serde_json::{Map, Value, json};

use super::place::{self, SchemaPlace};
use super::{Argument, Count, Declaration, Merge, Property, TOP};
use values::{any, reference, value};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Returns the [JSON Schema](https://json-schema.org/draft/2020-12) (draft 2020-12) of a Boxfile in
/// TOML, for editors and other tools.
///
/// The schema accepts every text that the parser accepts. The reverse does not hold, because many
/// rules involve several declarations. Required declarations are required only of files without a
/// base. `docs/boxfile.schema.json` is this text; `cargo xtask docs` writes it.
pub fn json_schema() -> String {
    let schema = object(references(TOP));
    let mut schema = described(schema, "A Boxfile in TOML: the declaration of one box.");
    schema["$schema"] = DIALECT.into();
    schema["title"] = "Boxfile".into();
    schema["if"] = json!({ "required": ["extends"] });
    schema["else"] = complete();
    schema["$defs"] = definitions().into();
    format!("{schema:#}\n")
}

/// Adds a description to a schema.
fn described(mut schema: Value, description: impl Into<String>) -> Value {
    schema["description"] = description.into().into();
    schema
}

/// Returns the schema of an object that has only `properties`.
fn object(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// Returns the requirements on a file without a base, whose declarations cannot come from another
/// file.
fn complete() -> Value {
    let required = TOP.iter().filter(|it| it.count == Count::Required).map(|it| it.name);
    let required: Vec<&str> = required.collect();
    let inside = TOP.iter().filter_map(|it| Some((it.name.to_owned(), whole(it)?)));
    let properties: Map<String, Value> = inside.collect();
    json!({ "required": required, "properties": properties })
}

/// Returns the requirements on a declaration that no other file completes, in addition to its
/// definition.
fn whole(declaration: &Declaration) -> Option<Value> {
    let required = required(declaration);
    let props = declaration.props.iter().any(|prop| prop.required);
    match (declaration.count, declaration.merge) {
        _ if required.is_empty() => None,
        (Count::Keyed, _) => Some(json!({ "additionalProperties": { "required": required } })),
        (_, Merge::Replace) => None,
        _ if props => Some(json!({ "type": "object", "required": required })),
        _ => Some(json!({ "required": required })),
    }
}

/// Returns the required keys of a declaration's table.
fn required(declaration: &Declaration) -> Vec<&'static str> {
    let keyed = declaration.count == Count::Keyed;
    let first = declaration.first.iter().filter(|first| !first.optional && !keyed);
    let props = declaration.props.iter().filter(|prop| prop.required);
    first.map(|first| first.name).chain(props.map(|prop| prop.name)).collect()
}

fn definitions() -> Map<String, Value> {
    let define = |place: &SchemaPlace| (place.id(), definition(place));
    place::all().iter().map(define).chain(values::definitions()).collect()
}

/// Returns the `properties` of a schema, each of which refers to the definition of a declaration.
fn references(declarations: &[&'static Declaration]) -> Map<String, Value> {
    let refer = |declaration: &&'static Declaration| {
        let place = place::find(declaration)?;
        Some((declaration.name.to_owned(), reference(&place.id())))
    };
    declarations.iter().filter_map(refer).collect()
}

fn definition(place: &SchemaPlace) -> Value {
    let declaration = place.declaration;
    let texts = [declaration.summary(), declaration.details()];
    let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    let schema = match declaration.count {
        Count::Keyed => keyed(declaration),
        _ => any(forms(declaration)),
    };
    let mut schema = described(schema, texts.join("\n\n"));
    schema["title"] = declaration.name.into();
    schema
}

/// Returns the schema of a table of tables, whose keys are the first arguments.
fn keyed(declaration: &'static Declaration) -> Value {
    json!({
        "type": "object",
        "propertyNames": declaration.first.as_ref().map(|first| value(declaration, first.kind)),
        "additionalProperties": table(declaration),
    })
}

/// Returns the schemas of the forms of a declaration: a value, a list, a table.
fn forms(declaration: &'static Declaration) -> Vec<Value> {
    let (first, rest) = (declaration.first.as_ref(), declaration.rest.as_ref());
    let one = first.or(rest).map(|it| argument(declaration, it));
    let list = rest.map(|rest| match declaration.is_listed() {
        true => listed(declaration, rest),
        false => list(declaration, first, rest),
    });
    one.into_iter().chain(list).chain([table(declaration)]).collect()
}

/// Returns the schema of the list of all declarations of a name. An item is an argument or a table.
fn listed(of: &'static Declaration, rest: &Argument) -> Value {
    json!({ "type": "array", "minItems": 1, "items": any(vec![argument(of, rest), table(of)]) })
}

fn list(of: &Declaration, first: Option<&Argument>, rest: &Argument) -> Value {
    let mut schema = json!({ "type": "array", "items": argument(of, rest) });
    if let Some(first) = first {
        schema["prefixItems"] = json!([argument(of, first)]);
        schema["minItems"] = 1.into();
    }
    schema
}

/// Returns the schema of the table of a variable that may be given at launch.
fn at_launch() -> Value {
    let launch = described(json!({ "const": true }), "It may be given at launch.");
    let default = described(json!({ "type": "string" }), "Its value if it is not given.");
    let properties = [("launch".to_owned(), launch), ("default".to_owned(), default)];
    let mut schema = object(properties.into_iter().collect());
    schema["required"] = json!(["launch"]);
    schema
}

/// Returns the schema of a declaration's table: its arguments by name, its properties, and its
/// inner declarations.
fn table(declaration: &'static Declaration) -> Value {
    if let Some(doc) = declaration.variables {
        let each = described(any(vec![json!({ "type": "string" }), at_launch()]), doc);
        let names = reference("variable");
        return json!({ "type": "object", "propertyNames": names, "additionalProperties": each });
    }
    let keyed = declaration.count == Count::Keyed;
    let first = declaration.first.iter().filter(|_| !keyed);
    let mut properties: Map<_, _> =
        first.map(|it| (it.name.to_owned(), argument(declaration, it))).collect();
    let rest = |it: &Argument| {
        (it.name.to_owned(), any(vec![argument(declaration, it), list(declaration, None, it)]))
    };
    properties.extend(declaration.rest.iter().map(rest));
    properties
        .extend(declaration.props.iter().map(|it| (it.name.to_owned(), property(declaration, it))));
    properties.extend(references(declaration.children));
    let mut table = object(properties);
    if declaration.merge == Merge::Replace {
        // Combined declarations are not required to have these keys, because the declaration of a
        // base may have them.
        table["required"] = required(declaration).into();
    }
    table
}

fn argument(of: &Declaration, argument: &Argument) -> Value {
    values::documented(of, argument.name, argument.kind, "")
}

fn property(of: &Declaration, property: &Property) -> Value {
    values::documented(of, property.name, property.kind, &property.default.description())
}
