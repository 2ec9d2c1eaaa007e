//! Paths of the checkout, of the host and of the guest.

use box_contract::rules::{is_normalized, kernel_directory, share_host_fault};

use super::{filled_text, fitting};
use crate::errors::DECLARATION_ERRORS;
use crate::rules::{check_place, last_name};
use crate::syntax::tree::Value;
use diagnostics::{Diagnostic, invisible, named_invisible};
use safe_text::{quote, shown};

/// Reads a path outside of the guest, or an image reference with such a path. Locks and messages contain the path, so
/// it must not have invisible characters.
pub(crate) fn outside(value: &Value, name: &str) -> Result<String, Diagnostic> {
    let path = filled_text(value, name)?;
    let Some(c) = invisible(path) else { return Ok(path.to_owned()) };
    let message = format!("`{name}` contains {}", named_invisible(c));
    Err(Diagnostic::new(message, value.span, "not what it looks like")
        .with_help("remove the character; if the file has it in its name, rename the file"))
}

/// Reads the path of a file or directory that is baked. A path without a name, such as `.` or `..`, is refused: the
/// directory would contain the lock, which pins the directory.
pub(super) fn baked(value: &Value, name: &str) -> Result<String, Diagnostic> {
    let path = outside(value, name)?;
    let has_name = |path: &str| !matches!(last_name(path), "" | "." | "..");
    fitting(value, &path, has_name, "baked-path")
}

/// Reads a path below the directory in which the box is launched.
pub(super) fn of_launch(value: &Value, name: &str) -> Result<String, Diagnostic> {
    let path = outside(value, name)?;
    let Some(label) = share_host_fault(&path) else { return Ok(path) };
    Err(DECLARATION_ERRORS.about("launch-path", label, value.span))
}

fn absolute<'v>(value: &'v Value, name: &str) -> Result<&'v str, Diagnostic> {
    let path = filled_text(value, name)?;
    if path.starts_with('/') {
        return Ok(path);
    }
    let message = format!("`{name}` takes an absolute path, not {}", quote(path));
    let help = if path.starts_with('~') {
        "write the whole path, beginning with `/`: `~` is not expanded here".to_owned()
    } else {
        format!("write \"/{}\"", shown(path.trim_start_matches("./")))
    };
    Err(Diagnostic::new(message, value.span, "a relative path").with_help(help))
}

/// Reads an absolute path that can be a working directory: it must not be in a directory of the kernel, such as
/// `/proc`.
pub(super) fn to_work_in(value: &Value, name: &str) -> Result<String, Diagnostic> {
    let path = absolute(value, name)?;
    let Some(directory) = kernel_directory(path) else { return Ok(path.to_owned()) };
    let message = format!("the working directory cannot be {}", quote(path));
    let label = format!("in `{directory}`, a file system of the kernel");
    Err(Diagnostic::new(message, value.span, label)
        .with_help("choose another directory, for instance \"/work\""))
}

/// Reads an absolute path of the guest. It must not be `/`, and must not have empty, `.` or `..` parts.
pub(super) fn in_guest(value: &Value, name: &str) -> Result<String, Diagnostic> {
    fitting(value, absolute(value, name)?, is_normalized, "guest-path")
}

/// Reads the target of a baked file: the file's path, or with a slash at its end the path of the directory that will
/// contain the file.
pub(super) fn of_file(value: &Value, name: &str) -> Result<String, Diagnostic> {
    let fits = |path: &str| {
        let plain = path.strip_suffix('/').unwrap_or(path);
        plain.is_empty() || is_normalized(plain)
    };
    fitting(value, absolute(value, name)?, fits, "file-place")
}

/// Reads a path of the guest that is not reserved; see [`check_place`].
pub(super) fn free(
    value: &Value,
    name: &str,
    refusal: &str,
    example: &str,
) -> Result<String, Diagnostic> {
    let path = in_guest(value, name)?;
    check_place(refusal, &path, value.span, example)?;
    Ok(path)
}
