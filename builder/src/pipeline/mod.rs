//! The pipeline: from a Boxfile to a sealed box, or straight to the box that is in the store.

mod inputs;
mod layers;
mod merging;
mod preview;
mod recall;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use box_cache::{ActionKey, BulkWriter, Store};
use box_image::{ComponentName, Digest, RunPlan};
use box_tree::listing::{ImageOrigin, Listing, Origins};
use box_tree::{Content, Tree};
use boxfile_spec::{Boxfile, Lock, Platform};
use download::fetch::FetchOptions;
use oci_image::{Image, Remote};
use oci_layer::flatten;

use crate::bake::bake;
use crate::compose::merged::Unused;
use crate::compose::{ComposeError, Declared, FlatImage, Merge, Parts, compose, plan_of};
use crate::pack::{ContentMap, Pack};
use crate::project::Pins;
use crate::seal::{Contents, Stored, seal};
use crate::{BuildError, Report, Sealed, kernel};
use inputs::Inputs;
use layers::{DecodedLayer, decode_all};
pub use merging::Unmerged;
pub use preview::{Composition, LayerState, Preview, PreviewImage, PreviewSkill, preview};
use recall::{recall, record};

/// What to build, and of what.
#[derive(Debug)]
pub struct Request<'a> {
    /// The declaration.
    pub boxfile: &'a Boxfile,
    /// The directory that the Boxfile's relative paths start from.
    pub base: &'a Path,
    /// The directory that what belongs to the checkout must lie in.
    pub checkout: &'a Path,
    /// The platform to build for.
    pub platform: Platform,
    /// What the lock pins.
    pub pins: Pins<'a>,
    /// How files are downloaded.
    pub fetch: FetchOptions<'a>,
    /// How registries are asked for images; nothing where none is to be asked.
    pub remote: Option<&'a dyn Remote>,
    /// The init: a static program.
    pub init: &'a Path,
    /// The kernel: a libkrunfw library or an ELF kernel.
    pub kernel: &'a Path,
    /// Identifies the builder program, so that another one does not take this one's results.
    pub builder: [u8; 32],
}

/// What a build gave.
#[derive(Debug)]
pub struct Build {
    /// The box.
    pub sealed: Sealed,
    /// Whether it was in the store already, so that nothing was decoded or baked.
    pub cached: bool,
    /// The policies of the Boxfile that decided nothing.
    pub unused: Vec<Unused>,
}

/// What a build would read.
#[derive(Debug)]
pub struct Resolved {
    /// What the lock is to say of it: the entries for this Boxfile and platform.
    pub lock: Lock,
    /// What is worth a look.
    pub warnings: Vec<Report>,
}

/// Reads everything that a build reads, for the lock: nothing is decoded or baked, and the platform
/// may be one that cannot be built.
///
/// # Errors
/// [`BuildError`].
pub fn resolve(request: &Request<'_>, store: &Store) -> Result<Resolved, BuildError> {
    let inputs = Inputs::resolve(request, store)?;
    Ok(Resolved { lock: inputs.lock(request), warnings: inputs.warnings })
}

/// Checks what belongs to the checkout: skills, files with variables, the agent's own program. No
/// image, no kernel and no network is looked at. Returns what is wrong, and what is worth a look.
pub fn check(request: &Request<'_>) -> (Vec<BuildError>, Vec<Report>) {
    Inputs::check(request)
}

/// Builds a box into the store, unless `check` refuses what the lock is to say of its inputs.
///
/// # Errors
/// [`BuildError`], or what `check` returns; the store then holds at most whole parts of the box.
pub fn build<E: From<BuildError>>(
    request: &Request<'_>,
    store: &Store,
    check: impl FnOnce(&Resolved) -> Result<(), E>,
) -> Result<Build, E> {
    let mut inputs = Inputs::read(request, store)?;
    let warnings = std::mem::take(&mut inputs.warnings);
    check(&Resolved { lock: inputs.lock(request), warnings })?;
    let key = inputs.key(request);
    if let Some((sealed, unused)) = recall(store, &key)? {
        return Ok(Build { sealed, cached: true, unused });
    }
    let (sealed, unused) = healing(|stale| make(request, &inputs, stale, store))?;
    record(store, &key, &sealed, &unused)?;
    Ok(Build { sealed, cached: false, unused })
}

/// Returns the root tree of a box without baking it: every file of the rootfs.
///
/// # Errors
/// [`BuildError`].
pub fn root_tree(request: &Request<'_>, store: &Store) -> Result<Tree, BuildError> {
    let inputs = Inputs::read(request, store)?;
    healing(|stale| root(request, &inputs, stale, store)).map(|root| root.tree)
}

/// A root tree, where its data lies, and the plan in it.
struct Root {
    tree: Tree,
    contents: ContentMap,
    plan: RunPlan,
    /// The policies that decided nothing.
    unused: Vec<Unused>,
}

fn root(
    request: &Request<'_>,
    inputs: &Inputs,
    stale: Option<ActionKey>,
    store: &Store,
) -> Result<Root, BuildError> {
    let flat = flattened(request, inputs, stale, store)?;
    let merge = merging::merge(request, &flat, store)?;
    composed(request, inputs, flat, merge, store)
}

/// The images, flattened, and where their data lies.
type Flattened = (Vec<FlatImage>, ContentMap);

/// Flattens the images; of the layer that is named as stale, what the store holds is not taken.
fn flattened(
    request: &Request<'_>,
    inputs: &Inputs,
    stale: Option<ActionKey>,
    store: &Store,
) -> Result<Flattened, BuildError> {
    let decoded = decode_all(inputs, request, stale, store)?;
    let mut contents = ContentMap::default();
    decoded.values().for_each(|layer| contents.add(layer.pack, &layer.index.contents));
    let images = flat_images(inputs, &decoded, request.boxfile, &mut contents)?;
    Ok((images, contents))
}

/// Composes the root of what was flattened and, in the layout `merged`, merged.
fn composed(
    request: &Request<'_>,
    inputs: &Inputs,
    (images, mut contents): Flattened,
    merge: Option<Merge>,
    store: &Store,
) -> Result<Root, BuildError> {
    let unused = merge.as_ref().map(|it| Unused::of(&it.report.policies)).unwrap_or_default();
    let accept = |it| merging::accept(it, request.boxfile, inputs, store, &mut contents);
    let merged = merge.map(accept).transpose()?;
    let skills = inputs.skills.iter().map(|skill| (skill.name.clone(), skill.mode)).collect();
    let declared = Declared { boxfile: request.boxfile, env: &inputs.env, skills };
    let unfit = |source| unfit(request.boxfile, source);
    let mut reader = contents.reader(store);
    let plan = plan_of(&declared, &images, &mut reader);
    let plan = plan.map_err(|source| match reader.damaged() {
        Some(pack) => BuildError::Pack { pack, source: source.into() },
        None => unfit(source),
    })?;
    plan.check()?;
    let plan_bytes = serde_json::to_vec(&plan)?;
    let plan_content = Content::of(&plan_bytes);
    contents.add(store.put(&plan_bytes)?, &[(plan_content, 0)]);
    store_skills(inputs, store, &mut contents)?;
    let baked = inputs.baked_skills();
    let skills = baked.map(|skill| (skill.name.as_str(), &skill.skill.tree)).collect();
    let roots = merging::roots(&images, merged.as_ref());
    let parts = Parts { roots, skills, plan: plan_content };
    let tree = compose(&parts, request.boxfile).map_err(unfit)?;
    Ok(Root { tree, contents, plan, unused })
}

/// Says where the Boxfile names what does not fit: the image, or the program without one.
fn unfit(boxfile: &Boxfile, source: ComposeError) -> BuildError {
    let component = inputs::declared(boxfile, source.component());
    let image = component.and_then(|it| it.image.as_ref()).map(|image| image.span);
    let program = boxfile.agent.binary.as_ref().map(boxfile_spec::Binary::span);
    BuildError::Compose { span: source.span().or(image).or(program), source: Box::new(source) }
}

/// Does something with the data of layers. What the store holds of a layer may be damaged or gone: it
/// is then decoded anew and its place taken, each layer once. Who reads the old data goes on reading it.
fn healing<T>(
    mut attempt: impl FnMut(Option<ActionKey>) -> Result<T, BuildError>,
) -> Result<T, BuildError> {
    let mut healed = HashSet::new();
    let mut stale = None;
    loop {
        match attempt(stale) {
            Err(BuildError::Pack { pack: Pack::Layer(key), .. }) if healed.insert(key) => {
                stale = Some(key);
            }
            done => return done,
        }
    }
}

fn make(
    request: &Request<'_>,
    inputs: &Inputs,
    stale: Option<ActionKey>,
    store: &Store,
) -> Result<(Sealed, Vec<Unused>), BuildError> {
    let Root { tree, contents, plan, unused } = root(request, inputs, stale, store)?;
    let (kernel, kernel_version) = kernel_blob(request, inputs, store)?;
    let rootfs = rootfs_blob(&tree, &contents, store)?;
    let init = Stored::put(store, &inputs.init.bytes)?;
    let digest = tree.digest();
    let listing = Listing { tree, origins: origins(inputs) };
    let listing = Stored::put(store, &listing.encode()?)?;
    let contents =
        Contents { plan, tree: digest, kernel_version, rootfs, init, kernel, listing };
    Ok((seal(store, contents)?, unused))
}

/// Names what the origins of the tree's entries are numbers of.
fn origins(inputs: &Inputs) -> Origins {
    let image = |(component, image): &(ComponentName, Image)| ImageOrigin {
        component: *component,
        layers: image.layers.iter().map(|layer| layer.diff_id).collect(),
    };
    Origins {
        images: inputs.images.iter().map(image).collect(),
        program: inputs.binary.as_ref().map(|binary| binary.sha256),
        skills: inputs.baked_skills().map(|skill| skill.name.clone()).collect(),
    }
}

/// Flattens the images, and puts the agent's program in its place.
fn flat_images(
    inputs: &Inputs,
    decoded: &BTreeMap<Digest, DecodedLayer>,
    boxfile: &Boxfile,
    contents: &mut ContentMap,
) -> Result<Vec<FlatImage>, BuildError> {
    let images = inputs.images.iter();
    let flat = images.map(|(component, image)| flat(*component, image, decoded, boxfile));
    let mut flat = flat.collect::<Result<Vec<_>, _>>()?;
    if let Some(binary) = &inputs.binary {
        binary.add_to(contents);
        match flat.iter_mut().find(|it| it.component == ComponentName::Agent) {
            Some(agent) => {
                inputs::check_interpreter(&binary.program, &agent.tree, boxfile)?;
                binary.put_into(&mut agent.tree);
            }
            None => flat.insert(0, FlatImage::of_program(binary.tree.clone())),
        }
    }
    Ok(flat)
}

fn flat(
    component: ComponentName,
    image: &Image,
    decoded: &BTreeMap<Digest, DecodedLayer>,
    boxfile: &Boxfile,
) -> Result<FlatImage, BuildError> {
    let layers =
        image.layers.iter().map(|layer| (layer.digest, &decoded[&layer.diff_id].index));
    let tree = flatten(component, layers).map_err(|source| BuildError::Layer {
        component,
        span: inputs::image_span(boxfile, component),
        source,
    })?;
    Ok(FlatImage { component, process: image.config.config.clone().unwrap_or_default(), tree })
}

/// Puts the skills' data into the store, as packs like those of the layers.
fn store_skills(
    inputs: &Inputs,
    store: &Store,
    contents: &mut ContentMap,
) -> Result<(), BuildError> {
    for skill in &inputs.skills {
        let (mut pack, mut places) = (Vec::new(), Vec::new());
        for (content, data) in &skill.skill.data {
            places.push((*content, pack.len() as u64));
            pack.extend_from_slice(data);
        }
        contents.add(store.put(&pack)?, &places);
    }
    Ok(())
}

fn rootfs_blob(tree: &Tree, contents: &ContentMap, store: &Store) -> Result<Stored, BuildError> {
    std::thread::scope(|scope| {
        let mut writer = BulkWriter::new(store, scope)?;
        let mut reader = contents.reader(store);
        if let Err(source) = bake(tree, &mut reader, &mut writer) {
            return Err(match reader.damaged() {
                Some(pack) => BuildError::Pack { pack, source: source.into() },
                None => source.into(),
            });
        }
        let (blob, size) = writer.commit()?;
        Ok(Stored { blob, size })
    })
}

fn kernel_blob(
    request: &Request<'_>,
    inputs: &Inputs,
    store: &Store,
) -> Result<(Stored, String), BuildError> {
    let kernel = kernel::extract(&inputs.kernel.bytes)
        .map_err(|source| BuildError::Kernel { path: request.kernel.to_owned(), source })?;
    Ok((Stored::put(store, &kernel.elf)?, kernel.version))
}
