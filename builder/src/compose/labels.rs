//! What an image says of itself in the labels `a3s.*` and `a3s.box.*`.
//!
//! A label counts where neither the Boxfile nor the rest of the image's config says anything.

use std::collections::{BTreeMap, HashMap};

use box_image::ComponentName;
use oci_image::Config;

use super::ComposeError;

const TYPE: &str = "a3s.type";
const ENTRYPOINT: &str = "a3s.entrypoint";
const BINARY: &str = "a3s.box.agent.binary";
const WORKDIR: &str = "a3s.workdir";
const PORT: &str = "a3s.port";
const ENV: &str = "a3s.box.env.";

/// What an image says of how it runs, in its config or its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defaults {
    /// The program and its arguments; empty where nothing says so.
    pub argv: Vec<String>,
    /// The working directory.
    pub workdir: Option<String>,
    /// The port on which it listens.
    pub port: Option<u16>,
}

impl Defaults {
    /// Takes what an image's config says. A label that cannot be used says nothing.
    pub fn of(process: &Config) -> Self {
        let labels = Labels { component: ComponentName::Agent, labels: process.labels().as_ref() };
        let own = [process.entrypoint().clone(), process.cmd().clone()];
        let argv = own.into_iter().flatten().flatten().collect::<Vec<_>>();
        let workdir = process.working_dir().as_deref().filter(|path| !path.is_empty());
        Self {
            argv: if argv.is_empty() { labels.argv() } else { argv },
            workdir: workdir.or(labels.workdir()).map(str::to_owned),
            port: labels.port().ok().flatten(),
        }
    }
}

/// The labels of a component's image.
pub(super) struct Labels<'p> {
    component: ComponentName,
    labels: Option<&'p HashMap<String, String>>,
}

impl<'p> Labels<'p> {
    /// Takes the labels of an image.
    ///
    /// # Errors
    /// [`ComposeError::WrongType`] where the image says that it is for another component.
    pub(super) fn of(component: ComponentName, process: &'p Config) -> Result<Self, ComposeError> {
        let labels = Self { component, labels: process.labels().as_ref() };
        match labels.get(TYPE) {
            Some(found) if found != component.name() => Err(ComposeError::WrongType {
                component: component.name(),
                found: found.to_owned(),
                label: TYPE,
            }),
            _ => Ok(labels),
        }
    }

    fn get(&self, name: &str) -> Option<&'p str> {
        self.labels?.get(name).map(String::as_str)
    }

    /// Returns the program and its arguments. The label is one text: it is split at white space, and
    /// nothing in it is quoted.
    pub(super) fn argv(&self) -> Vec<String> {
        let text = self.get(ENTRYPOINT).or_else(|| self.get(BINARY)).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// Returns the working directory.
    pub(super) fn workdir(&self) -> Option<&'p str> {
        self.get(WORKDIR).filter(|path| !path.is_empty())
    }

    /// Returns the port on which the agent listens.
    ///
    /// # Errors
    /// [`ComposeError::Label`] where it is no port.
    pub(super) fn port(&self) -> Result<Option<u16>, ComposeError> {
        let Some(text) = self.get(PORT) else { return Ok(None) };
        match text.parse() {
            Ok(port) if port != 0 => Ok(Some(port)),
            _ => Err(ComposeError::Label {
                component: self.component.name(),
                label: PORT.to_owned(),
                found: text.to_owned(),
                what: "no port",
            }),
        }
    }

    /// Returns the environment variables.
    ///
    /// # Errors
    /// [`ComposeError::Label`] where a label names none.
    pub(super) fn env(&self) -> Result<BTreeMap<String, String>, ComposeError> {
        // Sorted, so that of several wrong ones always the same is named.
        let labels: BTreeMap<_, _> = self.labels.into_iter().flatten().collect();
        let labels = labels.into_iter();
        let variables = labels.filter_map(|(label, value)| Some((label.strip_prefix(ENV)?, value)));
        variables
            .map(|(name, value)| match name.is_empty() || name.contains('=') {
                false => Ok((name.to_owned(), value.clone())),
                true => Err(ComposeError::Label {
                    component: self.component.name(),
                    label: format!("{ENV}{name}"),
                    found: value.clone(),
                    what: "not behind the name of a variable",
                }),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(labels: &[(&str, &str)]) -> Config {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut process = Config::default();
        process.set_labels(Some(labels.iter().map(owned).collect()));
        process
    }

    /// A3S-77, A3S-81, X-6.
    #[test]
    fn labels_say_what_the_config_does_not() {
        let process = process(&[
            ("a3s.type", "agent"),
            ("a3s.entrypoint", "/agent/venv/bin/python /agent/agent.py"),
            ("a3s.port", "4090"),
            ("a3s.workdir", "/workspace"),
            ("a3s.box.env.LOG", "info"),
        ]);
        let labels = Labels::of(ComponentName::Agent, &process).unwrap();
        assert_eq!(labels.argv(), ["/agent/venv/bin/python", "/agent/agent.py"]);
        assert_eq!(labels.port().unwrap(), Some(4090));
        assert_eq!(labels.workdir(), Some("/workspace"));
        assert_eq!(labels.env().unwrap(), BTreeMap::from([("LOG".to_owned(), "info".to_owned())]));
    }

    #[test]
    fn the_config_comes_before_the_labels() {
        let mut image = process(&[
            ("a3s.box.agent.binary", "/agent/bin/agent"),
            ("a3s.port", "many"),
            ("a3s.workdir", "/label"),
        ]);
        let argv = vec!["/agent/bin/agent".to_owned()];
        let workdir = Some("/label".to_owned());
        assert_eq!(Defaults::of(&image), Defaults { argv, workdir, port: None });
        image.set_cmd(Some(vec!["/bin/sh".to_owned()]));
        image.set_working_dir(Some("/config".to_owned()));
        let defaults = Defaults::of(&image);
        assert_eq!(defaults.argv, ["/bin/sh"]);
        assert_eq!(defaults.workdir.as_deref(), Some("/config"));
    }

    #[test]
    fn labels_that_cannot_be_meant_are_errors() {
        let wrong =
            process(&[("a3s.type", "business"), ("a3s.port", "80 80"), ("a3s.box.env.", "")]);
        let error = Labels::of(ComponentName::Agent, &wrong).map(drop).unwrap_err();
        assert!(matches!(error, ComposeError::WrongType { .. }), "{error}");
        let labels = Labels::of(ComponentName::Business, &wrong).unwrap();
        assert!(labels.port().is_err() && labels.env().is_err());
        assert!(labels.argv().is_empty());
    }
}
