//! Tests that the advice on conflicts, pasted into the Boxfile, leaves no conflict: for pairs of real images, in both syntaxes.

use std::path::Path;

use serde_json::Value;
use testbed::Workspace;
use testbed::debian::RealImages;
use testkit::images::Layer;

use crate::scene::Scene;

/// Pairs of real images that conflict: whole package trees, layers of packages, and an edited tree.
const PAIRS: [[&str; 2]; 6] = [
    ["python", "node"],
    ["tools", "git"],
    ["essential", "edited"],
    ["tools", "edited"],
    ["python", "tools"],
    ["node", "edited"],
];

const KDL: &str = r#"box "one"
agent { image "AGENT"; entrypoint "sh"; }
business { image "BUSINESS"; }
layout "merged"
"#;

const TOML: &str = r#"box = "one"
agent = { image = "AGENT", entrypoint = "sh" }
business = { image = "BUSINESS" }
layout = "merged"
"#;

/// Plans the box of the Boxfile `text`, and returns the plan's `composition`.
fn composition(scene: &Scene, file: &str, text: &str) -> Value {
    scene.write(file, text);
    let ran = scene.run(&["plan", "--json", "-f", file]);
    assert!(ran.code <= 1, "{}{}", ran.notes, ran.result);
    let report = ran.json();
    assert!(report["composition"].is_object(), "{text}\n{report}");
    report["composition"].clone()
}

#[test]
fn pasted_at_once_it_leaves_no_conflict() {
    let real = RealImages::make(&Workspace::find(), &mut |line| println!("{line}")).unwrap();
    let reference = |wanted: &str| {
        let (_, layout, tag) = real.images.iter().find(|(name, ..)| *name == wanted).unwrap();
        format!("oci:{}:{tag}", Path::display(layout))
    };
    let scene = Scene::new(Layer::new(), Layer::new(), "");
    for (pair, [agent, business]) in PAIRS.iter().zip(PAIRS.map(|it| it.map(reference))) {
        for (file, text) in [("Boxfile", KDL), ("Boxfile.toml", TOML)] {
            let text = text.replace("AGENT", &agent).replace("BUSINESS", &business);
            let before = composition(&scene, file, &text);
            let advice = before["advice"].as_array().unwrap();
            let lines = advice.iter().map(|it| it["declaration"].as_str().unwrap());
            let pasted = lines.collect::<Vec<_>>().join("\n");
            let after = composition(&scene, file, &format!("{text}\n{pasted}\n"));
            println!("{pair:?}: {} conflicts, {} lines", before["conflict_count"], advice.len());
            assert_ne!(before["conflict_count"], 0, "{pair:?}");
            assert!(advice.len() <= 20, "{pair:?}: {pasted}");
            assert_eq!(after["conflict_count"], 0, "{pair:?}: {after}");
        }
    }
}
