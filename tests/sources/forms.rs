//! Tests that the same image gives the same box in every form, with a store that has it from another form and with an empty
//! store.

use std::fs;

use box_contract::manifest::OCI_INDEX_TYPE;
use serde_json::{Value, json};
use testkit::images::{Compression, Image, LayoutDir, Saved, pack};

use crate::built;
use crate::checkout::{Checkout, agent_with, business_with};
use crate::skopeo::{copy, layout_of};

/// Returns the two images of a checkout.
fn images() -> [(&'static str, Image); 2] {
    [("agent", agent_with("agent")), ("business", business_with("app"))]
}

/// Builds with both images in the form that `make` makes of them: with the current store, and with an empty one. Both must give
/// the same box. `make` returns the image's reference.
fn of(checkout: &Checkout, make: impl Fn(&Checkout, &str, &Image) -> String) -> Value {
    let [agent, business] = images().map(|(name, image)| make(checkout, name, &image));
    let warm = built(checkout, &agent, &business);
    fs::rename(checkout.path("store"), checkout.path("warm")).unwrap();
    let cold = built(checkout, &agent, &business);
    fs::remove_dir_all(checkout.path("store")).unwrap();
    fs::rename(checkout.path("warm"), checkout.path("store")).unwrap();
    assert_eq!(cold["cached"], false);
    assert_eq!(identity(&warm), identity(&cold));
    warm
}

/// Returns the digests in a report of a build: the box's, and the tree's.
fn identity(built: &Value) -> [&Value; 2] {
    [&built["box"], &built["tree"]]
}

fn path(checkout: &Checkout, relative: &str) -> String {
    checkout.path(relative).display().to_string()
}

#[test]
fn archives_of_layouts() {
    let checkout = Checkout::new();
    let expected = of(&checkout, |_, name, _| format!("oci:images/{name}"));
    let packed = of(&checkout, |checkout, name, _| {
        let tar = pack(&checkout.path(&format!("images/{name}"))).unwrap();
        checkout.write(&format!("images/{name}.tar"), tar.bytes());
        format!("oci-archive:images/{name}.tar:latest")
    });
    assert_eq!(identity(&packed), identity(&expected));
    let copied = of(&checkout, |checkout, name, _| {
        let to = path(checkout, &format!("images/{name}-copied.tar"));
        let from = path(checkout, &format!("images/{name}"));
        copy(&[], &format!("oci:{from}:latest"), &format!("oci-archive:{to}:v1"));
        format!("oci-archive:{to}:v1")
    });
    assert_eq!(identity(&copied), identity(&expected));
}

#[test]
fn archives_of_docker() {
    let checkout = Checkout::new();
    let expected = of(&checkout, |_, name, _| format!("oci:images/{name}"));
    let copied = of(&checkout, |checkout, name, _| {
        let to = path(checkout, &format!("images/{name}.tar"));
        let from = path(checkout, &format!("images/{name}"));
        copy(&[], &format!("oci:{from}:latest"), &format!("docker-archive:{to}:app/{name}:v1"));
        format!("docker-archive:{to}:app/{name}:v1")
    });
    let save = |form, file: &'static str| {
        of(&checkout, move |checkout, name, image| {
            let tar = Image::docker_archive(&[(image, &["app:v1"])], form);
            checkout.write(&format!("images/{name}-{file}"), tar.bytes());
            format!("docker-archive:images/{name}-{file}")
        })
    };
    let plain = save(Saved::Legacy, "legacy.tar");
    let modern = save(Saved::Modern(Compression::None), "modern.tar");
    let zstd = save(Saved::Modern(Compression::Zstd), "zstd.tar");
    for built in [&copied, &plain, &modern, &zstd] {
        assert_eq!(identity(built), identity(&expected));
    }
}

#[test]
fn other_compressions_and_media_types() {
    let checkout = Checkout::new();
    let expected = of(&checkout, |_, name, _| format!("oci:images/{name}"));
    let from = |checkout: &Checkout, name: &str| {
        format!("oci:{}:latest", path(checkout, &format!("images/{name}")))
    };
    let zstd = of(&checkout, |checkout, name, _| {
        let to = format!("oci:{}:v1", path(checkout, &format!("images/{name}-zstd")));
        copy(&["--dest-compress", "--dest-compress-format=zstd"], &from(checkout, name), &to);
        format!("oci:images/{name}-zstd:v1")
    });
    let docker = of(&checkout, |checkout, name, _| {
        let dir = checkout.path(&format!("images/{name}-dir"));
        copy(&["--format=v2s2"], &from(checkout, name), &format!("dir:{}", dir.display()));
        layout_of(&dir, &checkout.path(&format!("images/{name}-docker")));
        format!("oci:images/{name}-docker")
    });
    let plain = of(&checkout, |checkout, name, image| {
        let layout = checkout.path(&format!("images/{name}-plain"));
        image.clone().with_docker_types().write_layout(&layout, "v1", Compression::None).unwrap();
        format!("oci:images/{name}-plain")
    });
    for built in [&zstd, &docker, &plain] {
        assert_eq!(identity(built), identity(&expected));
    }
}

#[test]
fn an_index_for_several_platforms_as_builders_write_it() {
    let checkout = Checkout::new();
    let expected = of(&checkout, |_, name, _| format!("oci:images/{name}"));
    let indexed = of(&checkout, |checkout, name, image| {
        let dir = checkout.path(&format!("images/{name}-index"));
        let layout = LayoutDir::make(&dir).unwrap();
        let entry = |image: Image, os: &str, architecture: &str| {
            let mut entry = json!(image.write_blobs(&dir, Compression::Gzip).unwrap());
            entry["platform"] = json!({ "os": os, "architecture": architecture });
            entry["annotations"] = Value::Null;
            entry
        };
        let other = || agent_with("another").architecture("arm64");
        let mut attestation = entry(other(), "unknown", "unknown");
        attestation["annotations"] = json!({ "vnd.docker.reference.type": "attestation-manifest" });
        let manifests = json!([
            attestation,
            entry(other(), "linux", "arm64"),
            entry(image.clone(), "linux", "amd64"),
        ]);
        let index = json!({ "schemaVersion": 2, "mediaType": OCI_INDEX_TYPE,
            "manifests": manifests, "annotations": null });
        let index = layout.put_json(OCI_INDEX_TYPE, &index).unwrap();
        layout.finish(&json!({ "schemaVersion": 2, "manifests": [index] })).unwrap();
        format!("oci:images/{name}-index")
    });
    assert_eq!(identity(&indexed), identity(&expected));
    fs::remove_dir_all(checkout.path("images/agent")).unwrap();
    let again = of(&checkout, |_, name, _| format!("oci:images/{name}-index"));
    assert_eq!(again["cached"], true, "nothing was decoded twice");
}
