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
const INTERFACE: &str = "a3s.interface";
const MODEL: &str = "a3s.box.llm.model";
const PROVIDER: &str = "a3s.box.llm.provider";
const MODEL_URL: &str = "a3s.box.llm.base_url";
const MODEL_KEY: &str = "a3s.box.llm.api_key";

/// The maximum length of a label's value that becomes a variable of the agent's model, in bytes. Linux passes 128 KiB to a
/// program.
const MAX_MODEL: usize = 4096;
/// The maximum length of the name of a model's provider, in bytes.
const MAX_PROVIDER: usize = 64;
/// The end of the error of a provider's name.
const PROVIDER_FORM: &str =
    "not a letter followed by at most 63 letters, digits, hyphens and underscores";

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

    /// Returns whether the image's label declares that the agent serves the agent interface, which is gRPC. Another value of the
    /// label has no effect.
    pub fn has_interface(&self) -> bool {
        self.label(INTERFACE) == Some("grpc")
    }

    /// Checks that no label has the key of the agent's model, unless `is_decided` returns true for the key's variable.
    ///
    /// # Errors
    /// [`ComposeError::KeyInLabel`], and [`ComposeError::Config`] if the label of the model's provider is malformed.
    pub fn check_model_key(&self, is_decided: impl Fn(&str) -> bool) -> Result<(), ComposeError> {
        let variable = of_provider(self.provider()?, "API_KEY");
        if self.of_model(MODEL_KEY).is_none() || is_decided(&variable) {
            return Ok(());
        }
        let component = self.component.name();
        Err(ComposeError::KeyInLabel { component, label: MODEL_KEY, variable })
    }

    /// Returns the value of a label of the agent's model. `None` if it is empty or absent, and for an image of the business
    /// application.
    fn of_model(&self, label: &str) -> Option<&'p str> {
        let is_agents = self.component == ComponentName::Agent;
        self.label(label).filter(|text| is_agents && !text.is_empty())
    }

    /// Returns the provider of the agent's model. `None` without the label.
    ///
    /// # Errors
    /// [`ComposeError::Config`] if no variable can begin with the label's value.
    fn provider(&self) -> Result<Option<&'p str>, ComposeError> {
        match self.of_model(PROVIDER) {
            Some(text) if !is_provider(text) => Err(self.unusable(PROVIDER, text, PROVIDER_FORM)),
            provider => Ok(provider),
        }
    }

    /// Returns the variables of the agent's model that the labels declare.
    ///
    /// # Errors
    /// [`ComposeError::Config`] if a label's value is malformed or longer than [`MAX_MODEL`].
    fn model(&self) -> Result<BTreeMap<String, String>, ComposeError> {
        let provider = self.provider()?;
        let variables = [
            (PROVIDER, "LLM_PROVIDER".to_owned()),
            (MODEL, "LLM_MODEL".to_owned()),
            (MODEL_URL, of_provider(provider, "BASE_URL")),
        ];
        let mut model = BTreeMap::new();
        for (label, name) in variables {
            let Some(value) = self.of_model(label) else { continue };
            if value.len() > MAX_MODEL {
                let length = value.len();
                return Err(self.wrong(format!(
                    "label `{label}` has {length} bytes; the maximum is {MAX_MODEL}"
                )));
            }
            model.insert(name, value.to_owned());
        }
        Ok(model)
    }

    /// Returns the environment variables. The config's variables override the labels'.
    ///
    /// # Errors
    /// [`ComposeError::Config`] if an entry is not a variable, or if a label of the agent's model is malformed.
    pub(crate) fn env(&self) -> Result<BTreeMap<String, String>, ComposeError> {
        // Sorted, so that the same malformed entry is always reported.
        let labels: BTreeMap<_, _> = self.process.labels().iter().flatten().collect();
        let mut env = self.model()?;
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

/// Returns whether a variable can begin with the name of a model's provider. For example, `my-own` is accepted and `my own`
/// is not.
fn is_provider(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    text.len() <= MAX_PROVIDER
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(is_inner)
}

/// Returns the variable that the client of a model's provider reads, such as `OPENAI_API_KEY`. Without a provider, it begins
/// with `LLM`.
fn of_provider(provider: Option<&str>, end: &str) -> String {
    let name = provider.unwrap_or("llm").replace('-', "_").to_ascii_uppercase();
    format!("{name}_{end}")
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

    /// The labels of a model, and the variables of the agent that they become.
    #[test]
    fn the_model_of_an_agent_is_in_variables() {
        let model = [
            ("a3s.box.llm.provider", "openai"),
            ("a3s.box.llm.model", "m"),
            ("a3s.box.llm.base_url", "http://127.0.0.1:1/v1"),
            ("a3s.box.llm.api_key", ""),
        ];
        let env = |labels: &[(&str, &str)]| {
            let process = process(labels);
            let image = ImageConfig { component: ComponentName::Agent, process: &process };
            image.check_model_key(|_| false).unwrap();
            let env = image.env().unwrap();
            env.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
        };
        let expected =
            ["LLM_MODEL=m", "LLM_PROVIDER=openai", "OPENAI_BASE_URL=http://127.0.0.1:1/v1"];
        assert_eq!(env(&model), expected);
        let own = [&model[..2], &[("a3s.box.env.LLM_MODEL", "own")]].concat();
        assert_eq!(env(&own), ["LLM_MODEL=own", "LLM_PROVIDER=openai"]);
        assert_eq!(env(&[("a3s.box.llm.base_url", "u")]), ["LLM_BASE_URL=u"]);
    }

    #[test]
    fn a_key_in_a_label_is_an_error_that_does_not_show_it() {
        for (provider, variable) in
            [("anthropic", "ANTHROPIC_API_KEY"), ("my-own", "MY_OWN_API_KEY"), ("", "LLM_API_KEY")]
        {
            let key = "hunter2aaaaaaaaaaaaaaaaa";
            let process =
                process(&[("a3s.box.llm.provider", provider), ("a3s.box.llm.api_key", key)]);
            let image = ImageConfig { component: ComponentName::Agent, process: &process };
            let error = image.check_model_key(|_| false).unwrap_err();
            assert!(!error.to_string().contains(key), "{error}");
            let is_of = |it: &str| it == variable;
            assert!(
                matches!(&error, ComposeError::KeyInLabel { variable: found, .. } if is_of(found)),
                "{error}"
            );
            image.check_model_key(is_of).unwrap();
            assert!(image.env().unwrap().values().all(|value| value != key));
        }
    }

    #[test]
    fn the_label_of_an_interface_is_true_for_grpc_alone() {
        for (text, expected) in [("grpc", true), ("rest", false), ("", false)] {
            let process = process(&[("a3s.interface", text), ("a3s.runtime", "cobol:85")]);
            let image = ImageConfig { component: ComponentName::Agent, process: &process };
            assert_eq!(image.has_interface(), expected, "{text}");
        }
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

    #[test]
    fn only_the_agent_has_a_model_and_its_labels_have_a_form() {
        let [long, longer] = [MAX_MODEL, MAX_MODEL + 1].map(|length| "m".repeat(length));
        let name = format!("p{}", "-".repeat(63));
        let longer_name = format!("{name}-");
        for (label, value, is_valid) in [
            ("a3s.box.llm.provider", "my_own-2", true),
            ("a3s.box.llm.provider", name.as_str(), true),
            ("a3s.box.llm.provider", longer_name.as_str(), false),
            ("a3s.box.llm.provider", "2nd", false),
            ("a3s.box.llm.provider", "a b", false),
            ("a3s.box.llm.provider", "é", false),
            ("a3s.box.llm.model", long.as_str(), true),
            ("a3s.box.llm.model", longer.as_str(), false),
            ("a3s.box.llm.base_url", longer.as_str(), false),
        ] {
            let process = process(&[(label, value), ("a3s.box.llm.api_key", "")]);
            let of = |component| ImageConfig { component, process: &process };
            let agent = of(ComponentName::Agent);
            let is_provider = label == PROVIDER;
            assert_eq!(agent.env().is_ok(), is_valid, "{label}={value}");
            assert_eq!(agent.check_model_key(|_| false).is_ok(), is_valid || !is_provider);
            assert!(of(ComponentName::Business).env().unwrap().is_empty());
        }
        let process = process(&[("a3s.box.llm.api_key", "hunter2aaaaaaaaaaaaaaaaa")]);
        let business = ImageConfig { component: ComponentName::Business, process: &process };
        business.check_model_key(|_| false).unwrap();
    }
}
