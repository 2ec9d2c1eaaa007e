//! An image with the example agent in Python.

use std::path::PathBuf;

use super::kept::{kept, key_of};
use super::tree::{Base, slim_base};
use super::{SEARCH_PATH, TAG};
use crate::prerequisites::Say;
use crate::{Result, Workspace};
use testkit::images::{Compression, Config, Image, Layer};

const RECIPE: &str = "1";
const PACKAGES: &str = "protobuf-compiler,python3-grpcio,python3-protobuf";
const SERVER: &str = include_str!("../../../../examples/agents/python/server.py");
const PROTO: &str = include_str!("../../../../launcher/proto/code_agent.proto");
/// The shell command of the image: generates the message classes, which a Dockerfile could also do, and starts the server.
const START: &str = "protoc --proto_path=/agent --python_out=/tmp /agent/code_agent.proto && \
    PYTHONPATH=/tmp exec python3 /agent/server.py";

/// The OCI image layout of Debian with Python's grpcio. The image starts examples/agents/python.
#[derive(Debug, Clone)]
pub struct GrpcImage(pub PathBuf);

impl GrpcImage {
    /// Returns the image. A missing image is made first, which takes half a minute and downloads about 20 MB.
    ///
    /// # Errors
    /// mmdebstrap is missing and cannot be installed, or fails, or the disk is full.
    pub fn make(workspace: &Workspace, say: Say<'_>) -> Result<Self> {
        let base = slim_base(workspace, say)?;
        let recipe = ["grpc", RECIPE, &key_of(&base), PACKAGES, SERVER, PROTO, START];
        let made = kept(workspace, &recipe, say, |scratch, draft, say| {
            let base = Base::read(&base)?;
            let agent = Layer::new()
                .dir("/agent", 0o755)
                .file("/agent/code_agent.proto", 0o644, PROTO)
                .file("/agent/server.py", 0o755, SERVER);
            Image::new(config())
                .with(base.layer.clone())
                .with(base.layer_of(PACKAGES, scratch, say)?)
                .with(agent.to_tar())
                .write_layout(&draft.join("image"), TAG, Compression::Gzip)?;
            Ok(())
        })?;
        Ok(Self(made.join("image")))
    }
}

fn config() -> Config {
    let entrypoint = ["/bin/sh", "-c", START].map(str::to_owned);
    let env = vec![SEARCH_PATH.to_owned()];
    Config { entrypoint: entrypoint.into(), env, ..Config::default() }
}
