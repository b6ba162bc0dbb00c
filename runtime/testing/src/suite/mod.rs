//! One suite for all executors: a factory builds the executors under test, and the suite runs every case on them. It
//! fails if an executor skips an op without an exception, or passes an op with an exception.

mod agreement;
mod exceptions;
mod executor;
mod refusal;

pub use agreement::agree;
pub use exceptions::{Check, EXCEPTIONS, Exception};
pub use executor::{ExecutorUnderTest, Factory, Failure};
pub use refusal::{refuse_indices, refuse_misfits};
