//! `file "PATH" to="/PLACE"`: a file or directory of the checkout that is baked into a component's
//! root.

use crate::parse::{Children, Reader, read_fields};
use crate::{BakedFile, rules, schema};
use diagnostics::Spanned;

/// Reads all files, and sorts them by their paths in the root.
pub(super) fn read(children: &Children<'_>) -> Vec<BakedFile> {
    let mut files = Reader::keyed(children, &schema::FILE, file);
    files.sort_by(|one, other| rules::path_order(&one.to.value, &other.to.value));
    files
}

fn file(reader: &mut Reader<'_>) -> Option<BakedFile> {
    let file = read_fields!(reader => BakedFile { path = reader.first(), to, mode, owner })?;
    let to = named(&file.path.value, file.to);
    reader.check(rules::check_place("no file can be at", &to.value, to.span, "/etc/app/"));
    Some(BakedFile { to, ..file })
}

/// Appends the name of the baked file to a target that ends with a slash.
fn named(path: &str, mut to: Spanned<String>) -> Spanned<String> {
    if to.value.ends_with('/') {
        to.value += rules::last_name(path);
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_completed_by_a_name() {
        let named = |path: &str, to: &str| {
            let to = Spanned { value: to.to_owned(), span: diagnostics::Span::default() };
            named(path, to).value
        };
        assert_eq!(named("conf/app.yaml", "/etc/"), "/etc/app.yaml");
        assert_eq!(named("../shared", "/"), "/shared");
        assert_eq!(named("app.yaml", "/etc/app"), "/etc/app");
    }
}
