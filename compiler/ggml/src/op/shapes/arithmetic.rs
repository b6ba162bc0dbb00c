use tpc_ir::DType;

use super::{Node, Rule, Shape, equal, has_type, require};

/// The result has the source's sizes.
pub(super) fn same(node: &Node<'_>) -> Rule {
    node.makes(node.source(0)?.ne)
}

/// The second source repeats to the first.
pub(super) fn binary(node: &Node<'_>) -> Rule {
    let (a, b) = (node.source(0)?, node.source(1)?);
    require(
        b.repeats_to(a.ne),
        &format!("source 1 of {:?} does not repeat to {:?}", b.ne, a.ne),
    )?;
    node.makes(a.ne)
}

pub(super) fn add_id(node: &Node<'_>) -> Rule {
    let (a, b, ids) = (node.source(0)?, node.source(1)?, node.source(2)?);
    has_type("ids", ids, &[DType::I32])?;
    require(a.ne[0] == b.ne[0], "rows of both sources differ in length")?;
    require(
        a.ne[1..3] == ids.ne[..2],
        "ids has another number of rows than source 0",
    )?;
    node.makes(a.ne)
}

pub(super) fn add1(node: &Node<'_>) -> Rule {
    let (a, b) = (node.source(0)?, node.source(1)?);
    equal("source 1", b.ne, [1; 4])?;
    node.makes(a.ne)
}

pub(super) fn cumsum(node: &Node<'_>) -> Rule {
    has_type("source 0", node.source(0)?, &[DType::F32])?;
    same(node)
}

pub(super) fn tri(node: &Node<'_>) -> Rule {
    let a = node.source(0)?;
    has_type("source 0", a, &[DType::F32])?;
    require(a.ne[0] == a.ne[1], "the matrix is not square")?;
    require((0..4).contains(&node.param(0)), "the kind is unknown")?;
    same(node)
}

pub(super) fn fill(node: &Node<'_>) -> Rule {
    has_type("source 0", node.source(0)?, &[DType::F32, DType::F16])?;
    same(node)
}

/// Two sources of the result's sizes, or one of twice the width.
pub(super) fn gated(node: &Node<'_>) -> Rule {
    let a = node.source(0)?;
    let mut ne = a.ne;
    match node.optional(1) {
        Some(b) => {
            equal("source 1", b.ne, a.ne)?;
            has_type("source 1", b, &[a.dtype])?;
        }
        None => ne[0] /= 2,
    }
    node.makes_type(a.dtype, ne)
}

pub(super) fn sum(node: &Node<'_>) -> Rule {
    node.makes([1; 4])
}

fn reduced(a: &Shape) -> [u64; 4] {
    let [_, rest @ ..] = a.ne;
    let [n1, n2, n3] = rest;
    [1, n1, n2, n3]
}

pub(super) fn sum_rows(node: &Node<'_>) -> Rule {
    node.makes(reduced(node.source(0)?))
}

pub(super) fn mean(node: &Node<'_>) -> Rule {
    node.makes_type(DType::F32, reduced(node.source(0)?))
}

pub(super) fn argmax(node: &Node<'_>) -> Rule {
    let a = node.source(0)?;
    require(a.is_matrix(), "source 0 is not a matrix")?;
    node.makes_type(DType::I32, [a.ne[1], 1, 1, 1])
}

pub(super) fn argsort(node: &Node<'_>) -> Rule {
    require((0..2).contains(&node.param(0)), "the order is unknown")?;
    node.makes_type(DType::I32, node.source(0)?.ne)
}

pub(super) fn top_k(node: &Node<'_>) -> Rule {
    let a = node.source(0)?;
    let k = node.result.ne[0];
    require(k <= a.ne[0], "k exceeds the rows of source 0")?;
    node.makes_type(DType::I32, [k, a.ne[1], a.ne[2], a.ne[3]])
}

pub(super) fn count_equal(node: &Node<'_>) -> Rule {
    let (a, b) = (node.source(0)?, node.source(1)?);
    equal("source 1", b.ne, a.ne)?;
    node.makes_type(DType::I64, [1; 4])
}

pub(super) fn arange(node: &Node<'_>) -> Rule {
    let float = |at: usize| f32::from_bits(node.params.get(at).map_or(0, |p| p.cast_unsigned()));
    let (start, stop, step) = (float(0), float(1), float(2));
    let steps = ((stop - start) / step).ceil();
    require(
        stop > start && step > 0.0 && steps.is_finite(),
        "the range is empty or endless",
    )?;
    require(
        node.result.is_row() && node.result.ne[0] as f32 == steps,
        &format!(
            "the range has {steps} numbers, the result has sizes {:?}",
            node.result.ne
        ),
    )?;
    has_type("the result", &node.result, &[DType::F32])
}

pub(super) fn timestep_embedding(node: &Node<'_>) -> Rule {
    let width = node.size(0, "dim")?;
    node.makes_type(DType::F32, [width, node.source(0)?.ne[0], 1, 1])
}
