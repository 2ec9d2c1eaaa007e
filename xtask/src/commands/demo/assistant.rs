//! The demo of examples/assistant: an agent repairs a project with the help of a model.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use assistant_recorder::{SCRIPT, for_people, is_good, report, svg};
use serde_json::Value;
use testbed::prerequisites::{Package, packages, with_busybox};
use testbed::{KitError, Result, VirtualHost, Workspace, assistant, program};
use tool_output::say;

use super::boot::{self, Places};
use super::{Demo, place, write_report};
use crate::commands::{Outcome, setup};

/// The memory of the demo's box, in MiB.
const GUEST_MIB: u32 = 640;

pub(super) fn run() -> Outcome {
    say::note("the first run compiles for minutes");
    let demo = Demo::compiled("assistant", "assistant-model")?;
    say::watch(|| packages(&[Package::Mmdebstrap], &mut say::note))?;
    say::step("making two images of Debian's packages", || {
        assistant::link_images(&demo.workspace, &demo.example("images"), &mut say::note)
    })?;
    let digest = say::step("building the box", || demo.build())?;
    let report = say::step("running the box and its model", || boot::boot(&demo, &Assistant))?;
    write_report(&report, &demo.workspace.target("demo/report.json"))?;
    let path = demo.workspace.target("demo/assistant.svg");
    fs::write(&path, svg(&report)).map_err(KitError::file("write", &path))?;
    demo.conclude(&for_people(&report, &digest, place(&report)), is_good(&report))
}

struct Assistant;

impl Places for Assistant {
    fn under_kvm(&self, demo: &Demo) -> Result<Value> {
        let out = demo.workspace.target("demo/assistant");
        if out.exists() {
            fs::remove_dir_all(&out).map_err(KitError::file("remove", &out))?;
        }
        fs::create_dir_all(&out).map_err(KitError::file("make", &out))?;
        let (model, roots) = (demo.artefacts.assistant_model.as_path(), roots(&demo.workspace));
        let arguments = [&out, &demo.example(""), &demo.bundle, model, &roots];
        let mut command = Command::new("busybox");
        command.args(["sh", "-c", SCRIPT, "sh"]).args(arguments);
        command.env("PATH", path_with(&demo.artefacts.boxlaunch)?);
        let output = program::finish(&mut command)?;
        let read = |name: &str| fs::read(out.join(name)).unwrap_or_default();
        recorded(output.status.code().unwrap_or(-1), &output.stderr, read)
    }

    /// Runs the box on the virtual host. The launcher hashes the box, because it has never run there.
    fn on_virtual_host(&self, demo: &Demo) -> Result<Value> {
        let kernel = setup::for_virtual_host(&demo.workspace)?;
        let host = VirtualHost::new(&kernel, &demo.artefacts.boxlaunch)
            .for_guest(GUEST_MIB)
            .file(roots(&demo.workspace), "/ca.pem")
            .file(demo.example("project"), "/assistant/project")
            .file(demo.example("skills"), "/assistant/skills")
            .file(&demo.artefacts.assistant_model, "/bin/assistant-model")
            .disk(&demo.bundle, "/assistant.box");
        let host = with_busybox(host, &demo.workspace)?;
        boot::note_machine(&host)?;
        let arguments = ["/out", "/assistant", "/assistant.box", "assistant-model", "/ca.pem"];
        let script = format!("ifconfig lo 127.0.0.1 up\n{SCRIPT}");
        let output = host.run(&[&["sh", "-c", &script, "sh"][..], &arguments].concat())?;
        let read = |name: &str| output.files.get(Path::new(name)).cloned().unwrap_or_default();
        recorded(output.status, &output.stderr, read)
    }
}

/// Returns the report of a run. `read` returns the content of a file that the script has written.
///
/// # Errors
/// The agent did not get its task.
fn recorded(status: i32, message: &[u8], read: impl Fn(&str) -> Vec<u8>) -> Result<Value> {
    report(&read).map_or_else(
        || boot::parse(status.max(1), &read("report"), &[message, &read("notices")].concat()),
        Ok,
    )
}

/// Returns the file with the root certificate of the model's server.
fn roots(workspace: &Workspace) -> PathBuf {
    workspace.path("crates/test-server/src/tls/ca.pem")
}

/// Returns `PATH` with the directory of `program` as its first entry.
fn path_with(program: &Path) -> Result<OsString> {
    let others = std::env::var_os("PATH").unwrap_or_default();
    let own = program.parent().map(Path::to_owned);
    std::env::join_paths(own.into_iter().chain(std::env::split_paths(&others)))
        .map_err(|error| KitError::malformed("PATH", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_room_for_the_boxs_memory() {
        let boxfile = include_str!("../../../../examples/assistant/Boxfile");
        assert!(boxfile.contains(&format!("\nvm cpus=1 memory=\"{GUEST_MIB}MiB\"\n")));
    }

    #[test]
    fn a_run_that_did_not_start_is_an_error() {
        let read = |name: &str| match name {
            "report" => br#"{"errors":[{"message":"no KVM"}]}"#.to_vec(),
            _ => Vec::new(),
        };
        assert!(recorded(1, b"", read).unwrap_err().to_string().contains("no KVM"));
        assert!(recorded(0, b"", |_| Vec::new()).is_err());
    }
}
