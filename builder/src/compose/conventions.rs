//! Variables that the conventions of A3S derive from the directory `/agent` or `/workspace` of an image.
//!
//! The conventions apply to images with the label `a3s.type`:
//!
//! ```text
//! .env           its variables, which override the image's config
//! venv/          bin/ in front of PATH, VIRTUAL_ENV, and PYTHONPATH of the directory
//! node_modules/  NODE_PATH; .bin/ in front of PATH
//! ```
//!
//! The home of a business application is `/workspace`. The image's config takes precedence over the variables that
//! the directories imply.

use std::collections::BTreeMap;

use box_contract::ComponentName;
use box_tree::{ReadContent as _, Tree};
use checkout::dotenv::{self, MAX_DOTENV};
use safe_text::secrets::looks_secret;

use super::{ComposeError, FlatImage};
use crate::pack::PackReader;

/// The variables that the conventions set for an image.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Conventions {
    /// Directories to put in front of the image's `PATH`.
    pub(super) path: Vec<String>,
    /// Variables that the image's config overrides.
    pub(super) implied: BTreeMap<String, String>,
    /// The variables of the file `.env`, which override the config.
    pub(super) file: BTreeMap<String, String>,
}

/// Returns the directory of a component in its image.
const fn directory(component: ComponentName) -> &'static str {
    match component {
        ComponentName::Agent => "/agent",
        ComponentName::Business => "/workspace",
    }
}

impl Conventions {
    /// Reads the directories of an image. A variable of `.env` for which `is_judged` returns true is not checked for
    /// secrets: the Boxfile or an environment file decides it.
    ///
    /// # Errors
    /// [`ComposeError::Config`] if the file `.env` is malformed or contains a secret; the errors of the store.
    pub(super) fn of(
        flat: &FlatImage,
        is_judged: impl Fn(&str) -> bool,
        packs: &mut PackReader<'_>,
    ) -> Result<Self, ComposeError> {
        let base = directory(flat.component);
        if flat.config().declared_type().is_none() || !has_directory(&flat.tree, base) {
            return Ok(Self::default());
        }
        let mut conventions = Self::implied(&flat.tree, flat.component);
        conventions.file = variables(flat, &format!("{base}/.env"), packs)?;
        let is_secret =
            |(name, value): &(&String, &String)| !is_judged(name) && looks_secret(name, value);
        if let Some((name, _)) = conventions.file.iter().find(is_secret) {
            let found = format!("file {base}/.env sets `{name}`, which looks like a secret");
            let component = flat.component.name();
            return Err(ComposeError::Config { component, found, declaration: None });
        }
        Ok(conventions)
    }

    /// Returns the variables that the directories imply.
    fn implied(tree: &Tree, component: ComponentName) -> Self {
        let base = directory(component);
        let below = |name: &str| format!("{base}/{name}");
        let mut conventions = Self::default();
        let mut imply = |name: &str, value: String| {
            conventions.implied.insert(name.to_owned(), value);
        };
        if component == ComponentName::Business {
            imply("HOME", base.to_owned());
        }
        if has_directory(tree, &below("venv")) {
            imply("VIRTUAL_ENV", below("venv"));
            imply("PYTHONPATH", base.to_owned());
            conventions.path.push(below("venv/bin"));
        }
        if has_directory(tree, &below("node_modules")) {
            conventions.implied.insert("NODE_PATH".to_owned(), below("node_modules"));
            conventions.path.push(below("node_modules/.bin"));
        }
        conventions
    }
}

fn has_directory(tree: &Tree, path: &str) -> bool {
    tree.lookup(path.as_bytes()).is_some_and(|id| tree.inode(id).names().is_some())
}

/// Returns the variables in the file at `path`. Empty if the file is absent.
fn variables(
    flat: &FlatImage,
    path: &str,
    packs: &mut PackReader<'_>,
) -> Result<BTreeMap<String, String>, ComposeError> {
    let component = flat.component.name();
    let content = flat.tree.lookup(path.as_bytes()).and_then(|id| flat.tree.inode(id).content());
    let Some(content) = content else { return Ok(BTreeMap::new()) };
    let malformed = |what: &str| {
        let found = format!("file {path} is malformed: {what}");
        ComposeError::Config { component, found, declaration: None }
    };
    let unreadable = |source| ComposeError::Unreadable { component, file: ".env", source };
    let bytes = packs.read(*content, MAX_DOTENV as u64 + 1).map_err(unreadable)?;
    let text = String::from_utf8(bytes).map_err(|_| malformed("it is not UTF-8"))?;
    let variables = dotenv::parse(&text).map_err(|found| {
        let first = found.into_iter().next();
        malformed(first.as_ref().map_or("", |error| error.message()))
    })?;
    Ok(variables.into_iter().map(|(name, value)| (name, value.value)).collect())
}

#[cfg(test)]
mod tests {
    use box_cache::Store;
    use box_tree::{Content, Inode, Leaf, Meta};
    use oci_image::Config;
    use oci_layer::LayerIndex;

    use super::*;
    use crate::pack::ContentMap;

    /// Returns the conventions of an image whose component directory has `directories` and a `.env` with the text
    /// `file`.
    fn conventions(
        component: ComponentName,
        label: Option<&str>,
        directories: &[&str],
        file: &str,
    ) -> Result<Conventions, ComposeError> {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let (mut tree, mut index, mut process) =
            (Tree::default(), LayerIndex::default(), Config::default());
        let base = tree.ensure_directory(Tree::ROOT, &directory(component).as_bytes()[1..]);
        for name in directories {
            tree.ensure_directory(base, name.as_bytes());
        }
        let content = Content::of(file.as_bytes());
        index.contents.push((content, 0));
        let inode = tree.add(Inode::leaf(Meta::root_owned(0o644), Leaf::File(content)));
        tree.link(base, b".env", inode);
        let labels = label.map(|it| [("a3s.type".to_owned(), it.to_owned())].into());
        process.set_labels(labels);
        let mut map = ContentMap::default();
        map.add(store.put(file.as_bytes()).unwrap(), &index.contents);
        let flat = FlatImage { component, process, tree };
        Conventions::of(&flat, |name| name == "JUDGED_TOKEN", &mut map.reader(&store))
    }

    fn pairs(map: &BTreeMap<String, String>) -> Vec<String> {
        map.iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    #[test]
    fn directories_imply_variables_in_an_image_that_follows_the_conventions() {
        use ComponentName::{Agent, Business};
        let all = ["venv", "node_modules"];
        let business = conventions(Business, Some("business"), &all, "A=1\nB='x y'").unwrap();
        assert_eq!(business.path, ["/workspace/venv/bin", "/workspace/node_modules/.bin"]);
        assert_eq!(
            pairs(&business.implied),
            [
                "HOME=/workspace",
                "NODE_PATH=/workspace/node_modules",
                "PYTHONPATH=/workspace",
                "VIRTUAL_ENV=/workspace/venv"
            ]
        );
        let agent = conventions(Agent, Some("agent"), &["venv"], "").unwrap();
        assert_eq!(pairs(&agent.implied), ["PYTHONPATH=/agent", "VIRTUAL_ENV=/agent/venv"]);
        assert_eq!(agent.path, ["/agent/venv/bin"]);
        assert_eq!(conventions(Business, None, &all, "A=1").unwrap(), Conventions::default());
    }

    #[test]
    fn a_file_of_variables_is_read_strictly_and_has_no_secrets() {
        let read = |file: &str| {
            let read = conventions(ComponentName::Agent, Some("agent"), &[], file);
            read.map(|it| pairs(&it.file)).map_err(|error| error.to_string())
        };
        assert_eq!(read("A=1\n# b\nexport B='x y'"), Ok(vec!["A=1".into(), "B=x y".into()]));
        assert_eq!(read("JUDGED_TOKEN=hunter2aaaaaaaaaaaaaaaaa").map(|it| it.len()), Ok(1));
        let secret =
            "the agent image's file /agent/.env sets `API_TOKEN`, which looks like a secret";
        assert_eq!(read("API_TOKEN=hunter2aaaaaaaaaaaaaaaaa"), Err(secret.to_owned()));
        let malformed = read("A").unwrap_err();
        assert!(
            malformed.starts_with("the agent image's file /agent/.env is malformed: "),
            "{malformed}"
        );
    }
}
