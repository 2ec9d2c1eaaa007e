//! The name of a project's environment, which is made from the path of the project.

use std::path::Path;

use box_digest::Digest;

/// How long the part of a name before the digits may be. With the digits, a name has at most 32 characters, as the name of a Linux
/// user ([useradd(8)](https://man7.org/linux/man-pages/man8/useradd.8.html)).
const MAX_BASE: usize = 27;
/// How many hexadecimal digits follow.
const DIGITS: usize = 4;

/// Returns the name of the environment of the project at an absolute path: the last part of the path in the letters of a name, and
/// the first digits of the SHA-256 of the path. For example, `my-project-8476` for `/Users/alice/my-project`.
pub fn name_of(path: &Path) -> String {
    let base = path.file_name().map(|it| base(&it.to_string_lossy())).unwrap_or_default();
    let base = if base.is_empty() { "env" } else { &base };
    let hash = Digest::of(path.as_os_str().as_encoded_bytes()).hex();
    format!("{base}-{}", &hash[..DIGITS])
}

/// Returns the start of the names of an environment's own volumes on this host. No box can have a name with `_`, so the Boxfile of
/// another box cannot declare one of them.
pub fn volume_prefix(environment: &str) -> String {
    format!("{environment}_")
}

/// Returns a name's letters in lower case, with one hyphen for each run of other characters than letters and digits.
fn base(name: &str) -> String {
    let words = name.to_lowercase();
    let words = words.split(|it: char| !it.is_ascii_alphanumeric()).filter(|it| !it.is_empty());
    let mut base = words.collect::<Vec<_>>().join("-");
    if base.starts_with(|it: char| it.is_ascii_digit()) {
        base.insert_str(0, "env-");
    }
    base.truncate(MAX_BASE);
    base.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::boxes::is_entry_name;

    #[test]
    fn a_name_is_made_from_the_path() {
        for (path, expected) in [
            ("/Users/alice/my-project", "my-project-8476"),
            ("/Users/alice/My Cool App", "my-cool-app-dcf1"),
            ("/Users/alice/project@2024!", "project-2024-c1e0"),
            ("/Users/alice/123-project", "env-123-project-e600"),
            ("/Users/me/proj-a", "proj-a-3698"),
            ("/Users/alice/My Projects/cool-app", "cool-app-5c6c"),
        ] {
            assert_eq!(name_of(Path::new(path)), expected);
        }
    }

    #[test]
    fn directories_with_the_same_name_have_different_environments() {
        let long = ["one", "two"].map(|end| format!("/home/me/{}-{end}", "a".repeat(MAX_BASE)));
        let [long, other_long] = long.each_ref().map(String::as_str);
        for pair in [["/home/me/one/page", "/home/me/two/page"], [long, other_long]] {
            let [one, two] = pair.map(|path| name_of(Path::new(path)));
            let base = |name: &str| name.rsplit_once('-').map(|(base, _)| base.to_owned());
            assert_eq!(base(&one), base(&two));
            assert_ne!(one, two);
        }
    }

    #[test]
    fn other_characters_become_hyphens() {
        for (name, expected) in [
            ("My Project", "my-project"),
            ("my---project", "my-project"),
            ("-my-project", "my-project"),
            ("snake_case", "snake-case"),
            ("123456", "env-123456"),
            ("project-α-β-γ", "project"),
            ("café-project", "caf-project"),
            ("@@@", ""),
        ] {
            assert_eq!(base(name), expected);
        }
        assert_eq!(base(&"a".repeat(50)), "a".repeat(27));
    }

    proptest! {
        #[test]
        fn every_path_has_a_name_that_a_box_and_a_user_can_have(path in "/.*") {
            let name = name_of(Path::new(&path));
            prop_assert!(is_entry_name(&name) && name.len() <= 32, "{name}");
            prop_assert!(name.starts_with(|it: char| it.is_ascii_lowercase()), "{name}");
        }
    }
}
