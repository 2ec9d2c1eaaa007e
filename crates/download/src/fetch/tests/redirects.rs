//! Allowed and forbidden redirects.

use std::net::SocketAddr;

use reqwest::header::{HeaderMap, HeaderValue};

use super::server::{Server, file, redirect, reply};
use super::*;
use crate::http::Client;
use crate::request::{FinalResponse, Request, RequestUrl};

#[test]
fn five_redirects_are_followed() {
    let script = |port: u16| {
        let absolute = format!("http://127.0.0.1:{port}/absolute");
        let to = ["/a", "b?c=d", &absolute, "//127.0.0.1", "?e"];
        let to =
            to.map(|to| if to == "//127.0.0.1" { format!("{to}:{port}/f") } else { to.into() });
        let mut replies: Vec<_> = to.iter().map(|to| redirect(to)).collect();
        replies.push(file(DATA));
        replies
    };
    let server = Server::http(script);
    fetch_new(&server.url("/start"), &quick()).unwrap();
    let requests = server.requests();
    let paths: Vec<_> = requests.iter().filter_map(|it| it.split(' ').nth(1)).collect();
    assert_eq!(paths, ["/start", "/a", "/b?c=d", "/absolute", "/f", "/f?e"]);
}

#[test]
fn every_kind_of_redirect_is_followed() {
    for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"] {
        let moved = reply(status, &["Location: /there", "Content-Length: 0"], b"");
        let server = Server::http(|_| vec![moved.clone(), file(DATA)]);
        fetch_new(&server.url("/"), &quick()).unwrap();
    }
}

#[test]
fn a_redirect_to_nowhere_is_no_file() {
    let server = Server::http(|_| vec![reply("302 Found", &["Content-Length: 0"], b"")]);
    let error = fetch_new(&server.url("/"), &quick()).unwrap_err();
    assert!(
        matches!(error, FetchError::Download(DownloadError::Status { transient: false, .. })),
        "{error}"
    );
}

#[test]
fn a_loop_ends_after_five() {
    let server = Server::http(|_| vec![redirect("/"); 6]);
    let url = server.url("/");
    let error = fetch_new(&url, &quick()).unwrap_err();
    let text = format!("the request for {url} is redirected more than 5 times");
    assert_eq!(error.to_string(), text);
    assert_eq!(server.requests().len(), 6);
}

/// Returns the error of a redirect to `location`, without the server's URL.
fn redirected_to(location: &str) -> String {
    let server = Server::http(|_| vec![redirect(location)]);
    let url = server.url("/");
    let error = fetch_new(&url, &quick()).unwrap_err();
    assert!(matches!(error, FetchError::Download(DownloadError::Redirect { .. })), "{error}");
    chain(&error).replace(&url, "URL")
}

#[test]
fn a_link_local_address_is_not_asked() {
    for (host, purpose) in [
        ("169.254.169.254", "link-local"),
        ("[fe80::1]", "link-local"),
        ("[::ffff:169.254.169.254]", "link-local"),
        ("[64:ff9b::169.254.169.254]", "link-local"),
        ("168.63.129.16", "a cloud's metadata"),
        ("100.100.100.200", "a cloud's metadata"),
        ("[fd00:ec2::254]", "a cloud's metadata"),
    ] {
        let error = redirected_to(&format!("http://{host}/latest/meta-data/?key=secret"));
        let end = format!("which is not followed: its address is {purpose}");
        assert!(error.ends_with(&end) && !error.contains("secret"), "{error}");
    }
}

/// A resolver for the names in the redirects of the following tests.
fn lookup(name: &str) -> std::io::Result<Vec<SocketAddr>> {
    Ok(match name {
        "here.example.com" => vec![([127, 0, 0, 1], 0).into()],
        "metadata.example.com" => vec![([169, 254, 169, 254], 0).into()],
        "both.example.com" => vec![([127, 0, 0, 1], 0).into(), ([100, 100, 100, 200], 0).into()],
        other => panic!("{other} is no redirect"),
    })
}

/// Sends a request that is redirected to `host` at the server's port.
fn led_to(server: &Server, host: &str) -> Result<FinalResponse, DownloadError> {
    let client = Client::with_lookup(&quick().network, None, 0, lookup).unwrap();
    let url: RemoteUrl = server.url(&format!("/to/{host}")).parse().unwrap();
    Request::get("it", RequestUrl::named(url), HeaderMap::new()).send(&client)
}

#[test]
fn a_name_with_such_an_address_is_not_connected_to() {
    for (host, purpose) in
        [("metadata.example.com", "link-local"), ("both.example.com", "a cloud's metadata")]
    {
        let server =
            Server::http(|port| vec![redirect(&format!("http://{host}:{port}/")), file(DATA)]);
        let error = led_to(&server, host).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, DownloadError::Redirect { .. }), "{text}");
        assert!(text.ends_with(&format!("not followed: its address is {purpose}")), "{text}");
        assert_eq!(server.requests().len(), 1, "the address is not asked");
    }
    let server = Server::http(|port| {
        vec![redirect(&format!("http://here.example.com:{port}/")), file(DATA)]
    });
    let answer = led_to(&server, "here.example.com").unwrap();
    assert!(answer.response.status().is_success() && !answer.at.same_origin());
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn authorization_goes_to_the_first_origin_until_a_redirect_leaves_it() {
    let server = Server::http(|port| {
        let there = redirect(&format!("http://here.example.com:{port}/there"));
        let back = redirect(&format!("http://127.0.0.1:{port}/back"));
        vec![redirect("/own"), there, back, file(DATA)]
    });
    let client = Client::with_lookup(&quick().network, None, 0, lookup).unwrap();
    let url: RemoteUrl = server.url("/").parse().unwrap();
    let authorization = Some(HeaderValue::from_static("Bearer secret"));
    let request =
        Request { authorization, ..Request::get("it", RequestUrl::named(url), HeaderMap::new()) };
    assert!(!request.send(&client).unwrap().at.same_origin());
    let requests = server.requests();
    let with_secret: Vec<_> = requests.iter().map(|it| it.contains("secret")).collect();
    assert_eq!(with_secret, [true, true, false, false]);
}

#[test]
fn other_schemes_and_credentials_are_not_followed() {
    assert_eq!(
        redirected_to("file:///etc/passwd"),
        "the request for URL is redirected to file://, which is not followed: \
         only https and http are"
    );
    assert_eq!(
        redirected_to("https://me:secret@example.com/x?key=secret"),
        "the request for URL is redirected to https://example.com, which is not followed: \
         it has a user name or a password"
    );
    assert_eq!(
        redirected_to("http://[::1/x?key=secret"),
        "the request for URL is redirected to a malformed URL, which is not followed: \
         it cannot be parsed"
    );
}

#[test]
fn https_is_never_left() {
    let server = Server::https(|_| vec![redirect("http://127.0.0.1:1/x?key=secret")]);
    let options = reached(NetworkOptions { roots: Some(roots()), ..quick().network });
    let url = server.url("/");
    let error = fetch_new(&url, &options).unwrap_err();
    let text = format!(
        "the request for {url} is redirected from https to http://127.0.0.1:1, \
         where anybody could change or watch the response"
    );
    assert_eq!(error.to_string(), text);
}

#[test]
fn http_may_lead_to_https() {
    let secure = Server::https(|_| vec![file(DATA)]);
    let to = secure.url("/agent");
    let plain = Server::http(|_| vec![redirect(&to)]);
    let options = reached(NetworkOptions { roots: Some(roots()), ..quick().network });
    fetch_new(&plain.url("/"), &options).unwrap();
}
