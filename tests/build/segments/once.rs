//! Tests that two concurrent builds with the same layer decode it once.

use std::fs::{self, File};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::checkout::{WHOLE, files};
use crate::traced::{Call, build, calls};

/// How long to wait until the builds wait for a lock.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns how many processes wait for a flock(2) on one of these files.
fn waiting(locks: &[File]) -> usize {
    use std::os::unix::fs::MetadataExt;
    let inodes: Vec<_> = locks.iter().map(|it| it.metadata().unwrap().ino().to_string()).collect();
    let is_one = |line: &&str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let inode =
            words.iter().find_map(|word| word.rsplit_once(':').filter(|it| it.0.contains(':')));
        words.get(1) == Some(&"->")
            && inode.is_some_and(|(_, it)| inodes.iter().any(|known| known == it))
    };
    fs::read_to_string("/proc/locks").unwrap().lines().filter(is_one).count()
}

/// Locks each layer, as another build does that decodes the layer.
fn take_all(store: &Path, layers: &[String]) -> Vec<File> {
    fs::create_dir_all(store.join("locks")).unwrap();
    let take = |name: &String| {
        let file = File::create(store.join("locks").join(name)).unwrap();
        file.lock().unwrap();
        file
    };
    layers.iter().map(take).collect()
}

#[test]
fn two_builds_decode_a_layer_once() {
    let checkout = super::checkout();
    let expected = checkout.built(WHOLE);
    fs::rename(checkout.path("store"), checkout.path("known")).unwrap();
    let layers = files(&checkout.path("known/data")).into_iter();
    let layers: Vec<_> =
        layers.map(|(name, _)| name.into_os_string().into_string().unwrap()).collect();
    assert_eq!(layers.len(), 4);
    // Keeps the store open, so that no build removes its temporary files and locks.
    let store = box_cache::Store::open(&checkout.path("store")).unwrap();
    let locks = take_all(&checkout.path("store"), &layers);
    let writes: Vec<_> = thread::scope(|scope| {
        let start = |bundle| {
            let mut command = build(&checkout);
            command.args(["--output", bundle]);
            scope.spawn(move || calls(&command, &["rename", "renameat", "renameat2"]))
        };
        let builds = ["one.box", "two.box"].map(start);
        let begun = Instant::now();
        while waiting(&locks) < 2 {
            assert!(begun.elapsed() < PATIENCE, "the builds do not wait for each other");
            thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(files(&checkout.path("store/data")), []);
        drop(locks);
        builds.into_iter().flat_map(|it| it.join().unwrap()).collect()
    });
    for layer in &layers {
        // The files in `store/actions` have the same names, so the directory is compared, too.
        let is_its = |it: &&Call| {
            it.ok && it.arguments.contains("store/data") && it.arguments.contains(layer)
        };
        let count = writes.iter().filter(is_its).count();
        assert_eq!(count, 1, "{layer} was decoded {count} times: {writes:#?}");
    }
    drop(store);
    for bundle in ["one.box", "two.box"] {
        assert!(files(&checkout.path(bundle)) == files(&checkout.path("test.box")), "{bundle}");
    }
    assert_eq!(checkout.built(&["--output", "three.box"])["box"], expected["box"]);
    assert_eq!(files(&checkout.path("store/locks")), []);
}
