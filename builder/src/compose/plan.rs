//! Makes the run plan. The Boxfile overrides the image's config, which overrides the defaults.

use std::collections::BTreeMap;

use box_contract::defaults::SEARCH_PATH;
use box_contract::plan::{
    AGENT_CONFIG_PATH, AGENT_CONFIG_VARIABLE, PlanError, SSH_AGENT_SOCKET, SSH_AGENT_VARIABLE,
};
use box_contract::{
    Capabilities, ComponentName, ComponentPlan, Health, Namespaces, NetworkMode, Restart, Rlimits,
    RunPlan, SkillPlan, SystemDirectories, Unsupported, User, network,
};
use boxfile_spec::{Boxfile, Component, Skill};

use super::conventions::Conventions;
use super::labels::ImageConfig;
use super::root::root_of;
use super::user::{Named, resolve};
use super::{ComposeError, FlatImage, vsock};
use crate::binary::AGENT_PATH;
use crate::pack::PackReader;

/// The variables of the components' environment files.
pub type Env = BTreeMap<ComponentName, BTreeMap<String, String>>;

/// Returns the run plan of a box. `skills` are sorted by name.
///
/// # Errors
/// [`ComposeError`].
pub fn plan_of(
    boxfile: &Boxfile,
    env: &Env,
    skills: Vec<SkillPlan>,
    images: &[FlatImage],
    packs: &mut PackReader<'_>,
) -> Result<RunPlan, ComposeError> {
    let (mut agent, mut business) = (None, None);
    for flat in images {
        let Some(component) = boxfile.component(flat.component) else { continue };
        let plan = component_plan(boxfile, component, env, flat, packs)?;
        let plan = match flat.component {
            ComponentName::Agent => agent_plan(boxfile, flat, plan)?,
            ComponentName::Business => business_plan(boxfile, plan)?,
        };
        vsock::check(boxfile, flat, &plan)?;
        let known = match flat.component {
            ComponentName::Agent => &mut agent,
            ComponentName::Business => &mut business,
        };
        *known = Some(plan);
    }
    let Some(agent) = agent.filter(|agent| !agent.argv.is_empty()) else {
        return Err(ComposeError::NoProgram { component: ComponentName::Agent.name() });
    };
    Ok(declared(boxfile, skills, agent, business))
}

/// Returns the declarations of a Boxfile that boxlaunch does not support yet. The images are not read.
pub fn unsupported(boxfile: &Boxfile) -> Vec<Unsupported> {
    without_images(boxfile).unsupported()
}

/// Checks that a VM has enough devices for what a Boxfile declares. The images are not read.
///
/// # Errors
/// [`PlanError::Devices`].
pub fn check_devices(boxfile: &Boxfile) -> Result<(), PlanError> {
    without_images(boxfile).check_devices()
}

/// Returns a plan of what a Boxfile declares, whose components lack everything that depends on their images.
fn without_images(boxfile: &Boxfile) -> RunPlan {
    let skill =
        |it: &Skill| SkillPlan { name: it.name.clone(), mode: it.mode, ..SkillPlan::default() };
    let skills = boxfile.skills.iter().map(skill).collect();
    let agent = ComponentPlan {
        root: String::new(),
        argv: Vec::new(),
        env: Vec::new(),
        launch_env: Vec::new(),
        workdir: String::new(),
        user: User::ROOT,
        hostname: String::new(),
        namespaces: Namespaces::default(),
        limits: boxfile.agent.component.limits,
        rlimits: Rlimits::default(),
        capabilities: Capabilities::default(),
        system: SystemDirectories::default(),
        autostart: false,
        restart: Restart::default(),
        stop_signal: None,
        port: None,
        health: None,
    };
    let business = boxfile.business.as_ref().map(|_| agent.clone());
    declared(boxfile, skills, agent, business)
}

/// Returns the run plan of a Boxfile whose components have the plans `agent` and `business`.
fn declared(
    boxfile: &Boxfile,
    skills: Vec<SkillPlan>,
    agent: ComponentPlan,
    business: Option<ComponentPlan>,
) -> RunPlan {
    RunPlan {
        name: boxfile.name.clone(),
        layout: boxfile.layout,
        agent_kind: boxfile.agent.kind,
        tools: boxfile.agent.tools.clone().unwrap_or_default(),
        agent,
        business,
        skills,
        shares: boxfile.shares.iter().map(|share| share.value.plan.clone()).collect(),
        scratch: boxfile.scratch.iter().map(|disk| disk.value.clone()).collect(),
        volumes: boxfile.volumes.iter().map(|volume| volume.value.clone()).collect(),
        disk_bytes: boxfile.disk_bytes,
        network: boxfile.network.clone(),
        publish: boxfile.publish.clone(),
        secrets: boxfile.secrets.clone(),
        services: boxfile.services.clone(),
        ssh_agent: boxfile.ssh_agent,
        task: boxfile.task.clone(),
        logs: boxfile.logs,
        caps: boxfile.caps.clone(),
        sandbox: boxfile.sandbox.clone(),
        mcp: boxfile.mcp.iter().map(|server| server.value.clone()).collect(),
        // The definitions are files of the checkout, which are read with the other inputs.
        agents: Vec::new(),
        hooks: boxfile.hooks.iter().map(|hook| hook.value.clone()).collect(),
        vm: boxfile.vm,
        budget: boxfile.budget,
    }
}

/// Completes the agent's plan: the command line of a `binary`, the port, and the health check.
fn agent_plan(
    boxfile: &Boxfile,
    flat: &FlatImage,
    mut plan: ComponentPlan,
) -> Result<ComponentPlan, ComposeError> {
    let agent = &boxfile.agent;
    if agent.binary.is_some() && agent.component.entrypoint.is_none() {
        let args = agent.component.args.clone().unwrap_or_default();
        plan.argv = [vec![AGENT_PATH.to_owned()], args].concat();
    }
    let port = agent.port.or(flat.config().port()?).unwrap_or_else(|| agent.kind.default_port());
    plan.port = Some(port);
    let of_label = Some(boxfile_spec::Health::A3s { port: None })
        .filter(|_| !agent.declares_health && flat.config().has_interface());
    let check = of_label.as_ref().or(agent.health.as_ref());
    plan.health = check.and_then(|check| health(check, Some(port)));
    Ok(plan)
}

/// Completes the business application's plan: autostart, restart policy, and health check.
fn business_plan(boxfile: &Boxfile, plan: ComponentPlan) -> Result<ComponentPlan, ComposeError> {
    let Some(declared) = &boxfile.business else { return Ok(plan) };
    if declared.autostart && plan.argv.is_empty() {
        return Err(ComposeError::NoProgram { component: ComponentName::Business.name() });
    }
    let health = declared.health.as_ref().and_then(|check| health(check, None));
    Ok(ComponentPlan { autostart: declared.autostart, restart: declared.restart, health, ..plan })
}

fn component_plan(
    boxfile: &Boxfile,
    component: &Component,
    env: &Env,
    flat: &FlatImage,
    packs: &mut PackReader<'_>,
) -> Result<ComponentPlan, ComposeError> {
    let (name, config) = (flat.component.name(), flat.config());
    config.check_type()?;
    let (user, span) = match &component.user {
        Some(user) => (Some(user.value.as_str()), Some(user.span)),
        None => (config.process.user().as_deref(), None),
    };
    let whose = format!("the {name} component runs as");
    let named = Named { user: user.unwrap_or_default(), whose: &whose, span };
    let account = resolve(name, named, &flat.tree, packs)?;
    let files = env.get(&flat.component);
    let is_judged =
        |name: &str| component.decides(name) || files.is_some_and(|it| it.contains_key(name));
    let conventions = Conventions::of(flat, is_judged, packs)?;
    let is_secret = |name: &str| {
        boxfile.secrets.iter().any(|it| it.name == name && it.scope.includes(flat.component))
    };
    config.check_model_key(|name| is_judged(name) || is_secret(name))?;
    let proxies = addresses(boxfile, flat.component);
    let declared = Declared { files, component };
    let env = environment(config, account.home(), conventions, proxies, declared)?;
    let argv = argv(component, config);
    let declared = component.workdir.as_ref().map(|it| it.value.as_str());
    let workdir = declared.or(config.workdir()).unwrap_or("/").to_owned();
    Ok(ComponentPlan {
        root: root_of(boxfile.layout, flat.component),
        argv,
        env,
        launch_env: component.launch_env.iter().cloned().collect(),
        workdir,
        user: account.user,
        hostname: component.hostname.clone(),
        namespaces: component.namespaces,
        limits: component.limits,
        rlimits: component.rlimits,
        capabilities: component.capabilities,
        system: component.system,
        autostart: false,
        restart: Restart::default(),
        stop_signal: config.stop_signal()?,
        port: None,
        health: None,
    })
}

/// Returns the health check of a plan. A check without a port uses the port of its component. The business application
/// has no port, so the Boxfile's parser requires one in its check.
fn health(health: &boxfile_spec::Health, own_port: Option<u16>) -> Option<Health> {
    Some(match health.clone() {
        boxfile_spec::Health::Tcp { port } => Health::Tcp { port: port.or(own_port)? },
        boxfile_spec::Health::Http { port, path } => {
            Health::Http { port: port.or(own_port)?, path }
        }
        boxfile_spec::Health::Grpc { port, service } => {
            Health::Grpc { port: port.or(own_port)?, service }
        }
        boxfile_spec::Health::A3s { port } => Health::A3s { port: port.or(own_port)? },
        boxfile_spec::Health::Exec { argv } => Health::Exec { argv: argv.value },
    })
}

/// Returns the command line, with the precedence of docker: another entrypoint drops the image's CMD, and other
/// arguments replace the CMD but keep the entrypoint.
fn argv(declared: &Component, image: ImageConfig<'_>) -> Vec<String> {
    let program = declared.entrypoint.iter().flat_map(|it| it.value.clone());
    let args = declared.args.clone().unwrap_or_default();
    program.chain(image_words(declared, image)).chain(args).collect()
}

/// Returns the words of a component's command line that come from its image.
pub(crate) fn image_words(declared: &Component, image: ImageConfig<'_>) -> Vec<String> {
    match (&declared.entrypoint, &declared.args) {
        (Some(_), _) => Vec::new(),
        (None, Some(_)) => image.program().0,
        (None, None) => <[_; 2]>::from(image.program()).concat(),
    }
}

/// Returns the variables that point a component to its box's filter, such as `HTTP_PROXY`, those with the addresses of its
/// services, the one with the socket of the SSH agent, and the one with the path of the agent's configuration.
fn addresses(boxfile: &Boxfile, component: ComponentName) -> Vec<(String, String)> {
    let mut proxies = match boxfile.network.mode {
        NetworkMode::Filtered => network::variables(component, hostname(boxfile, component)),
        NetworkMode::None | NetworkMode::Shared | NetworkMode::CapOnly => Vec::new(),
    };
    let own = (0..).zip(&boxfile.services).filter(|(_, it)| it.component == component);
    let mut services = own.peekable();
    if services.peek().is_some() {
        proxies = network::past_proxy(component, proxies);
    }
    let proxies = proxies.into_iter().map(|(name, value)| (name.to_owned(), value));
    let urls = services.filter_map(|(number, it)| {
        Some((it.env.clone()?, network::service_url(component, number)))
    });
    let agent = boxfile.ssh_agent.filter(|it| it.scope.includes(component));
    let agent = agent.map(|_| (SSH_AGENT_VARIABLE.to_owned(), SSH_AGENT_SOCKET.to_owned()));
    let has_config = component == ComponentName::Agent && boxfile.has_agent_config();
    let config =
        has_config.then(|| (AGENT_CONFIG_VARIABLE.to_owned(), AGENT_CONFIG_PATH.to_owned()));
    proxies.chain(urls).chain(agent).chain(config).collect()
}

/// Returns the host name of a component.
fn hostname(boxfile: &Boxfile, component: ComponentName) -> &str {
    boxfile.component(component).map_or("", |it| it.hostname.as_str())
}

/// The declared variables of a component.
struct Declared<'a> {
    files: Option<&'a BTreeMap<String, String>>,
    component: &'a Component,
}

/// Returns `NAME=value` entries, sorted by name, each name once. In ascending precedence: the image's variables and
/// conventions, the addresses in the box, which the image cannot know, and the declared variables.
fn environment(
    image: ImageConfig<'_>,
    home: &str,
    conventions: Conventions,
    addresses: Vec<(String, String)>,
    declared: Declared<'_>,
) -> Result<Vec<String>, ComposeError> {
    let mut env = BTreeMap::from([("PATH".to_owned(), SEARCH_PATH.to_owned())]);
    env.insert("HOME".to_owned(), home.to_owned());
    env.extend(conventions.implied);
    env.extend(image.env()?);
    if let Some(path) = env.get_mut("PATH") {
        let own = Some(std::mem::take(path)).filter(|it| !it.is_empty());
        *path = conventions.path.into_iter().chain(own).collect::<Vec<_>>().join(":");
    }
    env.extend(conventions.file);
    env.extend(addresses);
    let own = &declared.component.env;
    declared.files.into_iter().chain([own]).for_each(|variables| env.extend(variables.clone()));
    // A variable that is required at launch has no value in the plan, even if the image sets it.
    env.retain(|name, _| !declared.component.required_env().any(|it| it == name));
    Ok(env.into_iter().map(|(name, value)| format!("{name}={value}")).collect())
}

#[cfg(test)]
mod tests {
    use box_tree::Tree;
    use oci_image::Config;

    use super::*;

    /// Returns the environments of the agent, for which the Boxfile has `lines`, and of the business application.
    /// Both images set a proxy.
    fn environments(network: &str, lines: &str) -> [Vec<String>; 2] {
        let text = format!(
            "box b\nagent {{\nimage \"oci:i\"\nentrypoint \"/a\"\n{lines}\n}}\n\
             business {{ image \"oci:i\"; }}\n{network}\n"
        );
        let boxfile = boxfile_spec::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let mut process = Config::default();
        process.set_env(Some(vec!["HTTP_PROXY=http://image:1".to_owned(), "LANG=C".to_owned()]));
        let image = |component| {
            let (process, tree) = (process.clone(), Tree::default());
            FlatImage { component, process, tree }
        };
        let dir = tempfile::tempdir().unwrap();
        let store = box_cache::Store::open(dir.path()).unwrap();
        let contents = crate::pack::ContentMap::default();
        let (images, mut packs) = (ComponentName::ALL.map(image), contents.reader(&store));
        let plan = plan_of(&boxfile, &Env::new(), Vec::new(), &images, &mut packs).unwrap();
        [plan.agent.env, plan.business.unwrap().env]
    }

    fn value(env: &[String], name: &str) -> Option<String> {
        let of = |it: &String| {
            it.split_once('=').filter(|(key, _)| *key == name).map(|it| it.1.to_owned())
        };
        env.iter().find_map(of)
    }

    #[test]
    fn what_has_to_be_given_at_launch_is_not_what_the_image_says() {
        let lines = "env LANG\nenv REGION \"eu\" launch=#true";
        let [agent, business] = environments("", lines);
        assert_eq!(value(&agent, "LANG"), None);
        assert_eq!(value(&agent, "REGION").as_deref(), Some("eu"));
        assert_eq!(value(&business, "LANG").as_deref(), Some("C"), "it declares nothing");
    }

    const FILTERED: &str = "network filtered { allow \"a.example\"; }";

    #[test]
    fn a_component_of_a_filtered_box_finds_its_own_proxy() {
        let all = environments(FILTERED, "");
        for (env, component) in all.iter().zip(ComponentName::ALL) {
            for (name, proxy) in
                network::variables(component, &format!("{}-host", component.name()))
            {
                assert_eq!(value(env, name), Some(proxy), "{name}, over that of the image");
            }
            assert_eq!(value(env, "LANG").as_deref(), Some("C"));
            assert!(env.is_sorted(), "{env:?}");
        }
        assert_ne!(value(&all[0], "http_proxy"), value(&all[1], "http_proxy"));
    }

    #[test]
    fn what_a_boxfile_says_of_a_proxy_holds() {
        let own = "env HTTP_PROXY=\"http://127.0.0.1:9\" no_proxy=\"\"";
        let [agent, business] = environments(FILTERED, own);
        assert_eq!(value(&agent, "HTTP_PROXY").as_deref(), Some("http://127.0.0.1:9"));
        assert_eq!(value(&agent, "no_proxy").as_deref(), Some(""));
        let proxy = Some("http://198.18.0.1:3128");
        assert_eq!(value(&agent, "http_proxy").as_deref(), proxy, "nothing is said of it");
        assert_eq!(value(&business, "HTTP_PROXY").as_deref(), Some("http://198.19.0.1:3128"));
    }

    #[test]
    fn a_component_finds_its_services_past_its_proxy() {
        let services = "service a to=\"https://a.example\"\n\
                        service b to=\"https://b.example\" component=\"business\" env=\"B_URL\"\n\
                        service c to=\"https://c.example\" env=\"C_URL\"";
        let [agent, business] = environments(&format!("{FILTERED}\n{services}"), "");
        assert_eq!(value(&agent, "C_URL").as_deref(), Some("http://198.18.0.1:8103"));
        assert_eq!(value(&business, "B_URL").as_deref(), Some("http://198.19.0.1:8102"));
        assert_eq!((value(&agent, "B_URL"), value(&business, "C_URL")), (None, None));
        for (env, own) in [(agent, "198.18.0.1"), (business, "198.19.0.1")] {
            let past = value(&env, "no_proxy").unwrap();
            assert!(past.ends_with(&format!(",{own}")), "{past}");
        }
        let [agent, _] = environments(services, "");
        assert_eq!(value(&agent, "C_URL").as_deref(), Some("http://198.18.0.1:8103"));
        assert_eq!(value(&agent, "NO_PROXY"), None);
    }

    #[test]
    fn the_components_of_a_scope_find_the_ssh_agent() {
        let socket = Some("/run/ssh-agent.sock");
        for (component, expected) in
            [("agent", [socket, None]), ("business", [None, socket]), ("both", [socket, socket])]
        {
            let text = format!("ssh-agent component=\"{component}\"");
            let found = environments(&text, "").map(|env| value(&env, "SSH_AUTH_SOCK"));
            assert_eq!(found.each_ref().map(Option::as_deref), expected, "{component}");
        }
    }

    #[test]
    fn an_agent_with_a_configuration_finds_it() {
        for declared in
            ["agents dir=\"agents\"", "mcp m { command \"/m\"; }", "hook session-end \"/h\""]
        {
            let [agent, business] = environments(declared, "");
            let path = Some("/a3s/config/agent.json");
            assert_eq!(value(&agent, "A3S_AGENT_CONFIG").as_deref(), path, "{declared}");
            assert_eq!(value(&business, "A3S_AGENT_CONFIG"), None);
        }
    }

    #[test]
    fn a_box_without_a_filter_has_the_environment_of_its_image() {
        for mode in [
            "",
            "network none",
            "network shared",
            "network cap-only\nservice a to=\"https://a.example\"",
        ] {
            for env in environments(mode, "") {
                let names: Vec<&str> = env.iter().filter_map(|it| it.split('=').next()).collect();
                assert_eq!(names, ["HOME", "HTTP_PROXY", "LANG", "PATH"], "{mode}");
                assert_eq!(value(&env, "HTTP_PROXY").as_deref(), Some("http://image:1"));
            }
        }
    }
}
