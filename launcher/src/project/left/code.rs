//! The files of a project that programs of the host run, or that tell them what to run. docs/files.md has this list.

use std::path::Path;

/// The names of files, each with the programs that read them.
pub(super) const FILES: &[(&str, &[&str])] = &[
    (
        "make, just, task",
        &["Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", "Taskfile.yml"],
    ),
    (
        "CMake, Meson, autoconf",
        &["CMakeLists.txt", "CMakePresets.json", "meson.build", "configure", "configure.ac"],
    ),
    ("Bazel", &["BUILD", "BUILD.bazel", "WORKSPACE", "MODULE.bazel", ".bazelrc"]),
    (
        "npm, yarn, pnpm, bun, deno",
        &[
            "package.json",
            "package-lock.json",
            "yarn.lock",
            "pnpm-lock.yaml",
            ".npmrc",
            ".yarnrc",
            ".yarnrc.yml",
            ".pnp.cjs",
            ".pnpmfile.cjs",
            "bunfig.toml",
            "deno.json",
        ],
    ),
    (
        "cargo, rustup",
        &["Cargo.toml", "Cargo.lock", "build.rs", "rust-toolchain", "rust-toolchain.toml"],
    ),
    (
        "pip, uv, pytest, tox",
        &[
            "setup.py",
            "setup.cfg",
            "pyproject.toml",
            "conftest.py",
            "tox.ini",
            "noxfile.py",
            "sitecustomize.py",
            "requirements.txt",
        ],
    ),
    ("go", &["go.mod", "go.work"]),
    ("bundler, rake, composer", &["Gemfile", "Gemfile.lock", "Rakefile", "composer.json"]),
    (
        "Gradle, Maven",
        &[
            "build.gradle",
            "build.gradle.kts",
            "settings.gradle",
            "settings.gradle.kts",
            "gradlew",
            "pom.xml",
            "mvnw",
        ],
    ),
    (
        "Nix, direnv, mise",
        &[
            "flake.nix",
            "default.nix",
            "shell.nix",
            ".envrc",
            "mise.toml",
            ".mise.toml",
            ".tool-versions",
        ],
    ),
    ("docker", &["Dockerfile", "docker-compose.yml", "compose.yaml", "compose.yml"]),
    ("pre-commit, lefthook", &[".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml"]),
    ("CI", &[".gitlab-ci.yml", "Jenkinsfile"]),
    ("editors", &[".exrc", ".vimrc", ".nvim.lua", ".dir-locals.el"]),
    ("agents", &[".mcp.json"]),
    ("git, boxlaunch", &[".gitmodules", ".gitattributes", "Boxfile", "Boxfile.toml"]),
];
/// The ends of the names of files.
pub(super) const ENDS: [&str; 5] = [".mk", ".cmake", ".gemspec", ".pth", ".code-workspace"];
/// The directories all of whose files count. Each is named once.
pub(super) const DIRECTORIES: [&str; 21] = [
    "node_modules",
    ".venv",
    "venv",
    "target",
    "__pycache__",
    ".cargo",
    ".mvn",
    "gradle",
    ".husky",
    ".githooks",
    ".vscode",
    ".idea",
    ".zed",
    ".devcontainer",
    ".github",
    ".circleci",
    ".claude",
    ".cursor",
    ".gemini",
    ".hg",
    ".jj",
];

/// Returns the path by which a file is named, if programs of the host run it: its own, or that of the outermost directory of
/// [`DIRECTORIES`].
pub(super) fn of(path: &Path) -> Option<&Path> {
    let is_directory =
        |it: &&Path| it.file_name().is_some_and(|name| DIRECTORIES.iter().any(|it| name == *it));
    let around = path.ancestors().filter(is_directory).last();
    around.or_else(|| is_code(path).then_some(path))
}

fn is_code(path: &Path) -> bool {
    let Some(name) = path.file_name() else { return false };
    let mut files = FILES.iter().flat_map(|(_, names)| *names);
    let ends = |name: &str| ENDS.iter().any(|end| name.ends_with(end));
    files.any(|it| name == *it) || name.to_str().is_some_and(ends)
}
