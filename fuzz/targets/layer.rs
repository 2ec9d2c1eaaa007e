//! Any bytes as a layer's archive, or as two.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| boxbuild_fuzz::layer(bytes));
