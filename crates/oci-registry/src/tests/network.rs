//! Connections that break, and servers that are slow, busy or impostors.

use std::time::Duration;

use download::Policy;

use super::harness::{fails, is, succeeds};
use super::stage::Plan;
use super::*;

const HALF: usize = 7;

/// Plans the answers for the layer's path, one for each request.
fn layer(answer: impl Fn(usize, &[u8]) -> Option<Reply> + Send + Sync + 'static) -> Plan {
    let image = Image::with(|_| ());
    let bytes = image.layer.clone();
    Plan::new().at(&image.layer_path(), move |before| answer(before, &bytes))
}

/// Plans a layer whose first answer breaks off, and the second answer.
fn broken(then: impl Fn(&[u8]) -> Option<Reply> + Send + Sync + 'static) -> Plan {
    layer(move |before, bytes| match before {
        0 => Some(half(bytes)),
        1 => then(bytes),
        _ => None,
    })
}

/// Declares the length of the whole layer, and sends its first half.
fn half(bytes: &[u8]) -> Reply {
    reply("200 OK", &[&length(bytes.len())], &bytes[..HALF])
}

/// Sends the bytes from `first` on, with a `Content-Range` header.
fn part(first: usize, total: usize, bytes: &[u8]) -> Reply {
    let range = format!("Content-Range: bytes {first}-{}/{total}", total - 1);
    reply("206 Partial Content", &[&range, &length(bytes.len())], bytes)
}

/// Returns wrong bytes of the length of the second half.
fn lie(bytes: &[u8]) -> Vec<u8> {
    vec![b'?'; bytes.len() - HALF]
}

fn busy(status: &str, headers: &[&str]) -> Reply {
    reply(status, &[headers, &["Content-Length: 0"]].concat(), b"")
}

/// Returns whether the pull has succeeded, with these `Range` headers in the requests for the
/// layer.
fn ranges(outcome: &Result<(), PullError>, stage: &Stage, expected: &[Option<&str>]) -> bool {
    let asked = stage.asked(&stage.image.layer_path());
    let asked: Vec<_> = asked.iter().map(|request| request.header("range")).collect();
    outcome.is_ok() && asked == expected
}

/// Returns the number of requests for the layer.
fn layer_tries(stage: &Stage) -> usize {
    stage.asked(&stage.image.layer_path()).len()
}

/// Plans a registry whose certificate is not trusted.
fn untrusted(identity: Identity) -> Plan {
    Plan { identity, ..Plan::new() }
}

/// Returns whether the certificate was rejected for this reason, before a request was sent.
fn refused_certificate(outcome: &Result<(), PullError>, stage: &Stage, reason: &str) -> bool {
    let Err(PullError::Registry(RegistryError::Download(DownloadError::Http(
        HttpError::Untrusted { source, .. },
    )))) = outcome
    else {
        return false;
    };
    stage.registry.requests().is_empty() && format!("{source:?}").contains(reason)
}

/// Sends one byte every 20 ms, without an end.
fn drip(bytes: &[u8]) -> Reply {
    let mut steps = reply("200 OK", &[&length(bytes.len())], b"");
    for byte in bytes.iter().cycle().take(1000) {
        steps.extend([Step::Send(vec![*byte]), Step::Pause(Duration::from_millis(20))]);
    }
    steps
}

fn demanding(options: Options) -> Options {
    let options = impatient(options);
    let policy = Policy { least_rate: 1 << 20, ..options.network.policy };
    with_policy(options, policy)
}

/// Allows half a second for each manifest.
fn hurried(options: Options) -> Options {
    let policy = Policy { grace: Duration::from_millis(500), ..options.network.policy };
    with_policy(options, policy)
}

fn impatient(options: Options) -> Options {
    let policy = Policy { patience: Duration::from_secs(1), tries: 1, ..options.network.policy };
    with_policy(options, policy)
}

cases! {
    a_layer_that_always_breaks_off: layer(|_, bytes| Some(half(bytes))) => |outcome, stage| {
        is!(outcome, RegistryError::Download(DownloadError::Interrupted { how, .. }) if how.contains("broke off after"))
            && layer_tries(stage) == 3
    };
    a_layer_without_a_length_that_always_breaks_off: {
        layer(|_, bytes| Some(reply("200 OK", &[], &bytes[..HALF])))
    } => fails!(RegistryError::Download(DownloadError::Interrupted { how, .. }) if how.contains("broke off after"));
    a_layer_without_a_length_that_breaks_off_once: layer(|before, bytes| Some(match before {
        0 => reply("200 OK", &[], &bytes[..HALF]),
        _ => part(HALF, bytes.len(), &bytes[HALF..]),
    })) => |outcome, stage| ranges(outcome, stage, &[None, Some("bytes=7-")]);
    a_layer_that_breaks_off_once: broken(|bytes| Some(part(HALF, bytes.len(), &bytes[HALF..])))
        => |outcome, stage| ranges(outcome, stage, &[None, Some("bytes=7-")]);
    a_part_that_breaks_off_too: layer(|before, bytes| Some(match before {
        0 => half(bytes),
        1 => {
            let mut rest = part(HALF, bytes.len(), &bytes[HALF..]);
            rest[1] = Step::Send(bytes[HALF..10].to_vec());
            rest
        }
        _ => part(10, bytes.len(), &bytes[10..]),
    })) => |outcome, stage| ranges(outcome, stage, &[None, Some("bytes=7-"), Some("bytes=10-")]);
    the_whole_in_the_place_of_the_rest: broken(|bytes| Some(file(bytes)))
        => |outcome, stage| ranges(outcome, stage, &[None, Some("bytes=7-")]);
    the_rest_from_another_place: broken(|bytes| Some(part(3, bytes.len(), &bytes[3..])))
        => |outcome, stage| ranges(outcome, stage, &[None, Some("bytes=7-"), None]);
    the_rest_of_another_size: broken(|bytes| Some(part(HALF, 99, &bytes[HALF..])))
        => |outcome, stage| ranges(outcome, stage, &[None, Some("bytes=7-"), None]);
    the_rest_of_another_blob: broken(|bytes| Some(part(HALF, bytes.len(), &lie(bytes)))) =>
        |outcome, stage| ranges(outcome, stage, &[None, Some("bytes=7-"), None]);
    the_rest_is_more_than_that: {
        broken(|bytes| Some(part(HALF, bytes.len(), &[&bytes[HALF..], b"+"].concat())))
    } => |outcome, stage| ranges(outcome, stage, &[None, Some("bytes=7-"), None]);
    the_rest_is_less_than_that: {
        broken(|bytes| Some(part(HALF, bytes.len(), &bytes[HALF..bytes.len() - 1])))
    } => |outcome, stage| ranges(outcome, stage, &[None, Some("bytes=7-"), None]);
    a_rest_that_cannot_be_had: broken(|_| Some(busy("416 Range Not Satisfiable", &[])))
        => |outcome, stage| ranges(outcome, stage, &[None, Some("bytes=7-"), None]);
    a_part_that_nobody_asked_for: layer(|_, bytes| Some(part(0, bytes.len(), bytes)))
        => fails!(RegistryError::Download(DownloadError::Status { transient: false, .. }));
    always_another_blob_behind_the_break: layer(|before, bytes| match before % 2 {
        0 => Some(half(bytes)),
        _ => Some(part(HALF, bytes.len(), &lie(bytes))),
    }) => |outcome, stage| {
        is!(outcome, RegistryError::Download(DownloadError::Interrupted { how, .. }) if how.contains("broke off after"))
            && layer_tries(stage) < 10
    };
    a_manifest_that_breaks_off_once: {
        let bytes = Image::with(|_| ()).manifest;
        Plan::new().at("/v2/app/manifests/v1", move |before| (before == 0).then(|| half(&bytes)))
    } => succeeds;
    a_config_that_breaks_off_once: {
        Plan::new().at(&Image::with(|_| ()).config_path(), move |before| {
            (before == 0).then(|| reply("200 OK", &[&length(2)], b"{"))
        })
    } => succeeds;
    a_storm_of_429: layer(|_, _| Some(busy("429 Too Many Requests", &[]))) => |outcome, stage| {
        is!(outcome, RegistryError::Download(DownloadError::Status { transient: true, .. }))
            && layer_tries(stage) == 3
    };
    a_storm_of_503: layer(|_, _| Some(busy("503 Service Unavailable", &["Retry-After: 0"])))
        => |outcome, stage| {
        is!(outcome, RegistryError::Download(DownloadError::Status { transient: true, .. }))
            && layer_tries(stage) == 3
    };
    a_storm_that_passes: layer(|before, _| match before {
        0 => Some(busy("429 Too Many Requests", &["Retry-After: 0"])),
        1 => Some(busy("503 Service Unavailable", &[])),
        _ => None,
    }) => |outcome, stage| ranges(outcome, stage, &[None; 3]);
    a_storm_that_lasts_an_hour: {
        layer(|_, _| Some(busy("429 Too Many Requests", &["Retry-After: 3600"])))
    } => |outcome, stage| {
        let hour = Some(Duration::from_secs(3600));
        is!(outcome, RegistryError::Download(DownloadError::Status { retry_after, .. }) if *retry_after == hour)
            && layer_tries(stage) == 1
    };
    a_registry_that_says_nothing: layer(|_, _| Some(vec![Step::Hang]))
        => fails!(RegistryError::Download(DownloadError::Http(HttpError::Unreachable { what, .. })) if what.contains("has sent nothing for")), impatient;
    a_registry_that_falls_silent: layer(|_, bytes| {
        let mut silent = half(bytes);
        silent.push(Step::Hang);
        Some(silent)
    }) => fails!(RegistryError::Download(DownloadError::Http(HttpError::Unreachable { what, .. })) if what.contains("has sent nothing for")), impatient;
    a_registry_that_drips: layer(|_, bytes| Some(drip(bytes))) => |outcome, _| {
        outcome.is_ok()
    };
    a_registry_that_drips_without_an_end: {
        let image = Image::with(|it| it["layers"][0]["size"] = 100_000.into());
        let bytes = vec![b'x'; 100_000];
        let path = image.layer_path();
        Plan { image, ..Plan::new() }.at(&path, move |_| Some(drip(&bytes)))
    } => fails!(RegistryError::Download(DownloadError::Interrupted { how, .. }) if how.contains("sends less than")), demanding;
    a_manifest_that_drips_beyond_its_time: {
        let bytes = [b'x'; 1000];
        Plan::new().at("/v2/app/manifests/v1", move |_| Some(drip(&bytes)))
    } => |outcome, stage| {
        let asked = stage.asked("/v2/app/manifests/v1").len();
        asked == 1 && is!(outcome, RegistryError::Download(DownloadError::Interrupted { transient: false, .. }))
    }, hurried;
    a_part_of_another_version: layer(|before, bytes| Some(match before {
        0 => reply("200 OK", &["ETag: \"one\"", &length(bytes.len())], &bytes[..HALF]),
        1 => {
            let range = format!("Content-Range: bytes {HALF}-{}/{}", bytes.len() - 1, bytes.len());
            let headers = [&range, "ETag: \"two\"", &length(bytes.len() - HALF)];
            reply("206 Partial Content", &headers, &lie(bytes))
        }
        _ => file(bytes),
    })) => |outcome, stage| {
        let asked = stage.asked(&stage.image.layer_path());
        let versions: Vec<_> = asked.iter().map(|it| it.header("if-range")).collect();
        versions == [None, Some("\"one\""), None]
            && ranges(outcome, stage, &[None, Some("bytes=7-"), None])
    };
    a_connection_that_closes_at_once: layer(|before, _| (before == 0).then(Vec::new)) => succeeds;
    something_else_than_http: layer(|_, _| Some(vec![Step::Send(b"SSH-2.0-x\r\n".to_vec())]))
        => fails!(RegistryError::Download(DownloadError::Http(HttpError::NotHttp { .. })));
    a_registry_over_https: untrusted(Identity::Valid) => succeeds;
    a_registry_with_a_root_of_its_own: {
        let config = format!("ca-file = {:?}", test_server::roots());
        Plan { config, ..untrusted(Identity::Valid) }
    } => succeeds, |options| {
        Options { network: NetworkOptions { roots: None, ..options.network }, ..options }
    };
    an_expired_certificate: untrusted(Identity::Expired)
        => |outcome, stage| refused_certificate(outcome, stage, "Expired");
    a_self_signed_certificate: untrusted(Identity::SelfSigned)
        => |outcome, stage| refused_certificate(outcome, stage, "UnknownIssuer");
    a_refusal_with_a_code: layer(|_, _| {
        let body = format!("{{\"errors\": [{{\"code\": \"DENIED\", \"message\": \"{TOKEN}\"}}]}}");
        Some(reply("403 Forbidden", &[&length(body.len())], body.as_bytes()))
    }) => fails!(RegistryError::Download(DownloadError::Status { reason: Some("DENIED"), transient: false, .. }));
    a_refusal_with_a_strange_code: layer(|_, _| {
        let body = format!("{{\"errors\": [{{\"code\": \"{TOKEN}\"}}]}}");
        Some(reply("403 Forbidden", &[&length(body.len())], body.as_bytes()))
    }) => fails!(RegistryError::Download(DownloadError::Status { reason: None, .. }));
}

#[test]
fn a_registry_that_speaks_http_is_recognized() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let hello = std::io::Read::read(&mut stream, &mut [0; 4096]).unwrap();
        std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        hello
    });
    let stage = Plan::new().set();
    let registry = Registry::new(super::stage::quick());
    let repository = Repository::new(&host, "app").unwrap();
    let blob = (digest(b"x"), 1);
    let error = registry.fetch_blobs(&repository, &[blob], &stage.store).unwrap_err();
    assert!(server.join().unwrap() > 0);
    assert!(matches!(error, RegistryError::NotTls { host: named, .. } if named == host));
}
