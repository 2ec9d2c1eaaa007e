//! Parses any text as a `SKILL.md`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| boxbuild_fuzz::skill_md(bytes));
