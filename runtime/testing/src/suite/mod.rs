//! One suite for all executors: a factory builds the executors under test, and the suite runs every case on them.
//!
//! The exceptions stand in one table, which the suite holds to be true: an op that an executor skips needs an entry, and an entry
//! needs an op that is still skipped.

mod agreement;
mod exceptions;
mod executor;
mod refusal;

pub use agreement::agree;
pub use exceptions::{Check, EXCEPTIONS, Exception};
pub use executor::{ExecutorUnderTest, Factory, Failure};
pub use refusal::{refuse_indices, refuse_misfits};
