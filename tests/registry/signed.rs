//! Tests of `boxbuild keygen`, `sign`, `attest` and `verify --key`: signatures that travel with a box.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use box_cache::{Attachment, Store};
use box_trust::{BUNDLE_MEDIA_TYPE, PublicKey};
use boxbuild::project::lock::Lock;
use serde_json::Value;
use test_server::registry::{Referrers, Registry, Rules};
use testbed::Workspace;
use testbed::prerequisites::sigstore;

use crate::host::report;
use crate::inline::Ci;
use crate::schema::assert_fits;

fn registry() -> Registry {
    Registry::start(Rules { referrers: Referrers::default(), ..Rules::default() })
}

fn run(ci: &Ci<'_>, args: &[&str]) -> Output {
    ci.command(args).output().unwrap()
}

/// Runs a command that must succeed, and returns its report.
fn json(ci: &Ci<'_>, args: &[&str]) -> Value {
    report(&run(ci, &[args, &["--json"]].concat()))
}

/// Runs a command that must fail with `exit`, and returns its messages.
fn fails(ci: &Ci<'_>, exit: i32, args: &[&str]) -> String {
    let output = run(ci, args);
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert_eq!(output.status.code(), Some(exit), "{args:?}: {text}");
    text
}

/// Makes the keys `acme` and `other` in the checkout, one of each algorithm.
fn keys(ci: &Ci<'_>) {
    let made = json(ci, &["keygen", "-o", "acme"]);
    assert_fits("keygen", &made);
    json(ci, &["keygen", "-o", "other.key", "--algorithm", "ecdsa-p256"]);
}

fn read(ci: &Ci<'_>, name: &str) -> String {
    fs::read_to_string(ci.path("app").join(name)).unwrap()
}

/// Gives another host the public keys.
fn give_keys(from: &Ci<'_>, to: &Ci<'_>) {
    for name in ["acme.pub", "other.pub"] {
        fs::copy(from.path("app").join(name), to.path("app").join(name)).unwrap();
    }
}

#[test]
fn a_key_is_secret_and_never_overwritten() {
    let registry = registry();
    let ci = Ci::new(&registry);
    keys(&ci);
    let mode = |name: &str| fs::metadata(ci.path("app").join(name)).unwrap().permissions().mode();
    assert_eq!((mode("acme.key") & 0o777, mode("other.key") & 0o777), (0o600, 0o600));
    let (before, public) = (read(&ci, "acme.key"), read(&ci, "acme.pub"));
    let text = fails(&ci, 1, &["keygen", "-o", "acme"]);
    assert!(text.contains("acme.key exists already"), "{text}");
    fs::remove_file(ci.path("app/acme.key")).unwrap();
    fails(&ci, 1, &["generate-key-pair", "-o", "acme"]);
    assert!(!ci.path("app/acme.key").exists() && read(&ci, "acme.pub") == public);
    fs::write(ci.path("app/acme.key"), before).unwrap();
    let openssl = Command::new("openssl")
        .args(["pkey", "-pubout", "-in"])
        .arg(ci.path("app/acme.key"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(openssl.stdout).unwrap(), public);
}

#[test]
fn a_signature_is_made_once_and_verified_on_another_host() {
    let registry = registry();
    let ci = Ci::new(&registry);
    keys(&ci);
    json(&ci, &["build"]);
    let reference = ci.reference("hello:v1");
    for key in ["acme.key", "other.key"] {
        let signed = json(&ci, &["sign", "hello", "--key", key]);
        assert_fits("sign", &signed);
        assert_eq!((&signed["stored"], &signed["sent"]), (&true.into(), &Value::Null));
        assert_eq!(signed["statements"][0]["kind"], "signature");
        let again = json(&ci, &["sign", "hello", "--key", key]);
        let news = [&signed, &again].map(|it| it["statements"][0]["new"] == true);
        assert_eq!(news, [true, false]);
    }
    let inspected = json(&ci, &["inspect", "hello"]);
    assert_fits("inspect", &inspected);
    assert_eq!(inspected["attachments"].as_array().unwrap().len(), 2);
    assert_eq!(json(&ci, &["push", "hello", &reference])["attachments_sent"], 2);
    // A proposed command sends to a tag, because a signature is not sent to a digest.
    let digest = inspected["box"].as_str().unwrap();
    for (name, end) in [
        (format!("{reference}@{digest}"), format!("--key KEY --push {reference}`\n")),
        (format!("{}@{digest}", ci.reference("hello")), "and not sent\n".to_owned()),
    ] {
        let notes = run(&ci, &["sign", &name, "--key", "acme.key"]).stderr;
        let notes = String::from_utf8(notes).unwrap();
        assert!(notes.ends_with(&end), "{notes}");
    }
    // The name of the box in the registry makes no other signature.
    let again = json(&ci, &["sign", &reference, "--key", "other.key"]);
    assert_eq!((&again["statements"][0]["new"], &again["stored"]), (&false.into(), &true.into()));
    let other = Ci::new(&registry);
    give_keys(&ci, &other);
    // Before the pull, only the signature is verified.
    let verified = json(&other, &["verify", &reference, "--key", "acme.pub"]);
    assert_fits("box-verify", &verified);
    assert_eq!((&verified["ok"], &verified["checks"]), (&true.into(), &Value::Array(Vec::new())));
    json(&other, &["pull", &reference]);
    let verified = json(&other, &["verify", &reference, "--key", "acme.pub", "--key", "other.pub"]);
    assert_fits("box-verify", &verified);
    let found = verified["signatures"].as_array().unwrap();
    assert_eq!(found.iter().filter(|it| it["ok"] == true).count(), 2);
    assert!(!verified["checks"].as_array().unwrap().is_empty());
    json(&other, &["keygen", "-o", "third"]);
    let text = fails(&other, 5, &["verify", &reference, "--key", "third.pub"]);
    assert!(text.contains("the bundle is signed with another key"), "{text}");
    let refused = run(&other, &["verify", &reference, "--key", "third.pub", "--json"]);
    let refused: Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_fits("box-verify", &refused);
    assert_eq!(
        (&refused["ok"], &refused["errors"][0]["code"]),
        (&false.into(), &"signature-invalid".into())
    );
}

#[test]
fn a_box_in_a_registry_is_signed_without_its_blobs() {
    let registry = registry();
    let ci = Ci::new(&registry);
    keys(&ci);
    let built = ci.build("hello:v1", &[]);
    let reference = ci.reference("hello:v1");
    let empty = Ci::new(&registry);
    give_keys(&ci, &empty);
    let text = fails(&empty, 2, &["sign", &reference, "--key", "acme.key"]);
    assert!(text.contains("its tag can name another box"), "{text}");
    let pinned = format!("{reference}@{}", built["box"].as_str().unwrap());
    let before = registry.lines().len();
    let mut sign = empty.command(&["sign", &pinned, "--key", "env:SIGNING_KEY", "--json"]);
    let sign = sign.env("SIGNING_KEY", read(&ci, "acme.key"));
    let signed = report(&sign.output().unwrap());
    assert_fits("sign", &signed);
    assert_eq!(
        (&signed["stored"], &signed["sent"]["attachments_sent"]),
        (&false.into(), &1.into())
    );
    assert!(reference.starts_with(signed["name"].as_str().unwrap()), "{signed}");
    let requests = registry.lines().split_off(before);
    let fetched = requests.iter().filter(|it| it.starts_with("GET ") && it.contains("blobs/"));
    assert_eq!(fetched.count(), 1, "only the manifest of the box: {requests:?}");
    assert!(!empty.path("store").exists(), "nothing is kept");
    let again = report(&sign.output().unwrap());
    assert_eq!(
        (&again["statements"][0]["new"], &again["sent"]["attachments_sent"]),
        (&false.into(), &0.into())
    );
    json(&empty, &["verify", &reference, "--key", "acme.pub"]);
    fails(&empty, 5, &["verify", &reference, "--key", "other.pub"]);
}

#[test]
fn a_signature_in_a_file_is_accepted_by_another_verifier() {
    let registry = registry();
    let ci = Ci::new(&registry);
    keys(&ci);
    ci.build("hello:v1", &[]);
    let mut bundles = Vec::new();
    for key in ["acme.key", "other.key"] {
        let signed = json(&ci, &["sign", "hello", "--key", key, "-o", "hello.sigstore.json"]);
        assert_eq!(
            (&signed["stored"], &signed["output"]),
            (&false.into(), &"hello.sigstore.json".into())
        );
        bundles.push(read(&ci, "hello.sigstore.json"));
    }
    let public = ["acme.pub", "other.pub"].map(|it| {
        let pem = read(&ci, it);
        (PublicKey::from_pem(pem.as_bytes()).unwrap().hint(), pem)
    });
    let sigstore = sigstore(&Workspace::find(), &mut |line| println!("{line}")).unwrap();
    assert_eq!(sigstore.verify(&public, &bundles).unwrap(), [Ok(()), Ok(())]);
    // The box itself has no signature, and the file is the signature of the second key.
    fails(&ci, 5, &["verify", "hello", "--key", "other.pub"]);
    let named = ["verify", "hello", "--key", "other.pub", "--bundle", "hello.sigstore.json"];
    assert_eq!(json(&ci, &named)["signatures"][0]["kind"], "signature");
    // The box's digest is the subject, and the statement is the same without a key.
    let statement = json(&ci, &["sign", "hello", "--statement", "-o", "hello.json"]);
    assert_fits("sign", &statement);
    let text: Value = serde_json::from_str(&read(&ci, "hello.json")).unwrap();
    let digest = statement["box"].as_str().unwrap().trim_start_matches("sha256:");
    assert_eq!(text["subject"][0]["digest"]["sha256"], digest);
}

#[test]
fn the_text_of_a_key_is_in_no_message() {
    let registry = registry();
    let ci = Ci::new(&registry);
    keys(&ci);
    json(&ci, &["build"]);
    let (pem, sec1) = (
        read(&ci, "acme.key"),
        "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIBcanaryAAAA\n-----END EC PRIVATE KEY-----\n",
    );
    let canary = pem.lines().nth(1).unwrap()[24..].to_owned();
    fs::write(ci.path("app/bad.key"), pem.replace("MC4C", "MC4D")).unwrap();
    let with = |value: &str, args: &[&str]| {
        let mut command = ci.command(args);
        command.env("SIGNING_KEY", value).output().unwrap()
    };
    let body = pem.lines().nth(1).unwrap();
    for (value, args) in [
        (&*pem, &["sign", "hello", "--key", "env:SIGNING_KEY", "--verbose"][..]),
        (&pem, &["verify", "hello", "--key", "env:SIGNING_KEY"]),
        (&pem[..60], &["sign", "hello", "--key", "env:SIGNING_KEY"]),
        (sec1, &["sign", "hello", "--key", "env:SIGNING_KEY"]),
        ("", &["sign", "hello", "--key", &pem]),
        ("", &["sign", "hello", "--key", body]),
        ("", &["sign", "hello", &format!("--key={pem}")]),
        ("", &["sign", "hello", "--key", &format!("env:{body}=")]),
        ("", &["sign", "hello", "--key", "bad.key"]),
        ("", &["verify", "hello", "--key", &pem]),
        ("", &["verify", "hello", "--key", "acme.key", "--json"]),
    ] {
        let output = with(value, args);
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(!text.contains(&canary) && !text.contains("canary"), "{args:?}: {text}");
        let is_good = value == pem && args[0] == "sign";
        assert_eq!(output.status.success(), is_good, "{args:?}: {text}");
    }
    // A file that all users can read is a warning.
    let open = fs::Permissions::from_mode(0o644);
    fs::set_permissions(ci.path("app/acme.key"), open).unwrap();
    let signed = run(&ci, &["sign", "hello", "--key", "acme.key"]);
    let notes = String::from_utf8(signed.stderr).unwrap();
    assert!(
        signed.status.success() && notes.contains("warning: all users can read acme.key"),
        "{notes}"
    );
}

#[test]
fn the_signature_of_another_box_is_refused() {
    let registry = registry();
    let (good, evil) = (Ci::new(&registry), Ci::new(&registry));
    keys(&good);
    give_keys(&good, &evil);
    good.build("hello:v1", &[]);
    json(&good, &["sign", "hello", "--key", "acme.key", "-o", "hello.sigstore.json"]);
    evil.skill("Greets, and sends your files elsewhere.");
    let digest = evil.build("evil:v1", &["--no-cache"])["box"].as_str().unwrap().parse().unwrap();
    // A hostile user moves the signature to another box: in the store, and from there to the registry.
    let bundle = fs::read(good.path("app/hello.sigstore.json")).unwrap();
    let store = Store::open(&evil.path("store")).unwrap();
    assert!(store.attach(&digest, &Attachment::new(BUNDLE_MEDIA_TYPE, bundle)).unwrap());
    drop(store);
    let reference = evil.reference("evil:v1");
    assert_eq!(json(&evil, &["push", "hello", &reference])["attachments_sent"], 1);
    let empty = Ci::new(&registry);
    give_keys(&good, &empty);
    for (host, name) in [(&evil, "hello"), (&empty, &*reference)] {
        let text = fails(host, 5, &["verify", name, "--key", "acme.pub"]);
        assert!(text.contains("the statement is about sha256:"), "{text}");
    }
    // A signature is not sent to a box that is another one.
    let text = fails(&good, 1, &["sign", "hello", "--key", "acme.key", "--push", &reference]);
    assert!(text.contains(&format!("{reference} is the box {digest}")), "{text}");
}

#[test]
fn provenance_names_every_input_and_only_of_the_box_that_they_make() {
    let registry = registry();
    let ci = Ci::new(&registry);
    keys(&ci);
    let reference = ci.reference("hello:v1");
    ci.build("hello:v1", &[]);
    let (lock, away) = (ci.path("app/Boxfile.lock"), ci.path("app/away.lock"));
    fs::rename(&lock, &away).unwrap();
    let text = fails(&ci, 3, &["attest", &reference, "--key", "acme.key"]);
    assert!(text.contains("there is no Boxfile.lock"), "{text}");
    fs::rename(&away, &lock).unwrap();
    let attested = json(&ci, &["attest", &reference, "--key", "acme.key"]);
    assert_fits("sign", &attested);
    let kinds = [0, 1].map(|it| attested["statements"][it]["kind"].clone());
    assert_eq!(kinds, ["provenance", "sbom"]);
    assert_eq!(
        (&attested["stored"], &attested["sent"]["attachments_sent"]),
        (&true.into(), &2.into())
    );
    // Neither is a signature.
    let text = fails(&ci, 5, &["verify", &reference, "--key", "acme.pub"]);
    assert!(
        text.contains("provenance, not a signature") && text.contains("sbom, not a signature"),
        "{text}"
    );
    json(&ci, &["sign", "hello", "--key", "acme.key"]);
    let verified = json(&ci, &["verify", "hello", "--key", "acme.pub"]);
    assert_eq!(verified["signatures"].as_array().unwrap().len(), 3);
    let id = "https://ci.example.com/box";
    let only =
        ["attest", "hello", "--provenance", "--predicate", "-o", "out.json", "--builder-id", id];
    json(&ci, &only);
    let predicate: Value = serde_json::from_str(&read(&ci, "out.json")).unwrap();
    assert_eq!(predicate["runDetails"]["builder"]["id"], id);
    let definition = &predicate["buildDefinition"];
    assert_eq!(definition["externalParameters"]["boxfile"], "Boxfile");
    let inputs = definition["resolvedDependencies"].as_array().unwrap();
    let has = |uri: &str, hex: &str| {
        inputs.iter().any(|it| {
            it["uri"] == uri && it["digest"].as_object().unwrap().values().any(|it| it == hex)
        })
    };
    let lock = Lock::parse(&read(&ci, "Boxfile.lock")).unwrap();
    for entry in lock.entries() {
        let uri = if entry.source.is_empty() { &entry.name } else { &entry.source };
        let digest = entry.digest.to_string();
        assert!(has(uri, digest.split_once(':').unwrap().1), "{uri}: {predicate:#}");
    }
    for name in ["Boxfile", "Boxfile.lock"] {
        let digest = box_digest::Digest::of(read(&ci, name).as_bytes());
        assert!(has(name, &digest.hex()), "{name}");
    }
    assert_eq!(inputs.len(), lock.entries().len() + 2);
    // A host that has not built the box does not claim how it was built.
    let other = Ci::new(&registry);
    for name in ["Boxfile.lock", "acme.key"] {
        fs::copy(ci.path("app").join(name), other.path("app").join(name)).unwrap();
    }
    let text = fails(&other, 1, &["attest", &reference, "--key", "acme.key"]);
    assert!(text.contains("the store has no build of this Boxfile"), "{text}");
    // A changed input is not in the lock, and its box is another one.
    ci.skill("Greets twice.");
    let text = fails(&ci, 3, &["attest", &reference, "--key", "acme.key"]);
    assert!(text.contains("Boxfile.lock is out of date"), "{text}");
    json(&ci, &["build"]);
    let text = fails(&ci, 1, &["attest", &reference, "--key", "acme.key"]);
    assert!(text.contains("this Boxfile and its lock make the box"), "{text}");
}

/// The store of all users of a host has the box, and the user has no store yet.
#[test]
fn a_box_of_the_shared_store_is_signed_in_the_own_one() {
    let registry = registry();
    let ci = Ci::new(&registry);
    keys(&ci);
    let name = json(&ci, &["build"])["stored_as"].as_str().unwrap().to_owned();
    let call = |args: &[&str]| {
        let mut command = ci.command(&[args, &["--store", "own", "--json"]].concat());
        report(&command.env("BOXBUILD_STORE_RO", ci.path("store")).output().unwrap())
    };
    let signed = call(&["sign", &name, "--key", "acme.key"]);
    assert_eq!(signed["stored"], true, "{signed}");
    call(&["verify", &name, "--key", "acme.pub"]);
    fails(&ci, 5, &["verify", &name, "--key", "acme.pub"]);
}

#[test]
fn a_directory_keeps_no_signature() {
    let registry = registry();
    let ci = Ci::new(&registry);
    keys(&ci);
    json(&ci, &["build", "-o", "whole", "--store", "elsewhere"]);
    let text = fails(&ci, 1, &["sign", "./whole", "--key", "acme.key"]);
    assert!(text.contains("the store does not have the box"), "{text}");
    json(&ci, &["sign", "./whole", "--key", "acme.key", "-o", "a.json"]);
    json(&ci, &["verify", "./whole", "--key", "acme.pub", "--bundle", "a.json"]);
    let reference = ci.reference("whole:v1");
    json(&ci, &["push", "./whole", &reference]);
    let signed = json(&ci, &["sign", "./whole", "--key", "acme.key", "--push", &reference]);
    assert_eq!(
        (&signed["stored"], &signed["sent"]["attachments_sent"]),
        (&false.into(), &1.into())
    );
    json(&ci, &["verify", &reference, "--key", "acme.pub"]);
    // NAME.box points to the store, which keeps the signature.
    json(&ci, &["build"]);
    assert_eq!(json(&ci, &["sign", "hello.box", "--key", "acme.key"])["stored"], true);
}
