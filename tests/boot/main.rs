//! Boots boxes with the real libkrun, in the virtual host. Most modules build their boxes, start the virtual host once to
//! run all commands, and check what the commands printed.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is how a test fails")]

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
mod calls;
mod capabilities;
mod clients;
mod codex;
mod commands;
mod components;
mod container;
mod copy;
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
mod listing;
mod logs;
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
mod working;
