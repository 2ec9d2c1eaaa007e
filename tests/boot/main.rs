//! Boots boxes with the real libkrun, in the virtual host. Most modules build their boxes, start the virtual host once to
//! run all commands, and check what the commands printed. [`MODULES`] lists them, and [`schedule`] runs them.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is how a test fails")]
#![allow(clippy::cast_possible_truncation, reason = "the virtual host has 64 bits")]

#[macro_use]
mod schedule;

mod a3s;
mod agent_interface;
mod agents;
mod all_users;
mod approvals;
mod assistant;
mod attacks;
mod autostart;
mod budget;
mod busy;
mod clients;
mod codex;
mod commands;
mod components;
mod container;
mod cost;
mod debian;
mod declared;
mod disk;
mod emulated;
mod environment;
mod erofs;
mod files;
mod fleet;
mod hello;
mod isolation;
mod jail;
mod known_agents;
mod krunfw;
mod language;
mod left;
mod mcp;
mod merged;
mod network;
mod page;
mod plans;
mod policy;
mod ports;
mod pulled;
mod restart;
mod runc;
mod running;
mod scenario;
#[path = "../show/schema.rs"]
mod schema;
mod scratch;
mod sdk;
mod secrets;
mod segments;
mod shared_network;
mod shares;
mod skills;
mod sockets;
mod stored;
mod task;
mod trusted;
mod tutorial;
mod update;
#[path = "../../boxfile-spec/src/schema/json/validator.rs"]
mod validator;
mod volumes;
mod watched;

use std::process::ExitCode;

use schedule::Module;
use testbed::boots::{Landing, Tier};

/// Runs before each landing: what protects the host, what SPECIFICATION.md promises, and what needs the lean kernel.
const GATE: Landing = Landing::Each;
/// Also runs with `cargo xtask test`: what shows a line of docs/status.md, and takes least.
const SHORT: bool = true;
const LONG: bool = false;

const fn part(number: u8) -> Landing {
    Landing::Part(number)
}

const fn module(
    name: &'static str,
    landing: Landing,
    is_short: bool,
    tests: schedule::Tests,
) -> Module {
    Module { name, tier: Tier { landing, is_short }, tests }
}

/// The modules with tests, and when each runs. A module that uses the start of another one is listed below it, as `busy::left`.
#[rustfmt::skip]
const MODULES: &[Module] = &[
    module("a3s", part(1), SHORT, a3s::TESTS),
    module("agent_interface", part(1), SHORT, agent_interface::TESTS),
    module("agents", part(1), SHORT, agents::TESTS),
    module("all_users", part(4), LONG, all_users::TESTS),
    module("approvals", part(3), SHORT, approvals::TESTS),
    module("assistant", part(1), SHORT, assistant::TESTS),
    module("attacks", GATE, SHORT, attacks::TESTS),
    module("autostart", part(4), LONG, autostart::TESTS),
    module("budget", GATE, LONG, budget::TESTS),
    module("busy", part(4), LONG, busy::TESTS),
    module("busy::left", part(4), LONG, left::TESTS),
    module("clients", part(1), LONG, clients::TESTS),
    module("clients::working", part(1), LONG, clients::working::TESTS),
    module("commands", part(3), LONG, commands::TESTS),
    module("commands::calls", part(3), LONG, commands::calls::TESTS),
    module("commands::capabilities", part(3), LONG, commands::capabilities::TESTS),
    module("components", GATE, SHORT, components::TESTS),
    module("cost", GATE, LONG, cost::TESTS),
    module("debian", GATE, LONG, debian::TESTS),
    module("declared", part(4), SHORT, declared::TESTS),
    module("disk", part(2), SHORT, disk::TESTS),
    module("emulated", part(3), LONG, emulated::TESTS),
    module("environment", part(2), SHORT, environment::TESTS),
    module("erofs", GATE, SHORT, erofs::TESTS),
    module("files", GATE, SHORT, files::TESTS),
    module("files::copy", GATE, SHORT, files::copy::TESTS),
    module("files::listing", GATE, SHORT, files::listing::TESTS),
    module("files::logs", GATE, SHORT, files::logs::TESTS),
    module("fleet", part(4), LONG, fleet::TESTS),
    module("hello", GATE, SHORT, hello::TESTS),
    module("hello", GATE, LONG, hello::MEASURED),
    module("isolation", GATE, SHORT, isolation::TESTS),
    module("jail", GATE, SHORT, jail::TESTS),
    module("known_agents", part(1), SHORT, known_agents::TESTS),
    module("known_agents::codex", part(1), SHORT, codex::TESTS),
    module("krunfw", GATE, LONG, krunfw::TESTS),
    module("language", GATE, SHORT, language::TESTS),
    module("mcp", GATE, SHORT, mcp::TESTS),
    module("merged", GATE, SHORT, merged::TESTS),
    module("network", GATE, LONG, network::TESTS),
    module("plans", part(3), LONG, plans::TESTS),
    module("policy", GATE, LONG, policy::TESTS),
    module("ports", part(4), LONG, ports::TESTS),
    module("pulled", GATE, SHORT, pulled::TESTS),
    module("restart", part(2), LONG, restart::TESTS),
    module("runc", part(3), LONG, runc::TESTS),
    module("running", GATE, LONG, running::TESTS),
    module("running", GATE, LONG, running::MEASURED),
    module("scratch", part(2), LONG, scratch::TESTS),
    module("sdk", part(3), SHORT, sdk::TESTS),
    module("secrets", GATE, SHORT, secrets::TESTS),
    module("segments", GATE, LONG, segments::TESTS),
    module("shared_network", part(4), LONG, shared_network::TESTS),
    module("shares", part(2), LONG, shares::TESTS),
    module("skills", part(2), LONG, skills::TESTS),
    module("sockets", part(4), SHORT, sockets::TESTS),
    module("stored", GATE, SHORT, stored::TESTS),
    module("task", part(3), SHORT, task::TESTS),
    module("trusted", GATE, SHORT, trusted::TESTS),
    module("tutorial", GATE, SHORT, tutorial::TESTS),
    module("update", part(4), LONG, update::TESTS),
    module("volumes", part(2), SHORT, volumes::TESTS),
    module("volumes::kills", part(2), LONG, volumes::kills::TESTS),
    module("watched", part(2), SHORT, watched::TESTS),
];

fn main() -> ExitCode {
    schedule::main(MODULES)
}
