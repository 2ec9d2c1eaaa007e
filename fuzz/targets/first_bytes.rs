//! Any bytes as the first ones of a client of the box's filter.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| boxbuild_fuzz::first_bytes(bytes));
