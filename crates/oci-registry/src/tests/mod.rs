//! Pulls from a hostile registry on the loopback device. It must not get a secret, or get wrong content into the store.

mod auth;
mod content;
mod harness;
mod mirrors;
mod network;
mod parallel;
mod pull;
mod push;
mod redirects;
mod referrers;
mod stage;

use box_digest::{Digest, ParseDigestError};
use download::http::HttpError;
use download::{DownloadError, NetworkOptions, Progress};
use test_server::{Identity, Reply, Step, file, length, redirect, reply};

use crate::*;
use harness::{Case, cases};
use pull::PullError;
use stage::{CANARY, Image, Stage, TOKEN, digest, watched, with_policy};

/// Checks that the files have at least 24 cases together.
#[test]
fn there_are_enough_evil_deeds() {
    let all = [content::CASES, network::CASES, redirects::CASES, auth::CASES].concat();
    assert!(all.len() >= 24, "{}: {all:?}", all.len());
}
