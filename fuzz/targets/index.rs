//! Opens an image layout with any bytes as its index.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| boxbuild_fuzz::index(bytes));
