//! Any bytes as an image's manifest, and its config.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| boxbuild_fuzz::manifest(bytes));
