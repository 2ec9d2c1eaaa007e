//! Policies and their decisions.

use diagnostics::{Source, Sources};

use super::{ED25519_PUBLIC, P256, P256_PUBLIC, public_keys};
use crate::{Decision, Origin, Policy, Refusal, Requirement};

/// Returns the content of the test's files.
fn read(path: &str) -> Result<Vec<u8>, String> {
    match path {
        "keys/acme.pub" => Ok(P256_PUBLIC.to_vec()),
        "/etc/other.pub" => Ok(ED25519_PUBLIC.to_vec()),
        "keys/acme.pem" => Ok(P256.to_vec()),
        _ => Err("there is no such file".to_owned()),
    }
}

fn parse(text: &str) -> Policy {
    Policy::parse(text, &mut read).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Returns the rendered errors of a policy.
fn errors(text: &str) -> String {
    let sources = Sources::single(Source::new("policy.toml", text));
    Policy::parse(text, &mut read).unwrap_err().render(&sources)
}

fn registry(repository: &str) -> Origin<'_> {
    Origin::Registry { repository, has_digest: true }
}

const EXAMPLE: &str = r#"
default = "refuse"
file = "allow"

[[rule]]
match = "ghcr.io/acme/*"
keys = ["keys/acme.pub", "/etc/other.pub"]
provenance = true

[[rule]]
match = "ghcr.io/acme/tools/*"
keys = ["keys/acme.pub"]
digest-only = true

[[rule]]
match = "ghcr.io/acme/hello"
decision = "allow"

[[rule]]
match = "ghcr.io/acme/old"
decision = "refuse"

[[rule]]
match = "localhost:5000/*"
decision = "allow"
digest-only = true

[[rule]]
match = "docker.io/debian"
decision = "allow"

[[rule]]
match = "[::1]:5000/*"
decision = "allow"
"#;

#[test]
fn the_most_specific_rule_decides() {
    let policy = parse(EXAMPLE);
    let keys = public_keys();
    let both = Decision::Signed(Requirement { keys: &keys, provenance: true, refuse_older: false });
    let one =
        Decision::Signed(Requirement { keys: &keys[..1], provenance: false, refuse_older: false });
    for (repository, expected) in [
        ("ghcr.io/acme/any", both),
        ("GHCR.IO/acme/any:v1", both),
        ("ghcr.io/acme/deep/er", both),
        ("ghcr.io/acme/tools", both),
        ("ghcr.io/acme/tools/one", one),
        ("ghcr.io/acme/hello", Decision::Allowed),
        ("ghcr.io/acme/hello/world", both),
        ("ghcr.io/acme/hello2", both),
        ("ghcr.io/acme/old", Decision::Refused(Refusal::Rule)),
        ("ghcr.io/acme", Decision::Refused(Refusal::NoRule)),
        ("ghcr.io/acmeevil/any", Decision::Refused(Refusal::NoRule)),
        ("ghcr.io.example.org/acme/any", Decision::Refused(Refusal::NoRule)),
        ("ghcr.io:444/acme/any", Decision::Refused(Refusal::NoRule)),
        ("localhost:5000/a/b", Decision::Allowed),
        ("localhost:5001/a", Decision::Refused(Refusal::NoRule)),
        ("[::1]:5000/a", Decision::Allowed),
        ("debian", Decision::Allowed),
        ("docker.io/library/debian", Decision::Allowed),
        ("index.docker.io/debian:13", Decision::Allowed),
        ("acme/debian", Decision::Refused(Refusal::NoRule)),
        ("a..b/debian", Decision::Refused(Refusal::Malformed)),
    ] {
        assert_eq!(policy.decide(&registry(repository)), expected, "{repository}");
    }
}

/// With `default = "allow"`, a spelling that no rule matches would be accepted without a signature.
#[test]
fn a_rule_holds_for_each_spelling_of_its_repository() {
    let rule =
        |pattern: &str| format!("[[rule]]\nmatch = \"{pattern}\"\nkeys = [\"keys/acme.pub\"]\n");
    let table = [
        (
            "ghcr.io/acme/*",
            &["ghcr.io/acme/x", "ghcr.io:443/acme/x", "GHCR.io/acme/x:v1", "GhCr.Io:443/acme/x/y"]
                [..],
        ),
        ("ghcr.io:443/acme/*", &["ghcr.io/acme/x", "ghcr.io:443/acme/x"]),
        (
            "docker.io/*",
            &[
                "debian",
                "acme/x",
                "docker.io/acme/x",
                "index.docker.io/acme/x",
                "Registry-1.Docker.io:443/acme/x",
                "docker.io:443/debian",
            ],
        ),
        (
            "registry-1.docker.io:443/debian",
            &[
                "debian",
                "docker.io/library/debian",
                "index.docker.io:443/debian",
                "docker.io:443/library/debian:13",
            ],
        ),
        ("localhost:5000/*", &["localhost:5000/x", "LocalHost:5000/x"]),
        ("127.0.0.1:5000/*", &["127.0.0.1:5000/x", "[::ffff:127.0.0.1]:5000/x"]),
        ("[0:0::1]:5000/*", &["[::1]:5000/x", "[0:0:0:0:0:0:0:1]:5000/x"]),
    ];
    for (pattern, names) in table {
        let policy = parse(&format!("default = \"allow\"\n{}", rule(pattern)));
        for name in names {
            let decision = policy.decide(&registry(name));
            assert!(matches!(decision, Decision::Signed(_)), "{pattern} {name}: {decision:?}");
        }
        // Whatever is no name of a registry is refused, and not accepted by default.
        for name in [
            "ghcr.io./acme/x",
            "ghcr.io.:443/acme/x",
            "docker.io./debian",
            "127.1:5000/x",
            "localhost.:5000/x",
        ] {
            let decision = policy.decide(&registry(name));
            assert_eq!(decision, Decision::Refused(Refusal::Malformed), "{name}");
        }
    }
    // Names of one server that are not spellings of one name.
    let policy = parse(&format!("default = \"allow\"\n{}", rule("localhost:5000/*")));
    for name in ["127.0.0.1:5000/x", "[::1]:5000/x", "localhost/x", "localhost:5001/x"] {
        assert_eq!(policy.decide(&registry(name)), Decision::Allowed, "{name}");
    }
    // Two spellings in two rules are one rule twice.
    let twice = errors(&format!("{}{}", rule("ghcr.io/acme/*"), rule("GHCR.io:443/acme/*")));
    assert!(twice.contains("`ghcr.io/acme/*`"), "{twice}");
}

#[test]
fn a_rule_may_require_a_digest() {
    let policy = parse(EXAMPLE);
    let tag = |repository| policy.decide(&Origin::Registry { repository, has_digest: false });
    assert_eq!(tag("ghcr.io/acme/tools/one"), Decision::Refused(Refusal::NoDigest));
    assert_eq!(tag("localhost:5000/a"), Decision::Refused(Refusal::NoDigest));
    assert!(matches!(tag("ghcr.io/acme/any"), Decision::Signed(_)));
    let file = Origin::File { repository: Some("ghcr.io/acme/tools/one") };
    assert!(matches!(policy.decide(&file), Decision::Signed(_)), "a file has digests");
}

#[test]
fn a_rule_with_keys_may_refuse_older_releases() {
    let rule = |rest| format!("[[rule]]\nmatch = \"ghcr.io/acme/*\"\n{rest}refuse-older = true\n");
    let policy = parse(&rule("keys = [\"keys/acme.pub\"]\n"));
    let keys = &public_keys()[..1];
    let signed = Decision::Signed(Requirement { keys, provenance: false, refuse_older: true });
    assert_eq!(policy.decide(&registry("ghcr.io/acme/any")), signed);
    let error = errors(&rule("decision = \"allow\"\n"));
    assert!(error.contains("`refuse-older` needs `keys`, by which it is signed"), "{error}");
}

#[test]
fn a_name_in_a_file_proves_nothing() {
    // The rule allows the registry, and not everybody who writes its name into a file.
    let text = EXAMPLE.replace("file = \"allow\"", "file = \"refuse\"");
    let file = Origin::File { repository: Some("localhost:5000/a") };
    assert_eq!(parse(&text).decide(&file), Decision::Refused(Refusal::File));
    assert_eq!(parse(EXAMPLE).decide(&file), Decision::Allowed);
    let refused = Origin::File { repository: Some("ghcr.io/acme/old") };
    assert_eq!(parse(EXAMPLE).decide(&refused), Decision::Refused(Refusal::Rule));
}

#[test]
fn a_decision_has_the_line_that_it_follows() {
    let policy = parse(EXAMPLE);
    let lines = [
        (registry("ghcr.io/acme/any"), Some(6)),
        (registry("ghcr.io/acme/tools/one"), Some(11)),
        (registry("ghcr.io/other/any"), Some(2)),
        (Origin::File { repository: None }, Some(3)),
        (Origin::Local, None),
        (registry("a..b/debian"), None),
    ];
    for (origin, line) in lines {
        assert_eq!(policy.line(&origin), line, "{origin:?}");
    }
    assert_eq!(parse("\ndefault = \"allow\"").line(&Origin::File { repository: None }), Some(2));
}

#[test]
fn files_and_builds_have_their_own_answers() {
    let decide = |text: &str, origin| match parse(text).decide(&origin) {
        Decision::Allowed => "allowed".to_owned(),
        Decision::Signed(_) => "signed".to_owned(),
        Decision::Refused(reason) => reason.to_string(),
    };
    let (named, other) = (Some("ghcr.io/acme/any"), Some("ghcr.io/other/any"));
    for (text, origin, expected) in [
        ("", Origin::Local, "allowed"),
        (
            "local = \"refuse\"",
            Origin::Local,
            "the policy refuses boxes that were built on this host",
        ),
        ("", Origin::File { repository: None }, "the policy refuses boxes from files"),
        ("default = \"allow\"", Origin::File { repository: None }, "allowed"),
        (
            "default = \"allow\"\nfile = \"refuse\"",
            Origin::File { repository: other },
            "the policy refuses boxes from files",
        ),
        ("file = \"allow\"", Origin::File { repository: other }, "allowed"),
        (
            "file = \"allow\"",
            registry("ghcr.io/other/any"),
            "the policy has no rule for this repository",
        ),
        (EXAMPLE, Origin::File { repository: named }, "signed"),
        (
            EXAMPLE,
            Origin::File { repository: Some("ghcr.io/acme/old") },
            "the policy refuses this repository",
        ),
        ("", registry("a.example.org/b"), "the policy has no rule for this repository"),
        ("default = \"allow\"", registry("a.example.org/b"), "allowed"),
    ] {
        assert_eq!(decide(text, origin), expected, "{text} {origin:?}");
    }
}

#[test]
fn the_policy_of_the_page_decides_as_the_page_says() {
    let [text] = super::blocks("toml").try_into().unwrap();
    let mut read = |path: &str| {
        assert!(text.contains(&format!("{path:?}")));
        Ok(if path == "keys/acme.pub" { P256_PUBLIC.to_vec() } else { ED25519_PUBLIC.to_vec() })
    };
    let policy = Policy::parse(text, &mut read).unwrap();
    let decide =
        |repository, has_digest| policy.decide(&Origin::Registry { repository, has_digest });
    let keys = public_keys();
    let signed =
        Decision::Signed(Requirement { keys: &keys, provenance: false, refuse_older: false });
    assert_eq!(decide("ghcr.io/acme/hello", false), signed);
    let production = "ghcr.io/acme/production/api";
    let signed =
        Decision::Signed(Requirement { keys: &keys[1..], provenance: true, refuse_older: false });
    assert_eq!(decide(production, true), signed);
    assert_eq!(decide(production, false), Decision::Refused(Refusal::NoDigest));
    assert_eq!(decide("localhost:5000/any", false), Decision::Allowed);
    assert_eq!(decide("ghcr.io/other/hello", true), Decision::Refused(Refusal::NoRule));
}

#[test]
fn faults_are_shown_with_their_lines() {
    let rule = |lines: &str| errors(&format!("[[rule]]\n{lines}"));
    let matching = |pattern: &str| rule(&format!("match = {pattern:?}\ndecision = \"allow\""));
    let found = [
        errors("default = \"signed\""),
        errors("defualt = \"allow\""),
        errors("default ="),
        errors("rule = 1"),
        errors("# \u{202e}"),
        rule("keys = [\"keys/acme.pub\"]"),
        rule("match = \"ghcr.io/a\""),
        rule("match = \"ghcr.io/a\"\nkeys = []"),
        rule("match = \"ghcr.io/a\"\nkeys = \"keys/acme.pub\""),
        rule("match = \"ghcr.io/a\"\nkeys = [\"keys/acme.pub\"]\ndecision = \"allow\""),
        rule("match = \"ghcr.io/a\"\ndecision = \"allow\"\nprovenance = true"),
        rule("match = \"ghcr.io/a\"\nkeys = [\"missing.pub\",\n \"keys/acme.pem\"]"),
        matching("acme/a"),
        matching("*"),
        matching("ghcr.io"),
        matching("ghcr.io/"),
        matching("ghcr.io/a*"),
        matching("ghcr.io/a/:v1"),
        matching("ghcr.io/a:v1"),
        matching("ghcr.io/a@sha256:00"),
        matching("https://ghcr.io/a"),
        matching("ghcr.io/Acme/*"),
        matching("ghcr.io/acme//*"),
        errors(
            "[[rule]]\nmatch = \"docker.io/debian\"\ndecision = \"allow\"\n[[rule]]\nmatch = \"index.docker.io/library/debian\"\ndecision = \"refuse\"\n",
        ),
    ];
    insta::assert_snapshot!(found.join("\n\n"));
}
