//! Files that are refused, and what their authors read. The texts in capitals and a number, such as
//! A3S-51, are rows of the tables of capabilities that the language covers.

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
mod structure;
mod syntax;
mod values;
