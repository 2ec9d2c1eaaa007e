//! Any bytes as an image layout's index.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| boxbuild_fuzz::index(bytes));
