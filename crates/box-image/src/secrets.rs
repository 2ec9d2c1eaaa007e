//! The rule for environment variables that look like secrets, which are never printed.

/// The ends of the names of variables that hold secrets.
const SECRET_ENDS: [&str; 19] = [
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "SECRET",
    "SECRET_KEY",
    "SECRETKEY",
    "ACCESS_KEY",
    "API_KEY",
    "APIKEY",
    "PRIVATE_KEY",
    "SSH_KEY",
    "ENCRYPTION_KEY",
    "SIGNING_KEY",
    "TOKEN",
    "CREDENTIAL",
    "CREDENTIALS",
    "_PASS",
    "_PAT",
    "_PWD",
];
/// Ends of names that hold no secret all the same: words of language models.
const MODEL_TOKENS: [&str; 5] = ["BOS_TOKEN", "EOS_TOKEN", "PAD_TOKEN", "STOP_TOKEN", "UNK_TOKEN"];
/// The first characters of well-known tokens.
const SECRET_STARTS: [&str; 16] = [
    "sk-",
    "sk_live_",
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

/// Returns whether an environment variable looks like one that holds a secret.
///
/// It does if its value begins as a well-known kind of token does (`ghp_…`, `AKIA…`), is a private
/// key in PEM, or is a URL with a password; and if its name ends as those of secrets do (`…TOKEN`,
/// `…PASSWORD`, `…API_KEY`, in upper or lower case), unless the value is empty, an absolute path of
/// several parts, a number (`MAX_TOKEN=4096`) or a truth value, or the name is that of a language
/// model's word (`EOS_TOKEN`). The rule finds mistakes; it cannot prove that a value is no secret.
pub fn looks_secret(name: &str, value: &str) -> bool {
    if SECRET_STARTS.iter().any(|start| value.len() >= 16 && value.starts_with(start))
        || is_private_key(value)
        || has_password(value)
    {
        return true;
    }
    let name = name.to_ascii_uppercase();
    let harmless = value.is_empty()
        || value.strip_prefix('/').is_some_and(|rest| rest.contains('/'))
        || MODEL_TOKENS.iter().any(|end| name.ends_with(end))
        || is_number(value)
        || matches!(value, "true" | "false" | "yes" | "no" | "on" | "off");
    !harmless && SECRET_ENDS.iter().any(|end| name.ends_with(end))
}

/// Returns whether a value is a URL with a user's password: `scheme://user:password@host`.
fn has_password(value: &str) -> bool {
    let Some((_, rest)) = value.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let user = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
    // A shell or a program puts the value of `$PASSWORD` in its place.
    user.is_some_and(|(_, password)| !password.is_empty() && !password.starts_with('$'))
}

/// Returns whether a text is a private key in PEM (RFC 7468, section 2): public keys and certificates
/// begin alike, and are none.
fn is_private_key(value: &str) -> bool {
    let label = value.strip_prefix("-----BEGIN ").and_then(|rest| rest.split("-----").next());
    label.is_some_and(|label| label.contains("PRIVATE KEY"))
}

/// Returns whether a text is a decimal number: `5`, `-1`, `0.5`.
fn is_number(value: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let value = value.strip_prefix('-').unwrap_or(value);
    value
        .split_once('.')
        .map_or_else(|| digits(value), |(whole, part)| digits(whole) && digits(part))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert!(!looks_secret(name, value), "{name}={value}");
        }
    }
}
