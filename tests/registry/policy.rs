//! Tests of the policy of a host: what it refuses before a blob is fetched or loaded, and what it accepts.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use box_cache::{Attachment, MAX_ATTACHMENTS, Named, Owner, Store};
use box_digest::Digest;
use box_layout::OpenBox;
use box_trust::{Algorithm, BUNDLE_MEDIA_TYPE, PrivateKey, Statement};
use serde_json::Value;
use test_server::Early;
use test_server::registry::{Referrers, Registry, Rules, error};
use testbed::{Artefacts, Workspace};
use testkit::images::{Compression, Config, Image, Layer};
use testkit::test_box::config;
use testkit::{TestBox, small_kernel};

use crate::boxes::printed;
use crate::schema::assert_fits;

/// A rule for the repositories below `acme`, after the placeholder for the registry.
const SIGNED: &str = "[[rule]]\nmatch = \"HOST/acme/*\"\nkeys = [\"acme.pub\"]\n";

/// A host with a policy, and a registry with a box.
struct Host {
    registry: Registry,
    dir: tempfile::TempDir,
    tools: Artefacts,
    files: TestBox,
    digest: Digest,
    key: PrivateKey,
}

impl Host {
    fn new(rules: Rules) -> Self {
        let tools = Artefacts::build(&Workspace::find()).unwrap();
        let files = TestBox::new(&config());
        let digest = OpenBox::open(files.path()).unwrap().digest;
        let (registry, dir) = (Registry::start(rules), tempfile::tempdir().unwrap());
        let key = PrivateKey::generate(Algorithm::EcdsaP256).unwrap();
        let host = Self { registry, dir, tools, files, digest, key };
        let allowed = format!("[registry.\"{}\"]\nplain-http = true\n", host.registry.host());
        fs::write(host.path("registries.toml"), allowed).unwrap();
        fs::create_dir_all(host.path("config/boxbuild")).unwrap();
        fs::write(host.path("config/boxbuild/acme.pub"), host.key.public().to_pem()).unwrap();
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes the user's policy. `HOST` in it stands for the registry.
    fn policy(&self, text: &str) {
        let text = text.replace("HOST", &self.registry.host());
        fs::write(self.path("config/boxbuild/policy.toml"), text).unwrap();
    }

    fn reference(&self, name: &str) -> String {
        format!("{}/{name}", self.registry.host())
    }

    /// Adds a signature by `key` to the box in the store `store`.
    fn sign(&self, store: &str, key: &PrivateKey, digest: Digest) {
        let bundle = Statement::signature(None, digest).sign(key).unwrap();
        let store = Store::open(&self.path(store)).unwrap();
        assert!(store.attach(&self.digest, &Attachment::new(BUNDLE_MEDIA_TYPE, bundle)).unwrap());
    }

    fn push(&self, store: &str, name: &str) -> Value {
        let path = self.files.path().to_str().unwrap();
        let args = ["push", path, &self.reference(name), "--json"];
        let output = self.command(&self.tools.boxbuild, store, &args).output().unwrap();
        serde_json::from_str(&printed(&output).0).unwrap()
    }

    fn command(&self, program: &Path, store: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).env_clear().current_dir(self.dir.path());
        self.environment(&mut command, store);
        command
    }

    fn environment(&self, command: &mut Command, store: &str) {
        command.env("BOXBUILD_REGISTRIES", self.path("registries.toml"));
        command.env("BOXBUILD_STORE", self.path(store)).env("XDG_CONFIG_HOME", self.path("config"));
        command.env("BOXLAUNCH_STATE", self.path("state")).env("PATH", "/usr/bin:/bin:/usr/sbin");
    }

    fn boxbuild(&self, store: &str, args: &[&str]) -> Output {
        self.command(&self.tools.boxbuild, store, args).output().unwrap()
    }

    fn boxlaunch(&self, store: &str, args: &[&str]) -> Output {
        self.command(&self.tools.boxlaunch, store, args).output().unwrap()
    }

    /// Builds a box with the name `built`, into a thin directory and a whole one. Returns its digest.
    fn build(&self, store: &str) -> String {
        let config = Config { entrypoint: vec!["/program".to_owned()], ..Config::default() };
        let layer = Layer::new().file("/program", 0o755, "#!/program").to_tar();
        let image = Image::new(config).with(layer);
        image.write_layout(&self.path("image"), "latest", Compression::Gzip).unwrap();
        let boxfile = "box \"built\"\nagent { image \"oci:image\"; health \"tcp\"; }\n\
                       vm cpus=1 memory=\"1GiB\"\n";
        fs::write(self.path("Boxfile"), boxfile).unwrap();
        let build = |args: &[&str]| {
            let kernel = small_kernel::file(&Workspace::find().target("")).unwrap();
            let mut command = self.command(&self.tools.boxbuild, store, args);
            command.env("BOXBUILD_INIT", &self.tools.box_init).env("BOXBUILD_KERNEL", kernel);
            printed(&command.output().unwrap()).0.trim().to_owned()
        };
        let digest = build(&["build"]);
        assert_eq!(build(&["build", "-o", "whole.box"]), digest);
        digest
    }

    /// Runs a program where the administrator has the policy `text`: in a mount namespace with another `/etc`.
    fn administered(&self, text: &str, program: &Path, store: &str, args: &[&str]) -> Output {
        let etc = self.path("etc");
        fs::create_dir_all(&etc).unwrap();
        let text = text.replace("HOST", &self.registry.host());
        fs::write(etc.join("policy.toml"), text).unwrap();
        fs::write(etc.join("acme.pub"), self.key.public().to_pem()).unwrap();
        const MOUNT: &str = "mount -t tmpfs -o mode=755 none /etc && mkdir -m 755 /etc/boxbuild && \
                             cp \"$1\"/* /etc/boxbuild && shift && exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", MOUNT, "sh"]).arg(etc);
        command.arg(program).args(args).env_clear().current_dir(self.dir.path());
        self.environment(&mut command, store);
        command.output().unwrap()
    }

    /// Asserts that no layer of the box `name` was fetched: neither its rootfs, nor its kernel, nor its init.
    fn assert_nothing_fetched(&self, name: &str) {
        let (repository, tag) = name.split_once(':').unwrap();
        let key = (repository.to_owned(), tag.to_owned());
        let manifest = self.registry.with(|held| held.manifests[&key].1.clone());
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        let layers = manifest["layers"].as_array().unwrap();
        assert!(!layers.is_empty());
        let lines = self.registry.lines();
        for layer in layers {
            let digest = layer["digest"].as_str().unwrap();
            let is_fetch = |it: &&String| it.starts_with("GET ") && it.contains(digest);
            assert_eq!(lines.iter().find(is_fetch), None);
        }
    }

    /// Asserts that a pull of `name` by either program is refused with `code`, before it fetches a blob of the box. Returns the
    /// message.
    #[track_caller]
    fn refused(&self, name: &str, code: &str) -> String {
        let mut messages = [&self.tools.boxbuild, &self.tools.boxlaunch].map(|program| {
            let args = ["pull", &self.reference(name), "--json"];
            error_of(&self.command(program, "user", &args).output().unwrap(), code)
        });
        assert_eq!(messages[0], messages[1]);
        std::mem::take(&mut messages[0])
    }
}

/// Returns the message and the help of a command's only error, which must have this code.
#[track_caller]
fn error_of(output: &Output, code: &str) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let notes = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{text}{notes}");
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{notes}"));
    let error = &report["errors"][0];
    assert_eq!(error["code"], code, "{error}");
    let field = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    format!("{}\n{}", field("message"), field("help"))
}

#[test]
fn an_unsigned_box_is_refused_before_its_blobs_are_fetched() {
    let host = Host::new(Rules::default());
    host.push("out", "acme/box:v1");
    host.policy(SIGNED);
    let said = host.refused("acme/box:v1", "box-unsigned");
    let place = host.path("config/boxbuild/policy.toml:2");
    let expected = format!(
        "{} is not accepted: the box has no signature by a trusted key, which {} requires",
        host.reference("acme/box:v1"),
        place.display()
    );
    assert!(said.starts_with(&expected), "{said}");
    host.assert_nothing_fetched("acme/box:v1");
    // A signature by another key, and one about another box.
    host.sign("out", &PrivateKey::generate(Algorithm::Ed25519).unwrap(), host.digest);
    host.sign("out", &host.key, Digest::of(b"another box"));
    host.push("out", "acme/box:v1");
    let said = host.refused("acme/box:v1", "box-unsigned");
    assert!(said.contains("the bundle is signed with another key"), "{said}");
    assert!(said.contains("the statement is about "), "{said}");
    assert!(said.ends_with(&format!("in its order:\n`{}`", host.key.public().hint())), "{said}");
    host.assert_nothing_fetched("acme/box:v1");
    // `run` pulls in the same way.
    let run = host.boxlaunch("user", &["run", &host.reference("acme/box:v1"), "--json"]);
    error_of(&run, "box-unsigned");
    host.assert_nothing_fetched("acme/box:v1");
    // The right signature.
    host.sign("out", &host.key, host.digest);
    host.push("out", "acme/box:v1");
    let pulled = host.boxbuild("user", &["pull", &host.reference("acme/box:v1")]);
    let notes = printed(&pulled).1;
    let hint = host.key.public().hint();
    assert!(
        notes.contains(&format!("signed by the key {hint}, as {}", place.display())),
        "{notes}"
    );
}

#[test]
fn what_no_signature_helps_is_refused_before_the_first_request() {
    let host = Host::new(Rules::default());
    host.sign("out", &host.key, host.digest);
    let pushed = host.push("out", "acme/box:v1");
    let before = host.registry.lines().len();
    host.policy(&SIGNED.replace("acme/*", "other/*"));
    let said = host.refused("acme/box:v1", "policy-refused");
    assert!(said.contains("the policy has no rule for this repository"), "{said}");
    host.policy("default = \"allow\"\n[[rule]]\nmatch = \"HOST/acme/*\"\ndecision = \"refuse\"\n");
    let said = host.refused("acme/box:v1", "policy-refused");
    assert!(said.contains("policy.toml:3)"), "{said}");
    host.policy(&format!("{SIGNED}digest-only = true\n"));
    let said = host.refused("acme/box:v1", "policy-refused");
    assert!(said.contains("the policy requires a digest") && said.contains("@sha256:"), "{said}");
    assert_eq!(host.registry.lines().len(), before);
    // A digest: the box's own, or that of the registry's manifest.
    let digests = [host.digest.to_string(), pushed["registry_digest"].as_str().unwrap().to_owned()];
    for digest in digests {
        let reference = format!("{}@{digest}", host.reference("acme/box:v1"));
        printed(&host.boxbuild("user", &["pull", &reference]));
    }
}

#[test]
fn a_registry_that_does_not_list_signatures_gives_no_box() {
    let deed = |request: &test_server::Request, _| {
        let is_list = request.path().contains("/referrers/") && request.method() == "GET";
        is_list.then(|| Early { after: usize::MAX, reply: error("403 Forbidden", "DENIED") })
    };
    let rules = Rules { referrers: Referrers::Paged(10), ..Rules::default() };
    let host = Host::new(Rules { deed: Some(Box::new(deed)), ..rules });
    let args = ["push", host.files.path().to_str().unwrap(), &host.reference("acme/box:v1")];
    printed(&host.boxbuild("out", &args));
    host.policy(SIGNED);
    let pull = host.boxbuild("user", &["pull", &host.reference("acme/box:v1"), "--json"]);
    assert!(!pull.status.success(), "{pull:?}");
    host.assert_nothing_fetched("acme/box:v1");
}

#[test]
fn a_box_of_the_store_is_judged_again_at_each_start() {
    let host = Host::new(Rules::default());
    host.sign("out", &host.key, host.digest);
    host.push("out", "acme/box:v1");
    let reference = host.reference("acme/box:v1");
    printed(&host.boxbuild("user", &["pull", &reference]));
    let digest = host.digest.to_string();
    // Whether the policy accepts the box. There is no KVM for the test's box, so an accepted start fails later.
    let starts = |word: &str| {
        let run = host.boxlaunch("user", &["run", word, "--pull", "never", "--json"]);
        let text = String::from_utf8_lossy(&run.stdout).into_owned();
        let report: Value = serde_json::from_str(&text).unwrap();
        let code = report["errors"][0]["code"].as_str().unwrap().to_owned();
        (!["box-unsigned", "policy-refused", "policy-invalid"].contains(&&*code))
            .then_some(())
            .ok_or(code)
    };
    for policy in [
        SIGNED,
        "default = \"allow\"",
        "[[rule]]\nmatch = \"HOST/acme/box\"\ndecision = \"allow\"\n",
    ] {
        host.policy(policy);
        assert_eq!((starts(&reference), starts(&digest)), (Ok(()), Ok(())), "{policy}");
    }
    let refused = |policy: &str, code: &str| {
        host.policy(policy);
        let code = Err(code.to_owned());
        assert_eq!((starts(&reference), starts(&digest)), (code.clone(), code), "{policy}");
    };
    refused("", "policy-refused");
    // The key was withdrawn.
    let other = PrivateKey::generate(Algorithm::Ed25519).unwrap();
    fs::write(host.path("config/boxbuild/other.pub"), other.public().to_pem()).unwrap();
    refused(&SIGNED.replace("acme.pub", "other.pub"), "box-unsigned");
    refused(&SIGNED.replace("acme.pub", "none.pub"), "policy-invalid");
    refused("default = 1", "policy-invalid");
    let policy = host.path("config/boxbuild/policy.toml");
    fs::remove_file(&policy).unwrap();
    symlink("none", &policy).unwrap();
    assert_eq!(starts(&reference), Err("policy-invalid".to_owned()));
    fs::remove_file(&policy).unwrap();
    // `verify` says the same, in words and as data.
    host.policy(SIGNED);
    let words = printed(&host.boxlaunch("user", &["verify", &reference])).0;
    assert!(words.contains("policy   ok       signed by the key "), "{words}");
    let report = |args: &[&str]| -> Value {
        let output = host.boxlaunch("user", &[&["verify", &reference, "--json"], args].concat());
        let report = serde_json::from_slice(&output.stdout).unwrap();
        assert_fits("verify", &report);
        report
    };
    let found = report(&[]);
    assert_eq!((&found["ok"], &found["policy"]["ok"]), (&true.into(), &true.into()));
    assert_eq!(found["policy"]["key"], host.key.public().hint());
    let found = report(&["--key", "config/boxbuild/acme.pub"]);
    assert_eq!(
        (&found["ok"], &found["signatures"][0]["kind"]),
        (&true.into(), &"signature".into())
    );
    let found = report(&["--key", "config/boxbuild/other.pub"]);
    assert_eq!(
        (&found["ok"], &found["errors"][0]["code"]),
        (&false.into(), &"signature-invalid".into())
    );
    // The test's box has no real files, for which boxbuild has more errors.
    let of_boxbuild = || -> Value {
        let output = host.boxbuild("user", &["verify", &reference, "--json"]);
        let report = serde_json::from_slice(&output.stdout).unwrap();
        assert_fits("box-verify", &report);
        report
    };
    assert_eq!(of_boxbuild()["policy"], report(&[])["policy"]);
    host.policy("");
    let found = report(&[]);
    assert_eq!(
        (&found["ok"], &found["errors"][0]["code"]),
        (&false.into(), &"policy-refused".into())
    );
    let found = of_boxbuild();
    assert_eq!(found["policy"]["ok"], false);
    let codes: Vec<_> = found["errors"].as_array().unwrap().iter().map(|it| &it["code"]).collect();
    assert!(codes.contains(&&"policy-refused".into()), "{codes:?}");
}

#[test]
fn a_box_in_a_file_is_judged_before_anything_is_kept() {
    let host = Host::new(Rules::default());
    host.push("out", "acme/box:v1");
    let reference = host.reference("acme/box:v1");
    printed(&host.boxbuild("out", &["pull", &reference]));
    let save = |file: &str| printed(&host.boxbuild("out", &["save", &reference, "-o", file]));
    save("unsigned.tar");
    host.sign("out", &host.key, host.digest);
    save("signed.tar");
    let refused = |file: &str, code: &str| {
        let path = format!("./{file}");
        for (program, args) in [
            (&host.tools.boxbuild, ["load", &path, "--json"]),
            (&host.tools.boxlaunch, ["load", &path, "--json"]),
            (&host.tools.boxlaunch, ["run", &path, "--json"]),
        ] {
            error_of(&host.command(program, "user", &args).output().unwrap(), code);
        }
        assert!(!host.path("user/boxes").exists() && !host.path("user/blobs").exists());
    };
    host.policy(SIGNED);
    refused("unsigned.tar", "box-unsigned");
    // The file only claims its name: a rule that trusts the registry is not about it.
    host.policy("[[rule]]\nmatch = \"HOST/acme/*\"\ndecision = \"allow\"\n");
    refused("unsigned.tar", "policy-refused");
    host.policy("default = \"allow\"\nfile = \"refuse\"\n");
    refused("signed.tar", "policy-refused");
    host.policy(SIGNED);
    printed(&host.boxlaunch("user", &["load", "signed.tar"]));
    host.policy("file = \"allow\"\n");
    printed(&host.boxbuild("user2", &["load", "unsigned.tar"]));
}

#[test]
fn only_a_build_of_this_host_is_local() {
    let host = Host::new(Rules::default());
    let store = Store::open(&host.path("user")).unwrap();
    let path = host.files.path().to_str().unwrap();
    let code = |word: &str| {
        let run = host.boxlaunch("user", &["run", word, "--json"]);
        let report: Value = serde_json::from_slice(&run.stdout).unwrap();
        report["errors"][0]["code"].as_str().unwrap().to_owned()
    };
    // A directory from anywhere. The name of a Boxfile in the store is no evidence: `load --replace` keeps it.
    printed(&host.boxbuild("out", &["save", path, "-o", "box.tar"]));
    printed(&host.boxbuild("user", &["load", "box.tar"]));
    let owner = Owner::Boxfile(host.path("Boxfile"));
    store.name_box("hello", &Named { digest: host.digest, owner }).unwrap();
    host.policy("file = \"refuse\"\nlocal = \"allow\"\n");
    let digest = host.digest.to_string();
    for word in ["hello", path, &digest] {
        assert_eq!(code(word), "policy-refused", "{word}");
    }
    // A build of this host, by its name, its digest, and in its thin and its whole directory.
    let digest = host.build("user");
    for word in ["built", "./built.box", "./whole.box", &digest] {
        assert!(!code(word).starts_with("policy-"), "{word}");
    }
    host.policy("file = \"allow\"\nlocal = \"refuse\"\n");
    for word in ["built", "./built.box", "./whole.box", &digest] {
        assert_eq!(code(word), "policy-refused", "{word}");
    }
    // The hidden option of a virtual host is no way around it.
    error_of(&host.boxlaunch("user", &["run", "--nested", "built", "--json"]), "policy-refused");
    // The same directory on a host that has not built it.
    host.policy("file = \"refuse\"\nlocal = \"allow\"\n");
    error_of(&host.boxlaunch("user2", &["run", "./whole.box", "--json"]), "policy-refused");
}

#[test]
fn a_name_that_only_a_file_declares_is_no_name_of_a_registry() {
    let host = Host::new(Rules::default());
    host.sign("out", &host.key, host.digest);
    host.push("out", "acme/box:v1");
    let (mine, prod) = (host.reference("acme/box:v1"), host.reference("prod/box:v1"));
    printed(&host.boxbuild("out", &["pull", &mine]));
    printed(&host.boxbuild("out", &["save", &mine, "-o", "file"]));
    // The file gives the box another name besides, as anybody can.
    let index = host.path("file/index.json");
    let mut document: Value = serde_json::from_slice(&fs::read(&index).unwrap()).unwrap();
    let manifests = document["manifests"].as_array_mut().unwrap();
    let at = manifests.iter().position(|it| it["annotations"].is_object()).unwrap();
    let mut entry = manifests[at].clone();
    let name = entry["annotations"].as_object_mut().unwrap();
    let name = name.values_mut().find(|it| it.as_str() == Some(&mine)).unwrap();
    *name = prod.clone().into();
    manifests.push(entry);
    fs::write(&index, document.to_string()).unwrap();
    let code = |word: &str| {
        let run = host.boxlaunch("user", &["run", word, "--pull", "never", "--json"]);
        let report: Value = serde_json::from_slice(&run.stdout).unwrap();
        report["errors"][0]["code"].as_str().unwrap().to_owned()
    };
    let load = |store: &str| host.boxlaunch(store, &["load", "file", "--json"]);
    let trusted = "[[rule]]\nmatch = \"HOST/prod/*\"\ndecision = \"allow\"\n";
    // Each name of the file must be accepted, and a rule that trusts a registry is not about a file.
    host.policy(&format!("{trusted}{SIGNED}"));
    error_of(&load("user"), "policy-refused");
    host.policy(&format!("file = \"allow\"\n{trusted}{SIGNED}"));
    printed(&load("user"));
    // The key is withdrawn.
    let other = PrivateKey::generate(Algorithm::Ed25519).unwrap();
    fs::write(host.path("config/boxbuild/other.pub"), other.public().to_pem()).unwrap();
    let withdrawn = format!("{trusted}{}", SIGNED.replace("acme.pub", "other.pub"));
    let digest = host.digest.to_string();
    let words = [&mine, &prod, &digest, &format!("{prod}@{digest}")];
    host.policy(&format!("file = \"allow\"\n{withdrawn}"));
    for word in words {
        assert_eq!(code(word), "box-unsigned", "{word}");
    }
    host.policy(&withdrawn);
    for word in words {
        assert!(["box-unsigned", "policy-refused"].contains(&&*code(word)), "{word}");
    }
    // What a registry has shown is a name of the registry.
    host.push("out", "prod/box:v1");
    printed(&host.boxlaunch("user", &["pull", &prod]));
    for word in words {
        assert!(!["box-unsigned", "policy-refused"].contains(&&*code(word)), "{word}");
    }
}

#[test]
fn others_attachments_do_not_keep_a_new_signature_from_the_store() {
    let host = Host::new(Rules::default());
    host.sign("out", &host.key, host.digest);
    let out = Store::open(&host.path("out")).unwrap();
    for number in 1..MAX_ATTACHMENTS {
        let junk = Attachment::new(BUNDLE_MEDIA_TYPE, number.to_string().into_bytes());
        out.attach(&host.digest, &junk).unwrap();
    }
    host.push("out", "acme/box:v1");
    host.policy(SIGNED);
    let reference = host.reference("acme/box:v1");
    printed(&host.boxbuild("user", &["pull", &reference]));
    // The key rotates. The registry has one attachment more than a store takes.
    let new = PrivateKey::generate(Algorithm::Ed25519).unwrap();
    fs::write(host.path("config/boxbuild/acme.pub"), new.public().to_pem()).unwrap();
    host.sign("new", &new, host.digest);
    host.push("new", "acme/box:v1");
    let notes = printed(&host.boxbuild("user", &["pull", &reference])).1;
    assert!(notes.contains("1 attachment of the box in the registry left out: "), "{notes}");
    // A refusal comes after the note: what was left out may be the reason.
    let other = PrivateKey::generate(Algorithm::Ed25519).unwrap();
    fs::write(host.path("config/boxbuild/acme.pub"), other.public().to_pem()).unwrap();
    let refused = host.boxbuild("user", &["pull", &reference]);
    let notes = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && notes.contains("in the registry left out: "), "{notes}");
    fs::write(host.path("config/boxbuild/acme.pub"), new.public().to_pem()).unwrap();
    let words = printed(&host.boxlaunch("user", &["verify", &reference])).0;
    assert!(words.contains("policy   ok       signed by the key "), "{words}");
    // A file with the new signature only, for a store that is full.
    host.sign("fresh", &new, host.digest);
    host.push("fresh", "acme/other:v1");
    let other = host.reference("acme/other:v1");
    printed(&host.boxbuild("third", &["pull", &other]));
    printed(&host.boxbuild("third", &["save", &other, "-o", "new.tar"]));
    printed(&host.boxbuild("out", &["load", "new.tar"]));
    let words = printed(&host.boxlaunch("out", &["verify", &other])).0;
    assert!(words.contains("policy   ok       signed by the key "), "{words}");
}

#[test]
fn a_typed_name_decides_only_if_the_box_was_pulled_from_there() {
    let host = Host::new(Rules::default());
    host.push("out", "acme/box:v1");
    let reference = host.reference("acme/box:v1");
    host.policy("default = \"allow\"\n");
    printed(&host.boxbuild("user", &["pull", &reference]));
    let built = host.build("user");
    let code = |word: &str| {
        let run = host.boxlaunch("user", &["run", word, "--pull", "never", "--json"]);
        let report: Value = serde_json::from_slice(&run.stdout).unwrap();
        report["errors"][0]["code"].as_str().unwrap().to_owned()
    };
    let named = |name: &str, digest: &str| format!("{}@{digest}", host.reference(name));
    let digest = host.digest.to_string();
    // The store finds a box by its digest under any name.
    let allowed = "local = \"refuse\"\n[[rule]]\nmatch = \"HOST/any/*\"\ndecision = \"allow\"\n";
    host.policy(&format!("{allowed}{SIGNED}"));
    assert_eq!(code(&named("any/thing", &digest)), "box-unsigned");
    assert_eq!(code(&named("any/thing", &built)), "policy-refused");
    // The repository from which the box was pulled, with and without its tag.
    host.policy("[[rule]]\nmatch = \"HOST/acme/*\"\ndecision = \"allow\"\ndigest-only = true\n");
    assert_eq!(code(&reference), "policy-refused");
    for name in ["acme/box:v1", "acme/box"] {
        assert!(!code(&named(name, &digest)).starts_with("policy-"), "{name}");
    }
}

#[test]
fn the_administrators_policy_replaces_the_users() {
    let host = Host::new(Rules::default());
    host.push("out", "acme/box:v1");
    host.policy("default = \"allow\"\n");
    let args = ["pull", &host.reference("acme/box:v1"), "--json"];
    for program in [&host.tools.boxbuild, &host.tools.boxlaunch] {
        let said = error_of(&host.administered(SIGNED, program, "user", &args), "box-unsigned");
        assert!(said.contains("which /etc/boxbuild/policy.toml:2 requires"), "{said}");
        let said = error_of(&host.administered("", program, "user", &args), "policy-refused");
        assert!(said.contains("the administrator of this host can add a rule"), "{said}");
        let said = error_of(&host.administered("?", program, "user", &args), "policy-invalid");
        assert!(said.contains("key"), "{said}");
    }
    host.assert_nothing_fetched("acme/box:v1");
    let doctor = host.administered(SIGNED, &host.tools.boxlaunch, "user", &["doctor"]);
    let table = String::from_utf8_lossy(&doctor.stdout).into_owned();
    let row = "/etc/boxbuild/policy.toml, the administrator's: 1 rule";
    assert!(table.contains(row), "{table}");
    // It is not the stricter of both: the administrator's alone decides.
    host.policy("default = \"refuse\"\n");
    host.sign("out", &host.key, host.digest);
    host.push("out", "acme/box:v1");
    printed(&host.administered(SIGNED, &host.tools.boxlaunch, "user", &args));
    // Without it, the user's is in force.
    error_of(&host.boxlaunch("user", &args), "policy-refused");
}

#[test]
fn a_tag_that_moved_to_an_unsigned_box_gives_nothing() {
    let host = Host::new(Rules::default());
    host.sign("out", &host.key, host.digest);
    host.push("out", "acme/box:v1");
    host.policy(SIGNED);
    let reference = host.reference("acme/box:v1");
    printed(&host.boxbuild("user", &["pull", &reference]));
    let mut other = config();
    other.plan.name = "other".to_owned();
    let other = TestBox::new(&other);
    let push = ["push", other.path().to_str().unwrap(), &reference];
    printed(&host.boxbuild("out", &push));
    host.refused("acme/box:v1", "box-unsigned");
    let run = host.boxlaunch("user", &["run", &reference, "--pull", "always", "--json"]);
    error_of(&run, "box-unsigned");
    // The store still has the box that was signed, under its name.
    let verified = host.boxlaunch("user", &["verify", &reference]);
    assert!(printed(&verified).0.contains(&host.digest.to_string()));
}

/// A box of this name whose command has this word, so that it has its own digest.
fn version(word: &str) -> TestBox {
    let mut changed = config();
    changed.plan.agent.argv.push(word.to_owned());
    TestBox::new(&changed)
}

#[test]
fn a_tag_moves_back_to_no_older_release() {
    let host = Host::new(Rules::default());
    host.policy(&format!("{SIGNED}refuse-older = true\n"));
    fs::write(host.path("acme.key"), host.key.to_pem().as_bytes()).unwrap();
    let tag = host.reference("acme/hello:stable");
    let [two, one, unnumbered, three] = ["2", "1", "", "3"].map(|release| {
        let made = version(release);
        let path = made.path().to_str().unwrap().to_owned();
        let signed = host.reference(&format!("acme/hello:r{release}"));
        printed(&host.boxbuild("pusher", &["push", &path, &signed]));
        let signed = format!("{signed}@{}", OpenBox::open(made.path()).unwrap().digest);
        let number = format!("--release={release}");
        let number = Some(number.as_str()).filter(|_| !release.is_empty());
        // A signature without a number, beside the other one, changes nothing.
        printed(&host.boxbuild("pusher", &["sign", &signed, "--key", "acme.key"]));
        let numbered = ["sign", &signed, "--key", "acme.key"].into_iter().chain(number);
        printed(&host.boxbuild("pusher", &numbered.collect::<Vec<_>>()));
        (made, path)
    });
    let moved = |(made, path): &(TestBox, String)| {
        printed(&host.boxbuild("pusher", &["push", path, &tag]));
        OpenBox::open(made.path()).unwrap().digest
    };
    let pull = |name: &str| host.boxlaunch("store", &["pull", name]);
    let stored = || {
        let store = Store::open(&host.path("store")).unwrap();
        store.pulled(&tag).unwrap().unwrap().digest
    };
    let second = moved(&two);
    printed(&pull(&tag));
    for (older, what) in [(&one, "it is release 1"), (&unnumbered, "it has no number of a release")]
    {
        let digest = moved(older);
        let refused = pull(&tag);
        let text = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{text}");
        assert!(text.contains(what) && text.contains("is release 2, and "), "{text}");
        assert_eq!(stored(), second);
        // Whoever names the digest wants this box.
        printed(&host.boxlaunch("other", &["pull", &format!("{tag}@{digest}")]));
    }
    let third = moved(&three);
    printed(&pull(&tag));
    assert_eq!(stored(), third);
    moved(&one);
    host.policy(SIGNED);
    printed(&pull(&tag));
}
