//! The configuration with which a kernel was compiled. A kernel with `CONFIG_IKCONFIG` contains it, compressed, between
//! two marks ([kernel/configs.c](https://github.com/torvalds/linux/blob/master/kernel/configs.c)).

use std::collections::BTreeMap;
use std::io::Read;

use box_contract::kernel::Need;
use flate2::read::GzDecoder;
use memchr::memmem;

/// The mark before the configuration.
pub const CONFIG_START: &[u8] = b"IKCFG_ST";
/// The maximum number of marks to examine.
const MAX_MARKS: usize = 16;
/// The maximum size of a configuration, in bytes. A configuration with every option has some 300 KiB.
const MAX_TEXT: u64 = 4 << 20;

/// A kernel's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config(BTreeMap<String, String>);

impl Config {
    /// Returns the configuration in a kernel's data, or `None` if there is none, as in libkrunfw's kernel.
    pub fn of(elf: &[u8]) -> Option<Self> {
        // Code that searches for the mark contains it, too. So only a mark with a valid configuration after it is used. A
        // kernel has few such marks; a file with many is no kernel.
        let starts = memmem::find_iter(elf, CONFIG_START).take(MAX_MARKS);
        starts.filter_map(|at| elf.get(at + CONFIG_START.len()..)).find_map(Self::unpacked)
    }

    fn unpacked(packed: &[u8]) -> Option<Self> {
        let mut text = String::new();
        GzDecoder::new(packed).take(MAX_TEXT + 1).read_to_string(&mut text).ok()?;
        (text.len() as u64 <= MAX_TEXT).then(|| Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let lines = text.lines().filter_map(|line| line.strip_prefix("CONFIG_"));
        let options = lines.filter_map(|line| line.split_once('='));
        Self(options.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Returns whether an option, without its prefix `CONFIG_`, is built into the kernel and works in a box. An option that is
    /// built as a module is refused, because a box has no modules. Landlock must also be in `CONFIG_LSM`, the list of enabled
    /// security modules.
    pub fn has(&self, option: &str) -> bool {
        let is_built_in = self.0.get(option).is_some_and(|value| value == "y");
        is_built_in && (option != Need::LANDLOCK || self.starts("landlock"))
    }

    /// Returns whether the kernel enables a security module by default.
    fn starts(&self, module: &str) -> bool {
        let list = self.0.get("LSM").map_or("", |list| list.trim_matches('"'));
        list.split(',').any(|name| name == module)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn landlock_must_be_started() {
        let has = |lsm: &str| {
            Config::parse(&format!("CONFIG_SECURITY_LANDLOCK=y\nCONFIG_LSM=\"{lsm}\""))
                .has(Need::LANDLOCK)
        };
        assert!(has("yama,landlock"));
        assert!(!has("yama,landlock2"));
        assert!(!has(""));
    }

    #[test]
    fn a_configuration_is_found_after_its_mark() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(b"# CONFIG_PCI is not set\nCONFIG_SMP=y\nCONFIG_EXT4_FS=m\n").unwrap();
        let packed = encoder.finish().unwrap();
        let elf = [b"\x7fELF..IKCFG_ST no gzip.." as &[u8], CONFIG_START, &packed, b"IKCFG_ED.."]
            .concat();
        let config = Config::of(&elf).unwrap();
        assert!(config.has("SMP"));
        assert!(!config.has("EXT4_FS"), "a module");
        assert!(!config.has("PCI"));
        assert_eq!(Config::of(b"\x7fELF IKCFG_ST"), None);
        assert_eq!(Config::of(&elf[..elf.len() - 20]), None, "damaged");
    }
}
