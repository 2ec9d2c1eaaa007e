//! The environment of a verification: the command reads no file as code or configuration that the agent could have written, unless the
//! file is in the working directory.
//!
//! Interpreters read such files in `HOME`: `~/.profile` of `sh -l`, `~/.local/lib/python3.N/site-packages/*.pth`, `~/.npmrc`,
//! `~/.gitconfig`. So `HOME` is [`HOME`] if the agent could have written to the component's.

use box_contract::rules::{is_inside, overlap, resolved_parts};

/// The empty directory for the files of the command, in memory. Commands under a policy may write there, and nothing of a Boxfile is in
/// `/dev`.
pub(crate) const HOME: &str = "/dev/shm/home";
/// Variables that name files or directories which programs read as code or configuration. A name that ends with `*` stands for all
/// that begin with it.
const READ_AS_CODE: [&str; 42] = [
    "BASH_ENV",
    "BUNDLE_*",
    "BUN_*",
    "CARGO_*",
    "CLASSPATH",
    "COMPOSER_*",
    "CURL_HOME",
    "DENO_*",
    "ENV",
    "GEM_*",
    "GIT_*",
    "GOENV",
    "GOFLAGS",
    "GRADLE_*",
    "INPUTRC",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LD_*",
    "LUA_*",
    "MAKEFILES",
    "MAKEFLAGS",
    "MAVEN_*",
    "NODE_*",
    "NPM_CONFIG_*",
    "NVM_DIR",
    "PERL5*",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PIP_*",
    "PYTEST_*",
    "PYTHON*",
    "RUBY*",
    "RUSTC*",
    "RUSTFLAGS",
    "RUSTUP_*",
    "SSH_CONFIG",
    "UV_*",
    "VIRTUAL_ENV",
    "WGETRC",
    "XDG_*",
    "ZDOTDIR",
    "npm_config_*",
];
/// Switches off Python's packages of the user, and modules in the working directory that have the name of a package. A variable of
/// the Boxfile takes precedence.
const OF_PYTHON: [(&str, &str); 2] = [("PYTHONNOUSERSITE", "1"), ("PYTHONSAFEPATH", "1")];

/// Changes the variables of a component, each as `NAME=VALUE`, to those of a verification. `places` are the directories to which the
/// agent could write, without the working directory `workdir`.
pub(super) fn set_environment(env: &mut Vec<String>, places: &[&str], workdir: &str) {
    let written = |path: &str| places.iter().any(|place| is_inside(path, place));
    env.retain(|variable| {
        let Some((name, value)) = variable.split_once('=') else { return true };
        !(reads_as_code(name) && paths(value).any(|it| written(&it)))
    });
    set_search_path(env, |it| written(it) || (!workdir.is_empty() && is_inside(it, workdir)));
    let home = env.iter().find_map(|it| it.strip_prefix("HOME=")).unwrap_or_default();
    let (is_absolute, home) = (home.starts_with('/'), normalized(home));
    let is_clean = is_absolute
        && !is_inside(&home, workdir)
        && !places.iter().any(|place| overlap(&home, place));
    if !is_clean {
        env.retain(|it| !it.starts_with("HOME="));
        env.push(format!("HOME={HOME}"));
    }
    for (name, value) in OF_PYTHON {
        if !env.iter().any(|it| it.split('=').next() == Some(name)) {
            env.push(format!("{name}={value}"));
        }
    }
}

/// Removes relative directories and those that `is_written` accepts from `PATH`, and the variable if none is left: a shell takes an
/// empty one for the working directory. `boxbuild` refuses such a `PATH` only if the program of the command is searched in it, and a
/// shell searches further ones.
fn set_search_path(env: &mut Vec<String>, is_written: impl Fn(&str) -> bool) {
    let is_kept = |it: &&str| it.starts_with('/') && !is_written(&normalized(it));
    env.retain_mut(|variable| {
        let Some(value) = variable.strip_prefix("PATH=") else { return true };
        let kept: Vec<_> = value.split(':').filter(is_kept).collect();
        let is_empty = kept.is_empty();
        *variable = format!("PATH={}", kept.join(":"));
        !is_empty
    });
}

/// Returns the absolute paths in the value of a variable, without `.` and `..`. They may follow an option, a scheme or another path.
fn paths(value: &str) -> impl Iterator<Item = String> {
    let words = value.split(|it: char| it.is_whitespace() || ":;,='\"`".contains(it));
    words.filter_map(|word| word.find('/').map(|at| normalized(&word[at..])))
}

fn normalized(path: &str) -> String {
    format!("/{}", resolved_parts(path).join("/"))
}

fn reads_as_code(name: &str) -> bool {
    READ_AS_CODE.iter().any(|it| match it.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *it,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(env: &[&str], places: &[&str]) -> Vec<String> {
        let mut env = env.iter().map(|it| (*it).to_owned()).collect();
        set_environment(&mut env, places, "/home/me/project");
        env.retain(|it| !it.starts_with("PYTHONNOUSERSITE") && !it.starts_with("PYTHONSAFEPATH"));
        env
    }

    #[test]
    fn a_home_that_the_agent_could_write_is_an_empty_one() {
        for place in ["/home/me", "/home", "/home/me/.local"] {
            assert_eq!(set(&["HOME=/home/me"], &[place]), ["HOME=/dev/shm/home"], "{place}");
        }
        assert_eq!(set(&["HOME=/home/me/project/x"], &[]), ["HOME=/dev/shm/home"]);
        assert_eq!(set(&[], &[]), ["HOME=/dev/shm/home"], "it could be another one in /etc/passwd");
        for place in ["/data", "/home/mex", "/home/other"] {
            assert_eq!(set(&["HOME=/home/me"], &[place]), ["HOME=/home/me"], "{place}");
        }
    }

    #[test]
    fn variables_that_lead_to_code_of_the_agent_are_left_out() {
        let env = [
            "HOME=/root",
            "BASH_ENV=/data/x",
            "PYTHONPATH=/usr/x:/data/lib",
            "NODE_OPTIONS=--require /data/a.js",
            "NODE_PATH=/usr/lib",
            "DATA=/data",
            "LD_PRELOAD=/data/x.so",
        ];
        assert_eq!(set(&env, &["/data"]), ["HOME=/root", "NODE_PATH=/usr/lib", "DATA=/data"]);
    }

    #[test]
    fn a_path_is_found_wherever_it_is_in_a_value() {
        for variable in [
            "ENV=//data/./x",
            "ENV=/usr/../data/x",
            "NODE_OPTIONS=--import=file:///data/a.js",
            "RUSTFLAGS=-C linker=/data/ld -L/data/lib",
            "MAKEFLAGS=-I/data",
            "GIT_SSH_COMMAND=ssh -o 'ProxyCommand /data/x'",
            "JAVA_TOOL_OPTIONS=-javaagent:/data/x.jar",
        ] {
            assert_eq!(set(&["HOME=/root", variable], &["/data"]), ["HOME=/root"], "{variable}");
        }
        let other = ["HOME=/root", "ENV=/database", "NODE_OPTIONS=--require a/b", "LANG=C"];
        assert_eq!(set(&other, &["/data"]), other);
        assert_eq!(set(&["HOME=/home/../data"], &["/data"]), ["HOME=/dev/shm/home"]);
    }

    #[test]
    fn no_program_is_searched_where_the_agent_could_write() {
        let path = |value: &str| {
            let env = set(&["HOME=/root", &format!("PATH={value}")], &["/data"]);
            env.iter().find_map(|it| it.strip_prefix("PATH=")).map(str::to_owned)
        };
        let own = "/data/bin:/bin:.:bin::/home/me/project/node_modules/.bin:/usr/../opt/bin";
        assert_eq!(path(own).as_deref(), Some("/bin:/usr/../opt/bin"));
        assert_eq!((path("/data/bin"), path("")), (None, None));
        assert_eq!(path("/bin:/database/bin").as_deref(), Some("/bin:/database/bin"));
    }

    #[test]
    fn python_reads_no_package_of_the_user_unless_the_boxfile_wants_it() {
        let mut env = vec!["PYTHONSAFEPATH=".to_owned()];
        set_environment(&mut env, &[], "/w");
        assert_eq!(env, ["PYTHONSAFEPATH=", "HOME=/dev/shm/home", "PYTHONNOUSERSITE=1"]);
    }
}
