//! Opens a box to run it, by the rules of [`box_layout`] and additional rules of this host.

use box_contract::manifest::INDEX_FILE;
use box_contract::wire::{OLDEST_PROTOCOL, is_spoken};
use box_layout::{Blob, OpenBox, Places};
use host_fs::OsError;
use host_fs::trust::is_private;

use super::OpenBoxError;
use crate::streams::StreamError;

/// The first version of the protocol whose init serves requests as files.
const FILE_REQUESTS: u32 = 13;

/// Opens the box in a directory. If `places` has a store, blobs that the directory lacks are read from the store.
///
/// # Errors
/// The errors of [`OpenBox::open`], and [`OpenBoxError::Writable`] for a boot blob that another user could change.
pub fn open(places: impl Into<Places>) -> Result<OpenBox, OpenBoxError> {
    let opened = OpenBox::open(places)?;
    check_owners(&opened).map(|()| opened)
}

/// Refuses a box whose boot blobs can be changed by a user other than root and this one. If a boot blob is in the
/// store, the box's index must be private, too, because it selects the blobs.
///
/// # Errors
/// [`OpenBoxError::Writable`], or [`OsError::File`] if a file cannot be examined.
pub fn check_owners(opened: &OpenBox) -> Result<(), OpenBoxError> {
    opened.boot_blobs().try_for_each(check_owner)?;
    if opened.has_private_index || opened.boot_blobs().all(|blob| !blob.is_stored) {
        return Ok(());
    }
    Err(OpenBoxError::Writable(opened.places.directory.join(INDEX_FILE)))
}

/// Refuses a box whose plan declares something that this version does not support (see
/// [`RunPlan::unsupported`](box_contract::RunPlan::unsupported)), or whose config declares a protocol that this version
/// does not speak. The protocol in the greeting of the running init is checked again.
///
/// # Errors
/// [`StreamError::OtherProtocol`], [`StreamError::OlderBox`] if its init does not serve requests as files, which the plan declares, or
/// [`OpenBoxError::Unsupported`] with all unsupported declarations.
pub fn check_enforced(opened: &OpenBox) -> Result<(), OpenBoxError> {
    if let Some(protocol) = opened.config.protocol.filter(|it| !is_spoken(*it)) {
        return Err(StreamError::OtherProtocol(protocol).into());
    }
    let plan = opened.plan();
    let protocol = opened.config.protocol.unwrap_or(OLDEST_PROTOCOL);
    if protocol < FILE_REQUESTS && plan.has_file_requests() {
        return Err(StreamError::OlderBox(protocol).into());
    }
    match plan.unsupported() {
        nothing if nothing.is_empty() => Ok(()),
        unsupported => Err(OpenBoxError::Unsupported(unsupported)),
    }
}

/// Refuses a file that a user other than root and this one can change, because the guest reads it long after it was
/// hashed.
///
/// # Errors
/// [`OpenBoxError::Writable`].
pub fn check_owner(blob: &Blob) -> Result<(), OpenBoxError> {
    let private = is_private(&blob.file).map_err(OsError::file("examine", &blob.path))?;
    if private { Ok(()) } else { Err(OpenBoxError::Writable(blob.path.clone())) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use box_contract::manifest::{FORMAT_EPOCH, KERNEL_TYPE};
    use box_contract::wire::PROTOCOL;
    use box_contract::{BoxConfig, CapPlan, Health};
    use testkit::TestBox;
    use testkit::test_box::config;

    use super::*;

    fn refused_plan(change: impl FnOnce(&mut box_contract::BoxConfig)) -> String {
        let mut config = config();
        change(&mut config);
        open(TestBox::new(&config).path()).unwrap_err().to_string()
    }

    #[test]
    fn a_blob_that_others_may_write_is_refused() {
        let made = TestBox::new(&config());
        let path = made.blob(KERNEL_TYPE);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).unwrap();
        let error = open(made.path()).unwrap_err();
        assert!(matches!(error, OpenBoxError::Writable(named) if named == path));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        open(made.path()).unwrap();
    }

    #[test]
    fn a_thin_box_that_others_may_change_is_refused() {
        let (made, store) = (TestBox::new(&config()), tempfile::tempdir().unwrap());
        let kernel = made.blob(KERNEL_TYPE);
        fs::rename(&kernel, store.path().join(kernel.file_name().unwrap())).unwrap();
        let places = || Places::new(made.path(), Some(store.path()));
        open(places()).unwrap();
        let index = made.path().join(INDEX_FILE);
        fs::set_permissions(&index, fs::Permissions::from_mode(0o666)).unwrap();
        let error = open(places()).unwrap_err();
        assert!(matches!(error, OpenBoxError::Writable(named) if named == index));
    }

    #[test]
    fn a_box_of_the_epoch_before_is_opened() {
        let config = box_contract::BoxConfig { epoch: FORMAT_EPOCH - 1, ..config() };
        open(TestBox::new(&config).path()).unwrap();
    }

    #[test]
    fn a_box_is_refused_if_its_config_names_a_protocol_that_is_not_spoken() {
        let checked = |protocol| {
            let made = TestBox::new(&box_contract::BoxConfig { protocol, ..config() });
            check_enforced(&open(made.path()).unwrap())
        };
        for spoken in [None, Some(OLDEST_PROTOCOL), Some(PROTOCOL)] {
            checked(spoken).unwrap();
        }
        for other in [0, OLDEST_PROTOCOL - 1, PROTOCOL + 1, u32::MAX] {
            let error = checked(Some(other)).unwrap_err();
            assert!(
                matches!(error, OpenBoxError::Stream(StreamError::OtherProtocol(found)) if found == other),
                "{error}"
            );
        }
    }

    #[test]
    fn a_box_whose_init_serves_no_requests_as_files_is_refused() {
        let mut config = config();
        let service = r#"{"name":"model","component":"agent","to":"https://a.example.com","timeout-ms":1000}"#;
        config.plan.services = vec![serde_json::from_str(service).unwrap()];
        let checked = |protocol, config: &BoxConfig| {
            let made = TestBox::new(&BoxConfig { protocol: Some(protocol), ..config.clone() });
            check_enforced(&open(made.path()).unwrap()).map_err(|error| error.to_string())
        };
        checked(FILE_REQUESTS - 1, &config).unwrap();
        config.plan.caps = vec![CapPlan::Http { timeout_ms: 1000 }];
        checked(FILE_REQUESTS, &config).unwrap();
        let refusal = "this box cannot do that: its init speaks protocol 12";
        assert_eq!(checked(FILE_REQUESTS - 1, &config), Err(refusal.to_owned()));
    }

    #[test]
    fn a_box_from_before_its_config_named_the_protocol_is_opened() {
        let made = TestBox::new(&config());
        made.edit_config(|config| {
            drop(config.as_object_mut().unwrap().remove("protocol").unwrap());
        });
        let opened = open(made.path()).unwrap();
        assert_eq!(opened.config.protocol, None);
        check_enforced(&opened).unwrap();
    }

    #[test]
    fn a_plan_that_cannot_run_is_refused() {
        assert!(refused_plan(|config| config.epoch = 9).contains("is of format epoch 9, and"));
        let no_program = refused_plan(|config| config.plan.agent.argv.clear());
        assert_eq!(
            no_program,
            "the box cannot be run: its agent has no program to run; name one with `entrypoint`"
        );
        let path = "/bereit/für".to_owned();
        let check = Health::Http { port: 80, path };
        let unheard = refused_plan(|config| config.plan.agent.health = Some(check));
        assert!(unheard.contains("agent health \"http\" path=\"/bereit/für\": "), "{unheard}");
        let kernels = refused_plan(|config| {
            config.plan.business.as_mut().unwrap().workdir = "/proc/1".to_owned();
        });
        assert!(kernels.contains("business workdir \"/proc/1\": it is in /proc"), "{kernels}");
        let endless = refused_plan(|config| config.plan.agent.env.push("x".repeat(1 << 20)));
        assert!(endless.contains("init reads at most 1048576"), "{endless}");
    }
}
