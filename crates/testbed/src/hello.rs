//! The two images of examples/hello.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::prerequisites::Package;
use crate::{KitError, Result, program};
use testkit::images::{Compression, Config, Image, Layer};

/// The budget of examples/hello, in milliseconds, with a margin for a busy real host.
pub const BUDGET_MS: u32 = 700;
/// The tag of both images.
pub const TAG: &str = "latest";
const SEARCH_PATH: &str = "PATH=/usr/local/bin:/usr/bin:/bin";
const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n";
const GROUP: &str = "root:x:0:\nnogroup:x:65534:\n";

/// Writes the images to `folder`/agent and `folder`/business, from the agent's program and the host's static busybox.
///
/// # Errors
/// The program or busybox is missing, or the directory cannot be written.
pub fn write_images(agent_program: &Path, folder: &Path) -> Result<()> {
    let busybox = Package::Busybox.path()?;
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(KitError::file("remove", folder))?;
    }
    let agent = agent_image(read(agent_program)?);
    agent.write_layout(&folder.join("agent"), TAG, Compression::Gzip)?;
    let business = business_image(&busybox)?;
    business.write_layout(&folder.join("business"), TAG, Compression::Gzip)?;
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(KitError::file("read", path))
}

fn users(layer: Layer) -> Layer {
    layer
        .dir("/etc", 0o755)
        .file("/etc/passwd", 0o644, PASSWD)
        .file("/etc/group", 0o644, GROUP)
        .dir("/root", 0o700)
        .dir("/tmp", 0o1777)
}

fn agent_image(program: Vec<u8>) -> Image {
    let config = Config {
        entrypoint: vec!["/agent/bin/agent".to_owned()],
        env: vec![SEARCH_PATH.to_owned()],
        labels: BTreeMap::from([
            ("a3s.type".to_owned(), "agent".to_owned()),
            ("a3s.port".to_owned(), "4088".to_owned()),
        ]),
        ..Config::default()
    };
    let layer = users(Layer::new()).dir("/agent", 0o755).dir("/agent/bin", 0o755);
    Image::new(config).with(layer.file("/agent/bin/agent", 0o755, program).to_tar())
}

/// Returns an image of two layers, like an image that is based on another one: busybox, and above it the application.
fn business_image(busybox: &Path) -> Result<Image> {
    let names = program::run(Command::new(busybox).arg("--list"))?;
    let mut system =
        users(Layer::new()).dir("/bin", 0o755).file("/bin/busybox", 0o755, read(busybox)?);
    let names = String::from_utf8_lossy(&names).into_owned();
    for name in names.lines().filter(|name| *name != "busybox") {
        system = system.symlink(&format!("/bin/{name}"), "busybox");
    }
    let app = Layer::new().dir("/workspace", 0o755).dir("/workspace/app", 0o755).file(
        "/workspace/app/README",
        0o644,
        "The business application would be here.\n",
    );
    let config = Config {
        cmd: vec!["/bin/sh".to_owned()],
        env: vec![SEARCH_PATH.to_owned()],
        working_dir: "/workspace/app".to_owned(),
        ..Config::default()
    };
    Ok(Image::new(config).with(system.to_tar()).with(app.to_tar()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_business_image_unpacks_to_a_working_shell() {
        let directory = tempfile::tempdir().unwrap();
        let (images, bundle) = (directory.path().join("images"), directory.path().join("bundle"));
        let own = std::env::current_exe().unwrap();
        write_images(&own, &images).expect("the programs of cargo xtask setup");
        let image = format!("{}:{TAG}", images.join("business").display());
        let mut umoci = Command::new("umoci");
        program::run(umoci.args(["unpack", "--rootless", "--image", &image]).arg(&bundle)).unwrap();
        let shell = bundle.join("rootfs/bin/busybox");
        let text = program::run(Command::new(shell).args(["sh", "-c", "echo it works"])).unwrap();
        assert_eq!(text, b"it works\n");
        let link = fs::read_link(bundle.join("rootfs/bin/sh")).unwrap();
        assert_eq!(link, Path::new("busybox"));
        assert!(bundle.join("rootfs/workspace/app/README").is_file());
    }

    #[test]
    fn the_budget_is_the_boxfiles_and_that_of_the_readme() {
        for file in ["examples/hello/Boxfile", "README.md"] {
            let text = fs::read_to_string(crate::Workspace::find().path(file)).unwrap();
            assert!(text.contains(&format!("budget total=\"{BUDGET_MS}ms\"")), "{file}");
        }
    }
}
