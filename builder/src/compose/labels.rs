//! The declarations of an image in the labels `a3s.*` and `a3s.box.*`.
//!
//! A label applies only if neither the Boxfile nor the rest of the image's config has a value. For example,
//! `a3s.box.env.LANG` applies only if neither the Boxfile nor the config's environment sets `LANG`.

use std::collections::BTreeMap;

use box_contract::{ComponentName, signals};
use oci_image::Config;

use super::ComposeError;

const TYPE: &str = "a3s.type";
const ENTRYPOINT: &str = "a3s.entrypoint";
const BINARY: &str = "a3s.box.agent.binary";
const WORKDIR: &str = "a3s.workdir";
const PORT: &str = "a3s.port";
const ENV: &str = "a3s.box.env.";

/// An image's declarations of how its program runs: in its config, or else in its labels.
#[derive(Debug, Clone, Copy)]
pub struct ImageConfig<'p> {
    /// The component that the image is for.
    pub component: ComponentName,
    /// The image's config.
    pub process: &'p Config,
}

impl<'p> ImageConfig<'p> {
    /// Checks that no label declares the image for another component.
    ///
    /// # Errors
    /// [`ComposeError::WrongType`] if the label `a3s.type` has another value than the component's name.
    pub fn check_type(&self) -> Result<(), ComposeError> {
        let found = match self.declared_type() {
            None => return Ok(()),
            Some(Ok(component)) if component == self.component => return Ok(()),
            Some(Ok(other)) => other.name(),
            Some(Err(unknown)) => unknown,
        };
        let (component, found) = (self.component.name(), found.to_owned());
        Err(ComposeError::WrongType { component, found, label: TYPE })
    }

    /// Returns the component that the image's label declares.
    ///
    /// # Errors
    /// The label's value, if no component has that name.
    pub fn declared_type(&self) -> Option<Result<ComponentName, &'p str>> {
        let found = self.label(TYPE)?;
        Some(ComponentName::of(found).ok_or(found))
    }

    fn unusable(&self, label: &str, found: &str, what: &str) -> ComposeError {
        self.wrong(format!("label `{label}` is {found:?}, which is {what}"))
    }

    /// Returns the error of a value that no declaration overrides.
    const fn wrong(&self, found: String) -> ComposeError {
        ComposeError::Config { component: self.component.name(), found, declaration: None }
    }

    fn label(&self, name: &str) -> Option<&'p str> {
        self.process.labels().as_ref()?.get(name).map(String::as_str)
    }

    /// Returns the program with its first arguments, and the arguments that the Boxfile's `args` replace. A label is
    /// one string: it is split at white space, without quoting.
    ///
    /// An entrypoint that is one empty string is ignored, as in docker and podman: `ENTRYPOINT [""]` resets the
    /// entrypoint of a base image. A CMD of empty strings without an entrypoint is ignored, too.
    pub fn program(&self) -> (Vec<String>, Vec<String>) {
        let given = |words: &Option<Vec<String>>| words.clone().unwrap_or_default();
        let entrypoint = Some(given(self.process.entrypoint())).filter(|words| *words != [""]);
        let entrypoint = entrypoint.unwrap_or_default();
        let cmd = Some(given(self.process.cmd()));
        let is_program = |words: &Vec<String>| words.iter().any(|word| !word.is_empty());
        let cmd =
            cmd.filter(|words| !entrypoint.is_empty() || is_program(words)).unwrap_or_default();
        if !entrypoint.is_empty() || !cmd.is_empty() {
            return (entrypoint, cmd);
        }
        let text = self.label(ENTRYPOINT).or_else(|| self.label(BINARY)).unwrap_or_default();
        (text.split_whitespace().map(str::to_owned).collect(), Vec::new())
    }

    /// Returns the working directory in the config or else in the label. `None` if neither has one.
    pub fn workdir(&self) -> Option<&'p str> {
        let own = self.process.working_dir().as_deref().filter(|path| !path.is_empty());
        own.or_else(|| self.label(WORKDIR).filter(|path| !path.is_empty()))
    }

    /// Returns the number of the signal that asks the program to end. `None` for SIGTERM, and if the config sets none.
    ///
    /// # Errors
    /// [`ComposeError::Config`] if Linux has no such signal, or if the signal does not ask a program to end.
    pub fn stop_signal(&self) -> Result<Option<u8>, ComposeError> {
        let declared = self.process.stop_signal().as_deref().filter(|text| !text.is_empty());
        let Some(text) = declared else { return Ok(None) };
        match signals::number(text) {
            Some(signals::TERM) => Ok(None),
            Some(number) if signals::can_ask_to_end(number) => Ok(Some(number)),
            _ => {
                let found =
                    format!("config has the stop signal {text:?}, which asks no program to end");
                Err(self.wrong(found))
            }
        }
    }

    /// Returns the port on which the agent listens. `None` without the label.
    ///
    /// # Errors
    /// [`ComposeError::Config`] if the label's value is not a port.
    pub fn port(&self) -> Result<Option<u16>, ComposeError> {
        let Some(text) = self.label(PORT) else { return Ok(None) };
        match text.parse() {
            Ok(port) if port != 0 => Ok(Some(port)),
            _ => Err(self.unusable(PORT, text, "not a port")),
        }
    }

    /// Returns the environment variables. The config's variables override the labels'.
    ///
    /// # Errors
    /// [`ComposeError::Config`] if an entry is not a variable.
    pub(crate) fn env(&self) -> Result<BTreeMap<String, String>, ComposeError> {
        // Sorted, so that the same malformed entry is always reported.
        let labels: BTreeMap<_, _> = self.process.labels().iter().flatten().collect();
        let mut env = BTreeMap::new();
        for (label, value) in labels {
            let Some(name) = label.strip_prefix(ENV) else { continue };
            if name.is_empty() || name.contains('=') {
                return Err(self.unusable(label, value, "not after the name of a variable"));
            }
            env.insert(name.to_owned(), value.clone());
        }
        for entry in self.process.env().iter().flatten() {
            // `ENV $PORT=8300` results in `=8300` if `PORT` is not set.
            let (name, value) = match entry.split_once('=') {
                Some(("", _)) => Err("name in front of the `=`"),
                Some(variable) => Ok(variable),
                None => Err("`=`"),
            }
            .map_err(|lacks| {
                self.wrong(format!("config has the environment entry {entry:?} without a {lacks}"))
            })?;
            env.insert(name.to_owned(), value.to_owned());
        }
        Ok(env)
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
        let labels = ImageConfig { component: ComponentName::Agent, process: &process };
        labels.check_type().unwrap();
        assert_eq!(labels.program().0, ["/agent/venv/bin/python", "/agent/agent.py"]);
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
        let labels = ImageConfig { component: ComponentName::Agent, process: &image };
        assert_eq!(labels.program().0, ["/agent/bin/agent"]);
        assert_eq!(labels.workdir(), Some("/label"));
        image.set_cmd(Some(vec!["/bin/sh".to_owned()]));
        image.set_working_dir(Some("/config".to_owned()));
        let config = ImageConfig { component: ComponentName::Agent, process: &image };
        assert_eq!(config.program(), (Vec::new(), vec!["/bin/sh".to_owned()]));
        assert_eq!(config.workdir(), Some("/config"));
    }

    #[test]
    fn empty_texts_name_no_program() {
        let words = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        for (entrypoint, cmd, expected) in [
            (&[""][..], &["/bin/app", "x"][..], (&[][..], &["/bin/app", "x"][..])),
            (&[""], &[], (&["label"], &[])),
            (&[], &[""], (&["label"], &[])),
            (&[""], &["", ""], (&["label"], &[])),
            (&["/bin/app"], &[""], (&["/bin/app"], &[""])),
            (&["", "x"], &["y"], (&["", "x"], &["y"])),
        ] {
            let mut image = process(&[("a3s.entrypoint", "label")]);
            image.set_entrypoint(Some(words(entrypoint)));
            image.set_cmd(Some(words(cmd)));
            let config = ImageConfig { component: ComponentName::Agent, process: &image };
            let expected = (words(expected.0), words(expected.1));
            assert_eq!(config.program(), expected, "{entrypoint:?} {cmd:?}");
        }
    }

    #[test]
    fn an_entry_that_is_no_variable_is_named_with_what_it_lacks() {
        for (entry, lacks) in
            [("=8300", "a name in front of the `=`"), ("A", "a `=`"), ("", "a `=`")]
        {
            let mut image = Config::default();
            image.set_env(Some(vec!["OK=1".to_owned(), entry.to_owned()]));
            let config = ImageConfig { component: ComponentName::Agent, process: &image };
            let message = config.env().unwrap_err().to_string();
            let end = format!("config has the environment entry {entry:?} without {lacks}");
            assert!(message.ends_with(&end), "{message}");
        }
    }

    #[test]
    fn the_stop_signal_is_a_number_unless_it_is_the_default() {
        for (text, expected) in
            [("", None), ("SIGTERM", None), ("SIGQUIT", Some(3)), ("37", Some(37))]
        {
            let mut image = Config::default();
            image.set_stop_signal(Some(text.to_owned()));
            let config = ImageConfig { component: ComponentName::Agent, process: &image };
            assert_eq!(config.stop_signal().unwrap(), expected, "{text}");
        }
        let mut image = Config::default();
        image.set_stop_signal(Some("SIGNOPE".to_owned()));
        let config = ImageConfig { component: ComponentName::Agent, process: &image };
        assert!(config.stop_signal().unwrap_err().to_string().contains("\"SIGNOPE\""));
    }

    #[test]
    fn labels_that_cannot_be_meant_are_errors() {
        let wrong =
            process(&[("a3s.type", "business"), ("a3s.port", "80 80"), ("a3s.box.env.", "")]);
        let agent = ImageConfig { component: ComponentName::Agent, process: &wrong };
        let error = agent.check_type().unwrap_err();
        assert!(matches!(error, ComposeError::WrongType { .. }), "{error}");
        let labels = ImageConfig { component: ComponentName::Business, process: &wrong };
        labels.check_type().unwrap();
        assert!(labels.port().is_err() && labels.env().is_err());
        assert!(labels.program().0.is_empty());
    }
}
