//! The user's name for git in an environment, without the user's configuration, which may have credentials.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use boxlaunch::host::programs;
use boxlaunch::mounts::files::FileCopy;
use host_fs::trust::Trusted;

use crate::cli::paths;

/// Where git reads the settings of all users ([git-config(1)](https://git-scm.com/docs/git-config#FILES)).
pub(in crate::cli) const GITCONFIG: &str = "/etc/gitconfig";
const GIT: &str = "git";

/// Returns git's settings for the environment of a project: name and e-mail address of the user, and that the project may belong to
/// another user id than the one that runs git in the box.
pub(in crate::cli) fn gitconfig(project: &Path) -> FileCopy {
    let user = ["name", "email"].map(|it| (it, setting(&format!("user.{it}"))));
    FileCopy::of_text(text(project, &user), project.to_owned(), GITCONFIG)
}

fn text(project: &Path, user: &[(&str, Option<String>)]) -> String {
    let line = |(name, value): &(&str, Option<String>)| {
        Some(format!("\t{name} = {}\n", quoted(value.as_deref()?)))
    };
    let user: String = user.iter().filter_map(line).collect();
    let user = if user.is_empty() { user } else { format!("[user]\n{user}") };
    let directory = quoted(&project.to_string_lossy());
    format!(
        "{user}[safe]\n\tdirectory = {directory}\n\tdirectory = {}\n",
        quoted(&format!("{}/*", project.display()))
    )
}

/// Returns a value as git reads it back.
fn quoted(value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

/// Returns a setting of the user. It is read in the root directory, so no repository has a say.
fn setting(name: &str) -> Option<String> {
    let mut git = Command::new(program(&paths::programs())?);
    git.args(["config", "--global", "--includes", "--get", name]).current_dir("/");
    let output = git.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let value = String::from_utf8(output.stdout).ok()?;
    let value = value.trim_end_matches('\n');
    (output.status.success() && !value.is_empty()).then(|| value.to_owned())
}

/// Returns the first git in a `PATH` that no other user can change.
fn program(path: &OsStr) -> Option<PathBuf> {
    let is_trusted =
        |it: &PathBuf| matches!(Trusted::this_user().untrusted_user_on_path(it), Ok(None));
    programs::all(GIT, path).find(is_trusted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets git read what was written.
    #[test]
    fn git_reads_back_every_name() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        let name = "Ada \"the first\" \\ Lovelace; # of London".to_owned();
        let user = [("name", Some(name.clone())), ("email", None)];
        std::fs::write(&file, text(Path::new("/work/a b"), &user)).unwrap();
        let get = |key: &str| {
            let mut git = Command::new(GIT);
            git.arg("config").arg("--file").arg(&file).args(["--get-all", key]);
            String::from_utf8(git.output().unwrap().stdout).unwrap()
        };
        assert_eq!(get("user.name"), name + "\n");
        assert_eq!(
            (get("user.email"), get("safe.directory")),
            (String::new(), "/work/a b\n/work/a b/*\n".to_owned())
        );
    }
}
