//! Makes realistic images from Debian packages.
//!
//! [`DebianImages`] are for tests that start them, [`RealImages`] for tests that compare trees, [`BenchImages`] for
//! the benchmark, [`WorkloadImage`] for programs that use many features of a kernel, and [`GrpcImage`] for an agent
//! with an interface. [`A3sImages`] are made from the Dockerfiles of an example. [`SystemdTree`] is no image, but the root file
//! system of a host. [`DebianImages`] and [`RealImages`] share their base layer, byte for byte. Images are made once and
//! kept in the [`Cache`](crate::Cache), in a folder named by a digest of their recipe:
//!
//! ```text
//! debian-images/KEY/agent       an OCI image layout, tag "latest"
//! debian-images/KEY/business
//! ```

mod a3s;
mod bench;
mod diff;
mod grpc;
mod kept;
mod pair;
mod real;
mod systemd;
mod tree;
mod workload;

pub use a3s::A3sImages;
pub use bench::BenchImages;
pub use grpc::GrpcImage;
pub use pair::DebianImages;
pub use real::RealImages;
pub use systemd::SystemdTree;
pub use workload::WorkloadImage;

/// The tag of every image.
const TAG: &str = "latest";
const SEARCH_PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
