//! Reads `WWW-Authenticate`, the header with which a registry requests credentials:
//! [RFC 9110, section 11](https://www.rfc-editor.org/rfc/rfc9110#section-11),
//! [RFC 6750, section 3](https://www.rfc-editor.org/rfc/rfc6750#section-3), and the
//! [token specification](https://distribution.github.io/distribution/spec/auth/token/) of the distribution
//! project.

use std::collections::BTreeMap;

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// The maximum length of a header, in bytes. Longer ones are an error.
const MAX_LEN: usize = 4096;
/// The maximum number of `WWW-Authenticate` headers. Further ones are ignored.
const MAX_CHALLENGES: usize = 4;

/// The authentication that a registry requests.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A name and a password in the request itself.
    Basic,
    /// A token from another URL, the realm. `service` is the registry's name at the realm.
    Bearer { realm: String, service: Option<String> },
}

/// The name of an authentication scheme, and its parameters.
#[derive(Debug)]
struct Scheme {
    name: String,
    params: BTreeMap<String, String>,
}

/// Returns the authentication that a registry requests. If the registry accepts both, `Bearer` takes precedence, because then
/// the password is sent to the realm only.
pub(super) fn read(headers: &HeaderMap) -> Result<Challenge, &'static str> {
    let mut schemes = Vec::new();
    // Not an error yet: this parser cannot read some schemes, such as `Negotiate TOKEN==`, next to which `Basic` may be usable.
    let mut malformed = false;
    if !headers.contains_key(WWW_AUTHENTICATE) {
        return Err("it does not say how, as a proxy or a login page in its place would not");
    }
    for value in headers.get_all(WWW_AUTHENTICATE).iter().take(MAX_CHALLENGES) {
        let text = value.to_str().map_err(|_| "it is not ASCII")?;
        if text.len() > MAX_LEN {
            return Err("it is too long");
        }
        match parse(text) {
            Some(found) => schemes.extend(found),
            None => malformed = true,
        }
    }
    if let Some(bearer) = schemes.iter_mut().find(|it| it.name == "bearer") {
        let realm = bearer.params.remove("realm").ok_or("it names no realm")?;
        return Ok(Challenge::Bearer { realm, service: bearer.params.remove("service") });
    }
    let basic = schemes.iter().any(|it| it.name == "basic");
    let other = if malformed { "it is malformed" } else { "it is neither Bearer nor Basic" };
    basic.then_some(Challenge::Basic).ok_or(other)
}

/// Reads one header: `SCHEME NAME=VALUE, NAME="VALUE", SCHEME …`.
fn parse(text: &str) -> Option<Vec<Scheme>> {
    let mut schemes: Vec<Scheme> = Vec::new();
    let mut rest = text.trim_start_matches([' ', '\t', ',']);
    while !rest.is_empty() {
        let word;
        (word, rest) = token(rest)?;
        let word = word.to_ascii_lowercase();
        if let Some(behind) = rest.trim_start().strip_prefix('=') {
            let value;
            (value, rest) = param_value(behind.trim_start())?;
            if schemes.last_mut()?.params.insert(word, value).is_some() {
                return None;
            }
            rest = rest.trim_start();
            if !rest.is_empty() && !rest.starts_with(',') {
                return None;
            }
        } else {
            schemes.push(Scheme { name: word, params: BTreeMap::new() });
        }
        rest = rest.trim_start_matches([' ', '\t', ',']);
    }
    Some(schemes)
}

/// Splits off a token ([RFC 9110, section 5.6.2](https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2)).
fn token(text: &str) -> Option<(&str, &str)> {
    let inner = |it: char| it.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(it);
    let end = text.find(|it| !inner(it)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// Splits off a parameter's value: a token or a quoted string
/// ([RFC 9110, section 5.6.4](https://www.rfc-editor.org/rfc/rfc9110#section-5.6.4)).
fn param_value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        return token(text).map(|(value, rest)| (value.to_owned(), rest));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    loop {
        let (place, it) = chars.next()?;
        match it {
            '"' => return Some((value, &quoted[place + 1..])),
            '\\' => value.push(chars.next()?.1),
            ' '..='~' => value.push(it),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    fn of(lines: &[&str]) -> Result<Challenge, &'static str> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_str(line).unwrap());
        }
        read(&headers)
    }

    fn bearer(realm: &str, service: Option<&str>) -> Result<Challenge, &'static str> {
        let service = service.map(str::to_owned);
        Ok(Challenge::Bearer { realm: realm.to_owned(), service })
    }

    #[test]
    fn what_registries_send_is_read() {
        let hub = r#"Bearer realm="https://auth.example.org/token",service="registry.example.org""#;
        assert_eq!(
            of(&[hub]),
            bearer("https://auth.example.org/token", Some("registry.example.org"))
        );
        let scoped =
            r#"bearer Realm = "https://a.example.org/t?x=\"y\"" , scope="repository:a:pull""#;
        assert_eq!(of(&[scoped]), bearer("https://a.example.org/t?x=\"y\"", None));
        assert_eq!(of(&["Basic realm=\"Registry\""]), Ok(Challenge::Basic));
        assert_eq!(of(&["BASIC"]), Ok(Challenge::Basic));
    }

    #[test]
    fn a_token_is_preferred() {
        let both = bearer("https://a.example.org", None);
        assert_eq!(of(&[r#"Basic realm="x", Bearer realm="https://a.example.org""#]), both);
        assert_eq!(of(&["Basic realm=x", r#"Bearer realm="https://a.example.org""#]), both);
    }

    #[test]
    fn a_header_of_another_scheme_does_not_hide_the_rest() {
        for other in ["Negotiate YIIK==", "NTLM TlRMTVNTUAAC=", "Custom <x>"] {
            assert_eq!(of(&[other, "Basic realm=x"]), Ok(Challenge::Basic), "{other}");
            let realm = r#"Bearer realm="https://a.example.org""#;
            assert_eq!(of(&[realm, other]), bearer("https://a.example.org", None), "{other}");
        }
    }

    #[test]
    fn the_rest_is_refused() {
        for bad in ["", "Digest realm=x", "Negotiate"] {
            assert_eq!(of(&[bad]), Err("it is neither Bearer nor Basic"), "{bad}");
        }
        let reason = "it does not say how, as a proxy or a login page in its place would not";
        assert_eq!(of(&[]), Err(reason));
        assert_eq!(of(&["Bearer service=x"]), Err("it names no realm"));
        for bad in [
            "realm=x",
            "Bearer realm=\"x",
            "Bearer realm=\"x\\",
            "Bearer realm=",
            "Bearer realm=x realm=y",
            "Bearer realm=x, realm=y",
            "Bearer realm=\"x\"service=y",
            "Bearer realm=\"a\tb\"",
            "Bearer =x",
            "Bearer (x)",
        ] {
            assert_eq!(of(&[bad]), Err("it is malformed"), "{bad}");
        }
        let long = format!("Bearer realm=\"{}\"", "x".repeat(MAX_LEN));
        assert_eq!(of(&[&long]), Err("it is too long"));
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics(text in "[ -~]{0,60}") {
            parse(&text);
        }

        #[test]
        fn any_realm_reads_back(realm in "[ -~]{0,60}") {
            let quoted = realm.replace('\\', "\\\\").replace('"', "\\\"");
            let line = format!("Bearer realm=\"{quoted}\"");
            proptest::prop_assert_eq!(of(&[&line]), bearer(&realm, None));
        }
    }
}
