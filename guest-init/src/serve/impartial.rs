//! The environment of a verification: the command reads no file as code or configuration that the agent could have written, unless the
//! file is in the working directory.
//!
//! Interpreters read such files in `HOME`: `~/.profile` of `sh -l`, `~/.local/lib/python3.N/site-packages/*.pth`, `~/.npmrc`,
//! `~/.gitconfig`. So `HOME` is [`HOME`] if the agent could have written to the component's.

use box_contract::rules::is_inside;

/// The empty directory for the files of the command, in memory. Commands under a policy may write there, and nothing of a Boxfile is in
/// `/dev`.
pub(crate) const HOME: &str = "/dev/shm/home";
/// Variables that name files or directories which programs read as code or configuration. A name that ends with `*` stands for all
/// that begin with it.
const READ_AS_CODE: [&str; 16] = [
    "BASH_ENV",
    "CARGO_HOME",
    "ENV",
    "GIT_CONFIG*",
    "GRADLE_USER_HOME",
    "LD_*",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NPM_CONFIG_*",
    "PERL5LIB",
    "PYTHON*",
    "RUBYLIB",
    "RUSTUP_HOME",
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
        !(reads_as_code(name) && value.split([':', '=', ' ']).any(written))
    });
    let home = env.iter().find_map(|it| it.strip_prefix("HOME=")).unwrap_or_default();
    let is_clean = home.starts_with('/')
        && !is_inside(home, workdir)
        && !places.iter().any(|place| is_inside(home, place) || is_inside(place, home));
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
    fn python_reads_no_package_of_the_user_unless_the_boxfile_wants_it() {
        let mut env = vec!["PYTHONSAFEPATH=".to_owned()];
        set_environment(&mut env, &[], "/w");
        assert_eq!(env, ["PYTHONSAFEPATH=", "HOME=/dev/shm/home", "PYTHONNOUSERSITE=1"]);
    }
}
