//! Files that are refused, and their messages.

mod agent_config;
mod build;
mod checkout;
mod components;
mod conflicts;
mod extends;
mod figures;
mod files;
mod foreign;
mod mute;
mod network;
mod paths;
mod places;
mod profiles;
mod run;
mod secrets;
mod services;
mod ssh_agent;
mod structure;
mod syntax;
mod values;
