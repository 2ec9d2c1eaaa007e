//! Compares real images of one to seven layers, made of Debian trees and packages.

use std::time::Instant;

use testbed::Workspace;
use testbed::debian::RealImages;
use testbed::promises::REAL_IMAGES;

use crate::compare::differences;
use crate::listing::{Kind, Listing};
use crate::{ours, theirs};

/// The number of entries with each feature that makes the images a meaningful test.
#[derive(Debug, Default)]
struct Traits {
    entries: usize,
    set_id: usize,
    capabilities: usize,
    hard_links: usize,
    devices: usize,
    deepest: usize,
}

impl Traits {
    fn add(&mut self, listing: &Listing) {
        self.entries += listing.len();
        for (path, entry) in listing {
            let capability = b"security.capability".as_slice();
            self.set_id += usize::from(entry.kind == Kind::File && entry.mode & 0o6000 != 0);
            self.capabilities += usize::from(entry.xattrs.contains_key(capability));
            self.hard_links += usize::from(entry.first_name != *path);
            self.devices += usize::from(entry.device != (0, 0));
            let depth = path.iter().filter(|byte| **byte == b'/').count();
            self.deepest = self.deepest.max(depth);
        }
    }
}

#[test]
fn fifteen_debian_images_are_unpacked_alike() {
    let real = RealImages::make(&Workspace::find(), &mut |line| println!("{line}")).unwrap();
    REAL_IMAGES.check(real.images.len() as f64);
    let mut traits = Traits::default();
    for (name, layout, tag) in &real.images {
        let start = Instant::now();
        let ours = ours::listing(&ours::tree(layout, tag).unwrap());
        let half = start.elapsed();
        let theirs = theirs::unpacked(layout, tag).unwrap();
        let found = differences(&ours, &theirs);
        assert!(
            found.is_empty(),
            "{name}: {} differences, the first: {:#?}",
            found.len(),
            &found[..found.len().min(10)]
        );
        println!("{name}: {} entries, {half:.1?} and {:.1?}", ours.len(), start.elapsed() - half);
        traits.add(&ours);
    }
    println!("{traits:?}");
    // Without these features the comparison would prove little.
    assert!(traits.entries > 55_000 && traits.deepest > 12, "{traits:?}");
    assert!(traits.set_id > 40 && traits.capabilities >= 2, "{traits:?}");
    assert!(traits.hard_links > 15 && traits.devices > 40, "{traits:?}");
}
