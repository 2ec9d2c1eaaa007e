//! Refuses programs of images that would listen on AF_VSOCK, which the filter of system calls refuses in components.

use std::iter;

use box_contract::rules::VSOCK_SCHEME;
use box_contract::{ComponentName, ComponentPlan};
use boxfile_spec::Boxfile;
use diagnostics::{Syntax, with_texts};
use safe_text::secrets::mask_words;

use super::labels::ImageConfig;
use super::{ComposeError, FlatImage};

/// The characters of an address that is no plain CID and port: `vsock://*:1`, `vsock://[::]:1`, `vsock://2:${PORT}`.
const SPECIAL: [char; 6] = ['*', '[', ']', '$', '{', '}'];

/// Checks that no word of a program that the box starts has an address of AF_VSOCK. The words of the Boxfile were checked
/// when it was read, so such a word is the image's.
///
/// # Errors
/// [`ComposeError::Vsock`].
pub(super) fn check(
    boxfile: &Boxfile,
    flat: &FlatImage,
    plan: &ComponentPlan,
) -> Result<(), ComposeError> {
    let is_started = flat.component == ComponentName::Agent || plan.autostart;
    if !is_started || !has_address(&plan.argv) {
        return Ok(());
    }
    let has_args = boxfile.component(flat.component).is_some_and(|it| it.args.is_some());
    let default = plan.port.unwrap_or_else(|| boxfile.agent.kind.default_port());
    let component = flat.component.name();
    match OnLoopback::of(flat.config(), has_args, default) {
        Some(on_loopback) => Err(ComposeError::Vsock { component, on_loopback }),
        None => Ok(()),
    }
}

/// The declaration that replaces an image's words with an address of AF_VSOCK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnLoopback {
    /// The address of AF_VSOCK, such as `vsock://4088`.
    pub address: String,
    /// The port of the address 127.0.0.1 that replaces it.
    pub port: u16,
    /// The name of the declaration: `entrypoint` or `args`.
    pub name: &'static str,
    /// The arguments of the declaration, with asterisks in place of secrets. `None` if one has white space: it can be a script
    /// of a shell, in which not every secret is recognized. Also `None` if an address has no plain CID and port, such as
    /// `vsock://*:4088` and `vsock://2:$PORT`.
    words: Option<Vec<String>>,
    /// Whether no argument has asterisks in place of a secret.
    is_whole: bool,
}

impl OnLoopback {
    /// Returns the replacement for an image whose command line has an address of AF_VSOCK. `None` for another image.
    ///
    /// `has_args` is true if the Boxfile declares `args`, which replace the image's CMD. `default` is the port for an
    /// address without a TCP port.
    pub fn of(image: ImageConfig<'_>, has_args: bool, default: u16) -> Option<Self> {
        let (entrypoint, cmd) = image.program();
        let (first, end) = (entrypoint.len(), entrypoint.len() + cmd.len());
        // Another entrypoint drops the image's CMD, but not the Boxfile's `args`.
        let (name, place) = match (has_address(&entrypoint), has_args) {
            (true, true) => ("entrypoint", 0..first),
            (true, false) => ("entrypoint", 0..end),
            (false, true) => return None,
            (false, false) => ("args", first..end),
        };
        let line = [entrypoint, cmd].concat();
        let address = line[place.clone()].iter().find_map(|word| split(word).map(|it| it.1))?;
        let mut words: Vec<String> = line.iter().map(|word| on_loopback(word, default)).collect();
        let masked = mask_words(&mut words);
        let words = &words[place.clone()];
        let has_script = words.iter().any(|word| word.contains(char::is_whitespace));
        let are_plain = line[place.clone()].iter().flat_map(|it| addresses(it)).all(is_plain);
        Some(Self {
            address: address.to_owned(),
            port: port(address, default),
            name,
            words: (!has_script && are_plain).then(|| words.to_vec()),
            is_whole: !masked.iter().any(|at| place.contains(at)),
        })
    }

    /// Returns the declaration for a message, with asterisks in place of secrets. `None` if a word can be a script of a
    /// shell, or has an address without a plain CID and port.
    pub fn shown(&self, syntax: Syntax) -> Option<String> {
        self.words.as_ref().map(|words| with_texts(syntax, self.name, words))
    }

    /// Returns the declaration for a Boxfile. `None` if a word can be a script of a shell, has an address without a plain CID and
    /// port, or looks like a secret.
    pub fn written(&self, syntax: Syntax) -> Option<String> {
        self.shown(syntax).filter(|_| self.is_whole)
    }
}

/// Returns whether a word has an address of AF_VSOCK.
fn has_address(words: &[String]) -> bool {
    words.iter().any(|word| word.contains(VSOCK_SCHEME))
}

/// Returns a word with addresses of the loopback instead of its addresses of AF_VSOCK.
fn on_loopback(word: &str, default: u16) -> String {
    let (mut replaced, mut rest) = (String::new(), word);
    while let Some((before, address, after)) = split(rest) {
        replaced += before;
        replaced += "127.0.0.1:";
        replaced += &port(address, default).to_string();
        rest = after;
    }
    replaced + rest
}

/// Returns the addresses of AF_VSOCK in a word.
fn addresses(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    iter::from_fn(move || {
        let (_, address, after) = split(rest)?;
        rest = after;
        Some(address)
    })
}

/// Returns whether an address has neither a placeholder for each CID nor a variable of a shell.
fn is_plain(address: &str) -> bool {
    !address.contains(SPECIAL)
}

/// Returns the port of an address of AF_VSOCK, which may follow a CID: `vsock://3:4088`. Returns `default` if it is not a TCP
/// port.
fn port(address: &str, default: u16) -> u16 {
    let number = address.rsplit([':', '/']).next().and_then(|port| port.parse().ok());
    number.filter(|it| *it != 0).unwrap_or(default)
}

/// Returns the first address of AF_VSOCK in a word, with the text before and after it. The word can be a script of a shell.
fn split(word: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = word.split_at(word.find(VSOCK_SCHEME)?);
    let is_part = |c: char| matches!(c, ':' | '-' | '.' | '_') || SPECIAL.contains(&c);
    let is_end = |c: char| !c.is_ascii_alphanumeric() && !is_part(c);
    let length = rest[VSOCK_SCHEME.len()..].find(is_end);
    let (address, after) = length.map_or((rest, ""), |it| rest.split_at(VSOCK_SCHEME.len() + it));
    Some((before, address, after))
}

#[cfg(test)]
mod tests {
    use box_tree::Tree;
    use oci_image::Config;

    use super::*;
    use crate::compose::plan_of;

    /// Returns the correction that the error names, of a box whose images have this command line. `None` without an error.
    fn correction(lines: [&str; 2], entrypoint: &[&str], cmd: &[&str]) -> Option<String> {
        let [agent, business] = lines;
        let text = format!(
            "box b\nagent {{\nimage \"oci:i\"\n{agent}\n}}\nbusiness {{\nimage \"oci:i\"\n{business}\n}}\n"
        );
        let boxfile = boxfile_spec::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let words = |words: &[&str]| Some(words.iter().map(|it| (*it).to_owned()).collect());
        let mut process = Config::default();
        process.set_entrypoint(words(entrypoint));
        process.set_cmd(words(cmd));
        let image =
            |component| FlatImage { component, process: process.clone(), tree: Tree::default() };
        let dir = tempfile::tempdir().unwrap();
        let store = box_cache::Store::open(dir.path()).unwrap();
        let contents = crate::pack::ContentMap::default();
        let (images, mut packs) = (ComponentName::ALL.map(image), contents.reader(&store));
        let plan = plan_of(&boxfile, &crate::compose::Env::new(), Vec::new(), &images, &mut packs);
        match plan {
            Ok(_) => None,
            Err(ComposeError::Vsock { component, on_loopback: it }) => {
                let replaced = || format!("{} in {}: {}", it.address, it.name, it.port);
                let shown = it.shown(Syntax::Kdl).unwrap_or_else(replaced);
                Some(format!("{component}: {shown}"))
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// For example, the images of A3S are written with `--listen vsock://4088`.
    #[test]
    fn the_error_has_the_line_to_write() {
        let listen = ["--listen", "vsock://4088"];
        for (agent, entrypoint, cmd, expected) in [
            ("", &["/agent"][..], &listen[..], r#"args "--listen" "127.0.0.1:4088""#),
            (
                "",
                &["/agent", "--listen", "vsock://4088"],
                &[],
                r#"entrypoint "/agent" "--listen" "127.0.0.1:4088""#,
            ),
            (
                "",
                &["/bin/sh", "-c"],
                &["exec mysql -phunter2pw --listen='vsock://1' -v"],
                "vsock://1 in args: 1",
            ),
            (
                "",
                &["/agent", "--listen=vsock://3:9"],
                &["-v"],
                r#"entrypoint "/agent" "--listen=127.0.0.1:9" "-v""#,
            ),
            (
                "args \"-q\"",
                &["/agent", "vsock://"],
                &["-v"],
                r#"entrypoint "/agent" "127.0.0.1:4088""#,
            ),
            (
                "",
                &["/agent"],
                &["--listen=vsock://1,vsock://2"],
                r#"args "--listen=127.0.0.1:1,127.0.0.1:2""#,
            ),
            ("", &["/agent"], &["vsock://*:9", "vsock://1"], "vsock://*:9 in args: 9"),
            ("", &["/agent"], &["vsock://[::]:9"], "vsock://[::]:9 in args: 9"),
            ("", &["/agent"], &["vsock://2:${PORT}"], "vsock://2:${PORT} in args: 4088"),
            ("port 5000", &["/agent"], &["vsock://any"], r#"args "127.0.0.1:5000""#),
            ("", &[], &["/agent", "vsock://1"], r#"args "/agent" "127.0.0.1:1""#),
            (
                "",
                &["/agent"],
                &["--password", "hunter2", "vsock://1"],
                r#"args "--password" "****" "127.0.0.1:1""#,
            ),
            (
                "",
                &["/agent", "--password"],
                &["hunter2", "vsock://1"],
                r#"args "****" "127.0.0.1:1""#,
            ),
        ] {
            let found = correction([agent, ""], entrypoint, cmd);
            assert_eq!(found, Some(format!("agent: {expected}")), "{entrypoint:?} {cmd:?}");
        }
    }

    #[test]
    fn a_boxfile_gets_no_script_and_no_secret() {
        let listen = ["--listen", "vsock://4088"];
        let kdl = r#"args "--listen" "127.0.0.1:4088""#;
        let toml = r#"args = ["--listen", "127.0.0.1:4088"]"#;
        for (cmd, syntax, expected) in [
            (&listen[..], Syntax::Kdl, Some(kdl)),
            (&listen, Syntax::Toml, Some(toml)),
            (&["-c", "exec /agent vsock://1"], Syntax::Kdl, None),
            (&["--password", "hunter2", "vsock://1"], Syntax::Kdl, None),
            (&["-v"], Syntax::Kdl, None),
        ] {
            let mut process = Config::default();
            process.set_entrypoint(Some(vec!["/agent".to_owned()]));
            process.set_cmd(Some(cmd.iter().map(|it| (*it).to_owned()).collect()));
            let image = ImageConfig { component: ComponentName::Agent, process: &process };
            let found = OnLoopback::of(image, false, 4088).and_then(|it| it.written(syntax));
            assert_eq!(found.as_deref(), expected, "{cmd:?}");
        }
    }

    #[test]
    fn a_command_line_that_is_replaced_or_not_started_is_no_error() {
        let image = (&["/agent"][..], &["--listen", "vsock://4088"][..]);
        for agent in ["args", "args \"--listen\" \"127.0.0.1:4088\"", "entrypoint \"/other\""] {
            assert_eq!(correction([agent, ""], image.0, image.1), None, "{agent}");
        }
        let started = correction(["args", "autostart #true"], image.0, image.1);
        assert_eq!(started.as_deref(), Some(r#"business: args "--listen" "127.0.0.1:4088""#));
    }
}
