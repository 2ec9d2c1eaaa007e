//! `-e` and `--env-file`: variables for a command, and for components that declare them.

mod undeclared;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use box_contract::assignment::Assignment;
use box_contract::wire::check_value;
use box_contract::{ComponentName, ErrorCode, RunPlan};
use boxlaunch::machine::variables::GivenVariable;
use checkout::dotenv::{self, MAX_DOTENV};
use diagnostics::suggest::nearest;
use diagnostics::{Source, Sources};
use safe_text::secrets::{looks_secret, masked_env_file};

use super::error::{self, Failure, usage};
use super::given_file;
use super::lacks::Lack;
use undeclared::Named;

/// A variable of the command line: `[COMPONENT/]NAME[=VALUE]`. For example, `agent/LOG=debug`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EnvOption {
    component: Option<ComponentName>,
    name: String,
    /// `None` if the value comes from boxlaunch's environment.
    value: Option<OsString>,
}

impl EnvOption {
    /// Parses the option's value.
    pub(super) fn parse(word: &OsStr) -> Result<Self, String> {
        let mut parts = word.as_bytes().splitn(2, |it| *it == b'=');
        let text = str::from_utf8(parts.next().unwrap_or_default());
        let text = text.map_err(|_| "write a name of UTF-8 in front of the value")?;
        let value = parts.next().map(|it| OsStr::from_bytes(it).to_owned());
        let Assignment { component, name, .. } = Assignment::parse(text)?;
        if let Some(meant) = name.split_once('/').and_then(|(front, _)| near_component(front)) {
            return Err(format!("write {meant}/ in front of the name for the {meant} component"));
        }
        Ok(Self { component, name: name.to_owned(), value })
    }

    /// Parses the value of `-e` of `exec`, which must not name a component.
    pub(super) fn parse_of_command(text: &OsStr) -> Result<Self, String> {
        let parsed = Self::parse(text)?;
        let is_narrow = parsed.component.is_some();
        if is_narrow {
            Err("write NAME=VALUE; --component chooses the component of CMD".to_owned())
        } else {
            Ok(parsed)
        }
    }

    /// Returns the name of a variable that is to have the value of boxlaunch's environment, which lacks it.
    pub(super) fn unset(&self) -> Option<&str> {
        let is_unset = self.value.is_none() && env::var_os(&self.name).is_none();
        is_unset.then_some(&self.name)
    }

    /// Returns whether the value comes from `variable` in boxlaunch's environment.
    pub(super) fn is_from(&self, variable: &str) -> bool {
        self.value.is_none() && self.name == variable
    }

    /// Returns the variable with its value, or `None` if boxlaunch's environment lacks it.
    fn assigned(&self) -> Option<Assigned> {
        let value = self.value.clone().or_else(|| env::var_os(&self.name))?;
        let (component, name) = (self.component, self.name.clone());
        Some(Assigned { component, name, value, place: None })
    }
}

/// Returns the component whose name is similar to `name`.
fn near_component(name: &str) -> Option<&'static str> {
    nearest(name, &ComponentName::ALL.map(ComponentName::name))
}

/// A variable with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Assigned {
    component: Option<ComponentName>,
    name: String,
    value: OsString,
    /// The file and line that set the variable. `None` if an option set it.
    place: Option<String>,
}

impl Assigned {
    /// Returns `NAME=VALUE` for a command, or `None` if the variable is for one component only.
    pub(super) fn of_command(&self) -> Option<OsString> {
        let of_all = self.component.is_none().then_some(());
        of_all
            .map(|()| [OsStr::new(&self.name), OsStr::new("="), &self.value].into_iter().collect())
    }

    /// Returns whether the value is not UTF-8. Only a command can have such a variable.
    pub(super) fn has_bytes(&self) -> bool {
        self.value.to_str().is_none()
    }

    /// Returns the variable as an option of a run that repeats this one. A value that looks like a secret is not repeated:
    /// the variable then has the value that it has where the run is repeated. `None` if a file sets the variable.
    pub(super) fn repeated(&self) -> Option<String> {
        if self.place.is_some() {
            return None;
        }
        let component = self.component.map_or_else(String::new, |it| format!("{}/", it.name()));
        let is_secret = looks_secret(&self.name, &self.value.to_string_lossy());
        Some(if is_secret { format!("--env={component}{}", self.name) } else { self.word() })
    }

    /// Returns the variable as an option of a command line.
    pub(super) fn word(&self) -> String {
        let component = self.component.map_or_else(String::new, |it| format!("{}/", it.name()));
        format!("--env={component}{}={}", self.name, self.value.display())
    }
}

/// Returns the variables of the files, and then the variables of the options, with their values. A later variable takes
/// precedence over an earlier one of the same name.
pub(super) fn resolved(files: &[PathBuf], options: &[EnvOption]) -> Result<Vec<Assigned>, Failure> {
    let mut all = Vec::new();
    for path in files {
        all.extend(of_file(path)?);
    }
    all.extend(options.iter().filter_map(EnvOption::assigned));
    Ok(all)
}

/// The path of `--env-file` of `exec` that stands for standard input.
pub(super) const STDIN: &str = "-";

/// Returns the variables of a command, as [`resolved`] does. The file [`STDIN`] is standard input.
pub(super) fn resolved_of_command(
    files: &[PathBuf],
    options: &[EnvOption],
) -> Result<Vec<Assigned>, Failure> {
    let (input, files): (Vec<_>, Vec<_>) =
        files.iter().cloned().partition(|it| it.as_os_str() == STDIN);
    let mut all = match input.first() {
        Some(_) => parsed(Path::new("standard input"), io::stdin().lock())?,
        None => Vec::new(),
    };
    all.extend(resolved(&files, options)?);
    Ok(all)
}

fn of_file(path: &Path) -> Result<Vec<Assigned>, Failure> {
    let failed = |error| given_file::unread("the variables", path, &error);
    parsed(path, given_file::open(path, failed)?)
}

/// Reads and parses a file of variables. `path` is its name in messages.
fn parsed(path: &Path, file: impl Read) -> Result<Vec<Assigned>, Failure> {
    let failed = |error| given_file::unread("the variables", path, &error);
    let most = u64::try_from(MAX_DOTENV).unwrap_or(u64::MAX).saturating_add(1);
    let mut text = String::new();
    file.take(most).read_to_string(&mut text).map_err(failed)?;
    let variables = dotenv::parse(&text).map_err(|found| {
        let masked = masked_env_file(&text);
        let sources = Sources::single(Source::new(path.to_string_lossy(), masked));
        error::found(ErrorCode::Usage, found.as_slice(), &sources)
    })?;
    let assigned = variables.into_iter().map(|(name, value)| {
        let line = text.get(..value.span.offset).map_or(1, |it| it.matches('\n').count() + 1);
        let place = Some(format!("{}:{line}", path.display()));
        Assigned { component: None, name, value: value.value.into(), place }
    });
    Ok(assigned.collect())
}

/// Returns the variables for the components. The plan must declare each of them. If the run has a command, an undeclared variable
/// that names no component is for the command alone.
pub(super) fn given(
    assigned: &[Assigned],
    options: &[EnvOption],
    has_command: bool,
    plan: &RunPlan,
) -> Result<Vec<GivenVariable>, Failure> {
    // `-e NAME` needs a declaration even if boxlaunch's environment lacks `NAME`.
    for named in assigned.iter().map(Named::from).chain(options.iter().map(Named::from)) {
        let is_commands = has_command && named.component.is_none();
        if !is_commands && targets(plan, named.component, named.name).next().is_none() {
            return Err(named.undeclared(plan));
        }
    }
    let mut given: Vec<GivenVariable> = Vec::new();
    for it in assigned {
        for component in targets(plan, it.component, &it.name) {
            let refused = |why: &dyn Display| {
                let message = format!("the variable {} cannot be given: {why}", it.name);
                usage(&message, "give another value")
            };
            let value = it.value.to_str().ok_or_else(|| refused(&"it is not UTF-8"))?;
            check_value(value).map_err(|error| refused(&error))?;
            // The last value takes precedence, as in docker.
            given.retain(|other| (other.component, &other.name) != (component, &it.name));
            let (name, value) = (it.name.clone(), value.to_owned());
            given.push(GivenVariable { component, name, value });
        }
    }
    Ok(given)
}

/// Lists the components that declare the variable `name`. If `component` is not `None`, lists at most that one.
fn targets<'a>(
    plan: &'a RunPlan,
    component: Option<ComponentName>,
    name: &'a str,
) -> impl Iterator<Item = ComponentName> + 'a {
    let declared = plan.launch_variables().filter(move |(_, it)| *it == name);
    let of = declared.map(|(of, _)| of);
    of.filter(move |it| component.is_none_or(|component| component == *it))
}

/// Returns the missing options for declared variables that have neither a value nor a default.
pub(super) fn lacking(
    given: &[GivenVariable],
    options: &[EnvOption],
    plan: &RunPlan,
) -> Option<Lack> {
    let is_missing = |(of, name): &(ComponentName, &str)| {
        let has_default = plan.component(*of).is_some_and(|it| it.variable(name).is_some());
        !has_default && !given.iter().any(|it| it.component == *of && it.name == *name)
    };
    let missing: Vec<_> = plan.launch_variables().filter(is_missing).collect();
    let mut lines: Vec<String> = Vec::new();
    for (of, name) in &missing {
        // One option sets the variable in both components, unless one of them already has it.
        let is_given = given.iter().any(|it| it.name == *name);
        let component = if is_given { format!("{}/", of.name()) } else { String::new() };
        let line = format!("-e {component}{name}=VALUE");
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    if missing.is_empty() {
        return None;
    }
    let mut names: Vec<_> = missing.iter().map(|(_, name)| *name).collect();
    names.sort_unstable();
    names.dedup();
    let unset = options.iter().filter(|it| it.value.is_none());
    let mut unset: Vec<_> = unset.map(|it| &*it.name).filter(|it| names.contains(it)).collect();
    unset.dedup();
    let unset = match unset.as_slice() {
        [] => String::new(),
        [name] => format!("; {name} is not set here"),
        names => format!("; not set here: {}", names.join(", ")),
    };
    let (words, names) = (lines.join(" "), names.join(", "));
    Some(Lack {
        message: format!("the box declares variables that were not given: {names}{unset}"),
        help: format!("add `{words}`"),
        words,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan whose agent requires URL and has a default for LOG, and whose business component requires LOG.
    fn plan() -> RunPlan {
        let mut plan = testkit::test_box::config().plan;
        plan.agent.env = vec!["LOG=info".to_owned(), "FIXED=1".to_owned()];
        plan.agent.launch_env = ["LOG", "URL"].map(str::to_owned).to_vec();
        plan.business.as_mut().unwrap().launch_env = vec!["LOG".to_owned()];
        plan
    }

    fn parsed(text: &str) -> Result<EnvOption, String> {
        EnvOption::parse(OsStr::new(text))
    }

    fn with(options: &[&str], has_command: bool) -> Result<Vec<String>, String> {
        let options: Vec<_> = options.iter().map(|it| parsed(it).unwrap()).collect();
        let assigned = resolved(&[], &options).map_err(|error| error.text())?;
        let given = given(&assigned, &options, has_command, &plan()).and_then(|given| {
            Lack::check(lacking(&given, &options, &plan()).as_slice()).map(|()| given)
        });
        let given = given.map_err(|error| {
            assert_eq!(error.exit, 2);
            error.text()
        })?;
        let text = |it: &GivenVariable| format!("{}/{}={}", it.component.name(), it.name, it.value);
        Ok(given.iter().map(text).collect())
    }

    #[test]
    fn a_declared_variable_is_set_wherever_it_is_declared() {
        let set = with(&["URL=u", "LOG=debug"], false).unwrap();
        assert_eq!(set, ["agent/URL=u", "agent/LOG=debug", "business/LOG=debug"]);
        let narrow = with(&["URL=", "business/LOG=a", "LOG=b", "business/LOG=c"], false).unwrap();
        assert_eq!(narrow, ["agent/URL=", "agent/LOG=b", "business/LOG=c"]);
        let beside = with(&["URL=u", "business/LOG=debug", "OTHER=x", "FIXED=2"], true).unwrap();
        assert_eq!(beside, ["agent/URL=u", "business/LOG=debug"], "the rest is the command's");
    }

    #[test]
    fn what_is_missing_is_named_with_the_words_to_type() {
        insta::assert_snapshot!(with(&[], false).unwrap_err(), @"
        error: the box declares variables that were not given: LOG, URL
          = help: add `-e URL=VALUE -e LOG=VALUE`
        ");
        insta::assert_snapshot!(with(&["agent/LOG=x", "URL=u"], true).unwrap_err(), @"
        error: the box declares variables that were not given: LOG
          = help: add `-e business/LOG=VALUE`
        ");
        insta::assert_snapshot!(with(&["LOG=x", "URL"], false).unwrap_err(), @"
        error: the box declares variables that were not given: URL; URL is not set here
          = help: add `-e URL=VALUE`
        ");
        insta::assert_snapshot!(with(&["LOG", "URL"], false).unwrap_err(), @"
        error: the box declares variables that were not given: LOG, URL; not set here: LOG, URL
          = help: add `-e URL=VALUE -e LOG=VALUE`
        ");
    }

    #[test]
    fn what_nobody_declares_is_refused_by_name() {
        insta::assert_snapshot!(with(&["FIXED=2"], false).unwrap_err(), @"
        error: the box takes no variable FIXED
          = help: it takes LOG, URL; or add `env FIXED` to `agent` or `business` in the Boxfile, and build again
        ");
        insta::assert_snapshot!(with(&["business/URL=u"], true).unwrap_err(), @"
        error: the business component takes no variable URL
          = help: it takes LOG; or add `env URL` to `business` in the Boxfile, and build again
        ");
        insta::assert_snapshot!(with(&["LOGS"], false).unwrap_err(), @"
        error: the box takes no variable LOGS
          = help: it takes LOG, URL; or add `env LOGS` to `agent` or `business` in the Boxfile, and build again
        ");
        let long = format!("URL={}", "x".repeat(box_contract::wire::MAX_VALUE + 1));
        let error = with(&["LOG=x", &long], false).unwrap_err();
        assert!(error.contains("URL cannot be given: it is longer than 32768 bytes"), "{error}");
    }

    #[test]
    fn a_file_is_read_first_and_what_is_wrong_in_it_is_shown() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.env");
        std::fs::write(&path, "A=1\nB='2'\n").unwrap();
        let option = parsed("A=3").unwrap();
        let all = resolved(std::slice::from_ref(&path), &[option]).unwrap();
        let words: Vec<_> = all.iter().filter_map(Assigned::of_command).collect();
        assert_eq!(words, ["A=1", "B=2", "A=3"]);
        std::fs::write(&path, "A\n").unwrap();
        let error = resolved(&[path], &[]).unwrap_err();
        assert!(error.exit == 2 && error.text().contains("a.env:1:1"), "{}", error.text());
        let missing = resolved(&["/none/a.env".into()], &[]).unwrap_err().text();
        insta::assert_snapshot!(missing, @"
        error: cannot read the variables from /none/a.env: No such file or directory (os error 2)
          = help: correct the path: there is no such file
        ");
    }

    #[test]
    fn variables_have_a_name_and_perhaps_a_component() {
        let of_agent = parsed("agent/A=b=c").unwrap();
        let words = of_agent.assigned().map(|it| (it.word(), it.of_command()));
        assert_eq!(words, Some(("--env=agent/A=b=c".to_owned(), None)));
        let other = parsed("a/b=1").unwrap().assigned().unwrap();
        assert_eq!(other.of_command(), Some("a/b=1".into()));
        for (misspelt, meant) in [("agnet/LOG=x", "agent"), ("buisness/LOG", "business")] {
            let error = parsed(misspelt).unwrap_err();
            assert!(error.starts_with(&format!("write {meant}/ in front")), "{error}");
        }
        assert!(parsed("").is_err() && parsed("=b").is_err());
        assert!(parsed("agent/").is_err() && parsed("agent/=b").is_err());
        EnvOption::parse_of_command(OsStr::new("agent/A=1")).unwrap_err();
        EnvOption::parse_of_command(OsStr::new("A")).unwrap();
    }

    #[test]
    fn a_value_need_not_be_utf_8_for_a_command_alone() {
        let option = |bytes: &[u8]| EnvOption::parse(OsStr::from_bytes(bytes));
        let assigned = option(b"OTHER=\xFF=").unwrap().assigned().unwrap();
        assert_eq!(assigned.of_command().unwrap().as_bytes(), b"OTHER=\xFF=");
        assert!(assigned.has_bytes());
        assert!(given(&[assigned], &[], true, &plan()).unwrap().is_empty());
        let assigned = option(b"LOG=\xFF").unwrap().assigned().unwrap();
        let error = given(&[assigned], &[], true, &plan()).unwrap_err().text();
        assert!(error.contains("the variable LOG cannot be given: it is not UTF-8"), "{error}");
        option(b"\xFF=a").unwrap_err();
    }
}
