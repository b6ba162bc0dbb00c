use crate::dims::Dim;
use crate::sharding::ClassRef;

/// The reason why two trees cannot be unified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnifyError {
    /// The sizes differ.
    #[error("sizes differ: {0} against {1}")]
    Sizes(Dim, Dim),
    /// A boundary falls inside a factor.
    #[error("a boundary at {boundary} cuts a factor of {size}")]
    Factor {
        /// The factor's size.
        size: Dim,
        /// The boundary, in indices of the factor.
        boundary: Dim,
    },
    /// A boundary falls inside a split factor.
    #[error("a boundary at {boundary} cuts the split factor {class} of {size}")]
    Split {
        /// The class.
        class: ClassRef,
        /// The factor's size.
        size: Dim,
        /// The boundary, in indices of the factor.
        boundary: Dim,
    },
    /// The labels differ: only one tree is split this way.
    #[error("{left} against {right}")]
    Labels {
        /// One tree, with its classes.
        left: String,
        /// The other tree.
        right: String,
    },
    /// A sum has too many segments.
    #[error("an axis has {0} segments or more")]
    Segments(usize),
    /// The limit of visited factors is reached.
    #[error("the limit of refined factors is exceeded")]
    Work,
    /// The trees nest too deeply.
    #[error("factor trees nest too deeply")]
    Depth,
}
