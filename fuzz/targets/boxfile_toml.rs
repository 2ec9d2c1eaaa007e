//! Parses any text as a Boxfile in TOML.
#![no_main]

use diagnostics::Syntax;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| boxbuild_fuzz::boxfile(bytes, Syntax::Toml));
