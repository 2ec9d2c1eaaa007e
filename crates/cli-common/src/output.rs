//! The outputs of command lines, in directories to which a box may have written.

use std::path::Path;

use host_fs::named::{NamedError, check_new};
use host_fs::upward::Search;
use safe_text::shell_word;

use crate::store::{CommandFault, Program};

/// Checks the path of a file or directory that is to be written. A link on the way may lead only to files of the repository that
/// contains the link or, outside of repositories, to files of the link's directory. Other errors of the path are left to the write.
///
/// # Errors
/// [`CommandFault::Usage`] for a link that leads elsewhere. A box may have made it.
pub fn check_links(program: &Program, output: &Path) -> Result<(), CommandFault> {
    match check_new(output, &Search::of_user(program.variable)) {
        Err(error @ NamedError::Leads { .. }) => {
            let help = link_help(&error, "output").map(Into::into);
            Err(CommandFault::Usage { message: error.to_string(), help })
        }
        Err(NamedError::Io(_)) | Ok(()) => Ok(()),
    }
}

/// Returns the help for a refused link, with the path to type instead. `what` is meant to be at that path: `file`. Returns `None` for an
/// error of the operating system.
pub fn link_help(error: &NamedError, what: &str) -> Option<String> {
    match error {
        NamedError::Io(_) => None,
        NamedError::Leads { target, .. } => {
            let target = shell_word(target.as_os_str());
            Some(format!("a box may have put it there; if you mean that {what}, name it: {target}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_that_a_box_left_leads_no_output_elsewhere() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().canonicalize().unwrap().join(path);
        for directory in ["project/.git", "project/sub", "project/real", "keys"] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        symlink("../../keys", at("project/sub/out")).unwrap();
        symlink("../real", at("project/sub/in")).unwrap();
        symlink("../../none", at("project/sub/dangling")).unwrap();
        let program = Program { variable: |_| None, note: |_| (), is_quiet: || true };
        let check = |path: &str| check_links(&program, &at(path)).map_err(|it| it.to_string());
        for path in
            ["project/new", "project/sub/in/new", "project/none/deep/new", "project/sub/in/none/"]
        {
            assert_eq!(check(path), Ok(()), "{path}");
        }
        for path in
            ["project/sub/out/new", "project/sub/out/none/deep/new", "project/sub/out/none/"]
        {
            let message = check(path).unwrap_err();
            assert!(message.contains("project/sub/out is a link: the path leads to"), "{message}");
        }
        let error = check_links(&program, &at("project/sub/out/new")).unwrap_err();
        let CommandFault::Usage { help: Some(help), .. } = error else { panic!("{error}") };
        assert!(help.ends_with(&format!("name it: {}", at("keys/new").display())), "{help}");
    }
}
