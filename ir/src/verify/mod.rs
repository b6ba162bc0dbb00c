//! The verifier checks the invariants of every graph given to a pass or an executor.
//!
//! Passes and executors take a [`Verified`] graph of their [stage] and do not check again.
//!
//! # Structure
//!
//! - TPC0220: every handle refers to an entity of the graph.
//! - TPC0221: an earlier instruction defines each operand.
//! - TPC0222: an instruction and its results refer to one another.
//! - TPC0223: a graph has an output.
//! - TPC0224: named outputs have different names.
//! - TPC0225: a state output updates a value that a `state` defines.
//! - TPC0226: a state is updated at most once.
//! - TPC0227: a state's new content has the type, the place and the sharding of the state.
//! - TPC0228: states at one place have different names.
//! - TPC0229: a group has at least one device, and its devices are distinct.
//! - TPC0230: the ranges of a class are within its size, and nonempty ranges ascend.
//! - TPC0231: every index of a class is in a range.
//! - TPC0232: a class that splits a value of a group has one range per device of the group.
//! - TPC0233: a split leaf has the size of its class, divided by its divisor.
//! - TPC0234: the tree of a split axis is split, and in the form that [`AxisTree::simplify`] gives.
//! - TPC0235: an op survives printing and parsing.
//!
//! # Types
//!
//! - TPC0236: an op accepts the types of its operands.
//! - TPC0237: the results have the types that the op infers.
//! - TPC0238: a weight, an input and a state define one value.
//! - TPC0239: quantised rows of constant length are whole blocks. A weight part whose rows are one run may be cut at
//!   its type's [granule](crate::DType::granule).
//! - TPC0240: the parts of a weight or a state are on a single place. The parts of an axis are ascending, disjoint
//!   ranges of whole blocks (or granules) that cover the axis.
//! - TPC0241: an input has the type that its kind prescribes.
//! - TPC0242: sums over devices have plain real elements.
//! - TPC0243: only ops that decode or move whole blocks read quantised elements; only products read a weight whose
//!   rows end inside blocks.
//!
//! # Places
//!
//! - TPC0244: an op reads operands from one place, except for collectives between single devices.
//! - TPC0245: results are at the place of the operands, except for `copy` and collectives.
//! - TPC0246: a collective has one participant, a group, or one distinct device per operand.
//! - TPC0247: each participant of a collective gets its result, in the order of the operands.
//! - TPC0248: inputs are on the host.
//! - TPC0249: values on a single place are mirrored.
//!
//! # Shardings
//!
//! Checked only if the invariants used by sharding rules hold.
//!
//! - TPC0250: class references exist, and the product of a tree's factors is the axis's size.
//! - TPC0251: no value is both split and unreduced.
//! - TPC0252: no term of a value is split by two classes.
//! - TPC0253: only weights split on axis 0 have a storage granule: the block of their type, or a multiple of the
//!   [granule](crate::DType::granule) that divides it.
//! - TPC0254: a device holds whole blocks, or whole storage granules in one run.
//! - TPC0255: the equations of each op's rule hold.
//! - TPC0256: factors that an op needs whole are not split.
//! - TPC0257: norms over a split axis exchange their statistic.
//! - TPC0258: an indexed axis is one range per device; contractions are split in all segments or not at all.
//! - TPC0259: a result is unreduced if and only if its op and the operands imply it.
//! - TPC0260: an op accepts its unreduced operands.
//! - TPC0261: copies and gathers move only reduced values; reductions take only unreduced values.
//! - TPC0262: leaves are not unreduced.
//!
//! # Stages
//!
//! - TPC0263: a graph keeps the invariant of its [stage], which only [`Verified::new`] checks.
//!
//! # Bounds
//!
//! - TPC0264: a layer's number is at most 65535.
//! - TPC0265: the number of elements of a value does not overflow.
//! - TPC0266: the sizes of a weight are numbers.
//!
//! [`AxisTree::simplify`]: crate::AxisTree::simplify

mod codes;
mod derive;
mod error;
mod places;
mod sharding_rule;
mod shardings;
pub mod stage;
mod structure;
mod types;

#[cfg(test)]
mod tests;

pub use codes::CODES;
pub use derive::{derive, derive_operand};
pub use error::{PartsDefect, VerifyError, VerifyErrorKind};

pub use sharding_rule::ShardingRule;
pub use stage::{Verified, Violations};
pub use types::reads;

pub use crate::text::Entity;

use crate::graph::Graph;

/// Checks the invariants of all stages.
///
/// # Errors
/// Returns the violations by section, in program order. Dangling handles and uses before definition suppress later
/// checks; errors of types and places suppress sharding checks.
pub fn verify(graph: &Graph) -> Result<(), Vec<VerifyError>> {
    let mut errors = Vec::new();
    structure::handles(graph, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    structure::check(graph, &mut errors);
    types::check(graph, &mut errors);
    places::check(graph, &mut errors);
    if !errors.iter().any(|e| e.kind.blocks_rule_checks()) {
        shardings::check(graph, &mut errors);
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}
