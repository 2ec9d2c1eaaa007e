//! Loaded and skipped blobs.

use std::io::Write as _;

use box_contract::manifest::KERNEL_TYPE;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn boxes_come_and_the_second_time_nothing_is_new() {
    let bytes = archive(&["one", "two"]);
    let compressed = [gzip(&bytes), zstd::stream::encode_all(&*bytes, 3).unwrap()];
    for (number, form) in [&bytes, &compressed[0], &compressed[1]].into_iter().enumerate() {
        for is_stream in [false, true] {
            let stage = Stage::new();
            let load = || if is_stream { stage.load_stream(form) } else { stage.load_file(form) };
            let first = load().unwrap();
            let sum = |loaded: &[Loaded]| loaded.iter().map(|it| it.new_bytes).sum::<u64>();
            assert_eq!(first.len(), 2);
            assert_eq!((first[0].new_blobs, first[0].blobs), (8, 8), "{number} {is_stream}");
            // Of the second box, only the config is new.
            assert_eq!((first[1].new_blobs, first[1].blobs), (1, 8), "{number} {is_stream}");
            let mut names: Vec<_> = stage.found().into_iter().filter_map(|it| it.1).collect();
            names.sort();
            assert_eq!(names, ["one", "two"]);
            let again = load().unwrap();
            assert_eq!(sum(&again), 0);
            assert!(again.iter().all(|it| it.names[0].1 == NameGiven::Given));
        }
    }
}

#[test]
fn a_plan_says_what_is_missing_before_anything_is_read() {
    let stage = Stage::new();
    let bytes = archive(&["one"]);
    let archive = Archive::open(&stage.write(&bytes)).unwrap();
    let store = stage.store();
    let plan = Plan::new(&archive, archive.boxes().unwrap(), &store).unwrap();
    let (all, size) = (plan.blobs(), plan.bytes());
    assert_eq!((plan.missing.len(), plan.new_bytes()), (all, size));
    store.put(b"a kernel").unwrap();
    let plan = Plan::new(&archive, archive.boxes().unwrap(), &store).unwrap();
    assert_eq!((plan.missing.len(), plan.new_bytes()), (all - 1, size - 8));
    assert!(plan.line().starts_with("loading 7 of 8 blobs, 1.0 MiB of 1.0 MiB"), "{}", plan.line());
    assert!(stage.found().is_empty());
}

#[test]
fn a_name_of_another_box_stays_with_it() {
    let stage = Stage::new();
    let bytes = archive(&["one"]);
    let store = stage.store();
    let owner = stage.path("Boxfile");
    fs::write(&owner, "").unwrap();
    let other = box_cache::Named {
        digest: Digest::of(b"other"),
        owner: box_cache::Owner::Boxfile(owner.clone()),
    };
    store.name_box("one", &other).unwrap();
    let error = stage.load_file(&bytes).unwrap_err();
    assert!(matches!(error, ArchiveError::NameTaken { .. }), "{error}");
    let boxes = fs::read_dir(stage.path("store/boxes")).unwrap().count();
    assert_eq!(boxes, 0);
    let named = || StoredBoxes::open(&stage.path("store")).unwrap().named("one").unwrap().unwrap();
    assert_eq!(named(), other, "nothing was loaded");
    let archive = Archive::open(&stage.write(&bytes)).unwrap();
    let plan = Plan::new(&archive, archive.boxes().unwrap(), &store).unwrap();
    assert_eq!(plan.load(&store, Names::None).unwrap()[0].names, []);
    for given in [NameGiven::Moved(other.digest), NameGiven::Given] {
        let loaded = plan.load(&store, Names::Replace).unwrap();
        assert_eq!(loaded[0].names, [("one".to_owned(), given)]);
        assert_eq!(named().digest, loaded[0].digest);
    }
    let loaded = &plan.load(&store, Names::Free).unwrap()[0];
    let moved = loaded.names.iter().map(|it| (it.0.clone(), NameGiven::Moved(other.digest)));
    let lines = Loaded { names: moved.collect(), ..loaded.clone() }.lines();
    assert!(lines[0].starts_with("loaded one: 8 of 8"), "{lines:?}");
    assert_eq!(lines[1], format!("the name one moved to this box from {}", other.digest));
}

/// Returns an archive of boxes with these names, which may be equal.
fn named(names: &[&[&str]]) -> Vec<u8> {
    let all: Vec<_> = (0..names.len()).map(|at| format!("box-{at}")).collect();
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    let boxes = boxes(&all);
    let documents = documents(&boxes);
    let pairs = documents.iter().zip(names);
    let pairs = pairs.flat_map(|(it, names)| names.iter().map(move |name| (it, Some(*name))));
    let mut bytes = Vec::new();
    Bundle::of(pairs).unwrap().write_archive(&mut bytes).unwrap();
    bytes
}

#[test]
fn all_names_are_told_and_none_is_given_if_two_boxes_want_one() {
    let stage = Stage::new();
    let bytes = named(&[&["one", "ghcr.io/acme/one:v1"]]);
    let loaded = stage.load_file(&bytes).unwrap();
    assert!(loaded[0].lines()[0].starts_with("loaded ghcr.io/acme/one:v1, one: "), "{loaded:?}");
    let (stage, bytes) = (Stage::new(), named(&[&["one"], &["one"]]));
    let archive = Archive::open(&stage.write(&bytes)).unwrap();
    let store = stage.store();
    let plan = Plan::new(&archive, archive.boxes().unwrap(), &store).unwrap();
    for names in [Names::Free, Names::Replace] {
        let error = plan.load(&store, names).unwrap_err();
        assert!(error.to_string().contains("two boxes of it have the name \"one\""), "{error}");
        assert!(stage.found().is_empty());
    }
}

#[test]
fn a_box_has_a_few_names() {
    let many: Vec<_> = (0..17).map(|at| format!("name-{at}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    Stage::new().load_file(&named(&[&many[..16]])).unwrap();
    let error = Stage::new().load_file(&named(&[&many])).unwrap_err();
    assert!(error.to_string().contains("more than 16 names"), "{error}");
}

#[test]
fn a_digest_that_a_file_writes_behind_a_name_is_believed_only_if_it_is_that_of_the_box() {
    let name = format!("ghcr.io/acme/one:v1@sha256:{}", "7".repeat(64));
    let stage = Stage::new();
    let loaded = stage.load_file(&named(&[&[&name]])).unwrap();
    assert_eq!(loaded[0].names, [(name, NameGiven::NotAName)]);
    let pinned = format!("ghcr.io/acme/one@{}", loaded[0].digest);
    let with_tag = format!("ghcr.io/acme/one:v1@{}", loaded[0].digest);
    let loaded = stage.load_file(&named(&[&[&pinned, &with_tag]])).unwrap();
    let given = ("ghcr.io/acme/one:v1".to_owned(), NameGiven::Given);
    assert_eq!(loaded[0].names, [given, (pinned, NameGiven::NotAName)]);
}

#[test]
fn what_can_be_no_name_is_none() {
    for name in ["../x", "a/b", "", ".x", "v1.0", "Hello", "\u{1b}[2J"] {
        let (stage, boxes) = (Stage::new(), boxes(&["one"]));
        let documents = documents(&boxes);
        let mut bytes = Vec::new();
        let bundle = Bundle::of([(&documents[0], Some(name))]).unwrap();
        bundle.write_archive(&mut bytes).unwrap();
        let loaded = stage.load_file(&bytes).unwrap();
        assert_eq!(loaded[0].names, [(name.to_owned(), NameGiven::NotAName)]);
        assert!(loaded[0].lines().iter().all(|line| !line.contains('\u{1b}')));
        assert_eq!(stage.found(), [(loaded[0].digest, None)]);
    }
}

#[test]
fn one_of_several_boxes_is_picked_by_its_digest() {
    let stage = Stage::new();
    let archive = Archive::open(&stage.write(&archive(&["one", "two"]))).unwrap();
    let boxes = archive.boxes().unwrap();
    let ArchiveError::WhichBox { boxes: names, .. } = archive.one_box(None).unwrap_err() else {
        panic!("it has two");
    };
    for it in &boxes {
        assert_eq!(archive.one_box(Some(it.remote.digest)).unwrap().names, it.names);
        assert!(names.contains(&format!("{} ({})", it.names[0], it.remote.digest)), "{names:?}");
    }
    let other = archive.one_box(Some(Digest::of(b"other"))).unwrap_err();
    assert!(matches!(other, ArchiveError::Absent { .. }), "{other}");
}

#[test]
fn a_load_goes_on_with_what_is_there_and_mends_what_is_damaged() {
    let bytes = archive(&["one"]);
    for is_stream in [false, true] {
        let stage = Stage::new();
        let load = |bytes: &[u8]| {
            if is_stream { stage.load_stream(bytes) } else { stage.load_file(bytes) }
        };
        // Without the last blob.
        let mut cut = members(&bytes);
        let last = cut.pop().unwrap();
        assert!(load(&tar_of(&cut)).is_err());
        assert!(stage.found().is_empty());
        let loaded = load(&bytes).unwrap();
        // Several blobs of a file are read in parallel, so some may not have begun.
        let most = if is_stream { 1 } else { 4 };
        assert!((1..=most).contains(&loaded[0].new_blobs), "{loaded:?}");
        assert!(loaded[0].new_bytes >= last.1.len() as u64, "{loaded:?}");
        let kernel = boxes(&["one"])[0].manifest().blob(KERNEL_TYPE).unwrap().digest;
        let path = stage.path("store/blobs").join(kernel.hex());
        fs::remove_file(&path).unwrap();
        fs::write(&path, "a kernem").unwrap();
        assert_eq!(load(&bytes).unwrap()[0].new_blobs, 1);
        assert_eq!(stage.found().len(), 1);
    }
}

#[test]
fn a_box_that_does_not_open_is_not_found() {
    let (stage, files) = (Stage::new(), &boxes(&["one"])[0]);
    files.edit_config(|config| config["plan"]["agent"]["argv"] = serde_json::json!([]));
    let mut members = vec![];
    for name in ["oci-layout", "index.json"] {
        members.push((name.to_owned(), fs::read(files.path().join(name)).unwrap()));
    }
    let manifest = files.index().manifests[0].digest;
    let own = files.manifest();
    for digest in [manifest].into_iter().chain(own.blobs().into_iter().map(|it| it.digest)) {
        let name = box_contract::manifest::blob_name(&digest);
        members.push((name, fs::read(files.blob_path(&digest)).unwrap()));
    }
    let error = stage.load_file(&tar_of(&members)).unwrap_err();
    assert!(matches!(error, ArchiveError::Box(box_registry::BoxRegistryError::Open(_))), "{error}");
    assert!(stage.found().is_empty());
    assert_eq!(count(&stage.path("store/boxes")), 0);
}
