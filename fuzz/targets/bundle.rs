//! Verifies any bytes as the signature of a box.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| boxbuild_fuzz::bundle(bytes));
