//! Passes `kernel.ld`, which sets the kernel's address in the VM's memory, to the linker.
#![allow(clippy::print_stdout, reason = "it is how a build script speaks")]

fn main() {
    println!("cargo::rerun-if-changed=kernel.ld");
    let here = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "none") {
        println!("cargo::rustc-link-arg-bins=-T{here}/kernel.ld");
    }
}
