//! Checks that a kernel's finished configuration has the requested options.

use std::collections::BTreeMap;

/// Returns the options of a fragment that the finished configuration does not have, as text, such as
/// `CONFIG_A is n, not y`.
///
/// The kernel's tools silently drop an option whose dependencies are missing.
pub(super) fn broken(fragment: &str, finished: &str) -> Vec<String> {
    let finished: BTreeMap<_, _> = options(finished).collect();
    // A later line overrides an earlier one with the same option.
    let wanted: BTreeMap<_, _> = options(fragment).collect();
    let is = |name: &str| finished.get(name).copied().unwrap_or("n");
    let wrong = wanted.into_iter().filter(|(name, value)| is(name) != *value);
    wrong.map(|(name, value)| format!("{name} is {}, not {value}", is(name))).collect()
}

fn options(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let options = text.lines().filter(|line| line.starts_with("CONFIG_"));
    options.filter_map(|line| line.trim_end().split_once('='))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use box_contract::{KernelName, rules::MAX_CPUS};

    use super::*;
    use crate::Workspace;

    #[test]
    fn the_configuration_agrees_with_the_code() {
        let text = fs::read_to_string(Workspace::find().path("kernel/guest.config")).unwrap();
        let value = |option: &str| {
            let value = options(&text).find(|(name, _)| *name == option).map(|(_, value)| value);
            value.unwrap_or_default().to_owned()
        };
        assert_eq!(value("CONFIG_NR_CPUS"), MAX_CPUS.to_string());
        assert_eq!(value("CONFIG_LOCALVERSION").replace('"', ""), KernelName::LEAN_RELEASE);
    }

    #[test]
    fn an_option_that_was_dropped_is_named() {
        let finished = "CONFIG_SMP=y\n# CONFIG_PCI is not set\nCONFIG_NR_CPUS=64\n";
        assert_eq!(
            broken("# SMP\nCONFIG_SMP=y\nCONFIG_PCI=n\nCONFIG_NR_CPUS=64\n", finished),
            [""; 0]
        );
        let wrong = broken("CONFIG_EROFS_FS=y\nCONFIG_SMP=n\n", finished);
        assert_eq!(wrong, ["CONFIG_EROFS_FS is n, not y", "CONFIG_SMP is y, not n"]);
        assert_eq!(broken("CONFIG_PCI=y\nCONFIG_PCI=n\n", finished), [""; 0], "the later one wins");
    }
}
