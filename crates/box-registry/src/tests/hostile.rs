//! Hostile registries.

use box_contract::manifest::MAX_CONFIG;
use box_contract::rules::{MAX_INIT, MAX_KERNEL};
use box_digest::Digest;
use proptest::prelude::*;
use serde_json::{Value, json};
use test_server::registry::{Held, Rules};
use test_server::{Early, Request, reply};

use super::stage::{NAME, Stage, TAG, layer_of, open, replace, segment, test_box, zstd};
use crate::*;

/// Pushes a box, changes the layer of its segment, and returns the error of a pull without the parts that vary.
fn damaged(change: impl Fn(&mut Held, &mut Value, &[u8])) -> String {
    let (stage, files) = (Stage::new(Rules::default()), test_box());
    stage.push(&files, None).unwrap();
    let (named, bytes) = segment(&files);
    stage.edit(|held, document| change(held, layer_of(document, &named.digest), &bytes));
    let error = stage.pull().unwrap_err();
    assert!(stage.store.read(&named.digest).is_err(), "a wrong blob has a name: {error}");
    assert!(stage.store.read(&open(&files).digest).is_err(), "{error}");
    assert_eq!(stage.unfinished(), 0, "{error}");
    let sent = layer_of(&mut stage.document(), &named.digest)["digest"].clone();
    let text = error.to_string().replace(&stage.registry.host(), "HOST");
    text.replace(&named.digest.to_string(), "PLAIN").replace(sent.as_str().unwrap(), "SENT")
}

/// Replaces the layer by other compressed bytes.
fn with(bytes: &[u8]) -> String {
    damaged(|held, layer, _| replace(held, layer, &zstd(bytes, 3)))
}

#[test]
fn a_blob_that_is_not_what_it_is_said_to_be_gets_no_name() {
    let message = [
        with(b"other"),
        with(&vec![0; 64 << 20]),
        damaged(|held, layer, bytes| {
            let mut other = bytes.to_vec();
            other[100] ^= 1;
            replace(held, layer, &zstd(&other, 3));
        }),
        // A frame without an end, and a frame with further bytes.
        damaged(|held, layer, bytes| {
            let frame = zstd(bytes, 3);
            replace(held, layer, &frame[..frame.len() - 1]);
        }),
        damaged(|held, layer, bytes| replace(held, layer, &[&*zstd(bytes, 3), b"+"].concat())),
        damaged(|held, layer, bytes| {
            replace(held, layer, &[zstd(bytes, 3), zstd(b"", 3)].concat());
        }),
        // A skippable frame.
        damaged(|held, layer, _| replace(held, layer, b"\x50\x2a\x4d\x18\x01\0\0\0x")),
        damaged(|held, layer, _| replace(held, layer, b"no frame")),
        damaged(|held, layer, _| replace(held, layer, b"")),
        // A window of 64 MiB.
        damaged(|held, layer, _| {
            replace(held, layer, b"\x28\xb5\x2f\xfd\x00\x80\x01\x00\x00");
        }),
    ];
    insta::assert_snapshot!(message.join("\n"), @r#"
    the blob SENT of HOST/team/app cannot be used: it inflates to 5 bytes, not to 8192
    the blob SENT of HOST/team/app cannot be used: it inflates to more than the 8192 bytes that it has
    the blob SENT of HOST/team/app cannot be used: it inflates to sha256:fb5886d0c5b0a9cee871beda657b2483691f26ae6d84a89d7484fc65f73ccab8, not to PLAIN
    the blob SENT of HOST/team/app cannot be used: its zstd frame has no end
    the blob SENT of HOST/team/app cannot be used: it has something after its zstd frame
    the blob SENT of HOST/team/app cannot be used: it has something after its zstd frame
    the blob SENT of HOST/team/app cannot be used: it is no zstd frame (RFC 8878)
    the blob SENT of HOST/team/app cannot be used: it is no zstd frame (RFC 8878)
    the blob SENT of HOST/team/app cannot be used: its zstd frame has no end
    the blob SENT of HOST/team/app cannot be used: zstd: Frame requires too much memory for decoding
    "#);
}

#[test]
fn what_a_manifest_says_must_be_possible() {
    let message = [
        damaged(|_, layer, _| layer["size"] = json!(1_u64 << 40)),
        damaged(|_, layer, _| layer["size"] = json!(7)),
        damaged(|_, layer, _| layer["annotations"][PLAIN_SIZE] = json!("4096")),
        damaged(|_, layer, _| layer["mediaType"] = json!("application/vnd.boxbuild.segment.v1")),
        damaged(|_, layer, _| layer["mediaType"] = json!("application/x+gzip")),
        damaged(|_, layer, _| layer["digest"] = json!(Digest::of(b"nowhere"))),
    ];
    insta::assert_snapshot!(message.join("\n"), @r#"
    HOST/team/app:v1 is not valid: the blob PLAIN has 8192 bytes, and 1099511627776 as zstd
    the blob SENT of HOST/team/app should have 7 bytes, but has 276
    HOST/team/app:v1 is not valid: the blob PLAIN has 8192 bytes, and its layer says 4096
    HOST/team/app:v1 is not valid: the layer of the blob PLAIN is another blob
    HOST/team/app:v1 is not valid: it has no layer for the blob PLAIN
    registry HOST has no blob SENT of HOST/team/app
    "#);
}

/// Pushes a box, changes the registry's manifest, and returns the error of a plan.
fn other(rules: Rules, change: impl Fn(&mut Held, &mut Value)) -> String {
    let (stage, files) = (Stage::new(rules), test_box());
    stage.push(&files, None).unwrap();
    stage.edit(|held, document| change(held, document));
    let error = stage.plan().unwrap_err().to_string();
    assert_eq!(stage.stored(), 0);
    error.replace(&stage.registry.host(), "HOST")
}

#[test]
fn what_is_no_box_is_named() {
    let open = Rules::default;
    let gitlab = || Rules { refuses: Some(super::push::as_gitlab), ..Rules::default() };
    let config = |held: &mut Held, document: &mut Value, text: &str| {
        document["config"]["digest"] = json!(held.put_blob(NAME, text.as_bytes()));
        document["config"]["size"] = json!(text.len());
    };
    let message = [
        other(open(), |_, it| *it = json!({ "schemaVersion": 2 })),
        other(open(), |_, it| it["artifactType"] = json!("application/vnd.other")),
        other(open(), |_, it| it["artifactType"] = json!(null)),
        other(open(), |_, it| it["config"]["size"] = json!(2_u64 << 20)),
        other(open(), |held, it| config(held, it, "{}")),
        other(open(), |held, it| config(held, it, &it.to_string().replace(BOX_MANIFEST_TYPE, "x"))),
        other(gitlab(), |held, it| config(held, it, "{}")),
        other(gitlab(), |held, it| {
            let text = r#"{"architecture":"a","os":"o","config":{},"rootfs":{"type":"layers","diff_ids":[]}}"#;
            config(held, it, text);
        }),
        other(gitlab(), |_, it| {
            it["layers"].as_array_mut().unwrap().pop();
        }),
    ];
    insta::assert_snapshot!(message.join("\n"), @r#"
    HOST/team/app:v1 is a malformed OCI manifest, not a box
    HOST/team/app:v1 is an artifact of the type "application/vnd.other", not a box
    HOST/team/app:v1 is an artifact of the type "application/vnd.boxbuild.manifest.v1+json", not a box
    HOST/team/app:v1 is not valid: its document has 2097152 bytes, and at most 1048576 are allowed
    HOST/team/app:v1 is not valid: the manifest of its box is malformed
    HOST/team/app:v1 is not valid: the manifest that it names is not the one of a box
    HOST/team/app:v1 is an image, not a box
    HOST/team/app:v1 is an image, not a box
    HOST/team/app:v1 is not valid: its layers are not those of its config
    "#);
}

#[test]
fn an_index_is_named() {
    let stage = Stage::new(Rules::default());
    stage.registry.with(|held| {
        let kind = "application/vnd.oci.image.index.v1+json";
        held.put_manifest(NAME, TAG, kind, b"{\"schemaVersion\":2,\"manifests\":[]}");
    });
    let error = stage.plan().unwrap_err().to_string();
    assert!(error.ends_with("is an index of several images, not a box"), "{error}");
}

#[test]
fn bodies_without_an_end_are_left() {
    let endless = |path: &'static str| {
        let deed = move |request: &Request, _: usize| {
            let wanted = request.method() == "GET" && request.path().contains(path);
            let mut steps = reply("200 OK", &[], b"");
            steps.extend((0..5000).map(|_| test_server::Step::Send(vec![b' '; 1 << 10])));
            wanted.then_some(Early { after: 0, reply: steps })
        };
        Rules { deed: Some(Box::new(deed)), ..Rules::default() }
    };
    let stage = Stage::new(endless("/manifests/"));
    let error = stage.plan().unwrap_err().to_string();
    assert!(error.contains("is larger than the 4194304 bytes that it may have"), "{error}");
    let stage = Stage::new(endless("/blobs/"));
    stage.push(&test_box(), None).unwrap();
    let error = stage.plan().unwrap_err().to_string();
    assert!(error.contains("should have"), "{error}");
}

/// Changes the box's manifest, and returns the error of a plan.
fn with_manifest(change: impl Fn(&mut Value)) -> String {
    other(Rules::default(), |held, document| {
        let key = (NAME.to_owned(), document["config"]["digest"].as_str().unwrap().to_owned());
        let mut manifest: Value = serde_json::from_slice(&held.blobs[&key]).unwrap();
        change(&mut manifest);
        let manifest = manifest.to_string();
        document["config"]["digest"] = json!(held.put_blob(NAME, manifest.as_bytes()));
        document["config"]["size"] = json!(manifest.len());
    })
}

#[test]
fn a_blob_has_one_size() {
    let message = with_manifest(|manifest| {
        let mut again = manifest["layers"][5].clone();
        again["size"] = json!(again["size"].as_u64().unwrap() + 1);
        manifest["layers"].as_array_mut().unwrap().push(again);
    });
    assert!(message.ends_with("has two sizes"), "{message}");
}

/// The sizes of blobs that are read into memory have the same limits as in a box's directory.
#[test]
fn a_blob_has_a_size_that_a_box_may_have() {
    for (role, most) in [("init", MAX_INIT), ("kernel", MAX_KERNEL), ("config", MAX_CONFIG)] {
        let message = with_manifest(|manifest| {
            let blob = match role {
                "config" => &mut manifest["config"],
                _ => manifest["layers"]
                    .as_array_mut()
                    .unwrap()
                    .iter_mut()
                    .find(|it| it["mediaType"].as_str().unwrap().contains(&format!(".{role}.")))
                    .unwrap(),
            };
            blob["size"] = json!(most + 1);
        });
        let text = format!("has {} bytes, and at most {most} are allowed", most + 1);
        assert!(message.ends_with(&text), "{message}");
    }
}

/// If two blobs had the same layer, only one of them would be fetched, and the box would seem to be complete.
#[test]
fn two_blobs_are_not_one_layer() {
    let (stage, files) = (Stage::new(Rules::default()), test_box());
    stage.push(&files, None).unwrap();
    let segments = files.manifest().layers.into_iter().filter(|it| it.role() == "segment");
    let [one, two] = segments.map(|it| it.digest).collect::<Vec<_>>().try_into().unwrap();
    stage.edit(|_, document| {
        let other = layer_of(document, &one).clone();
        let layer = layer_of(document, &two);
        (layer["digest"], layer["size"]) = (other["digest"].clone(), other["size"].clone());
    });
    let error = stage.pull().unwrap_err().to_string();
    assert!(error.ends_with("two of its blobs are stored as one"), "{error}");
    assert!(stage.store.read(&open(&files).digest).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// If the registry's manifest is changed, a pull returns the same box or an error.
    #[test]
    fn a_changed_manifest_leads_to_the_box_or_to_nothing(
        is_image in any::<bool>(),
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
    ) {
        let refuses = is_image.then_some(super::push::as_gitlab as fn(&str) -> bool);
        let (stage, files) = (Stage::new(Rules { refuses, ..Rules::default() }), test_box());
        stage.push(&files, None).unwrap();
        stage.registry.with(|held| {
            let (kind, mut bytes) = held.manifests[&(NAME.to_owned(), TAG.to_owned())].clone();
            let at = at.index(bytes.len());
            bytes[at] = value;
            held.put_manifest(NAME, TAG, &kind, &bytes);
        });
        if stage.pull().is_ok() {
            stage.pull_and_compare(&files);
        } else {
            prop_assert!(stage.store.read(&open(&files).digest).is_err());
        }
    }
}
