//! Where images come from: one image in every form that people have it in, as `boxbuild` reads it.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is how a test fails")]

#[path = "../build/checkout.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use all of it")]
mod checkout;
mod forms;
mod hosts;
mod init;
mod pinned;
mod registry;
mod skopeo;

use checkout::{BOXFILE, Checkout};

/// The Boxfile of a checkout with images by other references.
fn boxfile(agent: &str, business: &str) -> String {
    BOXFILE.replace("oci:images/agent", agent).replace("oci:images/business", business)
}

/// Builds with these images, without an earlier lock, and returns what was built.
fn built(checkout: &Checkout, agent: &str, business: &str) -> serde_json::Value {
    checkout.write("Boxfile", boxfile(agent, business));
    std::fs::remove_file(checkout.path("Boxfile.lock")).ok();
    checkout.built(&["--output", "built.box"])
}
