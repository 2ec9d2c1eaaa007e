//! A JSON Schema validator for tests, with the keywords that the schemas of Boxfiles and of the
//! programs' JSON output use. It panics at any other keyword.

use regex::Regex;
use serde_json::{Map, Value};

pub(super) struct Validator {
    root: Value,
}

impl Validator {
    pub(super) fn new(schema: &str) -> Self {
        Self { root: serde_json::from_str(schema).unwrap() }
    }

    /// Returns whether a value fits the whole schema.
    #[allow(dead_code, reason = "the integration tests use definitions only")]
    pub(super) fn accepts(&self, value: &Value) -> bool {
        self.fits(&self.root, value)
    }

    /// Returns whether a value fits the definition `definition` of the schema.
    pub(super) fn accepts_as(&self, definition: &str, value: &Value) -> bool {
        self.fits(&self.root["$defs"][definition], value)
    }

    fn fits(&self, schema: &Value, value: &Value) -> bool {
        let schema = match schema {
            Value::Bool(all) => return *all,
            schema => schema.as_object().expect("a schema is an object or a truth value"),
        };
        schema.iter().all(|(keyword, rule)| self.keeps(schema, keyword, rule, value))
    }

    fn keeps(
        &self,
        schema: &Map<String, Value>,
        keyword: &str,
        rule: &Value,
        value: &Value,
    ) -> bool {
        match keyword {
            "$schema" | "title" | "description" | "$defs" | "else" => true,
            "$ref" => {
                let pointer = rule.as_str().unwrap().strip_prefix('#').unwrap();
                self.fits(self.root.pointer(pointer).expect("a reference resolves"), value)
            }
            "if" => self.fits(rule, value) || self.fits(&schema["else"], value),
            "anyOf" => rule.as_array().unwrap().iter().any(|it| self.fits(it, value)),
            "const" => rule == value,
            "enum" => rule.as_array().unwrap().contains(value),
            "type" => match rule {
                Value::Array(kinds) => kinds.iter().any(|kind| is(value, kind.as_str().unwrap())),
                kind => is(value, kind.as_str().unwrap()),
            },
            _ => match value {
                Value::String(text) => text_keeps(keyword, rule, text),
                Value::Number(number) => number_keeps(keyword, rule, number.as_f64().unwrap()),
                Value::Array(list) => self.list_keeps(schema, keyword, rule, list),
                Value::Object(table) => self.table_keeps(schema, keyword, rule, table),
                Value::Null | Value::Bool(_) => true,
            },
        }
    }

    fn list_keeps(
        &self,
        schema: &Map<String, Value>,
        keyword: &str,
        rule: &Value,
        list: &[Value],
    ) -> bool {
        let prefix = schema.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
        match keyword {
            "minItems" => list.len() as u64 >= rule.as_u64().unwrap(),
            "prefixItems" => {
                let rules = rule.as_array().unwrap().iter();
                rules.zip(list).all(|(rule, item)| self.fits(rule, item))
            }
            "items" => list.iter().skip(prefix).all(|item| self.fits(rule, item)),
            other => of_another_type(other),
        }
    }

    fn table_keeps(
        &self,
        schema: &Map<String, Value>,
        keyword: &str,
        rule: &Value,
        table: &Map<String, Value>,
    ) -> bool {
        let known = |key: &str| schema.get("properties").is_some_and(|it| it.get(key).is_some());
        match keyword {
            "required" => {
                rule.as_array().unwrap().iter().all(|key| table.contains_key(key.as_str().unwrap()))
            }
            "properties" => {
                let given = |(key, rule)| Some((table.get::<String>(key)?, rule));
                rule.as_object()
                    .unwrap()
                    .iter()
                    .filter_map(given)
                    .all(|(it, rule)| self.fits(rule, it))
            }
            "propertyNames" => table.keys().all(|key| self.fits(rule, &Value::from(key.as_str()))),
            "additionalProperties" => {
                table.iter().all(|(key, value)| known(key) || self.fits(rule, value))
            }
            other => of_another_type(other),
        }
    }
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type"),
    }
}

fn text_keeps(keyword: &str, rule: &Value, text: &str) -> bool {
    match keyword {
        "minLength" => text.chars().count() as u64 >= rule.as_u64().unwrap(),
        "pattern" => Regex::new(rule.as_str().unwrap()).unwrap().is_match(text),
        other => of_another_type(other),
    }
}

fn number_keeps(keyword: &str, rule: &Value, number: f64) -> bool {
    match keyword {
        "minimum" => number >= rule.as_f64().unwrap(),
        "maximum" => number <= rule.as_f64().unwrap(),
        other => of_another_type(other),
    }
}

/// Accepts a value to which the keyword does not apply, because the keyword is for another type.
/// Panics if the keyword is unknown.
fn of_another_type(keyword: &str) -> bool {
    const KNOWN: [&str; 11] = [
        "pattern",
        "minLength",
        "minimum",
        "maximum",
        "prefixItems",
        "items",
        "minItems",
        "properties",
        "required",
        "propertyNames",
        "additionalProperties",
    ];
    assert!(KNOWN.contains(&keyword), "{keyword} is not known");
    true
}
