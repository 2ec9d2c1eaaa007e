//! The schema of the programs' JSON, `docs/json.schema.json`.

use std::sync::LazyLock;

use serde_json::Value;

use crate::validator::Validator;

/// Checks that a report fits a definition of the schema.
#[track_caller]
pub(crate) fn assert_fits(definition: &str, report: &Value) {
    static SCHEMA: LazyLock<Validator> =
        LazyLock::new(|| Validator::new(include_str!("../../docs/json.schema.json")));
    assert!(SCHEMA.accepts_as(definition, report), "no `{definition}`: {report:#}");
}
