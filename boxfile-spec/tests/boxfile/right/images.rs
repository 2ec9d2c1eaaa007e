//! References to images, and the canonical form of their different spellings.

use box_contract::ImageRef;

use super::good;

fn image(reference: &str) -> ImageRef {
    good(&format!("box b\nagent {{ image \"{reference}\"; }}\n"))
        .agent
        .component
        .image
        .expect("the agent has an image")
        .value
}

#[test]
fn every_kind_of_reference() {
    let digest = format!("@sha256:{}", "0f".repeat(32));
    for (written, full) in [
        ("oci:images/agent", "oci:images/agent"),
        ("oci:../images/agent:v1", "oci:../images/agent:v1"),
        ("oci:/abs", "oci:/abs"),
        (&*format!("oci:images/agent:v1{digest}"), &*format!("oci:images/agent:v1{digest}")),
        ("oci-archive:a.tar:latest", "oci-archive:a.tar:latest"),
        ("docker-archive:a.tar", "docker-archive:a.tar"),
        ("docker-archive:a.tar:v1", "docker-archive:a.tar:v1"),
        ("docker-archive:./a.tar:app:v1", "docker-archive:a.tar:app:v1"),
        ("docker-archive:a.tar:team/app", "docker-archive:a.tar:team/app"),
        (
            "docker-archive:a.tar:localhost:5000/team/app:v1",
            "docker-archive:a.tar:localhost:5000/team/app:v1",
        ),
        ("docker://example.com/a/b:v1", "docker://example.com/a/b:v1"),
        ("example.com/a", "docker://example.com/a:latest"),
        ("localhost:5000/a/b", "docker://localhost:5000/a/b:latest"),
        ("debian", "docker://docker.io/library/debian:latest"),
        ("docker://debian:13", "docker://docker.io/library/debian:13"),
        ("team/app", "docker://docker.io/team/app:latest"),
        ("Example.ORG:5000/app", "docker://example.org:5000/app:latest"),
        ("docker://Index.Docker.io/debian:13", "docker://docker.io/library/debian:13"),
        ("[::1]:5000/app:v1", "docker://[::1]:5000/app:v1"),
        (&*format!("debian{digest}"), &*format!("docker://docker.io/library/debian{digest}")),
        (&*format!("a.b/c:v1{digest}"), &*format!("docker://a.b/c:v1{digest}")),
    ] {
        let read = image(written);
        assert_eq!(read.to_string(), full);
        assert_eq!(image(full), read, "the full form means the same");
    }
}
