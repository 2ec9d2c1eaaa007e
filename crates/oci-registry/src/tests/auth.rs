//! Credentials, and servers that try to steal them.

use serde_json::json;
use test_server::{Request, Server};

use super::harness::{fails, is, succeeds};
use super::stage::{Plan, not_found, unauthorized};
use super::*;

/// Starts a realm on another server, which accepts all credentials and issues a valid token.
fn realm(identity: Identity) -> Server {
    let granted = json!({ "access_token": TOKEN }).to_string();
    Server::start(identity, |_| move |_: &Request| file(granted.as_bytes()))
}

fn bearer(realm: &str) -> Option<String> {
    Some(format!("Bearer realm=\"{realm}\",service=\"reg\""))
}

/// Plans a registry whose realm is another server.
fn foreign_realm(identity: Identity, realm: Server) -> Plan {
    Plan { identity, challenge: bearer(&realm.url("/token")), foreign: vec![realm], ..Plan::new() }
}

/// Plans a registry with an unusual challenge.
fn challenge(text: &str) -> Plan {
    Plan { challenge: Some(text.to_owned()), ..Plan::new() }
}

/// Plans another answer of the registry's own realm.
fn token(answer: impl Fn(usize) -> Option<Reply> + Send + Sync + 'static) -> Plan {
    Plan::new().at("/token", answer)
}

/// Plans this text instead of the token.
fn granted(token_text: &'static str) -> Plan {
    token(move |_| Some(gives(token_text)))
}

/// Answers with a token.
fn gives(token: &str) -> Reply {
    file(json!({ "token": token }).to_string().as_bytes())
}

/// Plans a file of credentials with this entry.
fn auth(entry: serde_json::Value) -> Plan {
    Plan { auth: entry, ..Plan::new() }
}

/// Plans a registry that accepts a token once, and then sends the challenge `realm`.
fn asks_again(realm: &'static str) -> Plan {
    Plan::new().at(&Image::with(|_| ()).layer_path(), move |_| {
        Some(unauthorized(&format!("Bearer realm=\"{realm}\"")))
    })
}

/// Returns how many requests the registry's own realm got.
fn tokens(stage: &Stage) -> usize {
    let requests = stage.registry.requests();
    requests.iter().filter(|request| request.path().starts_with("/token")).count()
}

fn seen(stage: &Stage) -> usize {
    stage.foreign.iter().map(|server| server.requests().len()).sum()
}

cases! {
    a_token_from_the_registry_itself: Plan::new() => |outcome, stage| {
        let requests = stage.registry.requests();
        let asked = requests.iter().find(|request| request.path().starts_with("/token"));
        let path = asked.map(|request| request.path().to_owned());
        outcome.is_ok() && tokens(stage) == 1
            && path.as_deref() == Some("/token?scope=repository%3Aapp%3Apull&service=reg")
    };
    a_realm_on_another_server: foreign_realm(Identity::None, realm(Identity::None))
        => |outcome, stage| {
        seen(stage) == 0 && is!(outcome, RegistryError::Realm { .. })
    };
    a_realm_on_another_server_over_https: foreign_realm(Identity::Valid, realm(Identity::Valid))
        => |outcome, stage| {
        seen(stage) == 0 && is!(outcome, RegistryError::Realm { .. })
    };
    a_realm_over_http: {
        let realm = realm(Identity::None);
        let config = format!("auth-realm = [\"{}\"]", realm.host());
        Plan { config, ..foreign_realm(Identity::Valid, realm) }
    } => |outcome, stage| {
        seen(stage) == 0
            && is!(outcome, RegistryError::PlainRealm { .. })
    };
    a_realm_that_is_trusted: {
        let realm = realm(Identity::Valid);
        Plan {
            identity: Identity::Valid,
            challenge: bearer(&realm.url("/token")),
            config: format!("auth-realm = [\"{}\"]", realm.host()),
            friends: vec![realm],
            ..Plan::new()
        }
    } => |outcome, stage| outcome.is_ok() && stage.friends[0].requests().len() == 1;
    a_realm_that_redirects_to_another_server: {
        let foreign = realm(Identity::None);
        let to = foreign.url("/token");
        Plan { foreign: vec![foreign], ..Plan::new() }.at("/token", move |_| Some(redirect(&to)))
    } => |outcome, stage| {
        seen(stage) == 0 && is!(outcome, RegistryError::Response { what, .. } if what.contains("returned no usable token"))
    };
    a_realm_that_is_no_url: challenge("Bearer realm=\"token\"")
        => fails!(RegistryError::Response { what, .. } if what.contains("asks for credentials"));
    a_realm_with_a_user: challenge("Bearer realm=\"https://127.0.0.1@a.example.org/token\"")
        => fails!(RegistryError::Response { what, .. } if what.contains("asks for credentials"));
    no_realm: challenge("Bearer service=\"reg\"") => fails!(RegistryError::Response { what, .. } if what.contains("asks for credentials"));
    another_way_to_ask: challenge("Digest realm=\"reg\"")
        => fails!(RegistryError::Response { what, .. } if what.contains("asks for credentials"));
    a_name_and_a_password: challenge("Basic realm=\"reg\"") => succeeds;
    a_wrong_password: token(|_| Some(unauthorized("Basic realm=\"reg\"")))
        => fails!(RegistryError::Unauthorized { credentials: Some(_), .. });
    a_wrong_password_without_tokens: {
        let asks = || unauthorized("Basic realm=\"reg\"");
        challenge("Basic realm=\"reg\"").at("/v2/app/manifests/v1", move |_| Some(asks()))
    } => |outcome, stage| {
        // The password is sent once, because further attempts could lock the account.
        let requests = stage.registry.requests();
        let sent = requests.iter().filter(|it| it.header("authorization").is_some());
        sent.count() == 1 && is!(outcome, RegistryError::Unauthorized { credentials: Some(_), .. })
    };
    an_old_password_for_what_everybody_may_read: {
        Plan::new().deed(|path, _, request| (path == "/token").then(|| {
            let has_login = request.header("authorization").is_some();
            if has_login { unauthorized("Basic realm=\"reg\"") } else { gives(TOKEN) }
        }))
    } => |outcome, stage| {
        // The refused password is sent once. Later requests are anonymous.
        let requests = stage.registry.requests();
        let tokens = requests.iter().filter(|it| it.path().starts_with("/token"));
        outcome.is_ok() && tokens.filter(|it| it.header("authorization").is_some()).count() == 1
    };
    an_old_password_for_what_is_hidden: {
        Plan::new().deed(|path, _, request| match path {
            "/token" if request.header("authorization").is_some() => {
                Some(unauthorized("Basic realm=\"reg\""))
            }
            "/token" => Some(gives(TOKEN)),
            _ => Some(not_found()),
        })
    } => fails!(RegistryError::Unauthorized { credentials: Some(_), .. });
    no_login_and_no_word_of_how: {
        let plain = || reply("401 Unauthorized", &["Content-Length: 0"], b"");
        Plan { open: true, ..Plan::new() }.at("/v2/app/manifests/v1", move |_| Some(plain()))
    } => fails!(RegistryError::Response { what, .. } if what.contains("asks for credentials"));
    a_page_in_the_place_of_a_token: token(|_| Some(file(b"<html>canary-token</html>")))
        => fails!(RegistryError::NotARegistry { found: "an HTML page", .. });
    no_password: auth(json!({})) => fails!(RegistryError::Unauthorized { credentials: None, .. });
    no_password_without_tokens: {
        Plan { challenge: Some("Basic realm=\"reg\"".into()), ..auth(json!({})) }
    } => fails!(RegistryError::Unauthorized { credentials: None, .. });
    nothing_is_sent_unasked: Plan { open: true, ..Plan::new() } => |outcome, stage| {
        let requests = stage.registry.requests();
        outcome.is_ok() && requests.iter().all(|it| it.header("authorization").is_none())
    };
    an_identity_token: auth(json!({ "identitytoken": CANARY })) => |outcome, stage| {
        let requests = stage.registry.requests();
        let form = "scope=repository%3Aapp%3Apull&service=reg&grant_type=refresh_token\
                    &client_id=boxbuild&refresh_token=canary-password";
        let posts: Vec<_> = requests.iter().filter(|it| it.head.starts_with("POST ")).collect();
        outcome.is_ok() && posts.len() == 1 && posts[0].path() == "/token" && posts[0].body == form
    };
    an_identity_token_for_another_server: {
        let plan = foreign_realm(Identity::None, realm(Identity::None));
        Plan { auth: json!({ "identitytoken": CANARY }), ..plan }
    } => |outcome, stage| {
        seen(stage) == 0 && is!(outcome, RegistryError::Realm { .. })
    };
    a_token_for_the_registry_itself: auth(json!({ "registrytoken": TOKEN }))
        => |outcome, stage| outcome.is_ok() && tokens(stage) == 0;
    a_token_that_ends: {
        let layer = Image::with(|_| ()).layer_path();
        Plan::new().deed(move |path, before, request| match path {
            "/token" if before == 1 => {
                Some(gives(&format!("{TOKEN}-2")))
            }
            _ if path == layer && before == 0 => {
                let host = request.header("host").unwrap();
                Some(unauthorized(&format!("Bearer realm=\"http://{host}/token\"")))
            }
            _ => None,
        })
    } => |outcome, stage| outcome.is_ok() && tokens(stage) == 2;
    a_token_that_is_never_taken: {
        Plan::new().deed(|path, before, request| {
            let host = request.header("host").unwrap();
            match path {
                "/token" => Some(gives(&format!("{TOKEN}-{before}"))),
                _ => Some(unauthorized(&format!("Bearer realm=\"http://{host}/token\""))),
            }
        })
    } => |outcome, stage| {
        tokens(stage) == 1 && is!(outcome, RegistryError::Unauthorized { credentials: Some(_), .. })
    };
    a_realm_that_repeats_the_token: asks_again("https://a.example.org/canary-token?canary-token")
        => fails!(RegistryError::Realm { .. });
    no_url_that_repeats_the_token: asks_again("canary-token")
        => fails!(RegistryError::Response { what, .. } if what.contains("asks for credentials"));
    an_answer_without_a_token: token(|_| Some(file(b"{}"))) => fails!(RegistryError::Response { what, .. } if what.contains("returned no usable token"));
    an_answer_that_does_not_read: token(|_| Some(file(b"{\"token\": canary-token}")))
        => fails!(RegistryError::Response { what, .. } if what.contains("returned no usable token"));
    a_token_with_a_new_line: granted("canary-token\r\nX-Header: x")
        => fails!(RegistryError::Response { what, .. } if what.contains("returned no usable token"));
    an_empty_token: granted("") => fails!(RegistryError::Response { what, .. } if what.contains("returned no usable token"));
    an_endless_token: token(|_| Some(file(&vec![b' '; 200 << 10])))
        => fails!(RegistryError::Download(DownloadError::TooLarge { .. }));
    a_busy_realm: token(|before| {
        (before < 2).then(|| reply("503 Service Unavailable", &["Content-Length: 0"], b""))
    }) => succeeds;
    a_realm_that_stays_busy: {
        token(|_| Some(reply("429 Too Many Requests", &["Content-Length: 0"], b"")))
    } => |outcome, stage| {
        tokens(stage) == 3
            && is!(outcome, RegistryError::Download(DownloadError::Status { transient: true, .. }))
    };
}
