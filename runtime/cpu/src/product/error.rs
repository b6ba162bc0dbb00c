//! Errors of products.

use tpc_ir::DType;

/// The reason that a weight cannot be packed or a product cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProductError {
    /// No product of this type.
    #[error("no product with weights of {dtype}")]
    Unsupported {
        /// Type of the weight.
        dtype: DType,
    },
    /// A range of K that is not a valid part.
    #[error("elements {start} to {end} are no part of {k}: expected a range of whole blocks of 32")]
    Part {
        /// Elements of the whole.
        k: usize,
        /// First of the range.
        start: usize,
        /// End of the range.
        end: usize,
    },
    /// Parts whose roots do not make the whole.
    #[error("the parts do not cover the whole in order, or one cuts a chunk of the sum")]
    Parts,
    /// Rows of the file that are not whole blocks, or too large to address.
    #[error("{rows} rows of {k} elements of {dtype} cannot be stored: expected whole blocks")]
    Size {
        /// Type of the weight.
        dtype: DType,
        /// Rows.
        rows: usize,
        /// Elements of a row.
        k: usize,
    },
    /// A slice whose length does not match its shape.
    #[error("{what}: expected {expected} elements, found {found}")]
    Length {
        /// The name of the slice.
        what: &'static str,
        /// The length asked.
        expected: usize,
        /// The length given.
        found: usize,
    },
    /// Operands that do not fit each other.
    #[error("the operands do not fit: {what}")]
    Shape {
        /// The condition that does not hold.
        what: &'static str,
    },
}
