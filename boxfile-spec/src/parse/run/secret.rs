//! `secret "NAME" …`: a secret that the launcher passes at run time.

use box_contract::{Scope, SecretDelivery, SecretPlan};

use crate::parse::run::scope;
use crate::parse::{Children, Reader, read_fields};
use crate::schema;
use diagnostics::Spanned;

/// A secret. `name` is `None` if it cannot be read. `path` is `None` if it cannot be read, or is
/// not declared.
pub(in crate::parse) struct Secret {
    pub(in crate::parse) name: Option<Spanned<String>>,
    pub(in crate::parse) path: Option<Spanned<String>>,
    pub(in crate::parse) scope: Scope,
}

impl Secret {
    /// Returns the secret for the model; `None` without a name.
    pub(in crate::parse) fn plan(self) -> Option<SecretPlan> {
        let file = |path: Spanned<String>| SecretDelivery::File { path: path.value };
        let delivery = self.path.map_or(SecretDelivery::Env, file);
        Some(SecretPlan { name: self.name?.value, scope: self.scope, delivery })
    }
}

/// Reads all secrets, and sorts them by name.
pub(in crate::parse) fn read(top: &Children<'_>) -> Vec<Secret> {
    Reader::keyed(
        top,
        &schema::SECRET,
        |it| read_fields!(it => Secret { name = Some(it.first()), path, scope = scope(it, top) }),
    )
}
