//! Makes a module faster to load. The kernel spent two fifths of the virtual host's start on the removed parts.

/// The end of a signed module ([module signing](https://docs.kernel.org/admin-guide/module-signing.html)).
const SIGNED: &[u8] = b"~Module signature appended~\n";
/// The length of `struct module_signature`, whose last four bytes are the signature's length.
const SIGNATURE_INFO: usize = 12;
/// The name of the section that lists the calls for function tracing (Linux, kernel/module/main.c). It is also the end
/// of the name of the section's relocations, `.rela__mcount_loc`.
const TRACED: &[u8] = b"__mcount_loc\0";
/// The name that replaces [`TRACED`], so that the kernel does not find the section.
const NOT_TRACED: &[u8] = b"__mcount_off\0";

/// Removes a module's signature, and hides its functions from tracing. Keeps a signature with an invalid length.
pub(super) fn lighten(module: &mut Vec<u8>) {
    if let Some(length) = without_signature(module) {
        module.truncate(length);
    }
    let mut from = 0;
    while let Some(at) = position(&module[from..], TRACED) {
        from += at + TRACED.len();
        module[from - TRACED.len()..from].copy_from_slice(NOT_TRACED);
    }
}

/// Returns the length of a module without its signature. `None` if it has no valid signature.
fn without_signature(module: &[u8]) -> Option<usize> {
    let signed = module.strip_suffix(SIGNED)?;
    let size = u32::from_be_bytes(*signed.last_chunk()?) as usize;
    signed.len().checked_sub(SIGNATURE_INFO)?.checked_sub(size)
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lightened(module: &[u8]) -> Vec<u8> {
        let mut module = module.to_vec();
        lighten(&mut module);
        module
    }

    fn signed(module: &[u8], length: u32) -> Vec<u8> {
        let info = [&[0; SIGNATURE_INFO - 4][..], &length.to_be_bytes()].concat();
        [module, b"signature", &info, SIGNED].concat()
    }

    #[test]
    fn a_signature_is_removed() {
        assert_eq!(lightened(&signed(b"ELF", 9)), b"ELF");
        assert_eq!(lightened(b"ELF"), b"ELF");
    }

    #[test]
    fn a_signature_longer_than_the_file_stays() {
        let module = signed(b"ELF", 13);
        assert_eq!(lightened(&module), module);
    }

    #[test]
    fn nothing_is_traced() {
        let module = lightened(b"\0__mcount_loc\0.rela__mcount_loc\0.text\0");
        assert_eq!(module, b"\0__mcount_off\0.rela__mcount_off\0.text\0");
    }
}
