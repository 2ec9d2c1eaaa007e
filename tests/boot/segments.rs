//! A rootfs of many segments: the launcher opens each file, and the VM gets all of them as one disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use box_contract::manifest::{METADATA_TYPE, METADATA_UNIT, SEGMENT_TYPE, SEGMENT_UNIT};
use testbed::promises::{MANY_SEGMENTS, SIXTEEN_SEGMENTS};
use testkit::test_box::{BoxFiles, set_blocks};

use crate::erofs::replace_rootfs;
use crate::plans::copy;
use crate::scenario::{Scenario, Step, bake, hello_checkout, tools};

/// The numbers of segments of the boxes' rootfs. A box is named after its number; [`ONE`] names the box without segments.
const SEGMENTS: [usize; 2] = [16, 254];
const ONE: &str = "one";
/// The number of starts of each box, of which the median is compared.
const ROUNDS: usize = 3;
/// Sets the soft limit of open files that most hosts have. A program that needs more has to raise it.
const LIMIT: &str = "ulimit -Sn 1024";

/// The rootfs of examples/hello, followed by blocks that no file uses. Without them it is too small for 254 segments.
struct Rootfs {
    metadata: Vec<u8>,
    segments: Vec<Vec<u8>>,
    /// The unused blocks, all with different bytes, so that each block is a blob of its own.
    further: Vec<u8>,
}

impl Rootfs {
    /// Reads the rootfs of a box, and includes the unused blocks in its superblock's number of blocks. With them, the total
    /// size is a multiple of [`METADATA_UNIT`], so that the whole rootfs can be one metadata blob.
    fn of(bundle: &Path) -> Self {
        let files = BoxFiles::of(bundle);
        let read = |path: &Path| fs::read(path).unwrap();
        let mut metadata = read(&files.blob(METADATA_TYPE));
        let segments: Vec<_> = files.blobs(SEGMENT_TYPE).iter().map(|it| read(it)).collect();
        let size = (metadata.len() + segments.iter().map(Vec::len).sum::<usize>()) as u64;
        let whole = (size + SEGMENT_UNIT * SEGMENTS[1] as u64).next_multiple_of(METADATA_UNIT);
        let [blocks, further] = [whole, whole - size].map(|it| u32::try_from(it / SEGMENT_UNIT));
        set_blocks(&mut metadata, blocks.unwrap());
        let block = |number: u32| number.to_le_bytes().repeat(SEGMENT_UNIT as usize / 4);
        let further = (1..=further.unwrap()).flat_map(block).collect();
        Self { metadata, segments, further }
    }

    /// Replaces the rootfs of a box by this one, in `segments` segments: those of examples/hello, then segments of one unused
    /// block each, and a last segment with all other unused blocks.
    fn put(&self, bundle: &Path, segments: usize) {
        let single = (segments - self.segments.len() - 1) * SEGMENT_UNIT as usize;
        let (single, rest) = self.further.split_at(single);
        let own = self.segments.iter().map(Vec::as_slice);
        let further = single.chunks(SEGMENT_UNIT as usize).chain([rest]);
        let parts = own.chain(further).map(|bytes| (SEGMENT_TYPE, bytes));
        let parts: Vec<_> = [(METADATA_TYPE, &*self.metadata)].into_iter().chain(parts).collect();
        assert_eq!(parts.len(), segments + 1);
        replace_rootfs(bundle, &parts);
    }

    /// Replaces the rootfs of a box by this one, as a single file.
    fn put_whole(&self, bundle: &Path) {
        let whole = [&*self.metadata, &self.segments.concat(), &self.further].concat();
        replace_rootfs(bundle, &[(METADATA_TYPE, &whole)]);
    }
}

/// Returns the names of the boxes: `one`, `16` and `254`.
fn names() -> Vec<String> {
    [ONE.to_owned()].into_iter().chain(SEGMENTS.map(|it| it.to_string())).collect()
}

fn make_boxes(dir: &Path, boxes: &Path) {
    let (boxfile, hello) = (dir.join("Boxfile"), dir.join("hello.box"));
    fs::write(&boxfile, hello_checkout(dir)).unwrap();
    bake(&boxfile, &tools().programs.box_init, &hello);
    names().iter().for_each(|name| copy(&hello, &boxes.join(name)));
    let rootfs = Rootfs::of(&hello);
    rootfs.put_whole(&boxes.join(ONE));
    SEGMENTS.into_iter().for_each(|it| rootfs.put(&boxes.join(it.to_string()), it));
}

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let (dir, boxes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make_boxes(dir.path(), boxes.path());
    let mut scenario = Scenario::default();
    for name in names() {
        let verify = format!("{LIMIT}; exec boxlaunch verify /boxes/{name}");
        scenario = scenario.script(20, &format!("{name}-verified"), &verify);
        for round in 0..ROUNDS {
            let run = format!("{LIMIT}; exec boxlaunch run --json --until-ready /boxes/{name}");
            scenario = scenario.script(5, &format!("{name}-{round}"), &run);
        }
    }
    scenario.start(&tools().host.clone().disk(boxes.path(), "/boxes"))
});

/// Returns the median time in ms until the agent of a box was ready.
fn ready(name: &str) -> f64 {
    let start = |round| {
        let step = &STEPS[&format!("{name}-{round}")];
        assert_eq!(step.status, 0, "{step:?}");
        let phases = &step.json()["phases_ms"];
        println!("{name} segments: {phases}");
        phases["total"].as_f64().unwrap()
    };
    let mut starts: Vec<f64> = (0..ROUNDS).map(start).collect();
    starts.sort_by(f64::total_cmp);
    starts[ROUNDS / 2]
}

fn segments_delay_the_start_little() {
    let one = ready(ONE);
    let beyond = SEGMENTS.map(|it| (ready(&it.to_string()) / one - 1.0) * 100.0);
    SIXTEEN_SEGMENTS.check(beyond[0]);
    MANY_SEGMENTS.check(beyond[1]);
}

tests![segments_delay_the_start_little];
