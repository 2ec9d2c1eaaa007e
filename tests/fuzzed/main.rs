//! Runs the bodies of the fuzz targets with the inputs that fuzzing has found. It does not need the fuzzer, which compiles C++.

#[path = "../../fuzz/src/lib.rs"]
#[allow(unreachable_pub, reason = "the library of another workspace")]
#[allow(clippy::expect_used, clippy::panic, reason = "a panic is a finding of the fuzzer")]
mod targets;

use std::fs;

use diagnostics::Syntax;
use testbed::Workspace;

/// The body of a fuzz target.
type Body = fn(&[u8]);

/// The targets, by the names of their directories in `fuzz/corpus`.
const TARGETS: [(&str, Body); 17] = [
    ("archive", targets::archive),
    ("boxfile_kdl", |bytes| targets::boxfile(bytes, Syntax::Kdl)),
    ("boxfile_toml", |bytes| targets::boxfile(bytes, Syntax::Toml)),
    ("bundle", targets::bundle),
    ("cap_http", targets::cap_http),
    ("command", targets::command),
    ("delta", targets::delta),
    ("first_bytes", targets::first_bytes),
    ("frames", targets::frames),
    ("index", targets::index),
    ("layer", targets::layer),
    ("manifest", targets::manifest),
    ("plan", targets::plan),
    ("proxy", targets::proxy),
    ("service_answer", targets::service_answer),
    ("skill_md", targets::skill_md),
    ("ssh_agent", targets::ssh_agent),
];

#[test]
fn every_kept_input_of_every_target_is_taken() {
    let corpus = Workspace::find().path("fuzz/corpus");
    let mut folders: Vec<_> =
        fs::read_dir(&corpus).unwrap().map(|it| it.unwrap().file_name()).collect();
    folders.sort();
    assert_eq!(folders, TARGETS.map(|(name, _)| name));
    for (name, target) in TARGETS {
        let mut inputs = 0;
        for input in fs::read_dir(corpus.join(name)).unwrap() {
            target(&fs::read(input.unwrap().path()).unwrap());
            inputs += 1;
        }
        println!("{name}: {inputs} inputs");
        assert!(inputs > 0, "{name} has no inputs");
    }
}
