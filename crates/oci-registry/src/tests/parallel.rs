//! Parallel downloads of many blobs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::stage::{Plan, not_found, quick};
use super::*;

/// Returns blobs of different content, some of them larger than one read.
fn blobs() -> Vec<Vec<u8>> {
    (0..12_u8).map(|it| vec![it; 1000 + 30_000 * usize::from(it)]).collect()
}

fn named(blobs: &[Vec<u8>]) -> Vec<(Digest, u64)> {
    blobs.iter().map(|bytes| (digest(bytes), bytes.len() as u64)).collect()
}

/// Plans a registry that has the blobs, and answers slowly.
fn having(blobs: Vec<Vec<u8>>) -> Plan {
    Plan::new().deed(move |path, _, _| {
        let found = blobs.iter().find(|it| path.ends_with(&digest(it).to_string()))?;
        let mut reply = file(found);
        reply.insert(0, Step::Pause(Duration::from_millis(5)));
        Some(reply)
    })
}

#[test]
fn each_blob_is_fetched_once_and_reported() {
    let stage = having(blobs()).set();
    let (options, seen) = watched(stage.options(quick()));
    let registry = Registry::new(options);
    let all = named(&blobs());
    let twice = [all.clone(), all.clone()].concat();
    registry.fetch_blobs(&stage.repository(), &twice, &stage.store).unwrap();
    for bytes in blobs() {
        assert_eq!(stage.store.read(&Digest::of(&bytes)).unwrap(), bytes);
        assert_eq!(stage.asked(&format!("/v2/app/blobs/{}", digest(&bytes))).len(), 1);
    }
    let seen = seen.lock().unwrap();
    for (digest, total) in all {
        let received: Vec<_> =
            seen.iter().filter(|it| it.digest == digest).map(|it| it.received).collect();
        assert!(received.is_sorted() && received.last() == Some(&total), "{received:?}");
    }
    let asked = stage.registry.requests().len();
    drop(seen);
    registry.fetch_blobs(&stage.repository(), &twice, &stage.store).unwrap();
    assert_eq!(stage.registry.requests().len(), asked, "what is held is not asked for");
}

#[test]
fn what_is_fetched_quietly_is_not_reported() {
    let stage = having(blobs()).set();
    let (options, seen) = watched(stage.options(quick()));
    let registry = Registry::new(options);
    let one = named(&blobs())[0];
    registry.fetch_quietly(&stage.repository(), one, &stage.store).unwrap();
    assert_eq!(stage.store.read(&one.0).unwrap(), blobs()[0]);
    assert_eq!(*seen.lock().unwrap(), []);
}

#[test]
fn only_so_many_are_fetched_at_once() {
    let (now, most) = (std::sync::Arc::new(AtomicUsize::new(0)), std::sync::Arc::default());
    let (counter, highest) = (now.clone(), std::sync::Arc::<AtomicUsize>::clone(&most));
    let plan = having(blobs());
    let deed = plan.deed;
    let plan =
        Plan { deed: Box::new(|_, _, _| None), ..plan }.deed(move |path, before, request| {
            // Counts the requests that are served at the same time.
            let count = counter.fetch_add(1, Ordering::SeqCst) + 1;
            highest.fetch_max(count, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(5));
            counter.fetch_sub(1, Ordering::SeqCst);
            deed(path, before, request)
        });
    let stage = plan.set();
    let registry = Registry::new(Options { parallel: 3, ..stage.options(quick()) });
    registry.fetch_blobs(&stage.repository(), &named(&blobs()), &stage.store).unwrap();
    assert!(most.load(Ordering::SeqCst) <= 3, "{most:?}");
    let tokens = stage.registry.requests().into_iter().filter(|it| it.path().starts_with("/token"));
    assert_eq!(tokens.count(), 1, "the threads share a token");
}

#[test]
fn one_failure_ends_all_and_nothing_half_stays() {
    let mut all = blobs();
    let missing = all.remove(3);
    let stage = having(all.clone()).set();
    all.insert(0, missing.clone());
    let registry = Registry::new(Options { parallel: 2, ..stage.options(quick()) });
    let error = registry.fetch_blobs(&stage.repository(), &named(&all), &stage.store).unwrap_err();
    assert!(error.to_string().contains(&digest(&missing).to_string()), "{error}");
    assert!(matches!(error, RegistryError::NotFound { .. }));
    let whole: Vec<_> = all[1..].iter().map(|bytes| digest(bytes).hex()).collect();
    assert!(stage.stored().iter().all(|name| whole.contains(name)), "{:?}", stage.stored());
    assert!(stage.registry.requests().len() < all.len(), "the others must have been given up");
}

#[test]
fn a_damaged_copy_is_replaced() {
    use std::os::unix::fs::PermissionsExt;

    let stage = having(blobs()).set();
    let registry = stage.client(quick());
    let one = &blobs()[..1];
    let id = stage.store.put(&one[0]).unwrap();
    let path = stage.store_path().join("blobs").join(id.hex());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(&path, b"damaged").unwrap();
    registry.fetch_blobs(&stage.repository(), &named(one), &stage.store).unwrap();
    assert_eq!(stage.store.read(&id).unwrap(), one[0]);
}

#[test]
fn sizes_must_agree_with_what_is_held_and_with_each_other() {
    let stage = having(blobs()).set();
    let registry = stage.client(quick());
    let (digest, size) = named(&blobs())[0];
    stage.store.put(&blobs()[0]).unwrap();
    for wrong in [vec![(digest, size + 1)], vec![(digest, size), (digest, size - 1)]] {
        let error = registry.fetch_blobs(&stage.repository(), &wrong, &stage.store).unwrap_err();
        assert!(
            matches!(error, RegistryError::Download(DownloadError::WrongSize { .. })),
            "{error}"
        );
    }
    assert!(stage.registry.requests().is_empty());
}

#[test]
fn no_blobs_need_no_request() {
    let stage = Plan::new().at("/v2/app/manifests/v1", |_| Some(not_found())).set();
    let registry = stage.client(quick());
    registry.fetch_blobs(&stage.repository(), &[], &stage.store).unwrap();
    assert!(stage.registry.requests().is_empty());
}

#[test]
fn a_proxys_password_is_not_shown() {
    let stage = Plan::new().set();
    let mut options = quick();
    options.network.proxy = Some("http://me:canary@127.0.0.1:1".to_owned());
    let registry = stage.client(options);
    // The proxy does not exist, so the request fails. It makes the HTTP client, which `{:?}` then shows.
    drop(registry.manifest(&stage.repository(), &Reference::Tag(Tag::new("v1").unwrap())));
    assert!(!format!("{registry:?}").contains("canary"), "{registry:?}");
}

#[test]
fn a_client_may_be_shared() {
    fn shared<T: Send + Sync>() {}
    shared::<Registry>();
}
