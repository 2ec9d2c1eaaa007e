//! The text of a first Boxfile.

use box_contract::ComponentName;
use box_contract::defaults::AGENT_PORT;
use boxbuild::compose::{ImageConfig, OnLoopback};
use diagnostics::{Syntax, in_quotes, with_texts};
use oci_image::Config;
use safe_text::secrets::mask_words;

use super::waiting::{FOREVER, SLEEP};

/// The comment on the port of an agent that serves the agent interface.
const OF_INTERFACE: &str =
    "The port of the agent's interface; the box is ready when the agent is healthy.";

/// The comment on the words of an image with an address of the loopback instead of one of AF_VSOCK.
const OF_LOOPBACK: &str =
    "As in the image, but on the loopback: no program in a box can use an address of AF_VSOCK.";

/// The properties of an image that a first Boxfile shows.
pub(super) struct Found {
    pub(super) reference: String,
    /// The program and arguments in the image's config or label.
    pub(super) program: Option<String>,
    user: Option<String>,
    workdir: Option<String>,
    /// The port in the image's label, or else the only TCP port that the image exposes.
    port: Option<u16>,
    /// Whether a label says that the image is an agent's.
    is_agents: bool,
    /// Whether a label says that the agent serves the agent interface.
    has_interface: bool,
    /// The replacement for an address of AF_VSOCK in the image's command line.
    on_loopback: Option<OnLoopback>,
}

impl Found {
    /// Extracts the properties from an image's config.
    pub(super) fn new(reference: &str, process: &Config) -> Self {
        let config = ImageConfig { component: ComponentName::Agent, process };
        let (program, args) = config.program();
        let mut argv = [program, args].concat();
        mask_words(&mut argv);
        let exposed = process.exposed_ports().iter().flatten();
        let mut ports = exposed.filter_map(|port| tcp_port(port));
        let (first, second) = (ports.next(), ports.next());
        // A malformed label is ignored.
        let port = config.port().ok().flatten().or(first.filter(|_| second.is_none()));
        Self {
            reference: reference.to_owned(),
            program: (!argv.is_empty()).then(|| visible(&argv.join(" "))),
            user: process.user().as_deref().filter(|it| !it.is_empty()).map(visible),
            workdir: config.workdir().map(visible),
            port,
            is_agents: config.declared_type().is_some(),
            has_interface: config.has_interface(),
            on_loopback: OnLoopback::of(config, false, port.unwrap_or(AGENT_PORT)),
        }
    }

    /// Returns whether nothing says that the image starts a server, so that a box whose readiness is a connection would never be
    /// ready.
    pub(super) const fn may_only_wait(&self) -> bool {
        self.port.is_none() && !self.is_agents && !self.has_interface && self.on_loopback.is_none()
    }

    /// Returns the agent's port and the comment that explains it.
    const fn listens(&self) -> (&'static str, u16) {
        match (self.port, &self.on_loopback) {
            (Some(port), _) if self.has_interface => (OF_INTERFACE, port),
            (None, Some(it)) if self.has_interface => (OF_INTERFACE, it.port),
            (None, None) if self.has_interface => (OF_INTERFACE, AGENT_PORT),
            (Some(port), _) => (
                "The port that the image exposes; the box is ready when it accepts a connection.",
                port,
            ),
            (None, Some(it)) => (
                "The port in the image's command line; the box is ready when it accepts a connection.",
                it.port,
            ),
            (None, None) if self.is_agents => (
                "A guess: the image exposes no port. The box is ready when it accepts a connection.",
                AGENT_PORT,
            ),
            (None, None) => (
                "A guess: the image exposes no port, and has no `sleep` for a box that only waits. The box is ready when \
                 the port accepts a connection.",
                AGENT_PORT,
            ),
        }
    }

    /// Returns a comment that describes the image's process.
    fn described(&self) -> String {
        let mut parts = vec![match &self.program {
            Some(program) => format!("runs `{program}`"),
            None => "names no program of its own".to_owned(),
        }];
        parts.extend(self.workdir.iter().map(|workdir| format!("in {workdir}")));
        parts.extend(self.user.iter().map(|user| format!("as {user}")));
        format!("The image {}.", parts.join(" "))
    }
}

/// Makes foreign text safe for a comment: without line ends and control characters, and at most 80
/// characters long.
fn visible(text: &str) -> String {
    safe_text::shown(text).chars().take(80).collect()
}

/// A first Boxfile.
pub(super) struct Scaffold {
    pub(super) name: String,
    pub(super) agent: Found,
    pub(super) business: Option<Found>,
    /// The agent's program, which replaces the image's program.
    pub(super) entrypoint: Option<String>,
    /// Whether the agent only waits.
    pub(super) waits: bool,
    /// Whether the directory `skills` contains a skill.
    pub(super) skills: bool,
}

impl Scaffold {
    /// Returns the text in KDL.
    pub(super) fn kdl(&self) -> String {
        let agent = &self.agent;
        let mut text = format!(
            "// `boxbuild build` builds this box; `boxlaunch run {name}` starts it.\n\
             // Every declaration: docs/boxfile.md, or `boxbuild schema --reference`.\n\
             box \"{name}\"\n\n\
             // The component that is started with the box. {}\n\
             agent {{\n    image {}\n",
            agent.described(),
            in_quotes(Syntax::Kdl, &agent.reference),
            name = self.name,
        );
        text += &self.start(Syntax::Kdl);
        text += "    limits memory=\"512MiB\" pids=100\n}\n";
        if let Some(business) = &self.business {
            text += &format!(
                "\n// Where the agent's commands run. {}\nbusiness {{\n    image {}\n    \
                 limits memory=\"1GiB\" pids=200\n}}\n",
                business.described(),
                in_quotes(Syntax::Kdl, &business.reference)
            );
        }
        if self.skills {
            text += "\n// Every directory in it that has a SKILL.md.\nskills dir=\"skills\"\n";
        }
        text + "\n// A box that takes longer to be ready is stopped.\nbudget total=\"5s\"\n"
    }

    /// Returns the declarations of the agent's program and readiness, with comments.
    fn start(&self, syntax: Syntax) -> String {
        let (before, comment, is) = match syntax {
            Syntax::Kdl => ("    ", "//", " "),
            Syntax::Toml => ("", "#", " = "),
        };
        let line = |text: &str| format!("{before}{text}\n");
        let says = |text: &str| line(&format!("{comment} {text}"));
        let declares = |name: &str, value: &str| line(&format!("{name}{is}{value}"));
        let none = declares("health", "\"none\"");
        if self.waits {
            let words = [SLEEP, FOREVER].map(str::to_owned);
            let waits = "The image exposes no port, so the box only waits, and is ready at once:";
            let runs = format!("`boxlaunch run {} -- CMD` runs a command in it.", self.name);
            let other = "A program of the image could take the place of both lines. If it is a server, declare its \
                         `port` and `health`.";
            return says(waits)
                + &says(&runs)
                + &says(other)
                + &line(&with_texts(syntax, "entrypoint", &words))
                + &none;
        }
        let declared = match (&self.entrypoint, &self.agent.on_loopback) {
            (Some(it), _) => {
                let text = format!("entrypoint{is}{}", in_quotes(syntax, it));
                Some(("The program that is started.", text))
            }
            (None, Some(it)) => it.written(syntax).map(|text| (OF_LOOPBACK, text)),
            (None, None) => None,
        };
        let program = declared.map(|(reason, text)| says(reason) + &line(&text));
        let program = program.unwrap_or_default();
        if self.entrypoint.is_some() && self.agent.may_only_wait() {
            let at_once = "The box is ready at once. If the program is a server, declare its `port` and `health`.";
            return program + &says(at_once) + &none;
        }
        let (reason, port) = self.agent.listens();
        let check = if self.agent.has_interface { "\"a3s\"" } else { "\"tcp\"" };
        program + &says(reason) + &declares("port", &port.to_string()) + &declares("health", check)
    }

    /// Returns the text in TOML.
    pub(super) fn toml(&self) -> String {
        let agent = &self.agent;
        let mut text = format!(
            "# `boxbuild build` builds this box; `boxlaunch run {name}` starts it.\n\
             # Every declaration: docs/boxfile.md, or `boxbuild schema --reference`.\n\
             box = \"{name}\"\n\
             # A box that takes longer to be ready is stopped.\n\
             budget = {{ total = \"5s\" }}\n",
            name = self.name,
        );
        if self.skills {
            text += "# Every directory in it that has a SKILL.md.\nskills = { dir = \"skills\" }\n";
        }
        text += &format!(
            "\n# The component that is started with the box. {}\n[agent]\nimage = {}\n",
            agent.described(),
            in_quotes(Syntax::Toml, &agent.reference)
        );
        text += &self.start(Syntax::Toml);
        text += "limits = { memory = \"512MiB\", pids = 100 }\n";
        if let Some(business) = &self.business {
            text += &format!(
                "\n# Where the agent's commands run. {}\n[business]\nimage = {}\n\
                 limits = {{ memory = \"1GiB\", pids = 200 }}\n",
                business.described(),
                in_quotes(Syntax::Toml, &business.reference)
            );
        }
        text
    }
}

/// Returns the port of an entry of `ExposedPorts`, such as `80` or `80/tcp`. `None` for another protocol and for port 0.
fn tcp_port(exposed: &str) -> Option<u16> {
    let (port, protocol) = exposed.split_once('/').unwrap_or((exposed, "tcp"));
    let port = port.parse().ok().filter(|port| *port > 0)?;
    (protocol == "tcp").then_some(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exposed_port_is_a_tcp_port_other_than_0() {
        assert_eq!([tcp_port("80"), tcp_port("80/tcp")], [Some(80); 2]);
        assert_eq!([tcp_port("53/udp"), tcp_port("0/tcp"), tcp_port("80-90")], [None; 3]);
    }
}
