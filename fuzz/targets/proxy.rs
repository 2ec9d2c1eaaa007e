//! Any bytes to the box's filter, by HTTP, by SOCKS or to a name.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| boxbuild_fuzz::proxy(bytes));
