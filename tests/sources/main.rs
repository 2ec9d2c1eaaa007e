//! Tests of image sources: the same image in every form that `boxbuild` reads.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is how a test fails")]

#[path = "../build/checkout.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use all of it")]
mod checkout;
mod forms;
mod hosts;
mod image;
mod init;
mod pinned;
mod rebuilt;
mod registry;
mod skopeo;

use checkout::{BOXFILE, Checkout};

/// Returns a checkout's Boxfile with other references for its images.
fn boxfile(agent: &str, business: &str) -> String {
    BOXFILE.replace("oci:images/agent", agent).replace("oci:images/business", business)
}

/// Builds with these images and without a lock, and returns the report.
fn built(checkout: &Checkout, agent: &str, business: &str) -> serde_json::Value {
    checkout.write("Boxfile", boxfile(agent, business));
    std::fs::remove_file(checkout.path("Boxfile.lock")).ok();
    checkout.built(&["--output", "built.box"])
}
