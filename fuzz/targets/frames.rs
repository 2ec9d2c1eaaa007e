//! Parses any bytes as frames of the control channel.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| boxbuild_fuzz::frames(bytes));
