//! Starts of the virtual host whose results are kept. A start that was made once with the same inputs is not made again.
//!
//! [`Prepared::key`](virtual_host::Prepared::key) has all inputs. A result is kept if the virtual host has powered off in order,
//! and if no test of the same module has failed in that run: new results are in the run's own directory, and [`Run::keep`] moves them
//! to the cache when all tests of the module have passed.
//!
//! In each run, one in ten of the results that were found is made again, and must be the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use box_digest::Blake3Digest;
use virtual_host::{VirtualHost, recall};

use crate::cache::note_use;
use crate::{Cache, KitError, Result, Workspace};

/// The kind of these entries in the [`Cache`].
const KIND: &str = "boots";
/// One in this number of found results is made again.
const REPEATED: u8 = 10;
/// The environment variable with the directory of a run of the tests. Without it, every start is made, and none is kept.
pub const RUN: &str = "BOXBUILD_TESTS_BOOTS";
/// The files of a run's directory: the starts, the text that selects the results to repeat, and the tests to run.
const LIST: &str = "list";
const CHOOSES: &str = "chooses";
const TESTS: &str = "tests";
/// The directories in it: the new results by module, and those that differ from the kept ones.
const NEW: &str = "new";
const ANOTHER: &str = "another";
/// The file with [`seconds`], beside the kept results.
const SECONDS: &str = "seconds.json";
/// The compression level of a kept result.
const LEVEL: i32 = 3;
/// The end of the text of a [`Tier`].
const SHORT: &str = ", short";

/// When the tests of a module of `tests/boot` run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tier {
    /// Before which landing.
    pub landing: Landing,
    /// Whether they also run with each `cargo xtask test`.
    pub is_short: bool,
}

/// The landings before which the tests of a module run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landing {
    /// Each one.
    Each,
    /// One in four, and each that touches the part with this number, from 1.
    Part(u8),
}

impl Landing {
    /// The number of parts.
    pub const PARTS: u8 = 4;
}

impl Display for Tier {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.landing {
            Landing::Each => f.write_str("gate")?,
            Landing::Part(number) => write!(f, "part {number}")?,
        }
        f.write_str(if self.is_short { SHORT } else { "" })
    }
}

impl FromStr for Tier {
    type Err = KitError;

    fn from_str(text: &str) -> Result<Self> {
        let (landing, is_short) = text.strip_suffix(SHORT).map_or((text, false), |it| (it, true));
        let part = || landing.strip_prefix("part ")?.parse().ok();
        let landing = match (landing, part()) {
            ("gate", _) => Landing::Each,
            (_, Some(number @ 1..=Landing::PARTS)) => Landing::Part(number),
            _ => return Err(KitError::malformed("a tier", text)),
        };
        Ok(Self { landing, is_short })
    }
}

/// Returns the module below `tests/boot` of a test or of a module: `volumes` of `volumes::kills::a_test`.
pub fn module_of(name: &str) -> &str {
    name.split("::").next().unwrap_or(name)
}

/// How a result was obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// It was in the cache.
    Found,
    /// The virtual host was started.
    Made,
    /// It was in the cache, and a second start had the same result.
    Repeated,
}

impl Origin {
    const ALL: [(Self, &str); 3] =
        [(Self::Found, "found"), (Self::Made, "made"), (Self::Repeated, "repeated")];

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(it, _)| *it == self).map_or("", |(_, word)| word)
    }

    fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, it)| *it == word).map(|(origin, _)| *origin)
    }
}

/// A start, in the list of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Boot {
    /// How its result was obtained.
    pub origin: Origin,
    /// The real time that it took, in seconds.
    pub seconds: f64,
    /// The test that needed it first.
    pub test: String,
}

/// A run of the tests, with its directory: the list of its starts, and its new results by module and key.
#[derive(Debug, Clone)]
pub struct Run {
    folder: PathBuf,
    cache: PathBuf,
    /// Keeps other runs out of the directory. Only the process that has begun the run holds it.
    _lock: Option<Arc<File>>,
}

impl Run {
    /// Begins a run in a directory, whose old content is removed. Waits for the end of another run there, even one of this process.
    ///
    /// `chooses` is any text, for example the commit, and selects the found results that are made again. If it is `None`, no result is
    /// taken from the cache, and none is added.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn begin(folder: &Path, cache: &Cache, chooses: Option<&str>) -> Result<Self> {
        let lock = folder.with_extension("lock");
        let held = File::create(&lock).and_then(|file| file.lock().map(|()| file));
        let held = held.map_err(KitError::file("lock", &lock))?;
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(KitError::file("remove", folder))?;
        }
        fs::create_dir_all(folder).map_err(KitError::file("make", folder))?;
        if let Some(text) = chooses {
            let path = folder.join(CHOOSES);
            fs::write(&path, text).map_err(KitError::file("write", &path))?;
        }
        let (folder, cache) = (folder.to_owned(), cache.folder(KIND));
        Ok(Self { folder, cache, _lock: Some(Arc::new(held)) })
    }

    /// Returns the run that this process is part of, by the variable [`RUN`].
    pub fn of_process(workspace: &Workspace) -> Option<Self> {
        let folder = PathBuf::from(std::env::var_os(RUN)?);
        Some(Self { folder, cache: Cache::of_user(workspace).folder(KIND), _lock: None })
    }

    /// Limits the run to tests with these names.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn choose(&self, tests: &[String]) -> Result<()> {
        let path = self.folder.join(TESTS);
        fs::write(&path, tests.join("\n")).map_err(KitError::file("write", &path))
    }

    /// Returns the names of the tests to run. `None` if the run is not limited.
    pub fn chosen(&self) -> Option<BTreeSet<String>> {
        let text = fs::read_to_string(self.folder.join(TESTS)).ok()?;
        Some(text.lines().map(str::to_owned).collect())
    }

    /// Returns the directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs commands on a virtual host, or takes the kept result of such a run. `module` is the module of the test.
    ///
    /// # Errors
    /// The errors of [`VirtualHost::run_each`], and [`KitError::AnotherResult`].
    pub fn start(
        &self,
        host: &VirtualHost,
        commands: &[Vec<String>],
        module: &str,
    ) -> Result<(virtual_host::Run, Origin)> {
        let prepared = host.prepare(commands)?;
        let key = prepared.key()?;
        let kept = self.kept(&key);
        let found = kept.as_deref().and_then(recall);
        if let Some(run) = found.filter(|_| !self.is_repeated(&key)) {
            note_use(&self.cache.join(key.hex()));
            return Ok((run, Origin::Found));
        }
        // A start that fails here, for example because the disk is full, does not show that the kept result is wrong.
        let finished = prepared.start()?;
        let record = finished.record()?;
        if kept.is_some() && kept != record {
            self.write(ANOTHER, &key.hex(), &record.unwrap_or_default())?;
            // If this run does not come to its end, the next one must not find the result either.
            drop(fs::remove_file(self.cache.join(key.hex())));
            return Err(KitError::AnotherResult { key: key.hex(), module: module.to_owned() });
        }
        let run = finished.run;
        if kept.is_some() {
            return Ok((run, Origin::Repeated));
        }
        if let Some(record) = record {
            self.write(&format!("{NEW}/{module}"), &key.hex(), &record)?;
        }
        Ok((run, Origin::Made))
    }

    /// Adds a start to the list.
    pub fn note(&self, origin: Origin, taken: Duration, test: &str) {
        let line = format!("{} {:.1} {test}\n", origin.word(), taken.as_secs_f64());
        let file = File::options().create(true).append(true).open(self.folder.join(LIST));
        // The list is only for people to read.
        drop(file.and_then(|mut file| file.write_all(line.as_bytes())));
    }

    /// Returns the list of the starts.
    pub fn list(&self) -> Vec<Boot> {
        let text = fs::read_to_string(self.folder.join(LIST)).unwrap_or_default();
        let parse = |line: &str| {
            let mut words = line.splitn(3, ' ');
            let origin = Origin::of(words.next()?)?;
            let seconds = words.next()?.parse().ok()?;
            Some(Boot { origin, seconds, test: words.next()?.to_owned() })
        };
        text.lines().filter_map(parse).collect()
    }

    /// Moves the new results of a module to the cache, because all its tests have passed. Does nothing in a run that takes no results from
    /// the cache: it repeats tests that have failed, or it ignores the cache.
    ///
    /// # Errors
    /// A directory cannot be read or written.
    pub fn keep(&self, module: &str) -> Result<()> {
        if !self.folder.join(CHOOSES).exists() {
            return Ok(());
        }
        fs::create_dir_all(&self.cache).map_err(KitError::file("make", &self.cache))?;
        let new = self.folder.join(NEW).join(module);
        names(&new).iter().try_for_each(|key| self.move_to_cache(&new.join(key), key))
    }

    /// Ends the run. If a repeated start had another result, removes all kept results and returns its key.
    ///
    /// # Errors
    /// The times of the starts cannot be written.
    pub fn end(&self) -> Result<Option<String>> {
        if let Some(key) = names(&self.folder.join(ANOTHER)).pop() {
            self.forget_all();
            return Ok(Some(key));
        }
        self.keep_seconds().map(|()| None)
    }

    /// Removes all kept results.
    pub fn forget_all(&self) {
        for kept in names(&self.cache) {
            // Another run may remove it at the same time.
            drop(fs::remove_file(self.cache.join(kept)));
        }
    }

    /// Returns whether a kept result was used by the tests of a module.
    pub fn has_found(&self, module: &str) -> bool {
        let is_of = |boot: &Boot| module_of(&boot.test) == module;
        self.list().iter().any(|boot| boot.origin == Origin::Found && is_of(boot))
    }

    /// Adds the times of the starts that were made to those that are kept.
    fn keep_seconds(&self) -> Result<()> {
        let mut made: BTreeMap<String, f64> = BTreeMap::new();
        for boot in self.list().into_iter().filter(|boot| boot.origin != Origin::Found) {
            let module = module_of(&boot.test).to_owned();
            *made.entry(module).or_default() += boot.seconds;
        }
        fs::create_dir_all(&self.cache).map_err(KitError::file("make", &self.cache))?;
        let path = self.cache.join(SECONDS);
        let mut all = read_seconds(&path);
        all.extend(made);
        let text = serde_json::to_vec(&all).map_err(|error| KitError::malformed(SECONDS, error))?;
        fs::write(&path, text).map_err(KitError::file("write", &path))
    }

    /// The cache may be on another disk than the run's directory, and another run may write to it at the same time.
    fn move_to_cache(&self, from: &Path, key: &str) -> Result<()> {
        let place = self.cache.join(key);
        let move_it = || {
            let mut draft = tempfile::NamedTempFile::new_in(&self.cache)?;
            io::copy(&mut File::open(from)?, &mut draft)?;
            draft.persist(&place)?;
            fs::remove_file(from)
        };
        move_it().map_err(KitError::file("write", &place))
    }

    /// Returns the kept record of a run. `None` if there is none, or if its file is damaged.
    fn kept(&self, key: &Blake3Digest) -> Option<Vec<u8>> {
        self.folder.join(CHOOSES).exists().then_some(())?;
        let file = fs::read(self.cache.join(key.hex())).ok()?;
        let (digest, packed) = file.split_first_chunk::<32>()?;
        let record = zstd::decode_all(packed).ok()?;
        (Blake3Digest::of(&record).as_bytes() == digest).then_some(record)
    }

    fn is_repeated(&self, key: &Blake3Digest) -> bool {
        let chooses = fs::read_to_string(self.folder.join(CHOOSES)).unwrap_or_default();
        Blake3Digest::of(format!("{chooses}{key}").as_bytes()).as_bytes()[0]
            .is_multiple_of(REPEATED)
    }

    fn write(&self, folder: &str, name: &str, record: &[u8]) -> Result<()> {
        let folder = self.folder.join(folder);
        fs::create_dir_all(&folder).map_err(KitError::file("make", &folder))?;
        let path = folder.join(name);
        let mut file = Blake3Digest::of(record).as_bytes().to_vec();
        let packed = zstd::encode_all(record, LEVEL);
        file.extend(packed.map_err(KitError::file("compress", &path))?);
        fs::write(&path, file).map_err(KitError::file("write", &path))
    }
}

/// Returns the seconds that the starts of each module of `tests/boot` took when they were made last.
pub fn seconds(cache: &Cache) -> BTreeMap<String, f64> {
    read_seconds(&cache.folder(KIND).join(SECONDS))
}

fn read_seconds(path: &Path) -> BTreeMap<String, f64> {
    fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Returns the names in a directory, sorted. Empty if it does not exist.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<_> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scene {
        directory: tempfile::TempDir,
        cache: Cache,
    }

    impl Scene {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let cache = Cache::at(directory.path().join("cache"));
            Self { directory, cache }
        }

        fn begin(&self, chooses: Option<&str>) -> Run {
            Run::begin(&self.directory.path().join("run"), &self.cache, chooses).unwrap()
        }

        /// A run with results of the modules `one` and `two`, of which those in `passed` are kept.
        fn kept(&self, passed: &[&str]) -> Run {
            let run = self.begin(Some("a"));
            for module in ["one", "two"] {
                run.write(&format!("new/{module}"), &key(module).hex(), b"record").unwrap();
            }
            passed.iter().for_each(|module| run.keep(module).unwrap());
            assert_eq!(run.end().unwrap(), None);
            run
        }
    }

    fn key(text: &str) -> Blake3Digest {
        Blake3Digest::of(text.as_bytes())
    }

    #[test]
    fn a_result_is_kept_if_the_tests_of_its_module_have_passed() {
        let scene = Scene::new();
        let run = scene.kept(&["one"]);
        assert_eq!(run.kept(&key("one")).unwrap(), b"record");
        assert_eq!(run.kept(&key("two")), None);
        drop(run);
        let fresh = scene.begin(None);
        assert_eq!(fresh.kept(&key("one")), None, "a fresh run takes none");
        fresh.write(&format!("{NEW}/two"), &key("two").hex(), b"record").unwrap();
        fresh.keep("two").unwrap();
        drop(fresh);
        assert_eq!(scene.begin(Some("b")).kept(&key("two")), None, "and keeps none");
    }

    #[test]
    fn a_damaged_result_is_none() {
        let scene = Scene::new();
        let run = scene.kept(&["one", "two"]);
        let path = scene.cache.folder(KIND).join(key("one").hex());
        let mut bytes = fs::read(&path).unwrap();
        bytes[5] ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert_eq!(run.kept(&key("one")), None);
        fs::write(&path, &bytes[..20]).unwrap();
        assert_eq!(run.kept(&key("one")), None);
    }

    #[test]
    fn a_tier_is_read_as_it_is_written() {
        for landing in [Landing::Each, Landing::Part(1), Landing::Part(Landing::PARTS)] {
            for is_short in [false, true] {
                let tier = Tier { landing, is_short };
                assert_eq!(tier.to_string().parse::<Tier>().unwrap(), tier);
            }
        }
        for wrong in ["part 0", "part 5", "part", "nightly", ", short"] {
            assert!(wrong.parse::<Tier>().is_err(), "{wrong}");
        }
        assert_eq!(module_of("volumes::kills::a"), "volumes");
    }

    #[test]
    fn another_result_empties_the_cache() {
        let scene = Scene::new();
        let run = scene.kept(&["one", "two"]);
        run.write(ANOTHER, &key("one").hex(), b"different").unwrap();
        assert_eq!(run.end().unwrap(), Some(key("one").hex()));
        assert_eq!(run.kept(&key("two")), None);
    }

    #[test]
    fn one_in_ten_is_made_again_and_which_depends_on_the_commit() {
        let scene = Scene::new();
        let chosen = |commit: &str| -> Vec<_> {
            let run = scene.begin(Some(commit));
            (0..1000).filter(|it| run.is_repeated(&key(&it.to_string()))).collect()
        };
        let (one, other) = (chosen("a"), chosen("b"));
        assert!((60..140).contains(&one.len()), "{}", one.len());
        assert_ne!(one, other);
        assert_eq!(one, chosen("a"));
    }

    #[test]
    fn the_list_is_read_as_it_was_written() {
        let scene = Scene::new();
        let run = scene.begin(None);
        assert_eq!(run.list(), []);
        run.note(Origin::Repeated, Duration::from_millis(1500), "a::b");
        let boot = Boot { origin: Origin::Repeated, seconds: 1.5, test: "a::b".to_owned() };
        assert_eq!(run.list(), [boot]);
        run.note(Origin::Made, Duration::from_secs(2), "a::c");
        run.note(Origin::Found, Duration::from_secs(4), "b::d");
        run.end().unwrap();
        assert_eq!(seconds(&scene.cache), BTreeMap::from([("a".to_owned(), 3.5)]));
        assert_eq!(run.chosen(), None);
        run.choose(&["a::b".to_owned()]).unwrap();
        assert_eq!(run.chosen(), Some(BTreeSet::from(["a::b".to_owned()])));
    }
}
