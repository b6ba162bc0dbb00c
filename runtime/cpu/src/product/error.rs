//! Errors of products.

use tpc_ir::DType;

/// Error of packing a weight or making a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProductError {
    /// No product of this type.
    #[error("products do not support weights of type {dtype}")]
    Unsupported {
        /// The weight's type.
        dtype: DType,
    },
    /// Range of K that is not a valid part.
    #[error("elements {start} to {end} are not a valid part of {k}: expected whole blocks of 32")]
    Part {
        /// Elements of the whole K.
        k: usize,
        /// Start of the range.
        start: usize,
        /// End of the range.
        end: usize,
    },
    /// Parts whose roots do not make the whole.
    #[error("the parts do not cover the whole in order, or one cuts a chunk of the sum")]
    Parts,
    /// Rows that are not whole blocks, or too large to address.
    #[error("{rows} rows of {k} elements of {dtype} cannot be stored: expected whole blocks")]
    Size {
        /// The weight's type.
        dtype: DType,
        /// Rows.
        rows: usize,
        /// Elements of a row.
        k: usize,
    },
    /// Slice length that does not match its shape.
    #[error("{what}: expected {expected} elements, found {found}")]
    Length {
        /// Name of the slice.
        what: &'static str,
        /// Required length.
        expected: usize,
        /// Given length.
        found: usize,
    },
    /// Operands that do not fit each other.
    #[error("the operands do not fit: {what}")]
    Shape {
        /// The violated condition.
        what: &'static str,
    },
}
