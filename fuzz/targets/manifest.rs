//! Opens an image with any bytes as its manifest and config.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| boxbuild_fuzz::manifest(bytes));
