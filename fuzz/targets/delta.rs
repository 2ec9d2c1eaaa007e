//! Applies any bytes as a delta between two blobs.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| boxbuild_fuzz::delta(bytes));
