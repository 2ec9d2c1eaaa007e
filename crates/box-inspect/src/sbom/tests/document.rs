//! The whole document.

use super::*;

#[test]
fn a_file_of_the_checkout_is_a_part_that_has_packages() {
    let path = "/roots/agent/app/node_modules/pad/package.json";
    let fixture =
        Fixture::default().file(Origin::File(1), path, r#"{"name":"pad","version":"1.0.0"}"#);
    let file = |component| FileOrigin { component, path: "app".to_owned() };
    let files = ComponentName::ALL.into_iter().rev().map(file).collect();
    let bytes = fixture.bytes_with(&plan(), [[0x11, 0x12], [0x21, 0x22]], files);
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(
        packages(&document),
        [format!("pkg:npm/pad@1.0.0 NOASSERTION {path}, from agent file app")]
    );
    let relationships = document["relationships"].as_array().unwrap().iter();
    let of = |it: &Value| it["spdxElementId"].as_str().unwrap().to_owned();
    let pad = |it: &&Value| it["relatedSpdxElement"].as_str().unwrap().contains("npm-pad");
    let within: Vec<String> = relationships.filter(pad).map(of).collect();
    let parts = document["packages"].as_array().unwrap().iter();
    let parts: Vec<&str> = parts.filter_map(|it| it["SPDXID"].as_str()).collect();
    assert!(within.len() == 1 && within[0].starts_with("SPDXRef-file-agent-app-"), "{within:?}");
    assert!(parts.contains(&within[0].as_str()));
    assert_eq!(parts.iter().filter(|it| it.starts_with("SPDXRef-file-")).count(), 2);
}

#[test]
fn a_whole_document() {
    let package = r#"{"name":"pad","version":"1.0.0","license":"Beerware"}"#;
    let fixture =
        Fixture::default().file(AGENT[1], "/roots/agent/node_modules/pad/package.json", package);
    let Value::Object(fields) = fixture.document() else { panic!("no object") };
    let lines = fields.iter().flat_map(|(name, value)| match value {
        Value::Array(items) => items.iter().map(|item| format!("{name}: {item}")).collect(),
        value => vec![format!("{name}: {value}")],
    });
    // Each digest of the fixture repeats one byte.
    let text = lines.collect::<Vec<_>>().join("\n");
    let text = ["10", "11", "12", "20", "21", "22", "03", "04"]
        .iter()
        .fold(text, |text, byte| text.replace(&byte.repeat(32), &format!("{byte}…")));
    insta::assert_snapshot!(text, @r#"
    SPDXID: "SPDXRef-DOCUMENT"
    comment: "The box has the tree blake3:0000000000000000000000000000000000000000000000000000000000000000."
    creationInfo: {"comment":"The time is not that of a build: the same input gives the same bytes.","created":"1970-01-01T00:00:00Z","creators":["Tool: boxbuild"]}
    dataLicense: "CC0-1.0"
    documentNamespace: "urn:boxbuild:sbom:6589f726a1377190276f90b2c627efc661c8767c85ddba59cec90315d3f649e6"
    hasExtractedLicensingInfos: {"extractedText":"Beerware","licenseId":"LicenseRef-ab108a2a14d206d0"}
    name: "test"
    packages: {"SPDXID":"SPDXRef-box-box-6a00edf385bdb672","copyrightText":"NOASSERTION","downloadLocation":"NOASSERTION","filesAnalyzed":false,"licenseConcluded":"NOASSERTION","licenseDeclared":"NOASSERTION","name":"test","sourceInfo":"tree blake3:0000000000000000000000000000000000000000000000000000000000000000","supplier":"NOASSERTION","versionInfo":"sha256:0505050505050505050505050505050505050505050505050505050505050505"}
    packages: {"SPDXID":"SPDXRef-image-agent-ed46138788b87ab9","copyrightText":"NOASSERTION","downloadLocation":"NOASSERTION","filesAnalyzed":false,"licenseConcluded":"NOASSERTION","licenseDeclared":"NOASSERTION","name":"agent","primaryPackagePurpose":"CONTAINER","sourceInfo":"layers, the lowest first: sha256:11…, sha256:12…","supplier":"NOASSERTION"}
    packages: {"SPDXID":"SPDXRef-image-business-adca5f6c0480f90c","copyrightText":"NOASSERTION","downloadLocation":"NOASSERTION","filesAnalyzed":false,"licenseConcluded":"NOASSERTION","licenseDeclared":"NOASSERTION","name":"business","primaryPackagePurpose":"CONTAINER","sourceInfo":"layers, the lowest first: sha256:21…, sha256:22…","supplier":"NOASSERTION"}
    packages: {"SPDXID":"SPDXRef-init-box-init-1c78426cee81b8c4","checksums":[{"algorithm":"SHA256","checksumValue":"04…"}],"copyrightText":"NOASSERTION","downloadLocation":"NOASSERTION","filesAnalyzed":false,"licenseConcluded":"NOASSERTION","licenseDeclared":"NOASSERTION","name":"box-init","supplier":"NOASSERTION","versionInfo":"sha256:04…"}
    packages: {"SPDXID":"SPDXRef-kernel-linux-65df69a785a31041","checksums":[{"algorithm":"SHA256","checksumValue":"03…"}],"copyrightText":"NOASSERTION","downloadLocation":"NOASSERTION","filesAnalyzed":false,"licenseConcluded":"NOASSERTION","licenseDeclared":"NOASSERTION","name":"linux","primaryPackagePurpose":"OPERATING-SYSTEM","supplier":"NOASSERTION","versionInfo":"6.12.34"}
    packages: {"SPDXID":"SPDXRef-npm-pad-1.0.0-00c89fe9806c188b","copyrightText":"NOASSERTION","downloadLocation":"NOASSERTION","externalRefs":[{"referenceCategory":"PACKAGE-MANAGER","referenceLocator":"pkg:npm/pad@1.0.0","referenceType":"purl"}],"filesAnalyzed":false,"licenseConcluded":"NOASSERTION","licenseDeclared":"LicenseRef-ab108a2a14d206d0","name":"pad","sourceInfo":"/roots/agent/node_modules/pad/package.json, from agent image layer 2 sha256:12…","supplier":"NOASSERTION","versionInfo":"1.0.0"}
    packages: {"SPDXID":"SPDXRef-skill-greet-011788819c5809ad","copyrightText":"NOASSERTION","downloadLocation":"NOASSERTION","filesAnalyzed":false,"licenseConcluded":"NOASSERTION","licenseDeclared":"NOASSERTION","name":"greet","supplier":"NOASSERTION"}
    relationships: {"relatedSpdxElement":"SPDXRef-box-box-6a00edf385bdb672","relationshipType":"DESCRIBES","spdxElementId":"SPDXRef-DOCUMENT"}
    relationships: {"relatedSpdxElement":"SPDXRef-image-agent-ed46138788b87ab9","relationshipType":"CONTAINS","spdxElementId":"SPDXRef-box-box-6a00edf385bdb672"}
    relationships: {"relatedSpdxElement":"SPDXRef-image-business-adca5f6c0480f90c","relationshipType":"CONTAINS","spdxElementId":"SPDXRef-box-box-6a00edf385bdb672"}
    relationships: {"relatedSpdxElement":"SPDXRef-init-box-init-1c78426cee81b8c4","relationshipType":"CONTAINS","spdxElementId":"SPDXRef-box-box-6a00edf385bdb672"}
    relationships: {"relatedSpdxElement":"SPDXRef-kernel-linux-65df69a785a31041","relationshipType":"CONTAINS","spdxElementId":"SPDXRef-box-box-6a00edf385bdb672"}
    relationships: {"relatedSpdxElement":"SPDXRef-skill-greet-011788819c5809ad","relationshipType":"CONTAINS","spdxElementId":"SPDXRef-box-box-6a00edf385bdb672"}
    relationships: {"relatedSpdxElement":"SPDXRef-npm-pad-1.0.0-00c89fe9806c188b","relationshipType":"CONTAINS","spdxElementId":"SPDXRef-image-agent-ed46138788b87ab9"}
    spdxVersion: "SPDX-2.3"
    "#);
}

#[test]
fn equal_trees_have_equal_documents_and_others_other_namespaces() {
    let make = |version| {
        let status = format!("Package: a\nVersion: {version}\n");
        Fixture::default().file(AGENT[0], "/roots/agent/var/lib/dpkg/status", status)
    };
    assert_eq!(make(1).bytes(), make(1).bytes());
    let namespace = |fixture: &Fixture| fixture.document()["documentNamespace"].clone();
    assert_ne!(namespace(&make(1)), namespace(&make(2)));
}
