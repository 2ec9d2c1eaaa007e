//! `--proxy`: the HTTP proxy of the host through which a box's filter and its services connect.

use std::fmt::{self, Display, Formatter};

use box_contract::ErrorCode;
use egress_proxy::Proxy;

use crate::cli::error::Failure;

/// The value that stands for the variables of the environment.
const ENV: &str = "env";
/// The only scheme of proxies. In a variable, it may be left out, as for other programs.
const SCHEME: &str = "http://";
/// The variables with the URL of a proxy. The first one that is set counts.
const URLS: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
/// The variables with the hosts that are reached without the proxy.
const EXCEPT: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// The proxy of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum ProxyChoice {
    /// The one in boxlaunch's environment, which is read at each start of the box.
    Env,
    /// The one with this URL, which has no user and no password.
    Url(Proxy),
}

impl ProxyChoice {
    /// Parses a value of `--proxy`. A password is refused, because other users of the host can see a command line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text == ENV {
            return Ok(Self::Env);
        }
        let has_port = text.strip_prefix(SCHEME).is_some_and(|it| it.contains(':'));
        let proxy = Proxy::parse(text).ok().filter(|_| has_port);
        let proxy = proxy.ok_or("write `env`, or http://HOST:PORT")?;
        if proxy.has_user() {
            return Err(
                "other users can see a password here: put the URL into HTTPS_PROXY, and write `--proxy env`".to_owned(),
            );
        }
        Ok(Self::Url(proxy))
    }

    /// Returns the proxy. `variable` returns the value of a variable.
    ///
    /// # Errors
    /// If no variable has a proxy, or its URL is malformed.
    pub(super) fn find(&self, variable: impl Fn(&str) -> Option<String>) -> Result<Proxy, Failure> {
        let proxy = match self {
            Self::Url(proxy) => return Ok(proxy.clone()),
            Self::Env => URLS.iter().find_map(|it| set(it, &variable)),
        };
        let Some((name, url)) = proxy else {
            let message = "`--proxy env` finds no proxy: neither HTTPS_PROXY nor ALL_PROXY is set";
            let help = "run `export HTTPS_PROXY=http://HOST:PORT` first, or leave --proxy out";
            return Err(Failure::new((ErrorCode::Usage, help), message));
        };
        let proxy = Proxy::parse(&url).map_err(|error| {
            let message = format!("the variable {name} is not the URL of a proxy: {error}");
            Failure::new((ErrorCode::Usage, "correct the variable, or write --proxy URL"), message)
        })?;
        let except = EXCEPT.iter().find_map(|it| set(it, &variable));
        Ok(except.map_or_else(|| proxy.clone(), |(_, list)| proxy.clone().except(&list)))
    }
}

/// Returns a variable's name and value, if the value is not empty.
fn set(name: &str, variable: impl Fn(&str) -> Option<String>) -> Option<(&str, String)> {
    variable(name).filter(|it| !it.is_empty()).map(|value| (name, value))
}

impl Display for ProxyChoice {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env => f.write_str(ENV),
            Self::Url(proxy) => Display::fmt(proxy, f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Result<Proxy, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(own, _)| *own == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        ProxyChoice::Env.find(variable).map_err(|error| error.text())
    }

    #[test]
    fn a_url_has_no_password_and_is_repeated_as_it_is() {
        for (text, repeated) in [
            ("env", "env"),
            ("http://proxy.example:3128/", "http://proxy.example:3128"),
            ("http://10.0.0.1:80", "http://10.0.0.1:80"),
        ] {
            let choice = ProxyChoice::parse(text).unwrap();
            assert_eq!(choice.to_string(), repeated);
            assert_eq!(ProxyChoice::parse(repeated), Ok(choice));
        }
        let error = ProxyChoice::parse("http://user:canary@proxy:1").unwrap_err();
        assert!(error.contains("put the URL into HTTPS_PROXY") && !error.contains("canary"));
        for wrong in ["none", "ENV", "p:3128", "http://p", "http://p:3128/x", "socks5://p:1080"] {
            let asked = "write `env`, or http://HOST:PORT";
            assert_eq!(ProxyChoice::parse(wrong).unwrap_err(), asked, "{wrong}");
        }
    }

    #[test]
    fn the_first_variable_that_is_set_counts() {
        let all = [("HTTPS_PROXY", ""), ("https_proxy", "one"), ("ALL_PROXY", "http://other")];
        assert_eq!(found(&all).unwrap().to_string(), "http://one:80");
        assert_eq!(found(&all[2..]).unwrap().to_string(), "http://other:80");
        let with = found(&[all[1], ("no_proxy", "corp.example")]).unwrap();
        assert_eq!(with, Proxy::parse("one").unwrap().except("corp.example"));
        insta::assert_snapshot!(found(&[("HTTP_PROXY", "http://one")]).unwrap_err(), @"
        error: `--proxy env` finds no proxy: neither HTTPS_PROXY nor ALL_PROXY is set
          = help: run `export HTTPS_PROXY=http://HOST:PORT` first, or leave --proxy out
        ");
        let error = found(&[("ALL_PROXY", "socks5://user:canary@proxy")]).unwrap_err();
        insta::assert_snapshot!(error, @"
        error: the variable ALL_PROXY is not the URL of a proxy: write http://HOST:PORT: proxies of another kind are not supported
          = help: correct the variable, or write --proxy URL
        ");
    }
}
