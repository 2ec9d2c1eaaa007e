//! Files that a Boxfile copies from the checkout into a component, as the component's programs see them. The modules below use the same
//! start of the virtual host.

pub(crate) mod copy;
pub(crate) mod listing;
pub(crate) mod logs;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::LazyLock;

use testbed::VirtualHost;

use crate::scenario::{Ran, Scenario, assert_ready, bake, together, tools};

/// The agent reads a file that only its user may read, and runs a script that is executable in the checkout.
const BOXFILE: &str = r##"box "files"
agent {
    image "oci:images/business"
    file "conf.yaml" to="/etc/app/" mode="0400" owner="1000:100"
    file "tools" to="/opt/tools"
    entrypoint "/bin/sh" "-c" #"""
        (stat -c '%a %u:%g' /etc/app /etc/app/conf.yaml; cat /etc/app/conf.yaml; /opt/tools/say.sh) \
            >/tmp/index.html 2>&1
        exec httpd -f -p 127.0.0.1:4088 -h /tmp
        """#
    user "1000:100"
    limits memory="64MiB" pids=32
}
business {
    image "oci:images/business"
    file "conf.yaml" to="/conf.yaml"
    limits memory="64MiB" pids=32
}
vm cpus=1 memory="256MiB"
"##;

/// Prints the agent's output, which it serves by HTTP. Then prints the business component's `/conf.yaml`, and looks for the
/// agent's files.
const LOOK: &str = "wget -qO- http://127.0.0.1:4088/; stat -c '%a %u:%g' /conf.yaml; cat /conf.yaml; \
    ls -d /etc/app /opt/tools";

/// The results of this module and those below it.
static RAN: LazyLock<Ran> = LazyLock::new(|| together(&[add, copy::add, listing::add, logs::add]));

fn add(dir: &Path, scenario: Scenario, host: VirtualHost) -> (Scenario, VirtualHost) {
    let path = |name: &str| dir.join(name);
    testbed::hello::write_images(&tools().programs.hello_agent, &path("images")).unwrap();
    fs::write(path("conf.yaml"), "colour: red\n").unwrap();
    fs::create_dir(path("tools")).unwrap();
    fs::write(path("tools/say.sh"), "#!/bin/sh\necho said\n").unwrap();
    fs::set_permissions(path("tools/say.sh"), Permissions::from_mode(0o700)).unwrap();
    fs::write(path("Boxfile"), BOXFILE).unwrap();
    let bundle = path("files.box");
    bake(&path("Boxfile"), &tools().programs.box_init, &bundle);
    (scenario.run("look", "/files", LOOK), host.file(&bundle, "/files"))
}

fn a_component_has_the_files_that_the_boxfile_puts_into_it() {
    let step = &RAN.0["look"];
    let report = step.json();
    assert_ready(&report);
    let lines: Vec<_> = report["command"]["stdout"].as_str().unwrap().lines().collect();
    assert_eq!(lines[..4], ["755 0:0", "400 1000:100", "colour: red", "said"], "the agent's");
    assert_eq!(lines[4..], ["644 0:0", "colour: red"], "no file of the agent's is in the other");
}

tests![a_component_has_the_files_that_the_boxfile_puts_into_it];
