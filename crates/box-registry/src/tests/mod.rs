//! Pushes to a registry in memory, and pulls from it.

mod attachments;
mod build_cache;
mod form;
mod hostile;
mod inflate;
mod known;
mod pull;
mod push;
mod stage;
