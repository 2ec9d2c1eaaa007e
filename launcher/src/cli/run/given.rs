//! The options of `boxlaunch run` and `boxlaunch up` that say what a box gets of this host.

use std::ffi::OsString;
use std::path::PathBuf;

use box_contract::rules::{MAX_CPUS, MAX_VM_MIB, MIN_VM_MIB};
use boxlaunch::mounts::roots_disk::DiskChoice;
use boxlaunch::mounts::volumes::VolumePlace;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args as _, Command};
use egress_rules::Local;

use super::options::NetworkChoice;
use super::proxy::ProxyChoice;
use super::publish::PublishOption;
use super::ssh_agent::{self, AgentChoice};
use super::values::{disk_choice, lifetime, local_host, mebibytes, volume_place, whole_number};
use crate::cli::command::bytes;
use crate::cli::shares::ShareArg;
use crate::cli::variables::EnvOption;

/// What a box gets of this host.
#[derive(Debug, Clone, clap::Args)]
pub(in crate::cli) struct GivenOptions {
    /// Stop a detached box when nobody has used it for this time: no command has run in it, nobody has followed its output, and no client
    /// of a published port or of the agent's socket was connected.
    #[arg(long, value_name = "TIME", value_parser = lifetime(), allow_negative_numbers = true)]
    pub(in crate::cli) idle: Option<u32>,
    /// The number of virtual CPUs [default: the box's].
    #[arg(long, value_name = "N", value_parser = whole_number(1, MAX_CPUS), allow_negative_numbers = true)]
    pub(in crate::cli) cpus: Option<u8>,
    /// The memory of the VM, such as 512m or 4GiB; a number alone is in MiB. The limits of the components in the Boxfile still
    /// apply [default: the box's].
    #[arg(short, long, value_name = "SIZE", value_parser = mebibytes(MIN_VM_MIB, MAX_VM_MIB))]
    pub(in crate::cli) memory: Option<u32>,
    /// The size of the disk for the files that programs write outside of shares, volumes and scratch disks, such as 20GiB;
    /// `none` keeps these files in memory [default: the box's, or 10GiB if the host has the space].
    #[arg(long, value_name = "SIZE", value_parser = disk_choice)]
    pub(in crate::cli) disk: Option<DiskChoice>,
    /// Set a variable that the box declares for launch, in each component that declares it; agent/NAME or business/NAME sets
    /// it in that component only. CMD gets it, too, and also variables that no component declares. A NAME alone takes the
    /// value that it has here.
    #[arg(short, long = "env", value_name = "[COMPONENT/]NAME=VALUE", value_parser = bytes(EnvOption::parse))]
    pub(in crate::cli) env: Vec<EnvOption>,
    /// Set the variables of a file, one NAME=VALUE on each line. A variable of -e takes precedence. May be repeated.
    #[arg(long = "env-file", value_name = "FILE")]
    pub(in crate::cli) env_files: Vec<PathBuf>,
    /// Give the box a secret that its Boxfile declares, from env:VARIABLE, file:PATH, or - for standard input. A
    /// NAME alone is from the variable of that name.
    #[arg(long = "secret", value_name = "NAME[=SOURCE]")]
    pub(in crate::cli) secrets: Vec<String>,
    /// Let the box log in and sign with the keys of your SSH agent, if its Boxfile declares `ssh-agent`: with the agent of SSH_AUTH_SOCK,
    /// or with =PATH the one of this socket. The keys stay in the agent. `none` starts the box without it.
    #[arg(long, value_name = "PATH|none", value_parser = bytes(AgentChoice::parse))]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ssh_agent::ENV)]
    pub(in crate::cli) ssh_agent: Option<AgentChoice>,
    /// Share a directory of this host with the box: HOST:GUEST read-only, HOST:GUEST:rw writable. NAME=HOST gives a share
    /// that the box declares; NAME alone takes the directory that its Boxfile proposes. Of a file, the box gets a read-only copy,
    /// and of a Unix socket, one that leads to it.
    #[arg(short = 'v', long = "share", value_name = "SHARE", value_parser = ShareArg::parse)]
    pub(in crate::cli) shares: Vec<ShareArg>,
    /// Mount this directory, read-only, as a skill that the box declares with mode="mount". May be repeated.
    #[arg(long = "skill", value_name = "NAME=DIR", value_parser = ShareArg::parse_skill)]
    pub(in crate::cli) skills: Vec<(String, PathBuf)>,
    /// Mount each skill of this directory, also those that the box does not declare. A --skill of the same name takes precedence.
    /// The box may write to none of them. May be repeated.
    #[arg(long = "skills", value_name = "DIR")]
    pub(in crate::cli) skill_dirs: Vec<PathBuf>,
    /// Mount a volume at a path of the components, also instead of a volume that the box declares at that path. It is created if
    /// it does not exist: `boxlaunch volume`. May be repeated.
    #[arg(long = "volume", value_name = "NAME:/PATH", value_parser = volume_place)]
    pub(in crate::cli) volumes: Vec<VolumePlace>,
    /// The network of the box, which cannot exceed the one that it declares.
    #[arg(long, value_enum, value_name = "NETWORK", default_value_t = NetworkChoice::Box)]
    pub(in crate::cli) network: NetworkChoice,
    /// Let the box connect to an address or a network that is not on the internet, such as 127.0.0.1:5432 or 10.0.0.0/8, if
    /// its rules allow it. Without a port, all ports that the rules allow. May be repeated.
    #[arg(long, value_name = "HOST[:PORT]", value_parser = local_host)]
    pub(in crate::cli) network_local: Vec<Local>,
    /// Connect to the hosts of the box's rules through an HTTP proxy of this host: `env` for the one of HTTPS_PROXY or
    /// ALL_PROXY, except to the hosts of NO_PROXY, or a URL without a password.
    #[arg(long, value_name = "env|URL", value_parser = ProxyChoice::parse)]
    pub(in crate::cli) proxy: Option<ProxyChoice>,
    /// Publish a TCP port of a component on this host: HOST:GUEST, or ADDRESS:HOST:GUEST to listen on another address than
    /// 127.0.0.1. A suffix /business means that component; HOST 0 means any free port. `none` leaves out the ports that the box
    /// declares. May be repeated.
    #[arg(short, long = "publish", value_name = "[ADDRESS:]HOST:GUEST[/COMPONENT]")]
    pub(in crate::cli) published: Vec<PublishOption>,
}

impl GivenOptions {
    /// Returns the words of these options in a parsed command line, as the user wrote their values.
    pub(in crate::cli) fn words(matches: &ArgMatches) -> Vec<OsString> {
        let command = Self::augment_args(Command::new("given"));
        let is_given = |arg: &&Arg| {
            matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
        };
        let words = command.get_arguments().filter(is_given).flat_map(|arg| {
            let values = matches.get_raw(arg.get_id().as_str()).into_iter().flatten();
            let option = arg.get_long().unwrap_or_default();
            values.map(move |value| {
                let mut word = OsString::from(format!("--{option}="));
                word.push(value);
                word
            })
        });
        words.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_command_line_are_as_they_were_written() {
        let command = GivenOptions::augment_args(Command::new("up"));
        let line = [
            "up",
            "-v",
            "./a:/b:rw",
            "--network-local",
            "10.0.0.0/8",
            "-p",
            "0:80",
            "-e",
            "A=b c",
            "--ssh-agent",
            "-m2g",
        ];
        let words = GivenOptions::words(&command.get_matches_from(line));
        let expected = [
            "--memory=2g",
            "--env=A=b c",
            "--ssh-agent=env",
            "--share=./a:/b:rw",
            "--network-local=10.0.0.0/8",
            "--publish=0:80",
        ];
        assert_eq!(words, expected);
    }
}
