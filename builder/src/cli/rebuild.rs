//! `boxbuild verify --rebuild`: builds a box again from its Boxfile and its lock, in an empty store, and compares the two.
//!
//! Nothing of the user's store takes part in the build: neither a result, nor the index of a layer, nor a downloaded blob. So a
//! store or an inline cache that somebody has tampered with cannot make a wrong box look right.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::{Path, PathBuf};

use box_cache::Store;
use box_contract::manifest::{FORMAT_EPOCH, INIT_TYPE, KERNEL_TYPE, documents};
use box_contract::{ErrorCode, Manifest, exit};
use box_digest::Digest;
use box_find::{FindError, places_in};
use box_inspect::opened;
use box_inspect::verify::verify;
use box_layout::OpenBox;
use box_registry::Plan;
use box_tree::listing::Origins;
use boxbuild::{BootDigests, BuildError, Resolved, Sealed, resolve};
use cli_common::Problem;
use cli_common::policy::HostPolicy;
use cli_common::store::BoxArgument;
use cli_registry::PullArgs;
use host_fs::publish::DirectoryDraft;
use safe_text::shown;
use serde::Serialize;
use serde_json::{Value, json};

use super::diff::{Comparison, without_differences};
use super::failure::{Explain, Failure, chain, of_build};
use super::loaded::{Loaded, Tools};
use super::locking::Fixed;
use super::options::{LockedOption, lock_command};
use super::stages::Stages;
use super::stored::PROGRAM;
use super::verify::Args;
use super::warnings::Warnings;
use super::{build, stored, terminal};

/// Where the empty store is, if TMPDIR names no directory: a directory for large files that may outlive a restart.
const LARGE_TMP: &str = "/var/tmp";

/// Runs `boxbuild verify --rebuild`.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    build::set_threads(args.jobs)?;
    let as_json = args.project.json;
    let loaded = Loaded::read(&args.project, args.profile.name.as_deref())?;
    let platform = loaded.platform(args.platform)?;
    let locked = LockedOption { locked: true };
    let lock_file = loaded.lock_file(&args.inputs).map_err(|error| locked.blame(error.into()))?;
    let command = lock_command(&args.project, &args.inputs);
    let fixed = Fixed { file: &lock_file, option: "--rebuild", command: &command };
    fixed.check_declared(&loaded, platform)?;
    let place = EmptyStore::new()?;
    let tools = Tools::with_store(|| place.open(), &args.inputs, as_json)?;
    let request = tools.request(&loaded, platform, lock_file.lock.as_ref(), &[])?;
    let failed = |error| locked.blame_pin(of_build(&error, &loaded.sources));
    request.check_platform().map_err(failed)?;
    let given = Given::find(args, &loaded, &tools)?;
    let stages = Stages::new(as_json);
    stages.begin("reading images and files");
    let resolved = resolve(&request, &tools.store).map_err(failed)?;
    let observer = stages.observer();
    let resolved = resolved.observed(&observer);
    let mut warnings = Warnings::new(as_json);
    loaded.add_warnings(resolved.warnings(), &mut warnings);
    fixed.check_resolved(&loaded.declarations().updated(
        lock_file.lock.as_ref(),
        &resolved.lock(),
        loaded.target(platform),
    ))?;
    let report = Report { args, loaded: &loaded, lock: lock_file.path(), given: given.digest() };
    report.compare(given, (&resolved, &failed), (&tools, &stages))
}

/// An empty store that is removed when this value is dropped. If the process is killed, the next rebuild removes it.
struct EmptyStore(DirectoryDraft);

impl EmptyStore {
    fn new() -> Result<Self, Failure> {
        let named = env::var_os("TMPDIR").filter(|it| !it.is_empty()).map(PathBuf::from);
        let large = Some(PathBuf::from(LARGE_TMP)).filter(|it| it.is_dir());
        let directory = named.or(large).unwrap_or_else(env::temp_dir);
        Ok(Self(DirectoryDraft::beside(&directory.join("boxbuild-rebuild"), 0o700)?))
    }

    fn open(&self) -> Result<Store, Failure> {
        terminal::detail("empty store", self.0.path().display());
        Ok(Store::open(self.0.path())?)
    }
}

/// The box that is compared with a new build.
enum Given {
    /// A box on this host.
    Here(Box<OpenBox>),
    /// A box in a registry, of which only the manifest was fetched.
    There(Box<Plan>),
}

impl Given {
    /// Finds the box of the command line, or else the box that a build of the Boxfile has written.
    fn find(args: &Args, loaded: &Loaded, tools: &Tools<'_>) -> Result<Self, Failure> {
        let reference = args.reference.clone().unwrap_or_else(|| built_as(loaded));
        let argument = BoxArgument { reference, store: args.inputs.store.clone() };
        match argument.parse()?.remote() {
            Some(name) => {
                let (args, as_json) = (&args.inputs, args.project.json);
                let args = PullArgs::of(name.clone(), args.store.clone(), args.registries.clone());
                let policy = HostPolicy::read(PROGRAM.variable)?;
                let client = (&tools.store, tools.registry());
                let note = |verdict: &str| terminal::unless_json(as_json, verdict);
                Ok(Self::There(Box::new(args.plan(client, policy.as_ref(), note)?)))
            }
            None => Ok(Self::Here(Box::new(stored::open_undamaged(&argument)?))),
        }
    }

    fn digest(&self) -> Digest {
        match self {
            Self::Here(opened) => opened.digest,
            Self::There(plan) => plan.remote.digest,
        }
    }

    /// Returns the inputs that are not the ones of a new build, as far as the documents at hand name them: of a box in a
    /// registry, only the init and the kernel. The box cannot be equal then, and need not be built.
    fn other_inputs(
        &self,
        resolved: &Resolved<'_>,
        boot: &BootDigests,
    ) -> Result<Vec<Input>, Failure> {
        let (mut named, mut new) = (Inputs::default(), Inputs::default());
        new.add_boot(Some(boot.init), Some(boot.kernel));
        match self {
            Self::There(plan) => named.add_manifest(&plan.remote.manifest),
            Self::Here(opened) => {
                named.add_manifest(&opened.manifest);
                let epoch = opened.config.epoch;
                named.add("format epoch", [epoch.to_string()]);
                new.add("format epoch", [FORMAT_EPOCH.to_string()]);
                // The listing of another epoch may have another form.
                if epoch == FORMAT_EPOCH {
                    named.add_origins(&opened::listing(opened).map_err(damaged)?.origins);
                    new.add_origins(&resolved.origins());
                }
            }
        }
        Ok(named.differences(new))
    }

    /// Opens the box. A box in a registry is fetched first.
    fn opened(self, tools: &Tools<'_>) -> Result<OpenBox, Failure> {
        let plan = match self {
            Self::Here(opened) => return Ok(*opened),
            Self::There(plan) => plan,
        };
        let store = &tools.store;
        // The blobs that both boxes have were just built, and are the same bytes.
        let missing = box_registry::missing([&plan.remote], store)?;
        let plan = Plan { missing, ..*plan };
        plan.fetch(tools.registry(), store)?;
        drop(plan.remote.publish_in(store)?);
        open_in(store, &plan.remote.digest)
    }
}

/// Returns the name of the box that a build of the Boxfile writes: `NAME.box`, or else NAME in the store.
fn built_as(loaded: &Loaded) -> PathBuf {
    let name = &loaded.boxfile().name;
    let directory = PathBuf::from(format!("{name}.box"));
    if directory.symlink_metadata().is_ok() { directory } else { name.into() }
}

/// Adds a box that was just built to the boxes of its store, and opens it.
fn published(store: &Store, sealed: &Sealed) -> Result<OpenBox, Failure> {
    let published = store.publish(&sealed.blobs())?;
    let documents = documents(sealed.manifest, sealed.manifest_size);
    store.keep_box(&published, &sealed.manifest, &documents)?;
    drop(published);
    open_in(store, &sealed.manifest)
}

fn open_in(store: &Store, digest: &Digest) -> Result<OpenBox, Failure> {
    Ok(OpenBox::open(places_in(store, digest)).map_err(FindError::from)?)
}

/// Returns the failure of a box that is not what its documents name.
fn damaged(error: impl Explain + 'static) -> Failure {
    let problem = Problem::new(error.explain(), chain(&error));
    Failure::of(vec![problem]).with_exit(exit::DIFFERENT)
}

/// The inputs that a box names, each with its digests or names.
#[derive(Default)]
struct Inputs(BTreeMap<String, Vec<String>>);

/// An input that differs.
#[derive(Debug, Serialize)]
struct Input {
    /// `init`, `kernel`, `format epoch`, `agent image`, `agent program`, `skills` or `agent files`, and the same for business.
    name: String,
    /// The digests or names of the given box. Empty if it has no such input.
    a: Vec<String>,
    /// The digests or names of a new build.
    b: Vec<String>,
}

impl Inputs {
    fn add(&mut self, name: impl Into<String>, values: impl IntoIterator<Item = String>) {
        self.0.entry(name.into()).or_default().extend(values);
    }

    fn add_boot(&mut self, init: Option<Digest>, kernel: Option<Digest>) {
        self.add("init", init.map(|it| it.to_string()));
        self.add("kernel", kernel.map(|it| it.to_string()));
    }

    fn add_manifest(&mut self, manifest: &Manifest) {
        let digest = |media_type| manifest.blob(media_type).map(|it| it.digest);
        self.add_boot(digest(INIT_TYPE), digest(KERNEL_TYPE));
    }

    fn add_origins(&mut self, origins: &Origins) {
        for image in &origins.images {
            let layers = image.layers.iter().map(Digest::to_string);
            self.add(format!("{} image", image.component.name()), layers);
        }
        self.add("agent program", origins.program.map(|it| it.to_string()));
        self.add("skills", origins.skills.iter().cloned());
        for file in &origins.files {
            self.add(format!("{} files", file.component.name()), [file.path.clone()]);
        }
    }

    fn differences(mut self, mut new: Self) -> Vec<Input> {
        let names: BTreeSet<String> = self.0.keys().chain(new.0.keys()).cloned().collect();
        let inputs = names.into_iter().map(|name| Input {
            a: self.0.remove(&name).unwrap_or_default(),
            b: new.0.remove(&name).unwrap_or_default(),
            name,
        });
        inputs.filter(|it| it.a != it.b).collect()
    }
}

impl Input {
    fn text(&self) -> String {
        let [a, b] = [&self.a, &self.b].map(|values| match values.is_empty() {
            true => "none".to_owned(),
            false => shown(&values.join(", ")),
        });
        format!("changed  the {}\n         a  {a}\n         b  {b}\n", self.name)
    }
}

/// Compares a box with its digests and its listing, and returns the faults.
fn faults(given: &OpenBox) -> Vec<Problem> {
    let checks = verify(given);
    let wrong = checks.iter().filter_map(|it| it.error.as_ref());
    wrong.map(|it| Problem::new(it.explain(), chain(it))).collect()
}

/// Prints the result.
struct Report<'a> {
    args: &'a Args,
    loaded: &'a Loaded,
    lock: &'a Path,
    given: Digest,
}

impl Report<'_> {
    /// Compares the inputs of the given box with those of a new build, and then the boxes. `failed` converts errors of the build.
    fn compare(
        &self,
        given: Given,
        (resolved, failed): (&Resolved<'_>, &dyn Fn(BuildError) -> Failure),
        (tools, stages): (&Tools<'_>, &Stages),
    ) -> Result<(), Failure> {
        let boot = resolved.boot_digests().map_err(failed)?;
        let inputs = given.other_inputs(resolved, &boot)?;
        if !inputs.is_empty() {
            return self.other_inputs(&inputs);
        }
        let sealed = resolved.build().map_err(failed)?.sealed;
        stages.end();
        if sealed.manifest == given.digest() {
            return self.equal(&given, sealed.manifest);
        }
        let rebuilt = published(&tools.store, &sealed)?;
        stages.begin("comparing");
        self.different(given.opened(tools)?, rebuilt)
    }

    /// Reports that the digests are equal. The digest says nothing about the files of a damaged box, so a box of this host is also
    /// compared with its digests and its listing.
    fn equal(&self, given: &Given, rebuilt: Digest) -> Result<(), Failure> {
        let errors = match given {
            Given::Here(opened) => faults(opened),
            Given::There(_) => Vec::new(),
        };
        if self.args.project.json {
            let head = self.json(Some(rebuilt), &[], &errors);
            terminal::json(&without_differences(head).to_string());
        } else if errors.is_empty() {
            terminal::result(&format!("{} is what {} make", self.given, self.sources()));
        }
        if errors.is_empty() { Ok(()) } else { self.end(&errors) }
    }

    /// Reports that the box was made from other inputs.
    fn other_inputs(&self, inputs: &[Input]) -> Result<(), Failure> {
        let what = format!("{} name other inputs than the box has", self.sources());
        let help = "nothing was built: a is the input of the box, and b the one of a new build";
        let errors = [self.error(what, help.to_owned())];
        if self.args.project.json {
            let head = self.json(None, inputs, &errors);
            terminal::json(&without_differences(head).to_string());
        } else {
            terminal::pieces(inputs.iter().map(Input::text));
        }
        self.end(&errors)
    }

    /// Reports how the box differs from the one that was built. A box can differ only in what its own listing does not name,
    /// so the box is also compared with its listing.
    fn different(&self, given: OpenBox, rebuilt: OpenBox) -> Result<(), Failure> {
        let digest = rebuilt.digest;
        let what = format!("{} make another box: {digest}", self.sources());
        let help = "a is the box, and b what was built";
        let mut errors = vec![self.error(what, help.to_owned())];
        errors.extend(faults(&given));
        let compared = Comparison::of_boxes(given, rebuilt);
        if let Err(failure) = &compared {
            errors.extend(failure.problems().iter().cloned());
        }
        match (compared, self.args.project.json) {
            (Ok(found), true) => found.print_json(self.json(Some(digest), &[], &errors)),
            (Ok(found), false) => found.print(),
            (Err(_), true) => {
                let head = self.json(Some(digest), &[], &errors);
                terminal::json(&without_differences(head).to_string());
            }
            (Err(_), false) => {}
        }
        self.end(&errors)
    }

    fn error(&self, what: String, help: String) -> Problem {
        let message = format!("the box is {}, and {what}", self.given);
        Problem::new((ErrorCode::DigestMismatch, help), shown(&message))
    }

    fn json(&self, rebuilt: Option<Digest>, inputs: &[Input], errors: &[Problem]) -> Value {
        json!({
            "box": self.given,
            "rebuilt": rebuilt,
            "ok": errors.is_empty(),
            "boxfile": self.loaded.project.file.display().to_string(),
            "lock": self.lock.display().to_string(),
            "profile": self.loaded.profile_name(),
            "inputs": inputs,
            "errors": errors,
        })
    }

    /// Returns the names of the Boxfile and the lock, for example `Boxfile and Boxfile.lock`.
    fn sources(&self) -> String {
        let file = self.loaded.project.file.display();
        let profile = self.loaded.profile_name();
        let profile = profile.map(|it| format!(" (profile {it})")).unwrap_or_default();
        format!("{file}{profile} and {}", self.lock.display())
    }

    fn end(&self, errors: &[Problem]) -> Result<(), Failure> {
        if !self.args.project.json {
            terminal::error(cli_common::problem::text(errors).trim_end());
        }
        if terminal::lost() { Ok(()) } else { Err(Failure::reported(exit::DIFFERENT)) }
    }
}
