//! Measures the start of a box on the virtual host, and compares it with the box's budget.
//!
//! ```text
//! measure   box, virtual host  → Measurement
//! report    Measurement        → table, JSON
//! write     Measurement        → Budget, a Boxfile with it
//! ```
#![forbid(unsafe_code)]

mod error;
mod measure;
mod measurement;
mod report;
mod write;

pub use error::{MeasureError, Result};
pub use measure::measure;
pub use measurement::{Figures, Measurement};
pub use report::{Comparison, exceeded, json, table};
pub use write::{rewritten, with_margin};
