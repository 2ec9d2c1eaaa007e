//! Parses any bytes as the first bytes of a client of the network filter.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| boxbuild_fuzz::first_bytes(bytes));
