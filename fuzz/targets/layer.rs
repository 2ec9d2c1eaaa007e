//! Reads any bytes as the archive of one layer, or of two.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| boxbuild_fuzz::layer(bytes));
