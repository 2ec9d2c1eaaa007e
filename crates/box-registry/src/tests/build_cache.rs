//! Build caches beside a pushed box.

use std::cell::Cell;

use test_server::registry::Rules;

use super::stage::*;
use crate::*;

#[test]
fn the_heads_are_made_only_for_a_cache_that_is_sent() {
    let stage = Stage::new(Rules::default());
    let pushed = stage.push(&test_box(), None).unwrap();
    let made = Cell::new(0);
    let heads = || {
        made.set(made.get() + 1);
        Ok(b"heads".to_vec())
    };
    let send = |key: &str| {
        let cache = CacheToPush {
            key: key.to_owned(),
            decoder: 7,
            layers: &[],
            read: &|_| Ok(None),
            heads: Some(&heads),
            known: None,
        };
        stage.push_cache(&pushed, &cache).unwrap()
    };
    assert!(send("key") > 0);
    assert_eq!((send("key"), made.get()), (0, 1));
    assert!(send("other") > 0);
    assert_eq!(made.get(), 2);
}
