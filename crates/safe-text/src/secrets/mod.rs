//! The one rule for text that looks like a secret: names and values of variables, command lines, and
//! configuration files. Such text is never printed.
//!
//! The rule finds mistakes. It cannot prove that a value is not a secret.

mod config;
mod words;

use crate::is_variable;

pub use config::{Secrets, config_secrets};
pub use words::{Leak, leaks, mask_words};

/// The text that is printed in place of a secret.
pub const MASK: &str = "****";

/// How a declared secret gets its value, for advice to declare one.
pub const PASSED: &str = "`boxlaunch run --secret` gives its value";

/// A variable whose name has one of these endings looks like a secret.
const SECRET_ENDS: [&str; 26] = [
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "SECRET",
    "SECRET_KEY",
    "SECRET_KEY_BASE",
    "SECRETKEY",
    "ACCESS_KEY",
    "API_KEY",
    "APIKEY",
    "PRIVATE_KEY",
    "SSH_KEY",
    "ENCRYPTION_KEY",
    "MASTER_KEY",
    "AZURE_STORAGE_KEY",
    "SIGNING_KEY",
    "TOKEN",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "COOKIE",
    "DOCKER_AUTH_CONFIG",
    "JWT",
    "PASS",
    "_PAT",
    "_PWD",
];
/// Exceptions to [`SECRET_ENDS`]: tokens of language models, and words that happen to end in `PASS`.
const HARMLESS_ENDS: [&str; 8] = [
    "BOS_TOKEN",
    "EOS_TOKEN",
    "PAD_TOKEN",
    "STOP_TOKEN",
    "UNK_TOKEN",
    "BYPASS",
    "COMPASS",
    "ASKPASS",
];
/// Values of `…_AUTH` that name a method and are no credentials.
const AUTH_METHODS: [&str; 22] = [
    "anonymous",
    "apikey",
    "basic",
    "bearer",
    "digest",
    "disabled",
    "enabled",
    "jwt",
    "kerberos",
    "ldap",
    "md5",
    "none",
    "oauth",
    "oauth2",
    "oidc",
    "optional",
    "password",
    "peer",
    "required",
    "scram-sha-256",
    "token",
    "trust",
];
/// The first characters of well-known tokens.
const SECRET_STARTS: [&str; 19] = [
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "dckr_pat_",
    "ghp_",
    "gho_",
    "ghr_",
    "ghs_",
    "ghu_",
    "xapp-",
    "xoxa-",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "npm_",
];

/// Returns whether an environment variable seems to hold a secret.
///
/// The value alone decides if it begins like a well-known token (`ghp_…`, `AKIA…`), is a JSON web token or
/// a private key in PEM, contains a URL with a password, or has a secret among its words
/// (`OPTS=--password=…`).
///
/// Otherwise the name decides. It has to end like the name of a secret, in upper or lower case: `…TOKEN`, `…PASSWORD`,
/// `…API_KEY`, `…_AUTH`. The names of language models' tokens (`EOS_TOKEN`) are exceptions. The value must not be
/// empty, an absolute path of several parts, a number (`MAX_TOKEN=4096`), a boolean, or a method
/// (`REQUIRE_AUTH=basic`).
///
/// # Examples
///
/// ```
/// use safe_text::secrets::looks_secret;
///
/// assert!(looks_secret("DATABASE_URL", "postgres://app:hunter2@db/x"));
/// assert!(!looks_secret("DATABASE_URL", "postgres://app@db/x"));
/// ```
pub fn looks_secret(name: &str, value: &str) -> bool {
    is_secret(name, value) || !leaks(None, value).is_empty()
}

/// Returns whether a value is a secret by itself, or as a whole because of its name.
fn is_secret(name: &str, value: &str) -> bool {
    is_token(value) || (names_secret(name, value) && !is_harmless(value))
}

/// Returns whether a value has the form of a secret, whatever its name is.
fn is_token(value: &str) -> bool {
    let begins = |start: &&str| value.len() >= 16 && value.starts_with(*start);
    SECRET_STARTS.iter().any(begins)
        || is_private_key(value)
        || has_password(value)
        || is_web_token(value)
}

/// Returns whether a variable's name marks a secret, with or without a number at its end. A name `…_AUTH` marks no
/// secret if the value is a method (`REQUIRE_AUTH=basic`). A name `…AUTHORIZATION` marks a secret only if the value is
/// empty, or contains a space as in the HTTP header.
fn names_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_');
    let ends = |end: &&str| plain.ends_with(*end);
    let is_auth = name == "AUTH" || name.ends_with("_AUTH");
    let is_method = || AUTH_METHODS.iter().any(|it| value.eq_ignore_ascii_case(it));
    let is_header = || name.ends_with("AUTHORIZATION") && (value.is_empty() || value.contains(' '));
    let is_named = SECRET_ENDS.iter().any(ends) || (is_auth && !is_method()) || is_header();
    is_named && !HARMLESS_ENDS.iter().any(ends)
}

/// Returns whether a value cannot be a secret, whatever its name is.
fn is_harmless(value: &str) -> bool {
    value.is_empty()
        || value.strip_prefix('/').is_some_and(|rest| rest.contains('/'))
        || is_number(value)
        || matches!(value, "true" | "false" | "yes" | "no" | "on" | "off")
}

/// Returns whether a value contains a URL with a password: `scheme://user:password@host`.
fn has_password(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
        // A shell or a program expands `$PASSWORD`.
        user.is_some_and(|(_, password)| !password.is_empty() && !password.starts_with('$'))
    })
}

/// Returns whether a text is a JSON web token: base64 parts of which the first is an object, `{"`
/// (<https://www.rfc-editor.org/rfc/rfc7515#section-3.1>).
fn is_web_token(value: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    value.starts_with("eyJ") && value.matches('.').count() >= 2 && value.bytes().all(inner)
}

/// Returns whether a text contains a private key in PEM
/// (<https://www.rfc-editor.org/rfc/rfc7468#section-2>). Public keys and certificates have the same form
/// with another label, and are not secret.
fn is_private_key(value: &str) -> bool {
    let labels = value.split("-----BEGIN ").skip(1).filter_map(|rest| rest.split("-----").next());
    labels.into_iter().any(|label| label.contains("PRIVATE KEY"))
}

/// Returns whether a text is a decimal number, for example `5`, `-1` or `0.5`.
fn is_number(value: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let value = value.strip_prefix('-').unwrap_or(value);
    value
        .split_once('.')
        .map_or_else(|| digits(value), |(whole, part)| digits(whole) && digits(part))
}

/// Replaces each byte of a text by an asterisk. Line ends stay, so that all offsets stay valid.
pub fn asterisks(text: &str) -> String {
    let one = |c: char| match c {
        '\r' | '\n' => c.to_string(),
        c => "*".repeat(c.len_utf8()),
    };
    text.chars().map(one).collect()
}

/// Masks an `.env` file: every value, and every line that is not a variable. All offsets stay valid.
pub fn masked_env_file(text: &str) -> String {
    let line = |line: &str| match line.split_once('=') {
        _ if line.trim_start().starts_with('#') => asterisks(line),
        Some((name, value)) if is_variable(name.trim_start_matches("export").trim()) => {
            format!("{name}={}", asterisks(value))
        }
        Some((name, value)) => format!("{}={}", asterisks(name), asterisks(value)),
        None => asterisks(line),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_of_a_file_is_shown_and_every_place_stays() {
        let text = "# a = b\nNAME=sécret \"x\r\nrest of it\nA B=c\n";
        let hidden = masked_env_file(text);
        assert_eq!(hidden.len(), text.len());
        assert_eq!(hidden, "*******\nNAME=**********\r\n**********\n***=*\n");
    }

    #[test]
    fn secrets_are_known_by_name_and_value() {
        for (name, value) in [
            ("DB_PASSWORD", "x"),
            ("github_token", "x"),
            ("API_KEY", "x"),
            ("X", "ghp_0123456789abcdef"),
            ("X", "-----BEGIN PRIVATE KEY-----"),
            ("X", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl"),
            ("MAX_TOKEN", "many"),
            ("TOKEN", "5a"),
            ("TOKEN", "1.2.3"),
            ("TOKEN", "-"),
            ("BASIC_AUTH_PASSWORD", "x"),
            ("DB_PASS", "x"),
            ("DEPLOY_SSH_KEY", "x"),
            ("PASSWORD", "/hunter2"),
            ("DATABASE_URL", "postgres://u:hunter2@db/x"),
            ("STRIPE", "sk_live_0123456789abcdef"),
            ("PGPASS", "x"),
            ("CREDS", "x"),
            ("JWT", "x"),
            ("X", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"),
            ("NPM_CONFIG__AUTH", "dXNlcjpwYXNz"),
            ("AUTH", "user:pass"),
            ("COOKIE", "a=b"),
            ("ERLANG_COOKIE", "x"),
            ("OPTS", "--password=x"),
            ("JAVA_OPTS", "-Xmx1g -Dspring.datasource.password=x"),
            ("OPTS", "--verbose --token x"),
            ("PROXIES", "http://a,http://u:p@b"),
            ("TOKEN_1", "x"),
            ("DB_PASSWORD2", "x"),
            ("SECRET_KEY_BASE", "x"),
            ("HTTP_AUTHORIZATION", "Bearer x"),
            ("HEADER", "Authorization: Basic eDp5"),
            ("HEADER", "X-Api-Key: x"),
            ("URL", "https://h/a?b=c&access_token=x"),
        ] {
            assert!(looks_secret(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("API_TOKEN", ""),
            ("USE_TOKEN", "true"),
            ("REQUIRE_AUTH", "basic"),
            ("TOKEN", "5"),
            ("MAX_TOKEN", "4096"),
            ("MAX_TOKEN", "-1"),
            ("ACCESS_TOKEN", "0.5"),
            ("TOKEN_LIMIT", "many"),
            ("PUBLIC_KEY", "ssh-ed25519 AAAA"),
            ("PUBLIC_KEY", "-----BEGIN PUBLIC KEY-----\nMIIB"),
            ("CA", "-----BEGIN CERTIFICATE-----\nMIIB"),
            ("PASSWORD", "/run/secrets/password"),
            ("TOKENS", "x"),
            ("KEY", "x"),
            ("EOS_TOKEN", "</s>"),
            ("DATABASE_URL", "postgres://u@db/x"),
            ("DATABASE_URL", "postgres://u:${DB_PASSWORD}@db/x"),
            ("X", "sk-short"),
            ("BYPASS", "x"),
            ("SSH_AUTH_SOCK", "x"),
            ("AUTHOR", "x"),
            ("OAUTH", "x"),
            ("KEYBOARD", "us"),
            ("GPG_KEY", "A035C8C19219BA821ECEA86B64E628F8D684696D"),
            ("OPTS", "--auth=md5 --password=$PASSWORD --max-token=5"),
            ("X", "eyJ9"),
            ("ABOUT", "explains what --password does"),
            ("AUTHORIZATION", "rbac"),
            ("HEADER", "Authorization: Bearer $TOKEN"),
            ("HEADER", "Authorization:"),
            ("HEADER", "Accept: text/plain"),
            ("PROMPT", "Password: as you like it"),
            ("URL", "https://h/a?b=c&page_token="),
            ("MAX_TOKEN_1", "5"),
            ("AUTH0", "tenant"),
            ("COMPASS1", "north"),
            ("GIT_ASKPASS", "askpass.sh"),
            ("FORMAT", "token: %s"),
            ("NOTE", "Password: none"),
        ] {
            assert!(!looks_secret(name, value), "{name}={value}");
        }
    }

    /// The environments of official images, and of other popular ones.
    #[test]
    fn popular_images_have_no_secrets() {
        for entry in include_str!("popular.env").lines() {
            let (name, value) = entry.split_once('=').unwrap_or_else(|| panic!("{entry}"));
            assert!(entry.starts_with("# ") || !looks_secret(name, value), "{entry}");
        }
        let images = include_str!("popular.env").lines().filter(|it| it.starts_with("# "));
        assert!(images.count() >= 20);
    }
}
