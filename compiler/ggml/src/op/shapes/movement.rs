use tpc_ir::{DType, RANK};

use super::{Node, Rule, Shape, equal, has_type, is_multiple, require};

const INDICES: [DType; 2] = [DType::I32, DType::I64];

fn part_of(node: &Node<'_>) -> Rule {
    let (a, b) = (node.source(0)?, node.source(1)?);
    let nb: Vec<u64> = (0..3)
        .map(|i| node.size(i, "stride"))
        .collect::<Result<_, _>>()?;
    let offset = node.size(3, "offset")?;
    let outside = || format!("a part of {:?} at byte {offset} is outside source 0", b.ne);
    let within = |t: &Shape, nb: [u64; RANK]| {
        let [n0, rest @ ..] = t.ne;
        let blocks = [n0 / t.dtype.block_len(), rest[0], rest[1], rest[2]];
        let mut ends = blocks.into_iter().zip(nb);
        ends.try_fold(t.dtype.block_bytes(), |at, (n, nb)| {
            at.checked_add(n.saturating_sub(1).checked_mul(nb)?)
        })
    };
    let extent = within(a, a.nb).ok_or_else(outside)?;
    let part = within(b, [a.nb[0], nb[0], nb[1], nb[2]]).ok_or_else(outside)?;
    let is_inside = extent.checked_sub(offset).is_some_and(|left| part <= left);
    require(b.ne.contains(&0) || is_inside, &outside())?;
    require(
        b.elements() <= a.elements(),
        "source 1 has more elements than source 0",
    )?;
    node.makes(a.ne)
}

pub(super) fn accumulate(node: &Node<'_>) -> Rule {
    for (i, t) in node.sources.iter().flatten().enumerate() {
        has_type(&format!("source {i}"), t, &[DType::F32])?;
    }
    part_of(node)
}

pub(super) fn set(node: &Node<'_>) -> Rule {
    has_type("source 1", node.source(1)?, &[node.source(0)?.dtype])?;
    part_of(node)
}

pub(super) fn repeat(node: &Node<'_>) -> Rule {
    let a = node.source(0)?;
    require(
        a.repeats_to(node.result.ne),
        &format!(
            "source 0 of {:?} does not repeat to {:?}",
            a.ne, node.result.ne
        ),
    )
}

pub(super) fn repeat_back(node: &Node<'_>) -> Rule {
    let a = node.source(0)?;
    require(
        node.result.repeats_to(a.ne),
        &format!(
            "the result {:?} does not repeat to {:?}",
            node.result.ne, a.ne
        ),
    )
}

pub(super) fn concat(node: &Node<'_>) -> Rule {
    let (a, b) = (node.source(0)?, node.source(1)?);
    let axis = usize::try_from(node.param(0)).ok().filter(|&i| i < RANK);
    let axis = axis.ok_or("the axis does not exist")?;
    has_type("source 1", b, &[a.dtype])?;
    let mut ne = a.ne;
    for i in (0..RANK).filter(|&i| i != axis) {
        require(
            a.ne[i] == b.ne[i],
            &format!("axis {i} of the sources differs"),
        )?;
    }
    ne[axis] = ne[axis].saturating_add(b.ne[axis]);
    node.makes_type(a.dtype, ne)
}

fn same_elements(node: &Node<'_>) -> Rule {
    let a = node.source(0)?;
    require(
        a.elements() == node.result.elements(),
        &format!("{:?} elements become {:?}", a.ne, node.result.ne),
    )
}

pub(super) fn copy(node: &Node<'_>) -> Rule {
    same_elements(node)
}

pub(super) fn cont(node: &Node<'_>) -> Rule {
    has_type("the result", &node.result, &[node.source(0)?.dtype])?;
    same_elements(node)
}

pub(super) fn reshape(node: &Node<'_>) -> Rule {
    require(node.source(0)?.is_packed(), "source 0 is not contiguous")?;
    same_elements(node)
}

/// The caller compares the extents of a view and of its source, because a view may have any sizes and strides.
pub(super) fn view(node: &Node<'_>) -> Rule {
    node.source(0).map(|_| ())
}

pub(super) fn permute(node: &Node<'_>) -> Rule {
    let a = node.source(0)?;
    let mut ne = [None; RANK];
    for (i, &n) in a.ne.iter().enumerate() {
        let axis = usize::try_from(node.param(i)).ok().filter(|&to| to < RANK);
        let axis = axis.ok_or("an axis does not exist")?;
        require(ne[axis].replace(n).is_none(), "an axis occurs twice")?;
    }
    node.makes_type(a.dtype, ne.map(|n| n.unwrap_or(0)))
}

pub(super) fn transpose(node: &Node<'_>) -> Rule {
    let a = node.source(0)?;
    node.makes_type(a.dtype, [a.ne[1], a.ne[0], a.ne[2], a.ne[3]])
}

pub(super) fn get_rows(node: &Node<'_>) -> Rule {
    let (a, ids) = (node.source(0)?, node.source(1)?);
    has_type("ids", ids, &INDICES)?;
    let [n, p, q, more] = ids.ne;
    require(
        a.ne[2..] == [p, q] && more == 1,
        &format!("ids of {:?} do not fit source 0 of {:?}", ids.ne, a.ne),
    )?;
    node.makes([a.ne[0], n, p, q])
}

pub(super) fn get_rows_back(node: &Node<'_>) -> Rule {
    let (a, ids) = (node.source(0)?, node.source(1)?);
    has_type("ids", ids, &[DType::I32])?;
    require(
        a.is_matrix() && ids.is_row(),
        "source 0 is not a matrix, or ids not a row",
    )?;
    require(
        a.ne[1] == ids.ne[0],
        "source 0 has another number of rows than ids",
    )?;
    let width = node.result.ne[0] == a.ne[0] && node.result.is_matrix();
    require(width, "the result's rows differ from source 0's")
}

pub(super) fn set_rows(node: &Node<'_>) -> Rule {
    let (rows, ids) = (node.source(0)?, node.source(1)?);
    let to = node.optional(2).unwrap_or(&node.result);
    has_type("the rows", rows, &[DType::F32, DType::F16])?;
    has_type("ids", ids, &INDICES)?;
    let batches = rows.ne[2..] == to.ne[2..] && rows.ne[0] == to.ne[0];
    require(
        batches,
        &format!("rows of {:?} do not fit the target of {:?}", rows.ne, to.ne),
    )?;
    let repeats = is_multiple(rows.ne[2], ids.ne[1]) && is_multiple(rows.ne[3], ids.ne[2]);
    require(
        rows.ne[1] == ids.ne[0] && repeats && ids.ne[3] == 1,
        &format!("ids of {:?} do not fit rows of {:?}", ids.ne, rows.ne),
    )?;
    require(
        to.has_dense_rows() && rows.has_dense_rows(),
        "rows are not contiguous",
    )?;
    node.makes_type(to.dtype, to.ne)
}

pub(super) fn diag(node: &Node<'_>) -> Rule {
    let a = node.source(0)?;
    require(a.ne[1] == 1, "source 0 has several rows")?;
    node.makes_type(a.dtype, [a.ne[0], a.ne[0], a.ne[2], a.ne[3]])
}

pub(super) fn pad(node: &Node<'_>) -> Rule {
    let a = node.source(0)?;
    let mut ne = a.ne;
    for (i, n) in ne.iter_mut().enumerate() {
        let (before, after) = (
            node.size(2 * i, "padding")?,
            node.size(2 * i + 1, "padding")?,
        );
        *n = n.saturating_add(before + after);
    }
    if node.param(8) != 0 {
        require(!a.ne.contains(&0), "circular padding of an empty tensor")?;
    }
    node.makes(ne)
}

pub(super) fn pad_reflect(node: &Node<'_>) -> Rule {
    let a = node.source(0)?;
    has_type("source 0", a, &[DType::F32])?;
    let (before, after) = (node.size(0, "p0")?, node.size(1, "p1")?);
    require(
        before < a.ne[0] && after < a.ne[0],
        "the padding is not shorter than the row",
    )?;
    let [n, rest @ ..] = a.ne;
    let n = n.saturating_add(before + after);
    node.makes_type(DType::F32, [n, rest[0], rest[1], rest[2]])
}

pub(super) fn roll(node: &Node<'_>) -> Rule {
    let a = node.source(0)?;
    for (i, &n) in a.ne.iter().enumerate() {
        let shift = node.param(i).unsigned_abs();
        require(
            shift < n.max(1),
            &format!("axis {i} is shifted by {shift} of {n}"),
        )?;
    }
    equal("the result", node.result.ne, a.ne)
}
