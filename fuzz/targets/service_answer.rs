//! Passes on any bytes as the answer of a service.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| boxbuild_fuzz::service_answer(bytes));
