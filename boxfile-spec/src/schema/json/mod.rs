//! The JSON Schema of a Boxfile in TOML, written from the schema of the language.

mod keywords;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod validator;
mod values;

use super::place::{self, Place};
use super::{Argument, Count, Declaration, Merge, Property, TOP};
use keywords::{Further, Named, Schema};
use values::{description, value};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Returns the JSON Schema (draft 2020-12) of a Boxfile in TOML, for editors and other tools.
///
/// Whatever the parser takes, the schema takes, too; the reverse does not hold, because many rules
/// are about several declarations at once. What a file must have is asked of files only that extend
/// no other. `docs/boxfile.schema.json` is this text; `cargo xtask docs` writes it.
pub fn json_schema() -> String {
    let places = place::all();
    let schema = Schema {
        dialect: Some(DIALECT),
        title: Some("Boxfile"),
        condition: Some(Box::new(Schema { required: vec!["extends"], ..Schema::default() })),
        otherwise: Some(Box::new(complete())),
        definitions: definitions(&places),
        ..object(references(TOP, &places))
    };
    let schema = schema.described("A Boxfile in TOML: the declaration of one box.");
    let text = serde_json::to_string_pretty(&schema)
        .unwrap_or_else(|error| unreachable!("a schema has texts as keys and no floats: {error}"));
    format!("{text}\n")
}

/// Returns an object that has these properties and no others.
fn object(properties: Named) -> Schema {
    let additional_properties = Some(Further::None);
    Schema { kind: Some("object"), properties, additional_properties, ..Schema::default() }
}

/// Returns what a file must have that extends no other, so that nothing can come from elsewhere.
fn complete() -> Schema {
    let declared = TOP.iter().filter(|it| it.count == Count::Required).map(|it| it.name);
    let inside = TOP.iter().filter_map(|it| Some((it.name.to_owned(), whole(it)?)));
    Schema { required: declared.collect(), properties: inside.collect(), ..Schema::default() }
}

/// Returns what a declaration must have that is merged with no other, beside what its definition
/// says.
fn whole(declaration: &Declaration) -> Option<Schema> {
    let keys = Schema { required: required(declaration), ..Schema::default() };
    let props = declaration.props.iter().any(|prop| prop.required);
    match (declaration.count, declaration.merge) {
        _ if keys.required.is_empty() => None,
        (Count::Keyed, _) => Some(Schema {
            additional_properties: Some(Further::Each(Box::new(keys))),
            ..Schema::default()
        }),
        (_, Merge::Replace) => None,
        _ => Some(Schema { kind: props.then_some("object"), ..keys }),
    }
}

/// Returns the keys that the table of a declaration must have.
fn required(declaration: &Declaration) -> Vec<&'static str> {
    let keyed = declaration.count == Count::Keyed;
    let first = declaration.first.iter().filter(|first| !first.optional && !keyed);
    let props = declaration.props.iter().filter(|prop| prop.required);
    first.map(|first| first.name).chain(props.map(|prop| prop.name)).collect()
}

fn definitions(places: &[Place]) -> Named {
    let define = |place: &Place| (place.id(), definition(place.declaration, places));
    let mut definitions: Named = places.iter().map(define).collect();
    definitions.extend(values::definitions());
    definitions
}

/// Returns properties that refer to the definitions of some declarations.
fn references(declarations: &[&'static Declaration], places: &[Place]) -> Named {
    let reference = |declaration: &&'static Declaration| {
        let place = place::find(places, declaration)?;
        Some((declaration.name.to_owned(), Schema::reference(&place.id())))
    };
    declarations.iter().filter_map(reference).collect()
}

fn definition(declaration: &'static Declaration, places: &[Place]) -> Schema {
    let texts = [declaration.summary, declaration.details];
    let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    let schema = match declaration.count {
        Count::Keyed => keyed(declaration, places),
        _ => Schema::any(forms(declaration, places)),
    };
    Schema { title: Some(declaration.name), ..schema }.described(texts.join("\n\n"))
}

/// Returns a table of tables, whose keys are first arguments.
fn keyed(declaration: &'static Declaration, places: &[Place]) -> Schema {
    let key = declaration.first.as_ref().map(|first| Box::new(value(first.kind)));
    Schema {
        kind: Some("object"),
        property_names: key,
        additional_properties: Some(Further::Each(Box::new(table(declaration, places)))),
        ..Schema::default()
    }
}

/// Returns the ways to write a declaration: a value, a list, a table.
fn forms(declaration: &'static Declaration, places: &[Place]) -> Vec<Schema> {
    let (first, rest) = (declaration.first.as_ref(), declaration.rest.as_ref());
    let one = first.or(rest).map(argument);
    let list = rest.map(|rest| list(first, rest));
    one.into_iter().chain(list).chain([table(declaration, places)]).collect()
}

fn list(first: Option<&Argument>, rest: &Argument) -> Schema {
    Schema {
        kind: Some("array"),
        prefix_items: first.map(argument).into_iter().collect(),
        items: Some(Box::new(argument(rest))),
        min_items: first.map(|_| 1),
        ..Schema::default()
    }
}

/// Returns the table of a declaration: its arguments by name, its properties, what is inside of it.
fn table(declaration: &'static Declaration, places: &[Place]) -> Schema {
    let keyed = declaration.count == Count::Keyed;
    let first = declaration.first.iter().filter(|_| !keyed);
    let mut properties: Named = first.map(|it| (it.name.to_owned(), argument(it))).collect();
    let rest =
        |it: &Argument| (it.name.to_owned(), Schema::any(vec![argument(it), list(None, it)]));
    properties.extend(declaration.rest.iter().map(rest));
    properties.extend(declaration.props.iter().map(|it| (it.name.to_owned(), property(it))));
    properties.extend(references(declaration.children, places));
    let table = object(properties);
    if let Some(doc) = declaration.variables {
        let each = Schema::text().described(doc);
        let property_names = Some(Box::new(Schema::reference("variable")));
        let additional_properties = Some(Further::Each(Box::new(each)));
        return Schema { property_names, additional_properties, ..table };
    }
    // What is combined with another may leave to that one what it must have.
    let whole = declaration.merge == Merge::Replace;
    Schema { required: if whole { required(declaration) } else { Vec::new() }, ..table }
}

fn argument(argument: &Argument) -> Schema {
    value(argument.kind).described(description(argument.kind, argument.doc, ""))
}

fn property(property: &Property) -> Schema {
    value(property.kind).described(description(property.kind, property.doc, property.default))
}
