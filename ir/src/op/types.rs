use crate::dims::Dim;
use crate::dtype::DType;
use crate::types::TensorType;

/// The types of an op's results.
#[derive(Clone, Debug, PartialEq)]
pub enum InferredTypes {
    /// Inferred from the operands.
    Types(Vec<TensorType>),
    /// Declared by the graph (leaves, and ops without a rule).
    Declared,
}

impl From<TensorType> for InferredTypes {
    fn from(t: TensorType) -> InferredTypes {
        InferredTypes::Types(vec![t])
    }
}

/// The reason why operands do not fit an op.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    /// The number of operands is wrong.
    #[error("takes {expected} operands, has {found}")]
    Arity {
        /// The valid numbers of operands.
        expected: &'static str,
        /// The number of operands.
        found: usize,
    },
    /// Two sizes differ that must be equal.
    #[error("{what}: {left} against {right}")]
    Sizes {
        /// The names of the sizes.
        what: &'static str,
        /// The first size.
        left: Dim,
        /// The second size.
        right: Dim,
    },
    /// An operand has the wrong element type.
    #[error("{what} must be {expected}, is {found}")]
    Elements {
        /// The operand, by name.
        what: &'static str,
        /// The valid types.
        expected: &'static str,
        /// The operand's type.
        found: DType,
    },
    /// An axis is beyond 3, or repeated in a permutation.
    #[error("{0} is not an axis (0 to 3)")]
    Axis(u64),
    /// A size exceeds 64 bits.
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

pub(super) fn check_finite<const N: usize>(
    parameters: [(&'static str, f32); N],
) -> Result<(), TypeError> {
    parameters
        .into_iter()
        .try_for_each(|(name, x)| parameter(name, "a finite number", x.is_finite()))
}

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

pub(super) fn expect_operands<'a, 'b, const N: usize>(
    operands: &'a [&'b TensorType],
    expected: &'static str,
) -> Result<&'a [&'b TensorType; N], TypeError> {
    operands.try_into().map_err(|_| TypeError::Arity {
        expected,
        found: operands.len(),
    })
}

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
/// Returns an error if the axis exceeds 3.
pub fn axis_index(n: u64) -> Result<usize, TypeError> {
    usize::try_from(n)
        .ok()
        .filter(|&a| a < crate::types::RANK)
        .ok_or(TypeError::Axis(n))
}

pub(super) fn f32_of(dims: [Dim; 4]) -> TensorType {
    TensorType {
        dtype: DType::F32,
        dims,
    }
}
