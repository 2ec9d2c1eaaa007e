//! Makes the root tree of the resolved inputs: layers are decoded, images are flattened and, in the layout `merged`,
//! merged; then the root is composed.

use std::collections::BTreeMap;

use box_cache::Store;
use box_contract::plan::{CONTROL_PORT, PlanError};
use box_contract::{ComponentName, Layout, RunPlan};
use box_digest::Digest;
use box_tree::Tree;
use box_tree::listing::check_paths;
use boxfile_spec::Boxfile;
use oci_image::{Config, Image};
use oci_layer::{Total, flatten_owned};

use super::inputs::{self, Inputs, SkillInput};
use super::layers::{DecodedLayer, decode_all, refused};
use super::resolved::Resolved;
use super::step::Step;
use crate::BuildError;
use crate::compose::merged::{MergeConflicts, MergedRoot, Unused};
use crate::compose::{
    self, ComponentRoot, ComposeError, FlatImage, Merge, Parts, System, bake, check_mounts,
    check_programs, check_roots, compose, plan_of,
};
use crate::pack::{ContentMap, PackReader};

/// A root tree, the positions of its data, and the plan of its box.
pub(super) struct Root {
    pub(super) tree: Tree,
    pub(super) contents: ContentMap,
    pub(super) plan: RunPlan,
    /// The policies that decided no conflict.
    pub(super) unused: Vec<Unused>,
}

/// The flattened images, and the positions of their files' data.
pub(super) struct Flattened {
    pub(super) images: Vec<FlatImage>,
    pub(super) contents: ContentMap,
}

/// Returns the root tree of the box.
pub(super) fn root(resolved: &Resolved<'_>) -> Result<Root, BuildError> {
    let flat = flattened(resolved)?;
    let merge = merge(resolved, &flat)?;
    composed(resolved, flat, merge)
}

/// Decodes the layers, flattens the images, and puts the files of the checkout into them.
pub(super) fn flattened(resolved: &Resolved<'_>) -> Result<Flattened, BuildError> {
    let mut decoded = decode_all(resolved)?;
    let Resolved { request, store, inputs, .. } = resolved;
    let contents = layer_contents(&mut decoded, inputs);
    let mut contents = contents.with_heads(resolved.cached.heads());
    if let Some(binary) = &inputs.binary {
        binary.add_to(store, &mut contents)?;
    }
    let mut images = flat_images(inputs, decoded, request.boxfile)?;
    store_files(inputs, store, &mut contents)?;
    let mut packs = contents.reader(store);
    for flat in &mut images {
        bake(flat, &inputs.baked, request.boxfile, &mut packs)
            .map_err(|source| compose_error(request.boxfile, source))?;
    }
    Ok(Flattened { images, contents })
}

/// Collects the contents of all layers. If several packs have a content, segments take precedence. Of several segments,
/// the first is used: the agent's layers come first, and in an image the lowest layer.
fn layer_contents(decoded: &mut BTreeMap<Digest, DecodedLayer>, inputs: &Inputs<'_>) -> ContentMap {
    let mut contents = ContentMap::default();
    let count = |layer: &DecodedLayer| layer.index.contents.len() + layer.index.segment.len();
    contents.reserve(decoded.values().map(count).sum());
    for source in inputs.images.iter().flat_map(|(_, image)| &image.layers) {
        let Some(layer) = decoded.get_mut(&source.diff_id) else { continue };
        if let Some(pack) = layer.segment_pack() {
            contents.add(pack, &std::mem::take(&mut layer.index.segment));
        }
    }
    for layer in decoded.values_mut() {
        contents.add(layer.pack, &std::mem::take(&mut layer.index.contents));
    }
    contents
}

/// Merges the images in the layout `merged`. `None` in the layout `split`.
pub(super) fn merge(
    resolved: &Resolved<'_>,
    flat: &Flattened,
) -> Result<Option<Merge>, BuildError> {
    let boxfile = resolved.request.boxfile;
    if boxfile.layout == Layout::Split {
        return Ok(None);
    }
    let mut packs = flat.contents.reader(resolved.store);
    let merge = compose::merge(&flat.images, &boxfile.conflicts, &mut packs);
    merge.map(Some).map_err(|source| compose_error(boxfile, source))
}

/// Returns the merged root, and puts the files that are united from both images into the store.
///
/// # Errors
/// [`BuildError::Conflicts`] if a conflict is undecided.
fn accept(
    Merge { root, report }: Merge,
    resolved: &Resolved<'_>,
    contents: &mut ContentMap,
) -> Result<Tree, BuildError> {
    let Some(MergedRoot { tree, united }) = root else {
        let spans = ComponentName::ALL.map(|it| resolved.request.boxfile.root_span(it));
        let unmerged =
            MergeConflicts { conflicts: report.conflicts, origins: resolved.origins(), spans };
        return Err(BuildError::Conflicts(Box::new(unmerged)));
    };
    for file in united {
        contents.put(resolved.store, &file)?;
    }
    Ok(tree)
}

/// Composes the root tree of the images, or of `merge` in the layout `merged`.
pub(super) fn composed(
    resolved: &Resolved<'_>,
    Flattened { mut images, mut contents }: Flattened,
    merge: Option<Merge>,
) -> Result<Root, BuildError> {
    let Resolved { request, store, inputs, .. } = resolved;
    resolved.report(Step::Compose);
    let boxfile = request.boxfile;
    let unused = merge.as_ref().map(|it| Unused::of(&it.report.policies)).unwrap_or_default();
    let merged = merge.map(|it| accept(it, resolved, &mut contents)).transpose()?;
    let plan = plan(resolved, &images, &contents)?;
    let baked = inputs.baked_skills();
    let skills = baked.map(|skill| (skill.name.as_str(), &skill.skill.files.tree)).collect();
    let roots = ComponentRoot::all(&images, merged.as_ref());
    let systems = systems(&roots, boxfile, &plan, &mut contents.reader(store))
        .map_err(|source| compose_error(boxfile, source))?;
    for data in systems.iter().flat_map(|it| &it.data) {
        contents.put(store, data)?;
    }
    check_roots(&roots, &systems, &inputs.baked, boxfile, &plan)
        .map_err(|source| compose_error(boxfile, source))?;
    let mut missing = Vec::new();
    for root in &roots {
        let mut packs = contents.reader(store);
        let found = check_programs(root, boxfile, &plan, request.platform, &mut packs)
            .map_err(|source| compose_error(boxfile, source))?;
        missing.extend(found.into_iter().map(|source| compose_error(boxfile, source)));
    }
    BuildError::all(missing)?;
    let trees = ComponentRoot::take(&mut images, merged);
    let mut tree = compose(Parts { trees, systems, skills }, &plan);
    if images.len() > 1 {
        let images = images.iter().map(|image| (image.component, &image.tree));
        box_inspect::sbom::keep_databases(&mut tree, images);
    }
    Ok(Root { tree, contents, plan, unused })
}

/// Returns the entries that the box adds to the root of each component, with mount points for the Boxfile's mounts.
fn systems(
    roots: &[ComponentRoot<'_>],
    boxfile: &Boxfile,
    plan: &RunPlan,
    packs: &mut PackReader<'_>,
) -> Result<Vec<System>, ComposeError> {
    let each = roots.iter().flat_map(|root| root.components.iter().map(move |it| (*it, root.tree)));
    let system = |(component, tree): (ComponentName, &Tree)| {
        check_mounts(tree, component, boxfile)?;
        System::new(component, tree, plan, packs)
    };
    each.map(system).collect()
}

/// Returns the run plan, after a check that a launcher can start it.
fn plan(
    resolved: &Resolved<'_>,
    images: &[FlatImage],
    contents: &ContentMap,
) -> Result<RunPlan, BuildError> {
    let Resolved { request, store, inputs, .. } = resolved;
    let skills = inputs.skills.iter().map(SkillInput::plan).collect();
    let plan = plan_of(request.boxfile, &inputs.env, skills, images, &mut contents.reader(store));
    let plan = plan.map_err(|source| compose_error(request.boxfile, source))?;
    let plan = RunPlan { agents: inputs.agents.clone(), ..plan };
    plan.check().map_err(|error| unstartable(request.boxfile, error))?;
    Ok(plan)
}

/// Returns the error of a plan that cannot be started. The settings in the Boxfile were checked when it was read, so a
/// wrong setting of a component is the image's. The port is the image's only if the Boxfile has none.
fn unstartable(boxfile: &Boxfile, error: PlanError) -> BuildError {
    let (component, found) = match error {
        PlanError::Component { component, setting, reason } => {
            (component, format!("{setting}: {reason}"))
        }
        PlanError::ControlPort if boxfile.agent.port.is_none() => {
            (ComponentName::Agent, format!("port is {CONTROL_PORT}, which init itself uses"))
        }
        error => return error.into(),
    };
    let declaration = ["workdir", "entrypoint", "user", "port"];
    let declaration = declaration.into_iter().find(|it| found.split([' ', ':']).next() == Some(it));
    compose_error(boxfile, ComposeError::Config { component: component.name(), found, declaration })
}

/// Returns the build error for `source`, at its span or else at the span of the component's image or program.
pub(super) fn compose_error(boxfile: &Boxfile, source: ComposeError) -> BuildError {
    let span = source.span().unwrap_or_else(|| boxfile.root_span(source.component()));
    BuildError::at(Some(span), source)
}

/// Flattens the images, and adds the agent's program.
fn flat_images(
    inputs: &Inputs<'_>,
    decoded: BTreeMap<Digest, DecodedLayer>,
    boxfile: &Boxfile,
) -> Result<Vec<FlatImage>, BuildError> {
    let images = inputs.images.iter();
    let mut layers = Decoded::new(decoded, inputs);
    let flat = images.map(|(component, image)| layers.flat(*component, image, boxfile));
    let mut flat = flat.collect::<Result<Vec<_>, _>>()?;
    if let Some(binary) = &inputs.binary {
        match flat.iter_mut().find(|it| it.component == ComponentName::Agent) {
            Some(agent) => {
                inputs::check_interpreter(&binary.program, &agent.tree, boxfile)?;
                binary.put_into(&mut agent.tree);
            }
            None => {
                let mut tree = Tree::default();
                binary.put_into(&mut tree);
                let (component, process) = (ComponentName::Agent, Config::default());
                flat.insert(0, FlatImage { component, process, tree });
            }
        }
    }
    Ok(flat)
}

/// The decoded layers. Each is removed at its last use.
struct Decoded {
    layers: BTreeMap<Digest, DecodedLayer>,
    /// The number of remaining uses of each layer.
    uses: BTreeMap<Digest, usize>,
    /// The total memory of all trees.
    total: Total,
}

impl Decoded {
    fn new(layers: BTreeMap<Digest, DecodedLayer>, inputs: &Inputs<'_>) -> Self {
        let mut uses = BTreeMap::new();
        for layer in inputs.images.iter().flat_map(|(_, image)| &image.layers) {
            *uses.entry(layer.diff_id).or_default() += 1;
        }
        Self { layers, uses, total: Total::default() }
    }

    fn flat(
        &mut self,
        component: ComponentName,
        image: &Image<'_>,
        boxfile: &Boxfile,
    ) -> Result<FlatImage, BuildError> {
        let Self { layers, uses, total } = self;
        let mut take = |id: &Digest| {
            let left = uses.get_mut(id)?;
            *left -= 1;
            if *left > 0 {
                layers.get(id).map(|it| it.index.clone())
            } else {
                Some(layers.remove(id)?.index)
            }
        };
        let indexes = image.layers.iter().filter_map(|it| Some((it.digest, take(&it.diff_id)?)));
        let tree = flatten_owned(component, indexes, total);
        let tree = tree.map_err(|error| refused(component, boxfile.root_span(component), error))?;
        // The listing would refuse paths that are too long later, after work that grows with the length of each path.
        check_paths(&tree)?;
        Ok(FlatImage { component, process: image.process.clone(), tree })
    }
}

/// Puts the data of skills and files into the store, as packs and segments like the data of layers.
fn store_files(
    inputs: &Inputs<'_>,
    store: &Store,
    contents: &mut ContentMap,
) -> Result<(), BuildError> {
    let skills = inputs.baked_skills().map(|it| &it.skill.files);
    for files in skills.chain(inputs.baked.iter().map(|it| &it.source.files)) {
        contents
            .put_all(store, files.data.iter().map(|(content, data)| (*content, data.as_slice())))?;
    }
    Ok(())
}
