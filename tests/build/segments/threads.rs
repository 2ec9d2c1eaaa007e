//! Tests that a box depends neither on the number of threads nor on the order in which layers are decoded.

use std::fs;

use crate::checkout::{BOXFILE, Checkout, files};

/// Builds with the store `store`, and returns every file of the box.
fn built(checkout: &Checkout, store: &str, jobs: &str) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let bundle = format!("{store}.box");
    checkout.result(&["build", "--store", store, "--jobs", jobs, "--output", &bundle]);
    let found = files(&checkout.path(&bundle));
    fs::remove_dir_all(checkout.path(&bundle)).unwrap();
    found
}

#[test]
fn threads_and_their_order_change_no_byte() {
    let checkout = super::checkout();
    let expected = built(&checkout, "one", "1");
    checkout.built(&[]);
    assert_eq!(super::segments(&checkout, "test.box").len(), 3);
    for jobs in ["1", "2", "8"] {
        let found = built(&checkout, &format!("jobs-{jobs}"), jobs);
        assert!(found == expected, "another box with {jobs} threads");
    }
    // Builds with a store in which one image's layers were decoded before.
    for (first, image) in [("business", "images/business"), ("agent", "images/agent")] {
        let alone = BOXFILE.split("business {").next().unwrap();
        let alone = alone
            .replace("images/agent", image)
            .replace("agent {", "agent {\n    entrypoint \"/srv\"");
        checkout.write("first.Boxfile", alone);
        let store = format!("{first}-first");
        // The business image fails as an agent's image, but only after its layers are decoded.
        checkout.run(&["build", "-f", "first.Boxfile", "--store", &store, "--output", "first.box"]);
        let decoded = files(&checkout.path(&format!("{store}/data"))).len();
        assert!((1..4).contains(&decoded), "{decoded} layers");
        assert!(built(&checkout, &store, "2") == expected, "another box, {first} first");
    }
}
