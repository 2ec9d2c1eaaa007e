//! Explanations for the errors of the virtual host.

use box_contract::ErrorCode::*;
use virtual_host::HostError as Error;

use super::Explanation;

/// The help if no program can fetch the virtual host's kernel.
const A_PACKAGE: &str = "name a package linux-image-*-cloud-amd64 with `--host-kernel FILE`";

impl From<&Error> for Explanation {
    fn from(error: &Error) -> Self {
        match error {
            // A system without apt cannot run `apt-get install`.
            Error::Missing { package: "apt", .. } => (VirtualHostMissing, A_PACKAGE).into(),
            Error::Missing { package, .. } => {
                (VirtualHostMissing, format!("sudo apt-get install {package}")).into()
            }
            Error::OldEmulator { .. } => {
                (VirtualHostMissing, "install a later version of qemu-system-x86_64").into()
            }
            Error::File { .. } | Error::Pack { .. } | Error::Output(_) => Io.into(),
            Error::NotFetched { .. } => (
                DownloadFailed,
                format!("run `sudo apt-get update`, check the network, or {A_PACKAGE}"),
            )
                .into(),
            Error::NotAPackage(_) => (VirtualHostFailed, A_PACKAGE).into(),
            Error::Dynamic(_) => (
                VirtualHostFailed,
                "use a static one: `cargo xtask install` in the source of boxbuild makes them",
            )
                .into(),
            Error::Stranger { .. } => (
                VirtualHostFailed,
                "remove it, and set XDG_CACHE_HOME to a directory that only you can write to",
            )
                .into(),
            _ => VirtualHostFailed.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Problem;

    #[test]
    fn a_missing_emulator_is_one_line_and_the_command_that_installs_it() {
        let error =
            Error::Missing { program: "qemu-system-x86_64".into(), package: "qemu-system-x86" };
        assert_eq!(
            Problem::new(&error, &error).text(),
            "error: qemu-system-x86_64 is not installed\n  \
             = help: sudo apt-get install qemu-system-x86"
        );
    }

    #[test]
    fn lists_of_packages_that_are_missing_are_fetched_by_a_command() {
        let words = || ("a command".to_owned(), "exit status: 100".to_owned(), String::new());
        let (command, status, output) = words();
        let apt = Explanation::from(&Error::NotFetched { command, status, output });
        let text = apt.help.unwrap();
        assert!(text.contains("apt-get update"), "{text}");
        let (command, status, output) = words();
        assert_eq!(Explanation::from(&Error::Failed { command, status, output }).help, None);
        let dynamic = Explanation::from(&Error::Dynamic("boxlaunch".into())).help.unwrap();
        assert!(dynamic.contains("`cargo xtask install`"), "{dynamic}");
    }
}
