//! Makes the Debian images and runs their programs.

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::process::Command;

    use serde_json::Value;
    use testbed::debian::DebianImages;
    use testbed::prerequisites::{Package, packages};
    use testbed::{Workspace, program};

    fn blob(layout: &Path, descriptor: &Value) -> Value {
        let digest = descriptor["digest"].as_str().unwrap().replace("sha256:", "");
        let text = fs::read(layout.join("blobs/sha256").join(digest)).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    /// Returns the digests of the layers' blobs, and the digests of their uncompressed content.
    fn layers(layout: &Path) -> (Vec<Value>, Vec<Value>) {
        let index = fs::read(layout.join("index.json")).unwrap();
        let index: Value = serde_json::from_slice(&index).unwrap();
        let manifest = blob(layout, &index["manifests"][0]);
        let blobs = manifest["layers"].as_array().unwrap().iter();
        let config = blob(layout, &manifest["config"]);
        let diff_ids = config["rootfs"]["diff_ids"].as_array().unwrap().clone();
        (blobs.map(|layer| layer["digest"].clone()).collect(), diff_ids)
    }

    /// Runs a program in an image's unpacked tree and returns its output.
    fn run_in(layout: &Path, program_and_words: &[&str]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let bundle = directory.path().join("bundle");
        let image = format!("{}:{}", layout.display(), DebianImages::TAG);
        let mut umoci = Command::new("umoci");
        program::run(umoci.args(["unpack", "--rootless", "--image", &image]).arg(&bundle)).unwrap();
        let mut words = vec!["chroot"];
        if fs::metadata("/proc/self").unwrap().uid() != 0 {
            words.splice(..0, ["unshare", "--map-root-user"]);
        }
        let mut chroot = Command::new(words[0]);
        chroot.args(&words[1..]).arg(bundle.join("rootfs")).args(program_and_words);
        String::from_utf8(program::run(&mut chroot).unwrap()).unwrap()
    }

    #[test]
    fn python_and_node_run_on_the_same_base() {
        let mut say = |line: &str| println!("{line}");
        packages(&[Package::Umoci], &mut say).unwrap();
        let images = DebianImages::make(&Workspace::find(), &mut say).unwrap();
        let (agent, business) = (layers(&images.agent), layers(&images.business));
        assert_eq!((agent.0.len(), business.0.len()), (3, 2));
        assert_eq!((&agent.0[0], &agent.1[0]), (&business.0[0], &business.1[0]));
        let python = ["python3", "-c", "import http.server, json; print(6 * 7)"];
        assert_eq!(run_in(&images.agent, &python), "42\n");
        assert_eq!(run_in(&images.business, &["node", "-e", "console.log(6 * 7)"]), "42\n");
    }
}
