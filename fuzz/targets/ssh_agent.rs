//! Reads any bytes as messages to an SSH agent.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| boxbuild_fuzz::ssh_agent(bytes));
