//! Errors of products.

use tpc_ir::DType;

/// An error of packing a weight or creating a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProductError {
    /// Products do not support this type of weights.
    #[error("products do not support weights of type {dtype}")]
    Unsupported {
        /// The weight's type.
        dtype: DType,
    },
    /// The range of K is not a valid part.
    #[error("elements {start} to {end} are not a valid part of {k}: expected whole blocks of 32")]
    Part {
        /// Elements of the whole K.
        k: usize,
        /// Start of the range.
        start: usize,
        /// End of the range.
        end: usize,
    },
    /// The parts do not cover the whole K.
    #[error("the parts do not cover the whole in order, or one cuts a chunk of the sum")]
    Parts,
    /// The rows are not whole blocks, or too large to address.
    #[error("{rows} rows of {k} elements of {dtype} cannot be stored: expected whole blocks")]
    Size {
        /// The weight's type.
        dtype: DType,
        /// The number of rows.
        rows: usize,
        /// The number of elements per row.
        k: usize,
    },
    /// The slice has the wrong length.
    #[error("{what}: expected {expected} elements, found {found}")]
    Length {
        /// The slice.
        what: &'static str,
        /// Required length.
        expected: usize,
        /// Given length.
        found: usize,
    },
    /// The operands do not match.
    #[error("the operands do not fit: {what}")]
    Shape {
        /// The violated condition.
        what: &'static str,
    },
}
