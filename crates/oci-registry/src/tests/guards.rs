//! Tests of the harness itself: with a guard left out, it reports the failure.

use super::*;

/// Plays cases without a guard: each time, the harness must say this.
fn without(guard: Guard, says: &str, cases: &[Case]) {
    for case in cases {
        let complaint = case.complaint_without(guard);
        assert!(complaint.starts_with(says), "{guard:?}: {complaint}");
    }
}

const LEAK: &str = "another server has seen a secret";
const ACCEPTED: &str = "the outcome is Ok";
const STORED: &str = "the store has";
/// Something else stops it, later than it should be stopped.
const LATE: &str = "the outcome is Err";

#[test]
fn credentials_after_a_redirect_are_noticed() {
    let cases = [
        redirects::a_redirect_to_another_server::case(),
        redirects::a_redirect_from_https_to_https::case(),
        redirects::a_redirect_there_and_back::case(),
        redirects::a_redirect_to_who_asks_for_a_password::case(),
    ];
    without(Guard::OwnOrigin, LEAK, &cases);
}

#[test]
fn credentials_at_a_foreign_realm_are_noticed() {
    let cases = [
        auth::a_realm_on_another_server::case(),
        auth::a_realm_on_another_server_over_https::case(),
        auth::an_identity_token_for_another_server::case(),
    ];
    without(Guard::Realm, LEAK, &cases);
}

#[test]
fn credentials_over_http_are_noticed() {
    without(Guard::PlainRealm, LEAK, &[auth::a_realm_over_http::case()]);
}

#[test]
fn a_way_out_of_https_is_noticed() {
    without(Guard::Downgrade, ACCEPTED, &[redirects::a_redirect_from_https_to_http::case()]);
}

#[test]
fn wrong_content_is_noticed() {
    let documents = [
        content::a_manifest_of_another_digest::case(),
        content::a_header_with_another_digest::case(),
        content::a_tag_that_moved::case(),
    ];
    without(Guard::Digest, ACCEPTED, &documents);
    let blobs = [
        content::a_config_of_another_digest::case(),
        content::a_layer_of_another_digest::case(),
        network::the_rest_of_another_blob::case(),
    ];
    without(Guard::Digest, STORED, &blobs);
}

#[test]
fn wrong_sizes_are_noticed() {
    let named = [
        content::a_layer_whose_named_size_is_one_less::case(),
        content::a_layer_whose_named_size_is_one_more::case(),
    ];
    without(Guard::Size, ACCEPTED, &named);
    without(Guard::Size, LATE, &[content::a_layer_of_one_byte_less::case()]);
}

#[test]
fn large_documents_are_noticed() {
    without(Guard::Limit, LATE, &[content::a_huge_manifest::case()]);
}
