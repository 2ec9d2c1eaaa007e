//! Secrets: a box names them, and the launcher hands them over.

use serde::{Deserialize, Serialize};

use super::Scope;

/// A value that a component gets at launch. The plan knows its name and never its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SecretPlan {
    /// The name by which the launcher is given it, and that of the variable.
    pub name: String,
    /// Who gets it.
    pub scope: Scope,
    /// How it arrives.
    pub delivery: SecretDelivery,
}

/// How a secret arrives in a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SecretDelivery {
    /// As an environment variable of the secret's name.
    Env,
    /// As a file in memory that the component's user alone may read.
    File {
        /// Where, absolute.
        path: String,
    },
}
