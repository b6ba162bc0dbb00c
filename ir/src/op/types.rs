//! Errors and results of type inference, and the checks that ops share.

use crate::dims::Dim;
use crate::dtype::DType;
use crate::types::TensorType;

/// The types of an op's results.
#[derive(Clone, Debug, PartialEq)]
pub enum InferredTypes {
    /// They follow from the operands.
    Types(Vec<TensorType>),
    /// The graph declares them (leaves, and ops without a rule).
    Declared,
}

impl From<TensorType> for InferredTypes {
    fn from(t: TensorType) -> InferredTypes {
        InferredTypes::Types(vec![t])
    }
}

/// The reason that operands do not fit an op.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    /// The number of operands is wrong.
    #[error("takes {expected} operands, has {found}")]
    Arity {
        /// The number that the op takes.
        expected: &'static str,
        /// The number that it has.
        found: usize,
    },
    /// Two sizes that must agree do not.
    #[error("{what}: {left} against {right}")]
    Sizes {
        /// The sizes, by name.
        what: &'static str,
        /// The first.
        left: Dim,
        /// The second.
        right: Dim,
    },
    /// An operand's elements are of an unfit type.
    #[error("{what} must be {expected}, is {found}")]
    Elements {
        /// The operand, by name.
        what: &'static str,
        /// The types that the op takes.
        expected: &'static str,
        /// The type that the operand has.
        found: DType,
    },
    /// An axis number is beyond 3, or repeated in a permutation.
    #[error("{0} is not an axis (0 to 3)")]
    Axis(u64),
    /// A size does not fit 64 bits.
    #[error("the number of elements overflows")]
    Overflow,
    /// A parameter outside the op's domain.
    #[error("`{name}` must be {expected}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// The valid values.
        expected: &'static str,
    },
}

/// Checks that a parameter has a valid value.
pub(super) fn parameter(
    name: &'static str,
    expected: &'static str,
    fits: bool,
) -> Result<(), TypeError> {
    if fits {
        Ok(())
    } else {
        Err(TypeError::Parameter { name, expected })
    }
}

/// Checks that these parameters are finite.
pub(super) fn check_finite<const N: usize>(
    parameters: [(&'static str, f32); N],
) -> Result<(), TypeError> {
    parameters
        .into_iter()
        .try_for_each(|(name, x)| parameter(name, "a finite number", x.is_finite()))
}

/// Checks that `end` indices are within an axis for every batch.
pub(super) fn check_within(what: &'static str, end: &Dim, size: &Dim) -> Result<(), TypeError> {
    if end.at_most(size) {
        Ok(())
    } else {
        Err(TypeError::Sizes {
            what,
            left: end.clone(),
            right: size.clone(),
        })
    }
}

/// Returns `operands` as an array if there are `N`.
pub(super) fn expect_operands<'a, 'b, const N: usize>(
    operands: &'a [&'b TensorType],
    expected: &'static str,
) -> Result<&'a [&'b TensorType; N], TypeError> {
    operands.try_into().map_err(|_| TypeError::Arity {
        expected,
        found: operands.len(),
    })
}

/// Checks that the sizes are equal.
pub(super) fn check_equal(what: &'static str, left: &Dim, right: &Dim) -> Result<(), TypeError> {
    if left == right {
        Ok(())
    } else {
        Err(TypeError::Sizes {
            what,
            left: left.clone(),
            right: right.clone(),
        })
    }
}

/// Returns `whole / part`, which must be exact.
pub(super) fn divides(what: &'static str, part: &Dim, whole: &Dim) -> Result<Dim, TypeError> {
    if whole == part {
        return Ok(Dim::ONE);
    }
    whole.checked_div(part).ok_or_else(|| TypeError::Sizes {
        what,
        left: part.clone(),
        right: whole.clone(),
    })
}

/// Checks that the elements are real numbers.
pub(super) fn check_real(what: &'static str, t: &TensorType) -> Result<(), TypeError> {
    if t.dtype.is_integer() {
        return Err(TypeError::Elements {
            what,
            expected: "of a real type",
            found: t.dtype,
        });
    }
    Ok(())
}

/// Checks that the elements are integers.
pub(super) fn check_integer(what: &'static str, t: &TensorType) -> Result<(), TypeError> {
    if t.dtype.is_integer() {
        return Ok(());
    }
    Err(TypeError::Elements {
        what,
        expected: "an integer type",
        found: t.dtype,
    })
}

/// Checks that a tensor has at most `rank` axes.
pub(super) fn rank_at_most(
    rank: usize,
    what: &'static str,
    t: &TensorType,
) -> Result<(), TypeError> {
    t.dims[rank..]
        .iter()
        .try_for_each(|d| check_equal(what, d, &Dim::ONE))
}

/// Converts an attribute to an axis index.
///
/// # Errors
/// Returns an error if it is beyond the last axis.
pub fn axis_index(n: u64) -> Result<usize, TypeError> {
    usize::try_from(n)
        .ok()
        .filter(|&a| a < crate::types::RANK)
        .ok_or(TypeError::Axis(n))
}

/// Returns the f32 type of these sizes.
pub(super) fn f32_of(dims: [Dim; 4]) -> TensorType {
    TensorType {
        dtype: DType::F32,
        dims,
    }
}
