//! One suite for all executors: it runs every case on the executors that a factory builds. It fails if an executor
//! skips an op without an exception, or passes an op with one.

mod agreement;
mod exceptions;
mod executor;
mod refusal;

pub use agreement::agree;
pub use exceptions::{Check, EXCEPTIONS, Exception};
pub use executor::{ExecutorUnderTest, Factory, Failure};
pub use refusal::{refuse_indices, refuse_misfits};
