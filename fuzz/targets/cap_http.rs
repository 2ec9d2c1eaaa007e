//! Parses any bytes as a request in a file, and as its answer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| boxbuild_fuzz::cap_http(bytes));
