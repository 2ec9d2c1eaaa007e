//! Sends any bytes to the network filter: by HTTP, by SOCKS, or directly to a name.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| boxbuild_fuzz::proxy(bytes));
