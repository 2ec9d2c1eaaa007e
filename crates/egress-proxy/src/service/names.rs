//! Which header lines and which parameters of a component's request pass on to an API, to which the host adds a credential.
//!
//! With a credential of its own, a component could make the API act for somebody else, for example store the project's files in
//! the account of an attacker. APIs have hundreds of names for credentials, so a name passes only if no *word* in it is one of
//! credentials, or if it is known to be harmless, or if the Boxfile names it (`pass`).

/// Words of which a credential's name consists. A word is what is between `-`, `_`, `.` and other signs, or between a small and a
/// capital letter: `xi-api-key`, `PRIVATE_TOKEN` and `oauthToken` have `key`, `token` and `token`.
const WORDS: [&str; 45] = [
    "key",
    "keys",
    "token",
    "tokens",
    "auth",
    "authentication",
    "authorisation",
    "authorization",
    "authorize",
    "bearer",
    "cookie",
    "cookies",
    "cred",
    "creds",
    "credential",
    "credentials",
    "csrf",
    "hmac",
    "impersonate",
    "jwt",
    "licence",
    "license",
    "login",
    "mac",
    "otp",
    "pass",
    "passcode",
    "passphrase",
    "password",
    "passwd",
    "pat",
    "pin",
    "pw",
    "pwd",
    "sas",
    "secret",
    "sess",
    "session",
    "sid",
    "sig",
    "sign",
    "signature",
    "sudo",
    "ticket",
    "xsrf",
];
/// Parts of words without signs between them, such as `accesstoken` and `x-authkey`.
const PARTS: [&str; 32] = [
    "accesskey",
    "accountkey",
    "apikey",
    "appkey",
    "applicationkey",
    "assertion",
    "authent",
    "authkey",
    "authoriz",
    "authuser",
    "bearer",
    "clientkey",
    "cookie",
    "credential",
    "csrf",
    "functionskey",
    "keyid",
    "oauth",
    "passphrase",
    "passw",
    "privatekey",
    "publickey",
    "secret",
    "sessid",
    "session",
    "sharedkey",
    "signature",
    "subscriptionkey",
    "ticket",
    "token",
    "userkey",
    "xjfrogartapi",
];
/// Headers that choose the account that acts, in the interfaces of Cloudflare, Stripe, Vault, Azure and others.
const ACCOUNTS: [&str; 7] =
    ["account", "merchant", "namespace", "owner", "tenant", "subscription", "email"];
/// Names with such words that are no credentials, without the signs between their words: pages of lists, and the keys of
/// requests that are repeated.
const HARMLESS: [&str; 18] = [
    "accesscontrolrequestheaders",
    "accesscontrolrequestmethod",
    "continuationtoken",
    "cursortoken",
    "idempotencykey",
    "maxtokens",
    "nextpagetoken",
    "nexttoken",
    "orderkey",
    "pagetoken",
    "partitionkey",
    "prevpagetoken",
    "secfetchuser",
    "secwebsocketkey",
    "sortkey",
    "synctoken",
    "xidempotencykey",
    "xmaxtokens",
];
/// The headers by which some servers take another method, path or host than those of the request, without signs.
const OVERRIDING: [&str; 9] = [
    "forwarded",
    "xhost",
    "xhttphost",
    "xhttpmethod",
    "xoriginalhost",
    "xoriginaluri",
    "xoriginalurl",
    "xrewriteuri",
    "xrewriteurl",
];
/// The beginning of the names of headers with which proxies describe the request to themselves, without signs.
const FORWARDED: &str = "xforwarded";
/// The headers by which an answer could have a part of a credential, or one in another form, without signs.
const CUTTING: [&str; 3] = ["range", "ifrange", "acceptcharset"];
/// The parameters by which some frameworks take another method than that of the request, without signs.
const METHODS: [&str; 3] = ["httpmethod", "xhttpmethod", "methodoverride"];
/// The parameters of a query with which some APIs take a credential, as whole names: the words alone mean many other things.
const WHOLE: [&str; 4] = ["code", "hash", "client", "access"];

/// Returns whether a header of a component's request passes on to the API. `pass` has the names that the Boxfile lets through.
pub(super) fn is_header(name: &str, pass: &[String]) -> bool {
    let plain = plain(name);
    if OVERRIDING.contains(&plain.as_str())
        || CUTTING.contains(&plain.as_str())
        || plain.starts_with(FORWARDED)
        || words(name).any(|it| it == "override")
        || plain.ends_with("customhost")
    {
        return false;
    }
    is_known(&plain, pass)
        || !(has_credential(name) || words(name).any(|it| ACCOUNTS.contains(&it.as_str())))
}

/// Returns whether a parameter of a component's query passes on to the API. `name` is decoded. A request that only reads may name an
/// account, because it brings no data there.
pub(super) fn is_parameter(name: &str, is_reading: bool, pass: &[String]) -> bool {
    let plain = plain(name);
    // Servers could convert other characters to those of a credential's name.
    let is_readable = name.bytes().all(|it| it.is_ascii_graphic() || it == b' ');
    let is_refused = || {
        has_credential(name)
            || WHOLE.contains(&plain.as_str())
            || (!is_reading && words(name).any(|it| ACCOUNTS.contains(&it.as_str())))
    };
    is_readable && (is_known(&plain, pass) || !is_refused())
}

/// Returns whether a parameter of a query makes some servers take another method than that of the request.
pub(super) fn is_method(name: &str) -> bool {
    let plain = plain(name);
    METHODS.contains(&plain.as_str())
        || words(name).any(|it| it == "override")
        || (plain == "method" && name != "method")
}

/// Returns a name without signs, in lower case. Servers read `-` and `_` as the same, and names of parameters in any case.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|it| it.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

fn is_known(plain_name: &str, pass: &[String]) -> bool {
    HARMLESS.contains(&plain_name) || pass.iter().any(|it| plain(it) == plain_name)
}

fn has_credential(name: &str) -> bool {
    let whole = plain(name);
    PARTS.iter().any(|part| whole.contains(part))
        || words(name).any(|word| WORDS.contains(&word.as_str()))
}

/// Returns the words of a name in lower case, for example `x`, `api` and `key` of `xApi_KEY`. A number belongs to no word.
fn words(name: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut after_small = false;
    for letter in name.chars() {
        if !letter.is_alphabetic() || (after_small && letter.is_uppercase()) {
            words.push(String::new());
        }
        if letter.is_alphabetic()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
        after_small = letter.is_lowercase();
    }
    words.into_iter().filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of credentials in the references of public APIs.
    const CREDENTIALS: &[&str] = &[
        // GitLab, GitHub, Gitea, Bitbucket, Jira
        "Private-Token",
        "Job-Token",
        "Deploy-Token",
        "private_token",
        "access_token",
        "Sudo",
        "X-GitHub-OTP",
        "X-Gitea-OTP",
        "X-Hub-Signature-256",
        "X-Atlassian-Token",
        "X-Gitlab-Token",
        // Google, Firebase, Azure, AWS
        "oauth_token",
        "X-Goog-Api-Key",
        "X-Goog-Iam-Authorization-Token",
        "X-Goog-Signature",
        "X-Firebase-Auth",
        "Ocp-Apim-Subscription-Key",
        "X-Functions-Key",
        "X-Ms-Client-Auth-Token",
        "sig",
        "X-SAS-Signature",
        "X-Amz-Security-Token",
        "X-Amz-Signature",
        "X-Amz-Credential",
        "AWSAccessKeyId",
        "x-ms-authorization-auxiliary",
        // models and search
        "X-Api-Key",
        "Api-Key",
        "xi-api-key",
        "X-Subscription-Token",
        "X-OpenAI-Session",
        "X-RapidAPI-Key",
        "X-Auth-Token",
        "apikey",
        "api_key",
        "key",
        // Shopify, Stripe, Twilio, Square, Adyen, PayPal
        "X-Shopify-Access-Token",
        "X-Shopify-Storefront-Access-Token",
        "Stripe-Signature",
        "X-Twilio-Signature",
        "PayPal-Auth-Assertion",
        // Datadog, New Relic, Sentry, Grafana, PagerDuty
        "DD-API-KEY",
        "DD-APPLICATION-KEY",
        "X-Insert-Key",
        "X-License-Key",
        "X-Query-Key",
        "X-Sentry-Auth",
        "X-Grafana-Service-Token",
        "X-Routing-Key",
        // Vault, Consul, Nomad, Kubernetes
        "X-Vault-Token",
        "X-Consul-Token",
        "X-Nomad-Token",
        "Impersonate-User",
        // Cloudflare, Fastly, DigitalOcean, Heroku
        "X-Auth-Key",
        "X-Auth-User-Service-Key",
        "Fastly-Key",
        "CF-Access-Client-Secret",
        "CF-Access-JWT-Assertion",
        // Slack, Discord, Telegram, Notion, Airtable, Algolia, Trello, Zendesk
        "token",
        "X-Algolia-API-Key",
        "X-Discord-Token",
        "X-Trello-Auth",
        "X-Plex-Token",
        "X-Emby-Token",
        "X-MBX-APIKEY",
        "client_secret",
        "ACCESS-SIGN",
        "ACCESS-PASSPHRASE",
        "KC-API-SIGN",
        "password",
        "sessionid",
        "PHPSESSION",
        "jwt",
        "ticket",
        "authToken",
        "accessToken",
        "clientSecret",
    ];
    /// Names that clients of models, of GitHub, npm, pip, git and browsers send.
    const HARMLESS_OF_CLIENTS: &[&str] = &[
        "Accept",
        "Accept-Language",
        "Content-Type",
        "Content-Length",
        "Content-MD5",
        "User-Agent",
        "If-None-Match",
        "If-Modified-Since",
        "Cache-Control",
        "Pragma",
        "Date",
        "From",
        "Origin",
        "Referer",
        "Priority",
        "DNT",
        "Sec-Fetch-Mode",
        "Sec-Fetch-User",
        "Sec-CH-UA",
        "traceparent",
        "tracestate",
        "baggage",
        "X-Request-Id",
        "X-Correlation-Id",
        "anthropic-version",
        "anthropic-beta",
        "anthropic-dangerous-direct-browser-access",
        "x-app",
        "x-stainless-lang",
        "x-stainless-package-version",
        "x-stainless-retry-count",
        "x-stainless-timeout",
        "x-stainless-helper-method",
        "OpenAI-Organization",
        "OpenAI-Project",
        "OpenAI-Beta",
        "originator",
        "version",
        "X-Goog-Api-Client",
        "x-goog-user-project",
        "X-GitHub-Api-Version",
        "Idempotency-Key",
        "npm-command",
        "npm-scope",
        "Git-Protocol",
        "HTTP-Referer",
        "X-Title",
        "Authority",
        "X-Author",
        "X-Monkey",
        "X-Passport-Country",
        "Keyword",
        "X-Tokyo",
        "Signal",
        "Assignee",
        "Design",
        "Pinned",
    ];

    /// Returns a name in four spellings.
    fn spellings(name: &str) -> [String; 4] {
        [name.to_owned(), name.to_lowercase(), name.to_uppercase(), name.replace('-', "_")]
    }

    #[test]
    fn no_credential_of_a_public_api_passes() {
        let (mut headers, mut parameters) = (Vec::new(), Vec::new());
        for name in CREDENTIALS.iter().flat_map(|it| spellings(it)) {
            headers.extend(is_header(&name.to_lowercase(), &[]).then(|| name.clone()));
            parameters.extend(is_parameter(&name, true, &[]).then_some(name));
        }
        assert!(headers.is_empty(), "{headers:?}");
        assert!(parameters.is_empty(), "{parameters:?}");
    }

    #[test]
    fn what_clients_send_passes() {
        let all = HARMLESS_OF_CLIENTS.iter().flat_map(|it| spellings(it));
        let stopped: Vec<_> =
            all.filter(|it| !is_header(it, &[]) || !is_parameter(it, false, &[])).collect();
        assert!(stopped.is_empty(), "{stopped:?}");
        for name in [
            "q",
            "page",
            "per_page",
            "page_token",
            "nextPageToken",
            "alt",
            "user",
            "owner",
            "beta",
            "method",
            "model",
            "max_tokens",
        ] {
            assert!(is_parameter(name, true, &[]), "{name}");
        }
    }

    #[test]
    fn what_changes_the_request_never_passes() {
        let pass =
            ["x-http-method-override", "range", "x-custom-host", "method"].map(str::to_owned);
        for name in [
            "x-http-method-override",
            "x_method_override",
            "x-forwarded-host",
            "x-original-uri",
            "x-rewrite-url",
            "forwarded",
            "x-host",
            "range",
            "x-azure-custom-host",
        ] {
            assert!(!is_header(name, &pass), "{name}");
        }
        for name in ["_method", ".method", "$method", "x-http-method-override", "_HttpMethod"] {
            assert!(is_method(name), "{name}");
        }
        assert!(!is_method("method"), "an API of its own");
    }

    #[test]
    fn what_the_boxfile_names_passes_in_each_spelling() {
        let pass = ["x-session-id".to_owned()];
        for name in ["x-session-id", "X_Session_ID", "xSessionId"] {
            assert!(is_header(name, &pass) && is_parameter(name, false, &pass), "{name}");
        }
        assert!(!is_header("x-session-key", &pass));
    }
}
