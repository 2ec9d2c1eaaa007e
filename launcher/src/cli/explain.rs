//! The table of errors: the code of each, and what to do about it.

use std::io::{self, ErrorKind};

use box_image::ErrorCode::{self, *};
use boxlaunch::LaunchError;
use error_report::Explanation;
use nix::errno::Errno;

/// Returns the row of an error in the table.
pub(crate) fn explain(error: &LaunchError) -> Explanation {
    if let LaunchError::Open(error) = error {
        return error.into();
    }
    match help(error) {
        Some(help) => (code(error), help).into(),
        None => code(error).into(),
    }
}

fn code(error: &LaunchError) -> ErrorCode {
    match error {
        LaunchError::Open(error) => Explanation::from(error).code,
        LaunchError::Kvm(_) | LaunchError::KvmInternal => KvmUnavailable,
        LaunchError::Writable(_) => BoxWritable,
        LaunchError::OtherProtocol(_) | LaunchError::Unsupported(_) => BoxUnsupported,
        LaunchError::NoComponent(_) => ComponentNotFound,
        LaunchError::File { source, .. } if source.kind() == ErrorKind::AlreadyExists => {
            OutputExists
        }
        LaunchError::File { .. } | LaunchError::Output(_) => Io,
        LaunchError::SocketPath { .. } => Usage,
        LaunchError::Krun(_) | LaunchError::VmmEnded { .. } => VmmFailed,
        LaunchError::Guest { .. } | LaunchError::Protocol(_) => GuestFailed,
        LaunchError::AgentEnded { .. } => AgentFailed,
        LaunchError::Timeout(_) => StartupTimeout,
        LaunchError::Signal(_) => Interrupted,
        LaunchError::System { .. } => Internal,
    }
}

fn help(error: &LaunchError) -> Option<&'static str> {
    Some(match error {
        LaunchError::Kvm(source) => kvm_help(source),
        LaunchError::KvmInternal => {
            "run the box on a machine whose KVM uses the processor's own virtualization; a KVM that \
             emulates it in software cannot run every kernel"
        }
        LaunchError::Writable(_) => {
            "what boots must belong to you or to root, and only its owner may write to it: build the \
             box again, or `chmod go-w` and `chown` its blobs"
        }
        LaunchError::OtherProtocol(_) => "use the boxlaunch of the boxbuild that built the box",
        LaunchError::Unsupported(_) => {
            "remove these declarations from the Boxfile and build the box again, or use a newer \
             boxlaunch"
        }
        LaunchError::File { source, .. } => return file_help(source),
        LaunchError::SocketPath { .. } => {
            "set XDG_RUNTIME_DIR to a directory with a shorter path, or shorten --agent-socket"
        }
        LaunchError::AgentEnded { was_silent: false, .. } => {
            "look at the agent's output above, and at its program in the Boxfile"
        }
        LaunchError::AgentEnded { .. } => {
            "it has written nothing: look at its program and arguments in the Boxfile, and give it \
             one that keeps running"
        }
        LaunchError::Timeout(_) => {
            "look at the agent's output and its health check; --console FILE keeps all that the \
             machine said, and --startup-timeout gives it more time"
        }
        _ => return None,
    })
}

fn kvm_help(source: &io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::PermissionDenied => {
            "add your user to the group of /dev/kvm (`sudo usermod -aG kvm $USER`), and log in again"
        }
        _ => {
            "a box needs hardware virtualization: switch it on in the firmware, load the module \
             (`sudo modprobe kvm-intel` or `kvm-amd`), or, in a virtual machine or a container, \
             pass /dev/kvm through"
        }
    }
}

fn file_help(source: &io::Error) -> Option<&'static str> {
    match source.kind() {
        ErrorKind::AlreadyExists => Some("remove the file, or name another"),
        ErrorKind::NotFound => Some("make its directory first, or name another place"),
        _ if source.raw_os_error() == Some(Errno::ENXIO as i32) => {
            Some("it is a pipe that nobody reads: start its reader first")
        }
        _ => None,
    }
}
