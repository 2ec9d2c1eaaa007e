//! `boxlaunch completions` and `boxlaunch man`: the command line for shells and manuals.

use box_contract::ErrorCode;
use clap::CommandFactory;
use cli_common::color::VARIABLES;
use cli_common::manual::{CompletionsArgs, ManArgs, Manual};
use host_fs::own;

use super::error::Failure;
use super::terminal::print;
use super::{Cli, EXIT_CODES};

/// The sections of the manual that the command line does not contain.
const MANUAL: Manual = Manual {
    exit_codes: &EXIT_CODES,
    environment: &[
        (
            "BOXLAUNCH_STATE",
            "The directory for logs, records, volumes and snapshots, and for which files were hashed.",
        ),
        ("XDG_STATE_HOME, HOME", "Where that directory is, unless BOXLAUNCH_STATE is set."),
        ("XDG_RUNTIME_DIR", "The directory of a box's sockets while it runs."),
        (own::STORE_RO, "The directory of the host's store, which is read but never written."),
        (box_prune::VARIABLE, "The maximum size of the store: 50G, 0 or none."),
        (
            "BOXBUILD_STORE, XDG_CACHE_HOME, XDG_CONFIG_HOME, XDG_DATA_HOME",
            "Directories of boxbuild, which no box may write to. The first two locate the store, the third one also config.toml.",
        ),
        (
            "BOXBUILD_INIT, BOXBUILD_KERNEL, BOXBUILD_REGISTRIES, SSL_CERT_FILE",
            "Files that decide what boxbuild builds, which no box may write to. `pull` and `run` also use the last two.",
        ),
        (
            "REGISTRY_AUTH_FILE, DOCKER_CONFIG",
            "The credentials of registries, for `pull` and `run`. No box may read them.",
        ),
        ("HTTPS_PROXY", "The proxy for `pull` and `run`."),
        VARIABLES,
    ],
    files: &[
        ("/dev/kvm", "Hardware virtualization, which a box needs to run at full speed."),
        ("NAME.box", "A thin directory: it points to a box in the store."),
        (
            "~/.config/boxlaunch/config.toml",
            "The box for `up` in projects without a Boxfile, as `box = \"BOX\"`.",
        ),
        ("~/.cache/boxbuild", "The store, from which `boxlaunch run NAME` starts boxes."),
        (
            "~/.local/state/boxbuild",
            "Logs, records, volumes and snapshots of boxes, and receipts of files that were hashed.",
        ),
    ],
    see_also: &["boxbuild(1)"],
};

/// Runs `boxlaunch completions`.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<u8, Failure> {
    print(&args.text("boxlaunch"))?;
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
