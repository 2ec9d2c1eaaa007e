//! Loads any bytes as a file with boxes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| boxbuild_fuzz::archive(bytes));
