//! `boxlaunch completions` and `boxlaunch man`: the command line for shells and manuals.

use box_contract::ErrorCode;
use clap::CommandFactory;
use cli_common::color::VARIABLES;
use cli_common::manual::{CompletionsArgs, ManArgs, Manual};
use host_fs::own;

use super::Cli;
use super::error::Failure;
use super::terminal::print;

/// The sections of the manual that the command line does not contain.
const MANUAL: Manual = Manual {
    environment: &[
        (
            "BOXLAUNCH_STATE",
            "The directory for logs, records and volumes, and for which files were hashed.",
        ),
        ("XDG_STATE_HOME, HOME", "Where that directory is, unless BOXLAUNCH_STATE is set."),
        ("XDG_RUNTIME_DIR", "Where sockets are made while a box runs."),
        (
            own::STORE_RO,
            "The directory of a store that is read and never written: that of the machine.",
        ),
        (box_prune::VARIABLE, "How large the store may be: 50G, 0 or none."),
        (
            "BOXBUILD_STORE, XDG_CACHE_HOME, XDG_CONFIG_HOME, XDG_DATA_HOME",
            "Where boxbuild keeps what no box is given to write to. The first two say where boxes are found by name.",
        ),
        (
            "BOXBUILD_INIT, BOXBUILD_KERNEL, BOXBUILD_REGISTRIES, SSL_CERT_FILE",
            "Which files decide what boxbuild builds: no box is given to write to them. The last two say how `pull` asks registries, too.",
        ),
        (
            "REGISTRY_AUTH_FILE, DOCKER_CONFIG",
            "Where credentials of registries are, for `pull`. No box is given them.",
        ),
        ("HTTPS_PROXY", "The proxy for `pull`."),
        VARIABLES,
    ],
    files: &[
        ("/dev/kvm", "Hardware virtualization, which a box needs to run at full speed."),
        ("NAME.box", "A thin directory: it points to a box in the store."),
        ("~/.cache/boxbuild", "The store, from which `boxlaunch run NAME` starts boxes."),
        (
            "~/.local/state/boxbuild",
            "Logs, records and volumes of boxes, and receipts of files that were hashed.",
        ),
    ],
    see_also: &["boxbuild(1)"],
};

/// Runs `boxlaunch completions`.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<u8, Failure> {
    print(&args.text(Cli::command()))?;
    Ok(0)
}

/// Runs `boxlaunch man`.
pub(crate) fn man(args: &ManArgs) -> Result<u8, Failure> {
    let page = args.page(&MANUAL, Cli::command());
    let page =
        page.map_err(|error| Failure::new(ErrorCode::Io, format!("{error}: {}", error.source)))?;
    print(&page.unwrap_or_default())?;
    Ok(0)
}
