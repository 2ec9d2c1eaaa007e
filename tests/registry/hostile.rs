//! Tests with a registry that tries to make a client use unbounded memory.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt as _;
use std::process::{Command, Output, Stdio};
use std::thread::{self, sleep};
use std::time::Duration;

use box_contract::Descriptor;
use box_contract::manifest::OCI_MANIFEST_TYPE;
use box_delta::{Extent, Made, Plan, Source};
use box_digest::Digest;
use box_registry::{Deltas, PLAIN_DIGEST};
use serde_json::{Value, json};
use test_server::registry::{Deed, Held, Referrers, Rules};
use test_server::{Early, Request, Step, reply};
use testbed::program;
use testbed::promises::HOSTILE_PULL_MEMORY;
use testkit::TestBox;
use testkit::test_box::config;

use crate::host::{Host, NAME, TAG, check, compare, report};
use crate::inline::noise;
use crate::kinds::leftovers;

const MEBIBYTE: usize = 1 << 20;

/// Runs a command, and checks its peak memory.
fn bounded(what: &str, mut command: Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = child.id();
    let (mut peak, watched) = (0, thread::spawn(move || child.wait_with_output().unwrap()));
    while !watched.is_finished() {
        peak = program::peak_of(id).max(peak);
        sleep(Duration::from_millis(2));
    }
    println!("{what}: {peak} KiB");
    assert!(peak > 0, "the memory of the command was not seen");
    HOSTILE_PULL_MEMORY.check(peak as f64 / 1024.0);
    watched.join().unwrap()
}

/// Pulls into a new store, which must fail and leave no partial files. Returns the stdout.
fn refused(what: &str, host: &Host) -> String {
    fs::remove_dir_all(host.path("store")).ok();
    let output = bounded(what, host.pull("store"));
    let message = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{what}: {message}");
    assert!(leftovers(host, "store").is_empty(), "{what}");
    check(&host.path("store"));
    println!("{message:.300}");
    message
}

/// Changes the manifest in the registry.
fn edit(host: &Host, change: impl FnOnce(&mut Held, &mut Value)) {
    let mut document = host.document();
    host.registry.with(|held| {
        change(held, &mut document);
        held.put_manifest(NAME, TAG, OCI_MANIFEST_TYPE, document.to_string().as_bytes());
    });
}

/// Returns a zstd frame with a window of 2^`window_log` bytes that decompresses to `mebibytes` MiB of zeros.
fn zeros(mebibytes: usize, window_log: u32) -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(window_log).unwrap();
    for _ in 0..mebibytes {
        encoder.write_all(&[0; MEBIBYTE]).unwrap();
    }
    encoder.finish().unwrap()
}

/// Pushes a box whose segments are each larger than the decoder's largest window.
fn large(segments: u8) -> Host {
    let segment = |number: u8| {
        let mut segment = vec![0; 36 * MEBIBYTE];
        segment[..8].fill(number + 1);
        segment
    };
    let host = Host::of(Rules::default(), (0..segments).map(segment).collect());
    host.pushed();
    host
}

/// Replaces each segment in the registry with `bytes(index)`.
fn replace(host: &Host, bytes: impl Fn(usize) -> Vec<u8>) {
    edit(host, |held, document| {
        let layers = document["layers"].as_array_mut().unwrap().iter_mut();
        let segments = layers.filter(|it| it["mediaType"].as_str().unwrap().contains("segment"));
        for (at, layer) in segments.enumerate() {
            let bytes = bytes(at);
            layer["digest"] = json!(held.put_blob(NAME, &bytes));
            layer["size"] = json!(bytes.len());
        }
    });
}

#[test]
fn frames_that_never_end_stop_at_their_size() {
    let host = large(5);
    // Each blob has a different digest in the registry.
    replace(&host, |at| [zeros(2048 + at, 25), vec![]].concat());
    let message = refused("bombs", &host);
    assert!(message.contains("inflates to more than"), "{message}");
    replace(&host, |at| zeros(1 + at, 27));
    let message = refused("windows", &host);
    assert!(message.contains("zstd: "), "{message}");
}

#[test]
fn deltas_with_the_longest_prefixes_are_applied() {
    let rules = Rules { referrers: Referrers::Paged(9), ..Rules::default() };
    let noisy = |number: u8| [vec![number; 40], noise(36 << 20, number.into())].concat();
    let whole = |mut it: Vec<u8>| {
        it.resize(it.len().next_multiple_of(4096), 0);
        it
    };
    let old: Vec<_> = (0..4).map(noisy).map(whole).collect();
    let new: Vec<_> = (0..4).map(|it| whole([b"newer".to_vec(), noisy(it)].concat())).collect();
    let host = Host::of(rules, old.clone());
    host.pushed();
    host.pulled("store");
    let mut host = host;
    host.files = TestBox::with_segments(&config(), new.clone());
    let pushed = host.pushed();
    let made: Vec<_> = old.iter().zip(&new).map(|(old, new)| delta(old, new)).collect();
    assert!(made.iter().all(|it| it.size < 1 << 17), "{made:?}");
    let digest: Digest = pushed["registry_digest"].as_str().unwrap().parse().unwrap();
    host.registry.with(|held| {
        let size = held.manifests[&(NAME.to_owned(), digest.to_string())].1.len() as u64;
        let subject = Descriptor::new(OCI_MANIFEST_TYPE, digest, size);
        let (listed, bytes) = Deltas::manifest(&subject, &digest, &made);
        held.put_manifest(NAME, &listed.digest.to_string(), OCI_MANIFEST_TYPE, &bytes);
        for it in &made {
            let mut bytes = vec![0; usize::try_from(it.size).unwrap()];
            it.file.read_exact_at(&mut bytes, 0).unwrap();
            held.put_blob(NAME, &bytes);
        }
    });
    let report = report(&bounded("deltas", host.pull("store")));
    assert_eq!(report["deltas"], 4, "{report}");
    compare(&host.files, &host.path("store"));
}

/// Makes the delta between two segments.
fn delta(old: &[u8], new: &[u8]) -> Made {
    let file = |bytes: &[u8]| {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    };
    let (from, size) = (file(old), old.len() as u64);
    let plan = Plan::whole(Extent { source: 0, offset: 0, length: size }, new.len() as u64);
    let source = Source { digest: Digest::of(old), size, file: &from };
    let target = (Digest::of(new), new.len() as u64);
    let scratch = tempfile::tempfile().unwrap();
    Made::new((&plan, &[source]), (target, &file(new)), scratch, size).unwrap().unwrap()
}

#[test]
fn a_box_with_the_largest_windows_is_pulled() {
    let host = large(6);
    let frame = |at: usize| {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(25).unwrap();
        let mut segment = vec![0; 36 * MEBIBYTE];
        segment[..8].fill(u8::try_from(at).unwrap() + 1);
        encoder.write_all(&segment).unwrap();
        encoder.finish().unwrap()
    };
    replace(&host, frame);
    let output = bounded("honest", host.pull("store"));
    assert!(output.status.success());
    crate::host::compare(&host.files, &host.path("store"));
}

/// Sends an endless answer to each request with this method and with `part` in its path.
fn endless(method: &'static str, part: &'static str, status: &'static str) -> Deed {
    Box::new(move |request: &Request, _| {
        let mut answer = reply(status, &["Content-Type: application/json"], b"{\"errors\":[\"");
        answer.push(Step::Flood(vec![b'a'; MEBIBYTE]));
        let is_it = request.method() == method && request.path().contains(part);
        is_it.then_some(Early { after: usize::MAX, reply: answer })
    })
}

#[test]
fn answers_that_never_end_are_cut_off() {
    for (method, part, status) in [
        ("GET", "/manifests/", "200 OK"),
        ("GET", "/manifests/", "404 Not Found"),
        ("GET", "/blobs/", "200 OK"),
        ("GET", "/token", "200 OK"),
        ("GET", "/token", "401 Unauthorized"),
    ] {
        let what = format!("{method} {part} {status}");
        let deed = Some(endless(method, part, status));
        let host = Host::new(Rules { closed: part == "/token", deed, ..Rules::default() });
        // Copies the blobs and manifests from another registry, because this one cannot complete a push.
        let right = Host::with_box(Rules::default());
        let (blobs, manifests) =
            right.registry.with(|held| (held.blobs.clone(), held.manifests.clone()));
        host.registry.with(|held| (held.blobs, held.manifests) = (blobs, manifests));
        refused(&what, &host);
    }
    for (method, part, status) in [
        ("GET", "/manifests/", "200 OK"),
        ("POST", "/uploads/", "202 Accepted"),
        ("POST", "/uploads/", "400 Bad Request"),
        ("PUT", "/uploads/", "201 Created"),
        ("PUT", "/uploads/", "400 Bad Request"),
        ("PUT", "/manifests/", "400 Bad Request"),
    ] {
        let what = format!("{method} {part} {status}");
        let deed = Some(endless(method, part, status));
        let host = Host::new(Rules { deed, ..Rules::default() });
        let output = bounded(&what, host.push(&host.files));
        assert_eq!(output.status.code(), Some(1), "{what}");
    }
}

#[test]
fn a_manifest_may_be_as_large_as_it_wants() {
    let host = Host::with_box(Rules::default());
    // About as many layers as a manifest may have, and ten times as many.
    for layers in [32_000, 320_000] {
        let right = host.document();
        edit(&host, |_, document| {
            let list = document["layers"].as_array_mut().unwrap();
            let digest = Digest::of(b"nothing");
            let more =
                (0..layers).map(|_| json!({ "mediaType": "x", "digest": digest, "size": 1 }));
            list.extend(more);
        });
        let output = bounded(&format!("{layers} layers"), host.pull("layers"));
        assert_eq!(output.status.success(), layers == 32_000);
        edit(&host, |_, document| *document = right);
    }
    for mebibytes in [3, 30] {
        let right = host.document();
        edit(&host, |_, document| {
            document["layers"][0]["annotations"]["x"] = "y".repeat(mebibytes * MEBIBYTE).into();
        });
        let output = bounded(&format!("{mebibytes} MiB of annotations"), host.pull("annotated"));
        assert_eq!(output.status.success(), mebibytes == 3);
        edit(&host, |_, document| *document = right);
    }
}

#[test]
fn sizes_that_lie_are_noticed() {
    let host = Host::with_box(Rules::default());
    let right = host.document();
    for size in [0_u64, 1, 1 << 40, u64::MAX] {
        for pointer in ["/config/size", "/layers/0/size", "/layers/2/size"] {
            edit(&host, |_, document| *document.pointer_mut(pointer).unwrap() = size.into());
            refused(&format!("{pointer} {size}"), &host);
            edit(&host, |_, document| *document = right.clone());
        }
    }
    for size in ["0", "4095", "1099511627776"] {
        edit(&host, |_, document| {
            let annotations = &mut document["layers"][2]["annotations"];
            assert!(annotations[PLAIN_DIGEST].is_string());
            annotations["vnd.boxbuild.plain.size"] = size.into();
        });
        refused(&format!("plain size {size}"), &host);
        edit(&host, |_, document| *document = right.clone());
    }
    host.pulled("store");
}
