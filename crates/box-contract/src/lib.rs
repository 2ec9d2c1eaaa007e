#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod accounts;
pub mod age;
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
pub mod signals;
pub mod size;
pub mod task;
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
    Access, AgentDefinitionPlan, AgentKind, CapPlan, ComponentName, ComponentPlan, CredentialPlan,
    Health, HookEvent, HookPlan, Layout, Limits, LogsPlan, McpPlan, Namespaces, NetworkLimits,
    NetworkMode, NetworkPlan, PeerPlan, PlanError, PublishPlan, Restart, Rlimits, RunPlan,
    SandboxFallback, SandboxPlan, SandboxPreset, Scope, ScratchPlan, SecretDelivery, SecretPlan,
    ServicePlan, SharePlan, SkillMode, SkillPlan, SshAgentPlan, SystemDirectories, TaskPlan,
    TaskVerification, Unsupported, User, VerifyPlan, Vm, VolumePlan,
};
pub use platform::{Platform, UnknownPlatform};
pub use remote::RemoteName;
pub use task::{TaskError, TaskStatus};

/// Declares an enum with a name for each variant, and derives the list `ALL` and the method `name` from the same rows,
/// so that neither can miss a variant.
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$about:meta])*
        pub enum $enum:ident { $($(#[$meaning:meta])* $variant:ident $name:literal,)+ }
    ) => {
        $(#[$about])*
        pub enum $enum { $($(#[$meaning])* $variant,)+ }

        impl $enum {
            /// All variants in the order of their declaration.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns the name, as documents spell it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}
