//! Compares two captured graphs of one model, op by op.
//!
//! 1. `classes` numbers the values of both graphs: equal numbers are equal values, whatever the inputs contain.
//! 2. `pairs` pairs the records that should compute the same. `structure` lists how pairs differ.
//! 3. `reduce` takes the ops of each graph whose value the other graph lacks, and `run` runs them on the same leaves.
//!    `content` gives the leaves random numbers.
//! 4. `judge` compares the values and finds the first op whose value differs.
//!
//! Names pair records, but do not decide: a value that the other graph computes under another name is not a
//! difference.

mod classes;
mod content;
mod engines;
mod judge;
mod names;
mod pairs;
mod reduce;
mod report;
mod run;
mod search;
mod structure;
mod values;

pub use engines::{
    Engine, EngineComparison, EngineError, KindErrors, Memory, OpDifference, Reference, Unrun,
    UnrunReason, compare_engines,
};
pub use report::{
    Bisection, Change, Counts, FirstDifference, InputOf, OpOf, Relation, StructureDifference,
    Verdict,
};
pub use search::{BISECT_TOLERANCE, BisectError, bisect};
