//! One image in each form. The tree is always the same, and the identity depends on the form.

use std::fs;

use box_digest::Digest;
use testkit::images::{Compression, Image as Declared, Saved, pack};

use super::*;
use crate::{Form, form_of};

const COMPRESSIONS: [Compression; 3] = [Compression::Gzip, Compression::Zstd, Compression::None];

fn expected() -> Blake3Digest {
    let directory = tempfile::tempdir().unwrap();
    sample().write_layout(&directory.path().join("a"), "v1", Compression::Gzip).unwrap();
    of(directory.path(), "oci:a")
}

fn of(base: &Path, text: &str) -> Blake3Digest {
    let image = opened(base, text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(image.process.cmd().as_ref().unwrap(), &["/bin/run"]);
    assert_eq!(image.layers.len(), 5);
    tree(&image).unwrap()
}

#[test]
fn a_layout_in_a_directory_and_in_an_archive() {
    let expected = expected();
    for compression in COMPRESSIONS {
        for image in [sample(), sample().with_docker_types()] {
            let directory = tempfile::tempdir().unwrap();
            let base = directory.path();
            let manifest = image.write_layout(&base.join("a"), "v1", compression).unwrap();
            fs::write(base.join("a.tar"), pack(&base.join("a")).unwrap().bytes()).unwrap();
            for form in ["oci:a", "oci-archive:a.tar"] {
                for behind in [String::new(), ":v1".to_owned(), format!("@{manifest}")] {
                    let text = format!("{form}{behind}");
                    assert_eq!(of(base, &text), expected, "{text}");
                    assert_eq!(opened(base, &text).unwrap().manifest, manifest);
                }
            }
            assert_eq!(form_of(&base.join("a")), Some(Form::Layout));
            assert_eq!(form_of(&base.join("a.tar")), Some(Form::OciArchive));
        }
    }
}

#[test]
fn archives_of_docker_save() {
    let expected = expected();
    let mut configs = Vec::new();
    let modern = COMPRESSIONS.map(Saved::Modern);
    for form in [Saved::Legacy].into_iter().chain(modern) {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path();
        let tar = Declared::docker_archive(&[(&sample(), &["app:v1"])], form);
        fs::write(base.join("a.tar"), tar.bytes()).unwrap();
        for text in ["docker-archive:a.tar", "docker-archive:a.tar:app:v1"] {
            assert_eq!(of(base, text), expected, "{form:?} {text}");
        }
        let image = opened(base, "docker-archive:a.tar").unwrap();
        assert_eq!(image.manifest, image.config_digest);
        configs.push(image.manifest);
        assert_eq!(form_of(&base.join("a.tar")), Some(Form::DockerArchive));
    }
    configs.dedup();
    assert_eq!(configs.len(), 1, "an image has one identity however it is saved");
}

#[test]
fn an_image_of_several_is_named_as_docker_has_it() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path();
    let other = sample().with(layer("more", "more"));
    let third = other.clone().with(layer("third", "third"));
    let tar = Declared::docker_archive(
        &[
            (&sample(), &["docker.io/library/app:v1", "app:latest"]),
            (&other, &["registry.example.org/team/app:v2"]),
            (&third, &["other:v1"]),
        ],
        Saved::Legacy,
    );
    fs::write(base.join("a.tar"), tar.bytes()).unwrap();
    let layers = |name: &str| {
        opened(base, &format!("docker-archive:a.tar{name}")).map(|image| image.layers.len())
    };
    for name in [":app:v1", ":app", ":docker.io/app:latest", ":library/app"] {
        assert_eq!(layers(name).unwrap(), 5, "{name}");
    }
    for name in [":registry.example.org/team/app:v2", ":v2"] {
        assert_eq!(layers(name).unwrap(), 6, "{name}");
    }
    assert_eq!(layers(":other:v1").unwrap(), 7);
    let found =
        ["", ":v1", ":app:v3"].map(|name| refusal(base, &format!("docker-archive:a.tar{name}")));
    insta::assert_snapshot!(found.join("\n"), @r#"
    a.tar has 3 images; it has docker.io/library/app:v1, app:latest, registry.example.org/team/app:v2, other:v1
    a.tar has several images "v1"; it has docker.io/library/app:v1, app:latest, registry.example.org/team/app:v2, other:v1
    a.tar has no image "app:v3"; it has docker.io/library/app:v1, app:latest, registry.example.org/team/app:v2, other:v1
    "#);
}

#[test]
fn a_pinned_image_of_an_archive_is_found_whatever_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path();
    let other = sample().with(layer("more", "more"));
    let list: &[(&Declared, &[&str])] = &[(&sample(), &["a:v1"]), (&other, &["b:v1"])];
    fs::write(base.join("a.tar"), Declared::docker_archive(list, Saved::Legacy).bytes()).unwrap();
    let access = Access { base, registries: None };
    let pinned = |digest: Digest| {
        let reference = reference("docker-archive:a.tar:a:v1");
        open(&reference, Some(digest), Platform::LinuxAmd64, &access)
    };
    let wanted = opened(base, "docker-archive:a.tar:b:v1").unwrap().manifest;
    assert_eq!(pinned(wanted).unwrap().layers.len(), 6);
    let gone = pinned(Digest::from_bytes([7; 32])).unwrap_err();
    assert!(matches!(gone, SourceError::Gone { .. }), "{gone}");
}

#[test]
fn layers_that_are_compressed_under_a_plain_name_are_hashed() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path();
    let (one, two) = (layer("one", "1"), layer("two", "2"));
    let config = serde_json::json!({
        "architecture": "amd64", "os": "linux",
        "rootfs": { "type": "layers", "diff_ids": [one.diff_id(), two.diff_id()] },
    });
    let list =
        serde_json::json!([{ "Config": "c.json", "Layers": ["1/layer.tar", "2/layer.tar"] }]);
    let tar = Layer::new()
        .file("c.json", 0o644, config.to_string())
        .file("1/layer.tar", 0o644, one.gzip())
        .file("2/layer.tar", 0o644, two.zstd())
        .file("manifest.json", 0o644, list.to_string())
        .to_tar();
    fs::write(base.join("a.tar"), tar.bytes()).unwrap();
    let image = opened(base, "docker-archive:a.tar").unwrap();
    assert_eq!(image.layers[0].digest, box_digest::Digest::of(one.gzip()));
    assert_eq!(image.layers[1].digest, box_digest::Digest::of(two.zstd()));
    tree(&image).unwrap();
}
