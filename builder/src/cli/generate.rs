//! `boxbuild schema`, `boxbuild completions` and `boxbuild man`: the language for editors, and the
//! command line for shells and manuals.

use clap::CommandFactory;
use cli_common::color::VARIABLES;
use cli_common::manual::{CompletionsArgs, ManArgs, Manual};
use host_fs::own;

use super::failure::Failure;
use super::global::{IS_WORKFLOW, WORKFLOW_ROOT};
use super::{Cli, terminal};

/// Prints the JSON Schema of a Boxfile in TOML, for editors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  boxbuild schema > boxfile.schema.json")]
pub(crate) struct Schema {
    /// Print the reference of the language as Markdown instead
    #[arg(long)]
    reference: bool,
}

/// Runs `boxbuild schema`.
pub(crate) fn schema(args: &Schema) -> Result<(), Failure> {
    let text = if args.reference { boxfile_spec::reference() } else { boxfile_spec::json_schema() };
    terminal::result(text.trim_end());
    Ok(())
}

/// Runs `boxbuild completions`.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    terminal::result(args.text("boxbuild").trim_end());
    Ok(())
}

/// The sections of the manual that the clap definitions do not provide.
const MANUAL: Manual = Manual {
    exit_codes: &super::usage::EXIT_CODES,
    environment: &[
        (own::STORE, "The directory of the store, unless --store names one."),
        (own::STORE_RO, "The directory of the host's store, which is read but never written."),
        (box_prune::VARIABLE, "The maximum size of the store: 50G, 0 or none."),
        (own::INIT, "The init, unless --init names one."),
        (own::KERNEL, "The guest kernel, unless --kernel or the Boxfile names one."),
        (own::REGISTRIES, "The configuration of registries, unless --registry-config names one."),
        (
            "XDG_CACHE_HOME, XDG_CONFIG_HOME, XDG_DATA_HOME, HOME",
            "Where the store, the configuration and the kernel of `boxbuild setup` are.",
        ),
        (
            "REGISTRY_AUTH_FILE, DOCKER_CONFIG, XDG_RUNTIME_DIR",
            "Where credentials of registries are, as for podman and docker.",
        ),
        ("HTTPS_PROXY", "The proxy for downloads and registries."),
        (own::CERTIFICATES, "Trusted certificates, in place of the system's."),
        VARIABLES,
        (IS_WORKFLOW, "Whether a workflow of GitHub Actions reads the messages."),
        (WORKFLOW_ROOT, "The root of the repository of such a workflow."),
    ],
    files: &[
        ("Boxfile, Boxfile.kdl, Boxfile.toml", "The declaration of a box."),
        ("Boxfile.lock", "The digests of the Boxfile's images and files. Check it in."),
        ("NAME.box", "A thin directory: it points to a box in the store."),
        (
            "~/.cache/boxbuild",
            "The store: boxes, their names, and cached build steps. If it is removed, boxes are built again.",
        ),
        ("~/.config/boxbuild/registries.toml", "Mirrors and certificates of registries."),
        (
            "/etc/boxbuild/policy.toml, ~/.config/boxbuild/policy.toml",
            "Which signatures boxes need.",
        ),
    ],
    see_also: &["boxlaunch(1)", "podman(1)", "skopeo(1)"],
};

/// Runs `boxbuild man`.
pub(crate) fn man(args: &ManArgs) -> Result<(), Failure> {
    if let Some(page) = args.page(&MANUAL, Cli::command())? {
        terminal::result(page.trim_end());
    }
    Ok(())
}
