//! Measures a collection in a store with ten thousand blobs. Run it by hand; it asserts nothing.

use std::collections::BTreeSet;
use std::time::Instant;

use super::tests::{Lines, TestStore};
use super::*;

#[test]
#[ignore = "measures"]
#[allow(clippy::print_stdout, reason = "the figures are the result")]
fn a_collection_of_ten_thousand_blobs_and_records() {
    let place = TestStore::new();
    let blobs = place.root().join("blobs");
    let mut all = Vec::new();
    for number in 0..10_000_u32 {
        let bytes = number.to_le_bytes();
        let digest = Digest::of(&bytes);
        fs::write(blobs.join(digest.hex()), bytes).unwrap();
        all.push(digest);
    }
    place.records(&all);
    for (number, blobs) in all.chunks(100).enumerate() {
        let made = place.make_box(blobs);
        place.name(&format!("box{number}"), made);
    }
    place.age(Duration::from_secs(24 * 60 * 60));
    let collector = place.collector();
    for _ in 0..3 {
        let timed = |what: &str, run: &dyn Fn()| {
            let started = Instant::now();
            run();
            println!("{what}: {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
        };
        timed("size", &|| assert!(collector.size().unwrap() > 0));
        let mut known = Known::default();
        let scan = collector.scan(&Lines, &mut known).unwrap();
        timed("scan", &|| drop(collector.scan(&Lines, &mut Known::default()).unwrap()));
        let again = std::cell::RefCell::new(known);
        timed("scan again", &|| drop(collector.scan(&Lines, &mut again.borrow_mut()).unwrap()));
        let half = Rules { cap: Some(scan.blobs.len() as u64 * 4096), ..Rules::default() };
        timed("plan", &|| drop(plan(&scan, &half, &BTreeSet::new()).unwrap()));
        timed("collect half", &|| drop(collector.collect(&Lines, &half).unwrap()));
    }
    let started = Instant::now();
    collector.collect(&Lines, &Rules { cap: Some(0), ..Rules::default() }).unwrap();
    println!("collect the rest: {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
}
