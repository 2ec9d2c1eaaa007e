//! The contract between the three programs: what `boxbuild` seals, `boxlaunch` opens and
//! `box-init` carries out.
//!
//! A **box** is an OCI image layout directory. Its one manifest ([`Manifest`]) names a config
//! ([`BoxConfig`], which holds the [`RunPlan`]) and the blobs that boot: the parts of the rootfs (EROFS), the init and
//! the kernel. The sha256 of the manifest's bytes is the **box digest**; it covers everything that
//! boots.
//!
//! [`accounts`] resolves users by name, [`assignment`] reads variables of a command line, [`capabilities`] says what root of a component may do, [`defaults`] are the values that hold unless a Boxfile says otherwise, [`remote`] reads the names of boxes in registries, [`rules`] bounds what it may
//! ask for, [`json`] names faults of documents without their values, [`kernel`] what a box needs of its kernel, [`logs`] has the names and bounds of `/logs`, [`permissions`] lists what a box may do on its host, [`secrets`] knows which variables look like secrets, [`size`] reads sizes with units, [`task`] has the files of a task and the verdict on it, [`text`] makes foreign text safe to
//! print. [`wire`] is the control channel between the launcher and init. This crate does no I/O but for
//! [`wire`]'s framing over any reader or writer that it is given.
#![forbid(unsafe_code)]

pub mod accounts;
pub mod assignment;
pub mod budget;
pub mod capabilities;
pub mod codes;
pub mod defaults;
pub mod docker_name;
pub mod image_ref;
pub mod json;
pub mod kernel;
pub mod logs;
pub mod manifest;
pub mod network;
pub mod pace;
pub mod permissions;
pub mod plan;
mod platform;
pub mod remote;
pub mod rules;
pub mod secrets;
pub mod signals;
pub mod size;
pub mod task;
pub mod text;
pub mod wire;

pub use budget::{Budget, Overrun, Phase, Phases};
pub use capabilities::Capabilities;
pub use codes::{ErrorCode, exit};
pub use docker_name::{DEFAULT_TAG, DockerName, HUB, HUB_LIBRARY};
pub use image_ref::ImageRef;
pub use kernel::KernelName;
pub use manifest::{BoxConfig, Descriptor, Index, Manifest, OciLayout};
pub use permissions::Permission;
pub use plan::{
    Access, AgentKind, CapPlan, ComponentName, ComponentPlan, Health, Layout, Limits, LogsPlan,
    Namespaces, NetworkLimits, NetworkMode, NetworkPlan, PeerPlan, PlanError, Restart, Rlimits,
    RunPlan, SandboxFallback, SandboxPlan, SandboxPreset, Scope, ScratchPlan, SecretDelivery,
    SecretPlan, SharePlan, SkillMode, SkillPlan, TaskPlan, Unsupported, User, Vm,
};
pub use platform::{Platform, UnknownPlatform};
pub use remote::RemoteName;
pub use task::{TaskError, TaskStatus};

/// Declares an enum with a name for each variant, the list `ALL` and the method `name`, so that no
/// list of it can miss one.
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$about:meta])*
        pub enum $enum:ident { $($(#[$meaning:meta])* $variant:ident $name:literal,)+ }
    ) => {
        $(#[$about])*
        pub enum $enum { $($(#[$meaning])* $variant,)+ }

        impl $enum {
            /// All of them, in their order.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns the name as documents and people spell it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}
