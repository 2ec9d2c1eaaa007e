//! Checks reports against `docs/json.schema.json`.

use std::sync::LazyLock;

use serde_json::Value;

use crate::validator::Validator;

/// Asserts that a report conforms to the schema's `definition`.
#[track_caller]
pub(crate) fn assert_fits(definition: &str, report: &Value) {
    static SCHEMA: LazyLock<Validator> =
        LazyLock::new(|| Validator::new(include_str!("../../docs/json.schema.json")));
    assert!(SCHEMA.accepts_as(definition, report), "no `{definition}`: {report:#}");
}
