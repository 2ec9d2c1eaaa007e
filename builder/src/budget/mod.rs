//! Measures the start of a box on the virtual host, and compares it with the box's budget.
//!
//! ```text
//! measure   box, virtual host  → Measurement
//! report    Measurement        → table, JSON
//! write     Measurement        → Budget, a Boxfile with it
//! ```
//!
//! One start of the virtual host measures one box: first one start that is not measured, then the requested number of
//! starts, and then the floor. The floor is the time of the box's kernel with an init that only connects to boxlaunch,
//! with the same number of CPUs and the same memory. Each start is `boxlaunch run --until-ready`, and its report is the
//! only source of the times. A budget is therefore compared with the same clock as at every other start.

mod error;
mod measure;
mod measurement;
mod report;
mod write;

pub use error::{MeasureError, Result};
pub use measure::measure;
pub use measurement::{Figures, Measurement};
pub use report::{Comparison, exceeded, json, read, table};
pub use write::{rewritten, with_margin};
