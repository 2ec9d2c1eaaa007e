#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod call;
mod classify;
mod fences;
mod path;
mod pattern;
mod protected;
mod rules;
mod ruling;
mod shell;
mod walk;

pub use classify::{Circumstances, Classifier};
pub use fences::{COMMAND_LIMITS, CommandLimits, Denied, Fences, Subject, Surroundings};
pub use rules::{Relaxed, Rule, rules};
pub use ruling::{Decision, Ruling};
