//! The files that a box adds to a component's root: host names and the resolver's configuration, an account of the
//! component's user if the image has none, and the mount points of init.
//!
//! These files are a separate layer, such as `/boxbuild/system/agent`, which init mounts above the image with
//! [overlayfs](https://docs.kernel.org/filesystems/overlayfs.html). The image stays unchanged, and components that
//! share a root differ in these files. overlayfs shows a directory with the attributes of its uppermost layer, so each
//! directory of this layer copies the attributes of the image's directory.

use box_contract::accounts::{self, MAX_ACCOUNTS};
use box_contract::plan::{
    AGENT_CONFIG_PATH, BOX_EXEC_PATH, EXEC_SOCKET_PATH, SKILLS_PATH, TOOLS_PATH,
};
use box_contract::rules::{GROUP, KERNEL_DIRECTORIES, PASSWD};
use box_contract::{ComponentName, ComponentPlan, NetworkMode, RunPlan, User, network};
use box_tree::{Content, Inode, InodeId, Leaf, Meta, Origin, ReadContent, Tree, path};

use super::ComposeError;
use super::error::owner;

/// The end of a message about the skills' directory.
pub(super) const SKILLS_PLACE: &str = "where the box has its skills";
const ETC: &[u8] = b"/etc";
const HOSTS: &str = "/etc/hosts";
const HOSTNAME: &str = "/etc/hostname";
const RESOLV_CONF: &str = "/etc/resolv.conf";
const NSSWITCH: &str = "/etc/nsswitch.conf";

/// The names of the loopback addresses, which every box has.
const LOOPBACK: &str = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n";
/// Without a server, a resolver asks one on loopback. These options make it give up soon.
const RESOLVER: &str =
    "# The box has no network: names are those of /etc/hosts.\noptions attempts:1 timeout:1\n";
/// The sources of the C library's lookups, in Debian's order:
/// [nsswitch.conf(5)](https://man7.org/linux/man-pages/man5/nsswitch.conf.5.html).
const LOOKUPS: &str =
    "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\n";
/// The content of a file over which init mounts another file. The content is visible only in a box that does not run.
const MOUNT_POINT: &str = "init mounts something here\n";
const ROOT_USER: &str = "root:x:0:0:root:/:/bin/sh\n";
const ROOT_GROUP: &str = "root:x:0:\n";
/// The overflow user of Linux, with its name in Debian and other distributions.
const NOBODY_USER: &str = "nobody:x:65534:65534:nobody:/:/bin/false\n";
const NOBODY_GROUP: &str = "nogroup:x:65534:\n";
const NOBODY: u32 = 65534;

/// The system layer of a component.
#[derive(Debug)]
pub struct System {
    /// The component that gets the layer.
    pub component: ComponentName,
    /// The layer's entries.
    pub tree: Tree,
    /// The contents of the files in `tree`.
    pub data: Vec<Vec<u8>>,
}

impl System {
    /// Returns the layer of a component whose root is `image`, in a box with `plan`. `packs` has the image's files.
    ///
    /// # Errors
    /// - [`ComposeError::Hidden`] if the image has another type of entry at the path of one of the layer's directories.
    /// - [`ComposeError::Unreadable`] if the image's accounts cannot be read.
    pub fn new(
        component: ComponentName,
        image: &Tree,
        plan: &RunPlan,
        packs: &mut impl ReadContent,
    ) -> Result<Self, ComposeError> {
        let mut tree = Tree::default();
        tree.inode_mut(Tree::ROOT).meta = image.inode(Tree::ROOT).meta.clone();
        let mut layer = Self { component, tree, data: Vec::new() };
        let Some(own) = plan.component(component) else { return Ok(layer) };
        for path in KERNEL_DIRECTORIES {
            let mounted = "where the guest mounts a file system of the kernel";
            layer.make_directory(image, path.as_bytes(), mounted)?;
        }
        if !plan.skills.is_empty() {
            layer.make_directory(image, SKILLS_PATH.as_bytes(), SKILLS_PLACE)?;
        }
        for guest in plan.mount_points(component) {
            layer.make_directory(
                image,
                guest.as_bytes(),
                "where the guest mounts a share or a disk",
            )?;
        }
        if plan.calls_from(component) {
            layer.put(image, BOX_EXEC_PATH, MOUNT_POINT.to_owned())?;
            layer.put(image, EXEC_SOCKET_PATH, MOUNT_POINT.to_owned())?;
        }
        if component == ComponentName::Agent && !plan.tools.is_empty() {
            layer.put(image, TOOLS_PATH, tools(plan))?;
        }
        if component == ComponentName::Agent
            && let Some(config) = plan.agent_config()
        {
            layer.put(image, AGENT_CONFIG_PATH, config)?;
        }
        layer.put_texts(image, plan, own, packs)?;
        Ok(layer)
    }

    /// Adds the files in `/etc`. If `/etc` is a link in the image, none are added.
    fn put_texts(
        &mut self,
        image: &Tree,
        plan: &RunPlan,
        own: &ComponentPlan,
        packs: &mut impl ReadContent,
    ) -> Result<(), ComposeError> {
        if image.reach(ETC).is_ok_and(|id| image.inode(id).target().is_some()) {
            return Ok(());
        }
        for (path, text) in always(self.component, plan, own) {
            self.put(image, path, text)?;
        }
        for (path, text) in where_missing(self.component, own) {
            if image.reach(path.as_bytes()).is_err() {
                self.put(image, path, text)?;
            }
        }
        self.put_account(image, own, packs)
    }

    /// Adds the component's user to the image's passwd, and its group to the image's group file, if a file has no account
    /// with the number. Without an account, programs such as `whoami`, `ssh` and `git` do not know their user.
    ///
    /// Root is in every file that programs rely on. A link, and a file of the checkout, decide about the accounts themselves.
    fn put_account(
        &mut self,
        image: &Tree,
        own: &ComponentPlan,
        packs: &mut impl ReadContent,
    ) -> Result<(), ComposeError> {
        for (file, number) in [(PASSWD, own.user.uid), (GROUP, own.user.gid)] {
            let Ok(id) = image.reach(file.as_bytes()) else { continue };
            let inode = image.inode(id);
            let Some(content) = inode.content() else { continue };
            if number == 0 || matches!(inode.origin, Origin::File(_)) {
                continue;
            }
            let component = self.component.name();
            let unreadable = |source| ComposeError::Unreadable { component, file, source };
            let data = packs.read(*content, MAX_ACCOUNTS).map_err(unreadable)?;
            let text = String::from_utf8_lossy(&data).into_owned();
            if !accounts::has_number(&text, number) {
                let name = accounts::free_name(&text, component);
                let user = file == PASSWD;
                let line = if user { user_line(&name, own) } else { group_line(&name, number) };
                self.put_as(image, file, inode.meta.clone(), with_line(data, &line))?;
            }
        }
        Ok(())
    }

    /// Creates a directory and its parents, with the attributes of the image's directories. An image with another type
    /// of entry at one of these paths is refused: a link would redirect a mount (CVE-2026-41579 in another runtime).
    fn make_directory(
        &mut self,
        image: &Tree,
        path: &[u8],
        mounted: &str,
    ) -> Result<InodeId, ComposeError> {
        let (mut directory, mut here) = (Tree::ROOT, Vec::new());
        for name in path::names(path) {
            here = path::join(&here, name);
            directory = self.tree.ensure_directory(directory, name);
            let Ok(id) = image.reach(&here) else { continue };
            let inode = image.inode(id);
            if inode.names().is_none() {
                let (whose, baked) = owner(inode, self.component);
                return Err(ComposeError::Hidden {
                    component: whose,
                    baked,
                    path: path::lossy(&here),
                    found: "something other than a directory".to_owned(),
                    mounted: mounted.to_owned(),
                    span: None,
                });
            }
            self.tree.inode_mut(directory).meta = inode.meta.clone();
        }
        Ok(directory)
    }

    /// Adds a file, which replaces the image's entry at its path.
    fn put(&mut self, image: &Tree, path: &str, text: String) -> Result<(), ComposeError> {
        self.put_as(image, path, Meta::root_owned(0o644), text.into_bytes())
    }

    /// Adds a file with the attributes `meta`, which replaces the image's entry at its path.
    fn put_as(
        &mut self,
        image: &Tree,
        path: &str,
        meta: Meta,
        data: Vec<u8>,
    ) -> Result<(), ComposeError> {
        let (directory, name) = path::split(path.as_bytes());
        let mounted = format!("on the way to {path}, which the box has");
        let directory = self.make_directory(image, directory, &mounted)?;
        let file = Leaf::File(Content::of(&data));
        let file = self.tree.add(Inode::leaf(meta, file));
        self.tree.link(directory, name, file);
        self.data.push(data);
        Ok(())
    }
}

/// Returns the files that the box adds even if the image has them, as every container runtime does.
fn always(
    component: ComponentName,
    plan: &RunPlan,
    own: &ComponentPlan,
) -> Vec<(&'static str, String)> {
    let mut files = vec![(HOSTS, hosts(component, plan)), (RESOLV_CONF, resolver(component, plan))];
    if own.namespaces.uts {
        files.push((HOSTNAME, format!("{}\n", own.hostname)));
    }
    files
}

/// Returns the names of the tools that the agent may use, as a JSON array.
fn tools(plan: &RunPlan) -> String {
    format!("{}\n", serde_json::json!(plan.tools))
}

/// Returns the resolver's configuration for a component.
fn resolver(component: ComponentName, plan: &RunPlan) -> String {
    match plan.network.mode {
        NetworkMode::Filtered => {
            let server = network::own_address(component);
            format!(
                "# Names are looked up by the box's filter.\nnameserver {server}\noptions attempts:1 timeout:5\n"
            )
        }
        NetworkMode::Shared => {
            let server = network::SHARED_RESOLVER;
            format!("# Names are looked up by the host's resolver.\nnameserver {server}\n")
        }
        NetworkMode::None | NetworkMode::CapOnly => RESOLVER.to_owned(),
    }
}

/// Returns the content of `/etc/hosts`: the names of the loopback addresses, which include the hostnames and names of
/// all components in the same network namespace.
fn hosts(component: ComponentName, plan: &RunPlan) -> String {
    let is_shared = plan.components().all(|(_, it)| !it.namespaces.net);
    let here = plan.components().filter(|(name, _)| is_shared || *name == component);
    let lines = here.map(|(name, it)| format!("127.0.0.1\t{} {}\n", it.hostname, name.name()));
    LOOPBACK.to_owned() + &lines.collect::<String>()
}

/// Returns the files that are added only if the image lacks them.
fn where_missing(component: ComponentName, own: &ComponentPlan) -> [(&'static str, String); 3] {
    let (name, User { uid, gid, .. }) = (component.name(), &own.user);
    let is_known = |id: u32| matches!(id, 0 | NOBODY);
    let mut users = [ROOT_USER, NOBODY_USER].concat();
    if !is_known(*uid) {
        users += &user_line(name, own);
    }
    let mut groups = [ROOT_GROUP, NOBODY_GROUP].concat();
    if !is_known(*gid) {
        groups += &group_line(name, *gid);
    }
    [(PASSWD, users), (GROUP, groups), (NSSWITCH, LOOKUPS.to_owned())]
}

/// Adds a line to a file whose last line may lack its end.
fn with_line(mut data: Vec<u8>, line: &str) -> Vec<u8> {
    if data.last().is_some_and(|it| *it != b'\n') {
        data.push(b'\n');
    }
    data.extend_from_slice(line.as_bytes());
    data
}

/// Returns the line of passwd for the component's user.
fn user_line(name: &str, own: &ComponentPlan) -> String {
    let User { uid, gid, .. } = &own.user;
    let home = own.variable("HOME").filter(|it| is_home(it)).unwrap_or("/");
    format!("{name}:x:{uid}:{gid}:{name}:{home}:/bin/sh\n")
}

/// Returns the line of the group file for the primary group of the component's user.
fn group_line(name: &str, gid: u32) -> String {
    format!("{name}:x:{gid}:\n")
}

/// Returns whether a path can be a home directory in passwd(5).
fn is_home(path: &str) -> bool {
    path.starts_with('/') && !path.contains(|it: char| it == ':' || it.is_control())
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use box_contract::{HookEvent, HookPlan, Namespaces};

    use super::*;

    /// The texts of the accounts in images.
    const ACCOUNTS: [&str; 4] =
        ["app:x:7:7::/:", "business:x:8:8::/:\nroot:x:0:0::/:\n", "app:x:7:\n", "business:x:9:"];

    /// Has the contents of [`ACCOUNTS`].
    struct Texts;

    impl ReadContent for Texts {
        fn copy_head(&mut self, content: Content, _: u64, out: &mut dyn Write) -> io::Result<()> {
            let found = ACCOUNTS.into_iter().find(|it| Content::of(it.as_bytes()) == content);
            out.write_all(found.unwrap().as_bytes())
        }
    }

    /// An image with an `/etc` of mode 0750, a passwd file, and a link at resolv.conf.
    fn image() -> Tree {
        let mut tree = Tree::default();
        let etc = tree.ensure_directory(Tree::ROOT, b"etc");
        tree.inode_mut(etc).meta.mode = 0o750;
        for (name, leaf) in [
            (&b"passwd"[..], Leaf::File(Content::of(b"app:x:7:7::/:"))),
            (b"resolv.conf", Leaf::Symlink(b"/run/resolv.conf".to_vec())),
        ] {
            let inode = tree.add(Inode::leaf(Meta::root_owned(0o600), leaf));
            tree.link(etc, name, inode);
        }
        tree
    }

    /// Returns the layer's files with their texts.
    fn files(layer: &System) -> Vec<(String, String)> {
        let text = |content: Content| {
            let data = layer.data.iter().find(|it| Content::of(it) == content).unwrap();
            String::from_utf8(data.clone()).unwrap()
        };
        let named = box_tree::entries(&layer.tree);
        let named = named.map(|(path, id)| (path::lossy(&path), layer.tree.inode(id)));
        named.filter_map(|(path, inode)| Some((path, text(*inode.content()?)))).collect()
    }

    fn plan() -> RunPlan {
        let mut plan = testkit::test_box::config().plan;
        plan.business.as_mut().unwrap().hostname = "shop".to_owned();
        plan
    }

    #[test]
    fn an_image_keeps_its_accounts_and_gets_its_names() {
        let layer = System::new(ComponentName::Agent, &image(), &plan(), &mut Texts).unwrap();
        let files = files(&layer);
        let names: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
        let [helper, socket] = [BOX_EXEC_PATH, EXEC_SOCKET_PATH];
        assert_eq!(names, [helper, socket, GROUP, HOSTNAME, HOSTS, NSSWITCH, RESOLV_CONF]);
        assert_eq!(files[3].1, "agent-host\n");
        let names = "127.0.0.1\tagent-host agent\n127.0.0.1\tshop business\n";
        assert_eq!(files[4].1, [LOOPBACK, names].concat());
        let etc = layer.tree.reach(b"/etc").unwrap();
        assert_eq!(layer.tree.inode(etc).meta.mode, 0o750, "as in the image");
    }

    #[test]
    fn names_are_looked_up_by_the_filter_of_a_box_that_has_one() {
        let resolver = |component, mode| {
            let mut plan = plan();
            plan.network.mode = mode;
            let layer = System::new(component, &image(), &plan, &mut Texts).unwrap();
            files(&layer).into_iter().find(|(path, _)| path == RESOLV_CONF).unwrap().1
        };
        for (component, address) in
            [(ComponentName::Agent, "198.18.0.1"), (ComponentName::Business, "198.19.0.1")]
        {
            let text = format!(
                "# Names are looked up by the box's filter.\nnameserver {address}\n\
                 options attempts:1 timeout:5\n"
            );
            assert_eq!(resolver(component, NetworkMode::Filtered), text);
            let text = "# Names are looked up by the host's resolver.\nnameserver 198.19.255.53\n";
            assert_eq!(resolver(component, NetworkMode::Shared), text);
            for mode in [NetworkMode::None, NetworkMode::CapOnly] {
                let text = "# The box has no network: names are those of /etc/hosts.\n\
                            options attempts:1 timeout:1\n";
                assert_eq!(resolver(component, mode), text, "of each digest until now");
            }
        }
    }

    #[test]
    fn an_agent_reads_which_tools_it_may_see() {
        let of = |component, tools: &[&str]| {
            let tools = tools.iter().map(|&it| it.to_owned()).collect();
            let layer =
                System::new(component, &image(), &RunPlan { tools, ..plan() }, &mut Texts).unwrap();
            files(&layer).into_iter().find(|(path, _)| path == TOOLS_PATH).map(|(_, text)| text)
        };
        let text = "[\"bash\",\"grep\"]\n".to_owned();
        assert_eq!(of(ComponentName::Agent, &["bash", "grep"]), Some(text));
        assert_eq!(of(ComponentName::Agent, &[]), None);
        assert_eq!(of(ComponentName::Business, &["bash"]), None);
    }

    #[test]
    fn an_agent_reads_its_configuration() {
        let argv = vec!["/guard".to_owned()];
        let hooks = vec![HookPlan { event: HookEvent::SessionStart, argv }];
        let of = |component, hooks: &[HookPlan]| {
            let plan = RunPlan { hooks: hooks.to_vec(), ..plan() };
            let layer = System::new(component, &image(), &plan, &mut Texts).unwrap();
            let file = files(&layer).into_iter().find(|(path, _)| path == AGENT_CONFIG_PATH);
            file.map(|(_, text)| text)
        };
        let text = "{\"version\":1,\"mcpServers\":{},\"agents\":[],\
                    \"hooks\":[{\"event\":\"session-start\",\"argv\":[\"/guard\"]}]}\n";
        assert_eq!(of(ComponentName::Agent, &hooks).as_deref(), Some(text));
        assert_eq!(of(ComponentName::Agent, &[]), None);
        assert_eq!(of(ComponentName::Business, &hooks), None);
    }

    #[test]
    fn an_image_of_one_program_gets_accounts() {
        let mut plan = plan();
        let business = plan.business.as_mut().unwrap();
        business.user = User { uid: 1000, gid: 50, groups: Vec::new() };
        business.env = vec!["HOME=/home/web".to_owned()];
        business.namespaces = Namespaces { net: true, uts: false, ..Namespaces::default() };
        let layer =
            System::new(ComponentName::Business, &Tree::default(), &plan, &mut Texts).unwrap();
        let files = files(&layer);
        let names: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(names, [GROUP, HOSTS, NSSWITCH, PASSWD, RESOLV_CONF], "the name is not its own");
        assert_eq!(files[0].1, [ROOT_GROUP, NOBODY_GROUP, "business:x:50:\n"].concat());
        assert_eq!(files[1].1, [LOOPBACK, "127.0.0.1\tshop business\n"].concat());
        let user = "business:x:1000:50:business:/home/web:/bin/sh\n";
        assert_eq!(files[3].1, [ROOT_USER, NOBODY_USER, user].concat());
    }

    /// Returns passwd and group of the layer of a business component that runs as 1000:50, or else as `user`. `origin` is that of
    /// the image's files.
    fn accounts_of(texts: [&str; 2], user: User, origin: Origin) -> [Option<String>; 2] {
        let (mut image, mut plan) = (Tree::default(), plan());
        let etc = image.ensure_directory(Tree::ROOT, b"etc");
        for (name, text) in [&b"passwd"[..], b"group"].into_iter().zip(texts) {
            let mut inode =
                Inode::leaf(Meta::root_owned(0o640), Leaf::File(Content::of(text.as_bytes())));
            inode.origin = origin;
            let inode = image.add(inode);
            image.link(etc, name, inode);
        }
        let business = plan.business.as_mut().unwrap();
        (business.user, business.env) = (user, vec!["HOME=/home/web".to_owned()]);
        let layer = System::new(ComponentName::Business, &image, &plan, &mut Texts).unwrap();
        [PASSWD, GROUP].map(|path| {
            let meta = layer.tree.reach(path.as_bytes()).map(|id| &layer.tree.inode(id).meta);
            assert!(meta.is_err() || meta.unwrap().mode == 0o640, "as in the image");
            files(&layer).into_iter().find(|(it, _)| it == path).map(|(_, text)| text)
        })
    }

    #[test]
    fn a_user_without_an_account_is_added_to_the_accounts_of_the_image() {
        let user = |uid, gid| User { uid, gid, groups: Vec::new() };
        let of = |texts, user| accounts_of(texts, user, Origin::Init);
        let [first, second, group, named] = ACCOUNTS;
        let added = "business:x:1000:50:business:/home/web:/bin/sh\n";
        assert_eq!(
            of([first, group], user(1000, 50)),
            [Some(format!("{first}\n{added}")), Some(format!("{group}business:x:50:\n"))]
        );
        let numbered =
            added.replace("business:x", "business1:x").replace(":business:", ":business1:");
        assert_eq!(
            of([second, named], user(1000, 50)),
            [Some(format!("{second}{numbered}")), Some(format!("{named}\nbusiness1:x:50:\n"))]
        );
        assert_eq!(of([first, group], user(7, 7)), [None, None]);
        assert_eq!(of([second, named], user(8, 9)), [None, None]);
        assert_eq!(of([first, group], user(0, 0)), [None, None], "root");
        let own = accounts_of([first, group], user(1000, 50), Origin::File(0));
        assert_eq!(own, [None, None], "a file of the checkout stays as it is");
    }

    #[test]
    fn an_image_whose_etc_is_a_link_keeps_its_files() {
        let mut image = Tree::default();
        let link = Inode::leaf(Meta::root_owned(0o777), Leaf::Symlink(b"usr/etc".to_vec()));
        let link = image.add(link);
        image.link(Tree::ROOT, b"etc", link);
        let layer = System::new(ComponentName::Business, &image, &plan(), &mut Texts).unwrap();
        assert_eq!(files(&layer), []);
    }

    #[test]
    fn a_home_that_is_none_is_not_written() {
        for (home, is) in
            [("/home/app", true), ("app", false), ("/a:b", false), ("/a\nroot", false)]
        {
            assert_eq!(is_home(home), is, "{home:?}");
        }
    }

    #[test]
    fn links_and_files_in_the_way_are_refused() {
        for (name, leaf, message) in [
            (
                &b"a3s"[..],
                Leaf::Symlink(b"/tmp".to_vec()),
                "at /a3s, on the way to /a3s/bin/box-exec",
            ),
            (b"etc", Leaf::File(Content::of(b"")), "at /etc, on the way to /etc/hosts"),
            (b"dev", Leaf::Fifo, "at /dev, where the guest mounts"),
            (b"proc", Leaf::Symlink(b"etc".to_vec()), "at /proc, where the guest mounts"),
        ] {
            let mut image = Tree::default();
            let inode = image.add(Inode::leaf(Meta::root_owned(0o777), leaf));
            image.link(Tree::ROOT, name, inode);
            let error = System::new(ComponentName::Agent, &image, &plan(), &mut Texts).unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
        }
    }
}
