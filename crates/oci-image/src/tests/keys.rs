//! Keys that other programs read differently.

use std::fs;

use oci_spec::image::ImageConfiguration;
use serde_json::{Value, json};

use super::refused::with;
use super::*;
use crate::documents::read;
use crate::keys;

fn zeros() -> String {
    format!("sha256:{}", "0".repeat(64))
}

fn descriptor(media_type: &str) -> Value {
    json!({
        "mediaType": media_type, "digest": zeros(), "size": 1, "annotations": {},
        "platform": { "os": "linux", "architecture": "arm64", "variant": "v8" },
    })
}

/// Reads a document and discards it.
type Reader = fn(&[u8]) -> Result<(), String>;

/// Documents with every known key, and their readers.
fn documents() -> [(Value, Reader); 3] {
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "artifactType": null,
        "config": descriptor("application/vnd.oci.image.config.v1+json"),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar")],
    });
    let index = json!({ "manifests": [descriptor("application/vnd.oci.image.manifest.v1+json")] });
    let config = json!({
        "architecture": "amd64", "os": "linux", "rootfs": { "diff_ids": [zeros()] },
        "config": {
            "User": "u", "Env": [], "Entrypoint": [], "Cmd": [], "WorkingDir": "/", "Labels": {},
            "ExposedPorts": {},
        },
        "history": [{ "empty_layer": false }],
    });
    [
        (manifest, |bytes| read(bytes, None).map(drop)),
        (index, |bytes| read(bytes, None).map(drop)),
        (config, |bytes| match keys::read::<ImageConfiguration>(bytes) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }),
    ]
}

/// Returns copies of a document. In each copy, one key has another key beside it, or is replaced with another key.
fn changed(document: &Value, change: &dyn Fn(&str) -> Vec<String>) -> Vec<Value> {
    let mut all = Vec::new();
    match document {
        Value::Array(list) => {
            for (index, element) in list.iter().enumerate() {
                for inner in changed(element, change) {
                    let mut list = list.clone();
                    list[index] = inner;
                    all.push(Value::Array(list));
                }
            }
        }
        Value::Object(map) => {
            for (key, value) in map {
                for other in change(key) {
                    let mut beside = map.clone();
                    beside.insert(other, value.clone());
                    let mut instead = beside.clone();
                    instead.remove(key);
                    all.extend([Value::Object(beside), Value::Object(instead)]);
                }
                for inner in changed(value, change) {
                    let mut map = map.clone();
                    map[key] = inner;
                    all.push(Value::Object(map));
                }
            }
        }
        _ => {}
    }
    all
}

#[test]
fn no_key_that_is_read_is_there_in_another_case() {
    let near = |key: &str| {
        let first = key[..1].to_uppercase() + &key[1..];
        let folded = [key.replace('s', "\u{17f}"), key.replace('k', "\u{212a}")];
        let mut all = vec![key.to_uppercase(), key.to_lowercase(), first];
        all.extend(folded);
        all.retain(|it| it != key);
        all
    };
    let mut count = 0;
    for (document, read) in documents() {
        read(document.to_string().as_bytes()).unwrap();
        for changed in changed(&document, &near) {
            read(changed.to_string().as_bytes()).expect_err(&changed.to_string());
            count += 1;
        }
    }
    assert!(count > 150, "{count}");
}

#[test]
fn a_key_is_there_once() {
    for (document, read) in documents() {
        for changed in changed(&document, &|key| vec![format!("{key}#")]) {
            let text = changed.to_string().replace("#\"", "\"");
            let twice = document.to_string().len() < text.len();
            // A replaced key gets its known name back, so that the document is valid. An added key becomes a duplicate.
            assert_eq!(read(text.as_bytes()).is_err(), twice, "{text}");
        }
    }
}

#[test]
fn no_value_of_a_document_is_in_an_error() {
    for (text, expected) in [
        (r#""hunter2""#, "expected an object at line 1 column 9"),
        (r#"{"os": ["hunter2"]}"#, "expected a string at line 1 column 8"),
        (r#"{"config": "hunter2, expected hunter2"}"#, "expected an object at line 1 column 38"),
        (
            r#"{"config": {"Labels": {"hunter2": "a", "hunter2": "b"}}}"#,
            "a key appears twice at line 1 column 48",
        ),
        (
            r#"{"rootfs": {"type": "layers", "diff_ids": ["hunter2"]}}"#,
            "expected a digest, \"sha256:\" and 64 lower-case hexadecimal digits at line 1 column 52",
        ),
        (r#"{"architecture": "hunter2"}"#, "missing field `os` at line 1 column 27"),
    ] {
        let message = keys::read::<ImageConfiguration>(text.as_bytes()).unwrap_err();
        assert!(!message.contains("hunter2"), "{message}");
        let start = |text: &str| text.split(" at line").next().map(str::to_owned);
        assert_eq!(start(&message), start(expected), "{text}");
    }
}

#[test]
fn a_key_that_anybody_may_choose_is_there_once() {
    let read = |labels: &str| {
        let config =
            format!(r#"{{"architecture":"amd64","os":"linux","config":{{"Labels":{labels}}}}}"#);
        keys::read::<ImageConfiguration>(config.as_bytes()).map(drop)
    };
    assert_eq!(read(r#"{"a":"1","A":"2"}"#), Ok(()));
    let message = read(r#"{"a":"1","a":"1"}"#).unwrap_err();
    assert!(message.starts_with("a key appears twice at line 1"), "{message}");
}

#[test]
fn lists_and_objects_are_bounded_before_they_are_kept() {
    let history = |count: usize| {
        let steps = vec!["{}"; count].join(",");
        let config = format!(r#"{{"architecture":"a","os":"b","history":[{steps}]}}"#);
        keys::read::<ImageConfiguration>(config.as_bytes()).map(drop)
    };
    assert_eq!(history(1 << 16), Ok(()));
    let message = history((1 << 16) + 1).unwrap_err();
    assert!(message.starts_with("a list or object has more than 65536 elements"), "{message}");
}

#[test]
fn keys_that_anybody_may_choose_and_those_that_are_not_read_are_free() {
    let mut config = documents()[2].0.clone();
    config["config"]["Labels"] = json!({ "Architecture": "x", "OS": "y", "os": "z" });
    config["config"]["ExposedPorts"] = json!({ "80/tcp": { "OS": 1 } });
    config["container_config"] = json!({ "OS": {}, "os": [{ "Rootfs": 1 }] });
    config["rootfs"]["config"] = json!({ "Architecture": null });
    keys::read::<ImageConfiguration>(config.to_string().as_bytes()).unwrap();
}

#[test]
fn messages_about_ambiguous_keys() {
    let mut found = vec![
        with(|manifest, _| manifest["Layers"] = json!([])),
        with(|manifest, _| manifest["layers"][0]["Size"] = json!(5)),
        with(|_, config| config["rootfs"]["Diff_IDs"] = json!([])),
        with(|_, config| config["config"] = json!({ "cmd": ["/bin/other"] })),
        with(|_, config| *config = json!(["amd64", "linux"])),
    ];
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path();
    let list = r#"[{"Config":"c.json","Layers":[],"layers":[]}]"#;
    let tar = Layer::new().file("manifest.json", 0o644, list).to_tar();
    fs::write(base.join("a.tar"), tar.bytes()).unwrap();
    found.push(refusal(base, "docker-archive:a.tar"));
    fs::create_dir(base.join("a")).unwrap();
    let version = r#"{"imageLayoutVersion":"1.0.0","ImageLayoutVersion":"2.0.0"}"#;
    fs::write(base.join("a/oci-layout"), version).unwrap();
    found.push(refusal(base, "oci:a"));
    fs::write(base.join("a/oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
    fs::write(base.join("a/index.json"), r#"{"manifests":[],"MANIFESTS":[]}"#).unwrap();
    found.push(refusal(base, "oci:a"));
    insta::assert_snapshot!(found.join("\n"), @r#"
    a/blobs/sha256/DIGEST cannot be read as an image manifest: programs differ in whether the key "Layers" means "layers" at line 1 column 9
    a/blobs/sha256/DIGEST cannot be read as an image manifest: programs differ in whether the key "Size" means "size" at line 1 column 178
    a/blobs/sha256/DIGEST cannot be read as an image config: programs differ in whether the key "Diff_IDs" means "diff_ids" at line 1 column 57
    a/blobs/sha256/DIGEST cannot be read as an image config: programs differ in whether the key "cmd" means "Cmd" at line 1 column 39
    a/blobs/sha256/DIGEST cannot be read as an image config: expected an object at line 1 column 1
    manifest.json in a.tar cannot be read as a list of images: programs differ in whether the key "layers" means "Layers" at line 1 column 40
    a/oci-layout cannot be read as an OCI layout version: programs differ in whether the key "ImageLayoutVersion" means "imageLayoutVersion" at line 1 column 50
    a/index.json cannot be read as an image index: programs differ in whether the key "MANIFESTS" means "manifests" at line 1 column 27
    "#);
}
