//! Frames that arrive in pieces.

use std::fs::File;

use box_cache::Store;
use box_digest::Digest;
use download::{Draft, DraftError, Target};
use proptest::prelude::*;

use super::stage::zstd;
use crate::form::Coding;
use crate::inflate::Inflating;
use crate::pack::pack;

/// Sends bytes in pieces to the target of a blob with this content.
fn take(store: &Store, plain: &[u8], sent: &[u8], piece: usize) -> Result<(), DraftError> {
    let (digest, size) = (Digest::of(plain), plain.len() as u64);
    let mut draft =
        Inflating { sink: store, digest, size, coding: Coding::Zstd, _claim: None }.draft()?;
    sent.chunks(piece.max(1)).try_for_each(|piece| draft.append(piece))?;
    assert_eq!((draft.size(), draft.digest()), (sent.len() as u64, Digest::of(sent)));
    draft.commit()
}

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("store")).unwrap();
    (dir, store)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The plain bytes are restored for all bytes, sizes of pieces and levels.
    #[test]
    fn what_was_packed_comes_out(
        seed in proptest::collection::vec(any::<u8>(), 0..300),
        times in 1..2000_usize,
        piece in 1..5000_usize,
        level in -3..12_i32,
    ) {
        let (dir, store) = store();
        let plain = seed.repeat(times);
        prop_assert!(take(&store, &plain, &zstd(&plain, level), piece).is_ok());
        prop_assert_eq!(store.read(&Digest::of(&plain)).unwrap(), plain.clone());
        let path = dir.path().join("plain");
        std::fs::write(&path, &plain).unwrap();
        let size = plain.len() as u64;
        let (digest, packed) = pack(File::open(&path).unwrap(), size, dir.path()).unwrap();
        prop_assert_eq!(digest, Digest::of(&plain));
        prop_assert!(packed.sent.size <= size);
        prop_assert_eq!(packed.sent.coding == Coding::Zstd, packed.sent.size < size);
    }

    /// A changed frame gives the same blob or an error.
    #[test]
    fn a_changed_frame_gives_the_blob_or_none(
        seed in proptest::collection::vec(any::<u8>(), 1..300),
        times in 1..200_usize,
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
    ) {
        let (_dir, store) = store();
        let plain = seed.repeat(times);
        let mut sent = zstd(&plain, 3);
        let at = at.index(sent.len());
        sent[at] = value;
        let taken = take(&store, &plain, &sent, 1000);
        match store.read(&Digest::of(&plain)) {
            Ok(found) => prop_assert!(taken.is_ok() && found == plain),
            Err(_) => prop_assert!(matches!(taken, Err(DraftError::Content(_)))),
        }
    }
}
