//! Secrets: received from the launcher before a component starts, and delivered as variables or files.
//!
//! The file of a secret is in memory. If the component's root is on a disk, which may outlive the run, the file is a mount
//! of an unlinked file of `/dev/shm`, over an empty file on the disk. It belongs to the component's user, and only that user
//! can read it. Init clears its copy of the file's content after the delivery.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use box_contract::wire::{HostMessage, Secret, check_secret};
use box_contract::{ComponentName, RunPlan, Scope, SecretDelivery, SecretPlan, User};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{Mode, SFlag, fchmod, fstatat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, unlinkat};
use zeroize::Zeroizing;

use crate::channel::Channel;
use crate::error::{InitError, Step as _};
use crate::mounts::open_or_make_in;
use crate::sys::mounts;

/// The file system in memory in which the files of secrets are, if the component's root is on a disk.
const MEMORY: &str = "/dev/shm";

/// A secret that is delivered as a file.
#[derive(Debug)]
pub(crate) struct SecretFile {
    scope: Scope,
    path: String,
    value: Zeroizing<Vec<u8>>,
}

/// Receives the secrets of the plan. Sets the secrets that are delivered as variables in the plan, and returns the
/// secrets that are delivered as files.
///
/// # Errors
/// The launcher has sent another message, or a value that cannot be delivered.
pub(crate) fn receive(
    channel: &mut Channel,
    plan: &mut RunPlan,
) -> Result<Vec<SecretFile>, InitError> {
    let mut files = Vec::new();
    let secrets = std::mem::take(&mut plan.secrets);
    // The others stay on the host.
    let own = secrets.iter().enumerate().filter(|(_, it)| it.delivery != SecretDelivery::Host);
    for (at, secret) in own {
        let step = || format!("receive the secret {:?}", secret.name);
        let value = match channel.receive().step_with(step)? {
            Some(HostMessage::Secret(Secret { index, value })) if usize::from(index) == at => value,
            _ => return Err("the launcher has sent something else").step_with(step),
        };
        check_secret(&value, &secret.delivery).step_with(step)?;
        match &secret.delivery {
            SecretDelivery::Env => set(plan, secret, &value),
            SecretDelivery::Host => {}
            SecretDelivery::File { path } => {
                files.push(SecretFile { scope: secret.scope, path: path.clone(), value });
            }
        }
    }
    plan.secrets = secrets;
    Ok(files)
}

/// Sets the variable in the components of the secret's scope. It replaces the image's value.
fn set(plan: &mut RunPlan, secret: &SecretPlan, value: &[u8]) {
    // The value was checked to be UTF-8.
    let text = std::str::from_utf8(value).unwrap_or_default();
    for name in ComponentName::ALL.into_iter().filter(|it| secret.scope.includes(*it)) {
        if let Some(component) = plan.component_mut(name) {
            component.set_variable(&secret.name, text);
        }
    }
}

/// Writes the files of a component, whose root is this process's root. `has_disk` is whether the root is on a disk.
///
/// # Errors
/// The kernel's error, with the file. An existing file at the path is an error, too, except the empty file that an earlier
/// run has left on the disk.
pub(crate) fn write(
    files: &[SecretFile],
    component: ComponentName,
    user: &User,
    has_disk: bool,
) -> Result<(), InitError> {
    let own = files.iter().filter(|it| it.scope.includes(component));
    own.into_iter().try_for_each(|file| {
        let path = &file.path;
        try_write(file, user, has_disk).step_with(|| format!("write the secret's file {path}"))
    })
}

fn try_write(file: &SecretFile, user: &User, has_disk: bool) -> std::io::Result<()> {
    let path = Path::new(&file.path);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    // The path must not cross a mount: a link of the image may lead to a disk or to a directory of the host, where the
    // secret would outlive the run.
    let rule = ResolveFlag::RESOLVE_NO_XDEV;
    let parent = match open_or_make_in(Path::new("/"), parent, rule) {
        Err(Errno::EXDEV) => return Err(std::io::Error::other("something is mounted there")),
        opened => opened?,
    };
    let name = Path::new(name);
    if has_disk {
        remove_left(&parent, name)?;
    }
    let made = create(&parent, name)?;
    if !has_disk {
        return fill(made, file, user);
    }
    let memory = open_or_make_in(Path::new("/"), Path::new(MEMORY), ResolveFlag::empty())?;
    let hidden = Path::new(".secret");
    fill(create(&memory, hidden)?, file, user)?;
    let copy = mounts::copy(&Path::new(MEMORY).join(hidden));
    // A file without a name could not be mounted.
    let placed = copy.and_then(|copy| mounts::place(copy, made));
    unlinkat(&memory, hidden, UnlinkatFlags::NoRemoveDir)?;
    Ok(placed?)
}

/// Removes the empty file that [`write()`] has left on the disk in an earlier run.
fn remove_left(parent: &OwnedFd, name: &Path) -> nix::Result<()> {
    let found = match fstatat(parent, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Err(Errno::ENOENT) => return Ok(()),
        found => found?,
    };
    let is_ours = found.st_mode == SFlag::S_IFREG.bits() && found.st_size == 0;
    if is_ours { unlinkat(parent, name, UnlinkatFlags::NoRemoveDir) } else { Ok(()) }
}

/// Writes the value of a secret to a new file.
fn fill(made: OwnedFd, file: &SecretFile, user: &User) -> std::io::Result<()> {
    // Sets the mode last. Until now the file had no permissions, so no other process can have opened it.
    fchmod(&made, Mode::S_IRUSR)?;
    fchown(&made, Some(Uid::from_raw(user.uid)), Some(Gid::from_raw(user.gid)))?;
    let mut made = File::from(made);
    made.write_all(&file.value)
}

/// Makes a new file. An existing file or symbolic link at its path is an error.
fn create(parent: &OwnedFd, name: &Path) -> nix::Result<OwnedFd> {
    let how = OpenHow::new()
        .flags(OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC)
        .mode(Mode::empty())
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    openat2(parent.as_fd(), name, how)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, symlink};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::plan::tests::EXAMPLE;

    fn plan(secrets: &str) -> RunPlan {
        let text = EXAMPLE.replace("\"vm\":", &format!("\"secrets\": [{secrets}], \"vm\":"));
        crate::plan::parse(text.as_bytes()).unwrap()
    }

    fn received(plan: &mut RunPlan, values: &[(u8, &[u8])]) -> Result<Vec<SecretFile>, InitError> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        for (index, value) in values {
            let secret = Secret { index: *index, value: Zeroizing::new(value.to_vec()) };
            HostMessage::Secret(secret).write(&mut theirs).unwrap();
        }
        drop(theirs);
        receive(&mut Channel::from(OwnedFd::from(ours)), plan)
    }

    const VARIABLE: &str = r#"{"name": "KEY", "scope": "agent", "delivery": "env"}"#;
    const FILE: &str =
        r#"{"name": "CERT", "scope": "both", "delivery": {"file": {"path": "/run/a/cert"}}}"#;

    #[test]
    fn a_variable_is_set_instead_of_the_images() {
        let mut plan = plan(&format!("{VARIABLE},{FILE}"));
        plan.agent.env = vec!["KEY=of the image".to_owned(), "KEYS=1".to_owned()];
        let files = received(&mut plan, &[(0, b"a=b"), (1, b"\0")]).unwrap();
        assert_eq!(plan.agent.env, ["KEYS=1", "KEY=a=b"]);
        assert_eq!((files.len(), files[0].value.as_slice()), (1, b"\0".as_slice()));
    }

    #[test]
    fn what_is_no_secret_of_the_plan_is_refused_without_its_value() {
        let error =
            |values: &[(u8, &[u8])]| received(&mut plan(VARIABLE), values).unwrap_err().to_string();
        let other = "receive the secret \"KEY\": the launcher has sent something else";
        assert_eq!(error(&[]), other);
        assert_eq!(error(&[(1, b"canary")]), other);
        let binary = error(&[(0, b"canary\xFF")]);
        assert!(binary.contains("not UTF-8") && !binary.contains("canary"), "{binary}");
        assert!(received(&mut plan(""), &[]).unwrap().is_empty(), "nothing is waited for");
    }

    #[test]
    fn a_file_is_new_and_its_users_alone() {
        let root = tempfile_path("secret-file");
        let user = {
            let it = fs::metadata(&root).unwrap();
            User { uid: it.uid(), gid: it.gid(), groups: Vec::new() }
        };
        let file = |path: &str| SecretFile {
            scope: Scope::Agent,
            path: format!("{}/{path}", root.display()),
            value: Zeroizing::new(b"value".to_vec()),
        };
        let new = file("run/secrets/key");
        write(std::slice::from_ref(&new), ComponentName::Business, &user, false).unwrap();
        assert!(!Path::new(&new.path).exists(), "it is the agent's");
        write(std::slice::from_ref(&new), ComponentName::Agent, &user, false).unwrap();
        assert_eq!(fs::read(&new.path).unwrap(), b"value");
        assert_eq!(fs::metadata(&new.path).unwrap().mode() & 0o7777, 0o400);
        let again = write(&[new], ComponentName::Agent, &user, false).unwrap_err().to_string();
        assert!(again.contains("File exists"), "{again}");
        symlink("/nowhere", root.join("link")).unwrap();
        write(&[file("link")], ComponentName::Agent, &user, false).unwrap_err();
        fs::remove_dir_all(root).unwrap();
    }

    fn tempfile_path(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("box-init-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        fs::create_dir(&path).unwrap();
        path
    }
}
