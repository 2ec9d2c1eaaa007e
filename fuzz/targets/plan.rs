//! Parses any bytes as the run plan that init reads.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| boxbuild_fuzz::plan(bytes));
