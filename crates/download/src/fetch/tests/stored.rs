//! Files that are in the store already.

use std::os::unix::fs::PermissionsExt;

use super::server::{Server, file};
use super::*;

/// A URL at which no server listens.
const NOWHERE: &str = "http://127.0.0.1:1/agent";

fn offline() -> FetchOptions {
    FetchOptions { offline: true, ..quick() }
}

fn damage(case: &Case) {
    let path = case.blob_path();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(&path, b"the agent's b1nary").unwrap();
}

#[test]
fn a_file_is_asked_for_once_whatever_its_url() {
    let case = Case::new();
    let server = Server::http(|_| vec![file(DATA)]);
    let first = case.fetch(&server.url("/"), &quick()).unwrap();
    assert_eq!(server.requests().len(), 1);
    for options in [quick(), offline()] {
        let again = case.fetch(NOWHERE, &options).unwrap();
        assert_eq!(again, Fetched { downloaded: false, ..first });
    }
}

#[test]
fn offline_only_the_store_is_used() {
    let sha256 = digest(DATA);
    let case = Case::new();
    let error = case.fetch(NOWHERE, &offline()).unwrap_err();
    let text = |held| format!("{NOWHERE} ({sha256}) is {held}, and the network is off (--offline)");
    assert_eq!(error.to_string(), text("not in the store"));
    case.store.put(DATA).unwrap();
    damage(&case);
    let error = case.fetch(NOWHERE, &offline()).unwrap_err();
    assert_eq!(error.to_string(), text("damaged in the store"));
}

#[test]
fn a_damaged_copy_is_replaced() {
    let case = Case::new();
    case.store.put(DATA).unwrap();
    damage(&case);
    let server = Server::http(|_| vec![file(DATA)]);
    assert!(case.fetch(&server.url("/"), &quick()).unwrap().downloaded);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_stored_file_must_have_the_known_size_too() {
    let case = Case::new();
    case.store.put(DATA).unwrap();
    let options = FetchOptions { size: Size::Exactly(1), ..offline() };
    assert!(matches!(
        case.fetch(NOWHERE, &options),
        Err(FetchError::Download(DownloadError::WrongSize { .. }))
    ));
}
