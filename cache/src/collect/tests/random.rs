//! Tests with random stores: each box and record that is kept has all its blobs.

use proptest::prelude::*;

use super::*;

/// The content of a random store. A blob is represented by a number.
#[derive(Debug, Clone)]
struct Random {
    boxes: Vec<(Vec<u8>, u16, u8)>,
    records: Vec<(Vec<u8>, Vec<u8>, u16)>,
    unused: Vec<u8>,
    cap: u64,
    older_than: Option<u16>,
}

fn random() -> impl Strategy<Value = Random> {
    let blobs = || prop::collection::vec(0..12_u8, 0..5);
    let made = (blobs(), 0..200_u16, 0..8_u8);
    let record = (blobs(), prop::collection::vec(0..6_u8, 0..3), 0..200_u16);
    let boxes = prop::collection::vec(made, 0..6);
    let records = prop::collection::vec(record, 0..6);
    (boxes, records, blobs(), 0..150_u64, prop::option::of(0..200_u16)).prop_map(
        |(boxes, records, unused, cap, older_than)| Random {
            boxes,
            records,
            unused,
            cap: cap * UNIT,
            older_than,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn nothing_goes_that_is_kept_and_the_cap_holds(random in random()) {
        let place = TestStore::new();
        let blob = |number: &u8| place.blob(&format!("blob {number}"), u64::from(*number) + 1);
        let _unused: Vec<_> = random.unused.iter().map(blob).collect();
        let set = |path: &Path, hours: u16| {
            let time = SystemTime::now() - u32::from(hours) * (HOUR / 4) - HOUR / 8;
            File::open(path).unwrap().set_modified(time).unwrap();
        };
        // Boxes that must be kept, with their blobs.
        let mut kept = Vec::new();
        let mut held = Vec::new();
        for (at, (blobs, hours, kind)) in random.boxes.iter().enumerate() {
            let mut blobs: Vec<_> = blobs.iter().map(blob).collect();
            blobs.push(place.blob(&format!("own {at}"), 1));
            let made = place.make_box(&blobs);
            if *kind % 2 == 1 {
                place.name(&format!("name{at}"), made);
                set(&place.root().join("names").join(format!("name{at}")), *hours);
            }
            if *kind == 2 {
                place.thin(&format!("thin{at}"), made);
            }
            if *kind == 4 {
                held.push(hold(&place.root(), &made).unwrap());
            }
            let directory = place.root().join("boxes").join(made.hex());
            set(&directory.join("index.json"), *hours);
            set(&directory, *hours);
            let young = random.older_than.map_or(4, |it| it.min(4));
            if [2, 4].contains(kind) || *hours < young {
                kept.push((made, blobs));
            }
        }
        let key = |number: usize| KeyHasher::new("test", u32::try_from(number).unwrap()).finish();
        for (at, (blobs, actions, hours)) in random.records.iter().enumerate() {
            let blobs: Vec<_> = blobs.iter().map(blob).collect();
            let actions: Vec<_> = actions.iter().map(|it| key(usize::from(*it))).collect();
            place.record(u32::try_from(at).unwrap(), &blobs, &actions);
            set(&place.root().join("actions").join(key(at).hex()), *hours);
        }
        for entry in fs::read_dir(place.root().join("blobs")).unwrap() {
            set(&entry.unwrap().path(), 300);
        }
        let rules = Rules {
            cap: Some(random.cap),
            older_than: random.older_than.map(|it| u32::from(it) * (HOUR / 4)),
            ..Rules::default()
        };
        let collected = place.collector().collect(&Lines, &rules);
        let Ok(report) = collected else {
            prop_assert!(random.boxes.is_empty() && random.records.is_empty());
            return Ok(());
        };
        for (made, blobs) in &kept {
            prop_assert!(place.has_box(*made) && place.has(*made));
            prop_assert!(blobs.iter().all(|it| place.has(*it)));
        }
        // Everything that is left has all its references.
        let scan = place.collector().scan(&Lines, &mut Known::default()).unwrap();
        for entry in scan.boxes.values() {
            prop_assert!(entry.blobs.iter().all(|it| scan.blobs.contains_key(it)));
        }
        for refers in scan.records.values().filter_map(|it| it.refers.as_ref()) {
            prop_assert!(refers.blobs.iter().all(|it| scan.blobs.contains_key(it)));
        }
        prop_assert!(scan.dangling.is_empty());
        let again = place.collect(&rules);
        prop_assert_eq!(again.before, report.after);
        // A record that was young only because of another, removed record is old now.
        let refers = random.records.iter().any(|(_, actions, _)| !actions.is_empty());
        if random.older_than.is_none() || !refers {
            prop_assert_eq!(again.before, again.after);
            prop_assert!(again.removed.is_empty() && again.removed_records == 0 && again.removed_blobs == 0);
        }
        prop_assert!(report.after <= random.cap || report.after == report.kept_bytes, "{report:?}");
        drop(held);
    }
}
