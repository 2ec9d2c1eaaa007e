//! Tests with failing system calls: no thread, no space, no data. A build continues with fewer threads or reports the error,
//! and the next build gives the same box as without the fault.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::checkout::{Checkout, files};
use crate::traced::{build, calls, injected, injected_into, leftovers};

/// The errors to inject, and the system calls that fail with each: those with which a build writes, flushes, renames, creates,
/// reads and examines files.
const FAULTS: [(&str, &[&str]); 2] = [
    ("EIO", &["write", "fsync", "fdatasync", "renameat2", "rename", "newfstatat", "statx", "read"]),
    ("ENOSPC", &["write", "fsync", "renameat2", "mkdir", "mkdirat", "linkat"]),
];
/// The number of calls of each system call to fail, spread over all its calls.
const PLACES: usize = 4;

#[test]
fn a_build_goes_on_with_fewer_threads() {
    let whole = Checkout::new();
    let expected = whole.built(&[])["box"].clone();
    // Fails the start of one thread, or of all.
    for which in ["when=1", "when=2", "when=3", "when=4", "when=1+"] {
        let checkout = Checkout::new();
        let mut command = checkout.command();
        command.args(["--jobs", "4", "--json"]);
        let inject = format!("clone3:error=EAGAIN:{which}");
        let output = injected_into(&command, &inject).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{which}: {message}");
        assert!(!message.contains("bug"), "{which}: {message}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["box"], expected, "{which}");
    }
}

#[test]
fn a_fault_at_a_system_call_is_no_false_success() {
    let whole = Checkout::new();
    let expected = whole.built(&[])["box"].clone();
    let names: Vec<_> = FAULTS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let mut made: BTreeMap<String, usize> = BTreeMap::new();
    for call in calls(&build(&Checkout::new()), &names) {
        *made.entry(call.name).or_default() += 1;
    }
    let (mut faults, mut failed) = (0, 0);
    for (error, names) in FAULTS {
        for name in names.iter().filter(|name| made.contains_key(**name)) {
            let count = made[*name];
            for when in (1..=count).step_by(count.div_ceil(PLACES)) {
                let checkout = Checkout::new();
                let fault = format!("{name}:error={error}:when={when}");
                let output = injected(&checkout, &fault).output().unwrap();
                let message = String::from_utf8_lossy(&output.stderr);
                match output.status.code() {
                    Some(0) => assert!(is_right(&checkout, &whole), "{fault}: another box"),
                    Some(1) => assert!(!message.is_empty(), "{fault}"),
                    // Another exit code is allowed if the loader or Rust's runtime fails, which the first calls can cause.
                    code => assert!(
                        !message.contains("bug in boxbuild") || when < 4,
                        "{fault} {code:?}: {message}"
                    ),
                }
                failed += usize::from(!output.status.success());
                assert_eq!(checkout.built(&[])["box"], expected, "after {fault}");
                assert_eq!(leftovers(checkout.root()), Vec::<PathBuf>::new(), "{fault}");
                faults += 1;
            }
        }
    }
    println!("{faults} faults, of which {failed} failed");
    assert!(faults >= 30 && failed >= 15, "{failed} of {faults}");
}

fn is_right(checkout: &Checkout, whole: &Checkout) -> bool {
    let directory = checkout.path("test.box");
    fs::exists(&directory).unwrap() && files(&directory) == files(&whole.path("test.box"))
}
