//! Boxes that go to a registry in memory and come back, or do not.

mod form;
mod hostile;
mod inflate;
mod known;
mod pull;
mod push;
mod stage;
