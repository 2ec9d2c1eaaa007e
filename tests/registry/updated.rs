//! A tag that moves to a box that asks for more: the store's reference stays with the box before, until a user permits the new one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use box_cache::Store;
use box_contract::NetworkMode;
use box_digest::Digest;
use box_layout::OpenBox;
use test_server::registry::{Registry, Rules};
use testbed::{Artefacts, Workspace};
use testkit::TestBox;
use testkit::test_box::config;

use crate::boxes::printed;

/// A host, and a registry with one tag.
struct Host {
    registry: Registry,
    dir: tempfile::TempDir,
    tools: Artefacts,
}

impl Host {
    fn new() -> Self {
        let tools = Artefacts::build(&Workspace::find()).unwrap();
        let host = Self {
            registry: Registry::start(Rules::default()),
            dir: tempfile::tempdir().unwrap(),
            tools,
        };
        let allowed = format!("[registry.\"{}\"]\nplain-http = true\n", host.registry.host());
        fs::write(host.path("registries.toml"), allowed).unwrap();
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn tag(&self) -> String {
        format!("{}/acme/hello:stable", self.registry.host())
    }

    fn run(&self, program: &Path, store: &str, args: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.args(args).env_clear().current_dir(self.dir.path());
        command.env("BOXBUILD_REGISTRIES", self.path("registries.toml"));
        command.env("BOXBUILD_STORE", self.path(store)).env("XDG_CONFIG_HOME", self.path("config"));
        command.env("BOXLAUNCH_STATE", self.path("state")).env("PATH", "/usr/bin:/bin:/usr/sbin");
        command.output().unwrap()
    }

    /// Pushes a box to the tag. Returns its digest.
    fn push(&self, made: &TestBox) -> Digest {
        let path = made.path().to_str().unwrap();
        printed(&self.run(&self.tools.boxbuild, "pusher", &["push", path, &self.tag()]));
        OpenBox::open(made.path()).unwrap().digest
    }

    /// Runs what the unit of an update runs if the service does not run.
    fn next(&self, accept: &[&str]) -> Output {
        let tag = self.tag();
        let args = [&["update", "--next", "--pull=always"], accept, &["hello", &tag]].concat();
        self.run(&self.tools.boxlaunch, "store", &args)
    }

    /// Returns the box that a start of the tag gets from the store.
    fn stored(&self) -> Digest {
        let store = Store::open(&self.path("store")).unwrap();
        store.pulled(&self.tag()).unwrap().unwrap().digest
    }
}

#[test]
fn the_tag_of_the_store_moves_only_to_a_permitted_box() {
    let host = Host::new();
    let less = TestBox::new(&config());
    let mut more = config();
    more.plan.network.mode = NetworkMode::Filtered;
    more.plan.network.allow = serde_json::from_str(r#"[{"peer":"a.example"}]"#).unwrap();
    let more = TestBox::new(&more);
    let first = host.push(&less);
    printed(&host.next(&[]));
    assert_eq!(host.stored(), first);
    let wider = host.push(&more);
    for accept in [vec![], vec![format!("--accept={first}")]] {
        let accept: Vec<_> = accept.iter().map(String::as_str).collect();
        let refused = host.next(&accept);
        let text = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{text}");
        assert!(text.contains("network allow: - → a.example"), "{text}");
        assert!(text.contains(&format!("UPDATE=--accept={wider}")), "{text}");
        assert_eq!(host.stored(), first);
    }
    printed(&host.next(&[&format!("--accept={wider}")]));
    assert_eq!(host.stored(), wider);
    // A box that asks for less needs no consent.
    host.push(&less);
    printed(&host.next(&[]));
    assert_eq!(host.stored(), first);
}

/// A box whose service sends a secret to this host.
fn sending_to(to: &str) -> TestBox {
    let mut sending = config();
    sending.plan.network.mode = NetworkMode::CapOnly;
    let service = format!(
        r#"[{{"name":"model","to":"https://{to}","component":"agent","timeout-ms":1000,
            "headers":[{{"name":"x-key","secret":"KEY"}}]}}]"#
    );
    sending.plan.services = serde_json::from_str(&service).unwrap();
    sending.plan.secrets =
        serde_json::from_str(r#"[{"name":"KEY","scope":"agent","delivery":"host"}]"#).unwrap();
    TestBox::new(&sending)
}

#[test]
fn nothing_accepts_that_a_secret_of_a_service_goes_elsewhere() {
    let host = Host::new();
    let first = host.push(&sending_to("a.example"));
    printed(&host.next(&[]));
    host.push(&sending_to("b.example"));
    let refused = host.next(&["--accept"]);
    let text = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(6), "{text}");
    assert!(text.contains("KEY sent to b.example:443"), "{text}");
    assert!(text.contains("`boxlaunch pull "), "{text}");
    assert_eq!(host.stored(), first);
}
