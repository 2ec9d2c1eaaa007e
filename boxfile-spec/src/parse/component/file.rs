//! `file "PATH" to="/PLACE"`: what of the checkout is baked into a component's root.

use box_contract::rules::is_normalized;

use crate::parse::children::Children;
use crate::parse::reader::Reader;
use crate::parse::run::mounts;
use crate::schema;
use crate::syntax::tree::{Node, Value};
use crate::{BakedFile, form, rules, value};
use diagnostics::Sink;
use diagnostics::{Diagnostic, Spanned};
use safe_text::quote;

/// The owner of what has none declared.
const ROOT: &str = "0:0";

/// Reads all files, and sorts them by their places.
pub(super) fn read(children: &Children<'_>, sink: &Sink) -> Vec<BakedFile> {
    let nodes = children.keyed(&schema::FILE).into_iter();
    let mut files: Vec<BakedFile> = nodes.filter_map(|node| file(node, sink)).collect();
    files.sort_by(|one, other| rules::path_order(&one.to.value, &other.to.value));
    files
}

fn file(node: &Node, sink: &Sink) -> Option<BakedFile> {
    let mut reader = Reader::new(node, &schema::FILE, sink);
    let path = reader.read_arg(source);
    let to = reader.read_prop("to", place);
    let mode = reader.read_optional("mode", mode);
    let owner = reader.read_optional("owner", super::user);
    reader.finish();
    let (path, to) = (path?, to?);
    let to = named(&path.value, to);
    mounts::check_place("no file can be at", &to, "/etc/app/", sink);
    let owner = owner.unwrap_or_else(|| Spanned { value: ROOT.to_owned(), span: to.span });
    Some(BakedFile { path, to, mode, owner })
}

/// Reads the path of a file or directory. A directory with the Boxfile in it would have the lock in it,
/// too, which pins the directory.
fn source(value: &Value, name: &str) -> Result<Spanned<String>, Diagnostic> {
    let path = value::path(value, name)?;
    if !matches!(last_name(&path.value), "" | "." | "..") {
        return Ok(path);
    }
    let message = format!("{} cannot be put into the box as a whole", quote(&path.value));
    Err(Diagnostic::new(message, value.span, "the Boxfile and its lock would be in it")
        .with_help("name the files and directories that the box needs, one by one"))
}

/// Reads a place, whose slash at the end says that it is the directory around what is put there.
fn place(value: &Value, name: &str) -> Result<Spanned<String>, Diagnostic> {
    let path = value::absolute(value, name)?;
    let plain = path.value.strip_suffix('/').unwrap_or(&path.value);
    if plain.is_empty() || is_normalized(plain) {
        return Ok(path);
    }
    let message = format!("{} is not a plain path", quote(&path.value));
    Err(Diagnostic::new(message, value.span, "not a plain path")
        .with_help("name a place without `.`, `..` and `//`: \"/etc/app/\""))
}

/// Completes a directory by the name of what is put into it.
fn named(path: &str, mut to: Spanned<String>) -> Spanned<String> {
    if to.value.ends_with('/') {
        to.value += last_name(path);
    }
    to
}

/// Returns the last name of a path, which may be empty.
fn last_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// Reads permissions: three octal digits, with a 0 in front or not.
fn mode(value: &Value, name: &str) -> Result<u16, Diagnostic> {
    let example = form::write_text(value.syntax, name, "0644");
    let text = value::text(value, name).map_err(|error| error.with_help(&example))?;
    let digits = text.strip_prefix('0').filter(|rest| rest.len() == 3).unwrap_or(text);
    let is_octal = digits.len() == 3 && digits.bytes().all(|it| matches!(it, b'0'..=b'7'));
    let mode = is_octal.then(|| u16::from_str_radix(digits, 8).ok()).flatten();
    mode.ok_or_else(|| {
        let message = format!("{} is not a mode", quote(text));
        let help = format!(
            "{example}: three octal digits for owner, group and others; set-uid, set-gid and sticky \
             have no effect in a box"
        );
        Diagnostic::new(message, value.span, "not three octal digits").with_help(help)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::tree::Data;
    use diagnostics::Syntax;

    fn text(text: &str) -> Value {
        let data = Data::Text(text.to_owned());
        Value { data, span: diagnostics::Span::default(), syntax: Syntax::Kdl }
    }

    #[test]
    fn a_mode_has_three_octal_digits() {
        for (good, expected) in [("644", 0o644), ("0644", 0o644), ("0000", 0), ("777", 0o777)] {
            assert_eq!(mode(&text(good), "mode").ok(), Some(expected), "{good}");
        }
        for bad in ["", "0", "44", "04", "0888", "4755", "04755", "00644", "+644", "rw-"] {
            assert!(mode(&text(bad), "mode").is_err(), "{bad}");
        }
    }

    #[test]
    fn a_place_is_plain_but_for_the_slash_at_its_end() {
        for good in ["/", "/a", "/a/", "/a/b/"] {
            assert!(place(&text(good), "to").is_ok(), "{good}");
        }
        for bad in ["", "a", "//", "/a//", "/./a", "/a/..", "/a/../"] {
            assert!(place(&text(bad), "to").is_err(), "{bad}");
        }
    }

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

    #[test]
    fn what_is_baked_has_a_name() {
        for bad in [".", "..", "../..", "/"] {
            assert!(source(&text(bad), "file").is_err(), "{bad}");
        }
        assert!(source(&text("..a/.b"), "file").is_ok());
    }
}
