//! The first part of a start: verifies the box, and starts and confines the process that runs its VM.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use box_contract::wire::{Connect, HostMessage};
use box_contract::{ComponentName, NetworkMode};
use host_fs::OsError;
use vmm::jail::{Report, Terms};
use vmm::{BlobFds, CONTROL_SOCKET, Nonce, Vmm, VmmConfig, confine};

use super::agent_socket::{AgentSocket, Places, places};
use super::events::Events;
use super::setup::{BoxToRun, HostResources, Progress, StartPolicy};
use super::{MachineError, mounts, variables};
use crate::mounts::files::FileCopy;
use crate::mounts::shares;
use crate::mounts::volumes::Volume;
use crate::network::passt::{self, Device};
use crate::network::{Network, Sockets, services};
use crate::opened::verify::{self, Verification, Verified};
use crate::streams::console::Console;
use crate::streams::control::Listener;

/// A VMM process that has received its box.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) verification: Verification,
    pub(super) events: Events,
    pub(super) agent_socket: Option<AgentSocket>,
    pub(super) device: Option<Device>,
    pub(super) network: Option<Network>,
    /// The layers of the jail. Empty if the process has ended; [`Events`] then reports that end.
    pub(super) jail: Report,
}

/// Verifies the box, and starts the VMM process with the same open files. The time for hashing is not included in the
/// duration of the start, so `policy.started` is moved forward by it.
pub(super) fn prepare(
    run: &BoxToRun<'_>,
    gifts: &mut HostResources,
    policy: &mut StartPolicy<'_>,
) -> Result<Prepared, MachineError> {
    let doors = HostSockets::make(run, gifts)?;
    let verification = verified(run, policy)?;
    policy.started += verification.hashing;
    let Process { mut vmm, terms, mut device, device_end } =
        Process::start(run, gifts, &doors, policy)?;
    let nonce = Nonce::random()?;
    let together = mounts::are_together(run.opened.plan(), gifts);
    let credentials = services::take_secrets(run.opened.plan(), &mut gifts.secrets);
    let given = (run.opened.plan(), &gifts.network, &credentials[..]);
    let serve = |it| Network::serve(it, given, vmm.pid(), policy.logs.network());
    let network = doors.network.map(serve).transpose()?;
    let agent_socket = doors.agent.map(AgentSocket::serve).transpose()?;
    let config = String::from_utf8(run.opened.config_bytes.clone()).map_err(io::Error::other);
    vmm.configure(&VmmConfig {
        size: run.size,
        blobs: BlobFds::of(run.opened),
        config: config.map_err(OsError::system("read the box's config"))?,
        disks: gifts.disks.iter().map(|it| it.as_raw_fd()).collect(),
        volumes: gifts.volumes.iter().map(|it| it.disk.as_raw_fd()).collect(),
        roots_disk: gifts
            .roots_disk
            .as_ref()
            .map(|it| vmm::RootsDisk { fd: it.file.as_raw_fd(), is_kept: it.is_kept }),
        largest_disk: mounts::largest_disk(run.opened.plan(), gifts),
        nonce: nonce.clone(),
        agent: agent_socket.as_ref().map(|socket| socket.port),
        shared_network: device_end.as_ref().map(|it| it.as_raw_fd()),
        has_network: network.is_some(),
        has_mounts: doors.has_mounts,
        shares_together: together,
        jail: terms,
    })?;
    let jail = confined(run, gifts, policy, &mut vmm, device.as_mut())?;
    // From here on, only the VMM process has the disks open that are not kept, so they disappear when it ends.
    gifts.disks.clear();
    gifts.roots_disk.take_if(|it| !it.is_kept);
    let first = first_messages(run, gifts, (jail.as_ref(), together))?;
    let console = Console::new(policy.console.take());
    let events = Events::new(vmm, doors.listener, (nonce, first), console)?;
    let jail = jail.unwrap_or_default();
    Ok(Prepared { verification, events, agent_socket, device, network, jail })
}

/// The resources that the host can refuse. They are created or found before the box is hashed, which can take long.
struct HostSockets {
    agent: Option<Places>,
    listener: Listener,
    network: Option<Sockets>,
    /// The program that connects the VM to the host's network.
    carrier: Option<PathBuf>,
    has_mounts: bool,
}

impl HostSockets {
    fn make(run: &BoxToRun<'_>, gifts: &mut HostResources) -> Result<Self, MachineError> {
        let (plan, runtime) = (run.opened.plan(), &run.runtime);
        let handed = gifts.handed.take();
        let places = |port| places(port, gifts.agent_socket.clone(), runtime);
        Ok(Self {
            agent: plan.agent.port.map(places).transpose()?,
            listener: Listener::bind(runtime.vmm_socket(CONTROL_SOCKET)?)?,
            network: Sockets::make(runtime, plan, (&gifts.published, handed), &gifts.sockets)?,
            carrier: passt::find(&gifts.network, run.programs)?,
            has_mounts: mounts::message(gifts, (u32::MAX, u32::MAX), false)?.is_some(),
        })
    }
}

/// Verifies the blobs of a box before it is started.
fn verified(run: &BoxToRun<'_>, policy: &StartPolicy<'_>) -> Result<Verification, MachineError> {
    policy.watch.see(Progress::Verifying);
    let done = verify::boot_blobs(run.opened, run.receipts, run.trust, policy.signals)?;
    if done.verified == Verified::Hashed {
        policy.watch.see(Progress::Hashed(done.hashing));
    }
    Ok(done)
}

/// The VMM process before it has received its box.
struct Process {
    vmm: Vmm,
    terms: Terms,
    device: Option<Device>,
    /// The guest's end of the network device, which the process inherits.
    device_end: Option<UnixStream>,
}

impl Process {
    fn start(
        run: &BoxToRun<'_>,
        gifts: &HostResources,
        doors: &HostSockets,
        policy: &StartPolicy<'_>,
    ) -> Result<Self, MachineError> {
        let kept = gifts.volumes.iter().map(|it| &it.disk);
        let roots = gifts.roots_disk.iter().map(|it| &it.file);
        let disks: Vec<&File> = gifts.disks.iter().chain(kept).chain(roots).collect();
        let has_device = run.opened.plan().network.mode == NetworkMode::Shared;
        let made = has_device.then(|| Device::make(doors.carrier.as_deref())).transpose()?;
        let (device, device_end) = made.unzip();
        let socket = device_end.as_ref().map(|it| it.as_fd());
        let mut vmm = Vmm::spawn(run.program, run.opened, &disks, socket)?;
        let blobs = run.opened.boot_blobs().map(|blob| &blob.file);
        let shares = shares::directories(&gifts.shares);
        let (runtime, jail) = (&run.runtime, policy.jail);
        let terms = confine::terms(blobs, &disks, run.device, runtime, jail, shares, &mut vmm)?;
        Ok(Self { vmm, terms, device, device_end })
    }
}

/// Waits until the VMM process has confined itself, and lets it start the VM. Returns `None` if the process has ended
/// instead.
fn confined(
    run: &BoxToRun<'_>,
    gifts: &HostResources,
    policy: &StartPolicy<'_>,
    vmm: &mut Vmm,
    mut device: Option<&mut Device>,
) -> Result<Option<Report>, MachineError> {
    let serving = device.as_ref().and_then(|it| it.process());
    let until = (policy.started + policy.startup_timeout, policy.signals);
    let jail = confine::finish(run.size, &run.runtime, policy.jail, vmm, serving, until)?;
    if let Some(jail) = &jail {
        policy.watch.see(Progress::Confined(&jail.missing));
        gifts.volumes.iter().try_for_each(Volume::note_use)?;
        device.as_mut().map(|it| it.serve()).transpose()?;
        vmm.go();
    }
    Ok(jail)
}

/// Returns the components that connect to the host's end of the network although no filter is there for them.
fn connected(run: &BoxToRun<'_>, gifts: &HostResources) -> impl Iterator<Item = ComponentName> {
    let has = |name| {
        gifts.published.iter().any(|it| it.component == name)
            || gifts.sockets.iter().any(|it| it.is_for(name))
    };
    run.opened.plan().components().map(|(name, _)| name).filter(move |it| has(*it))
}

/// Returns the first messages to init. Takes the secrets from `gifts`, so that these messages have the only copy.
fn first_messages(
    run: &BoxToRun<'_>,
    gifts: &mut HostResources,
    (jail, together): (Option<&Report>, bool),
) -> Result<Vec<HostMessage>, MachineError> {
    let ids = jail.map_or_else(Default::default, |it| it.ids);
    let variables = variables::messages(run.opened.plan(), &gifts.variables);
    let mut first: Vec<_> = variables.into_iter().map(HostMessage::Variable).collect();
    first.extend(std::mem::take(&mut gifts.secrets).into_iter().map(HostMessage::Secret));
    first.extend(mounts::message(gifts, ids, together)?);
    first.extend(gifts.files.iter().flat_map(FileCopy::parts).map(HostMessage::FilePart));
    first.extend(connected(run, gifts).map(|it| HostMessage::Connect(Connect { component: it })));
    Ok(first)
}
