//! Classifies any text as a line for a shell.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| boxbuild_fuzz::command(bytes));
