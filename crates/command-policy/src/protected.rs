//! Files and directories that a policy protects by their names.

/// Files and directories with credentials, in a home directory or elsewhere. Commands see those of home directories empty, and
/// the classifier asks about commands that name one.
pub(crate) const CREDENTIALS: [&str; 11] = [
    ".ssh",
    ".aws",
    ".gnupg",
    ".git-credentials",
    ".npmrc",
    ".netrc",
    ".docker",
    ".pypirc",
    ".pgpass",
    ".kube",
    ".config/gcloud",
];

/// Files and directories with settings that other programs obey. In a directory that commands may write to, they are read-only,
/// and the classifier asks about commands that write to one.
pub(crate) const SETTINGS: [&str; 15] = [
    ".git/config",
    ".gitconfig",
    ".gitmodules",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".ripgreprc",
    ".mcp.json",
    ".vscode",
    ".idea",
    ".yarnrc",
];

/// Files and directories with programs that others run, and the settings of an agent. In a directory that commands may write to,
/// they are read-only. An agent writes other files in `.claude` itself.
pub(crate) const PROGRAMS: [&str; 4] =
    [".git/hooks", ".claude/agents", ".claude/commands", ".claude/settings.json"];

/// Directories in which the classifier forbids commands to write.
pub(crate) const HOOKS: [&str; 3] = [".git/hooks", ".claude", ".agent"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_what_is_protected() {
        let page = include_str!("../../../docs/command-policy.md");
        let list = |names: &[&str]| format!("`{}`", names.join("`, `"));
        let kept = [&SETTINGS[..], &PROGRAMS].concat();
        assert!(page.contains(&list(&kept)), "{}", list(&kept));
        assert!(page.contains(&list(&CREDENTIALS)), "{}", list(&CREDENTIALS));
    }
}
