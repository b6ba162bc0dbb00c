use tpc_ir::DType;

use super::{Node, Rule, equal, has_type, is_multiple, require};

const MASKS: [DType; 2] = [DType::F32, DType::F16];

/// `GGML_ROPE_TYPE_MROPE`; such kinds have four positions per token.
const SEVERAL_POSITIONS: i64 = 8;

pub(super) fn soft_max(node: &Node<'_>) -> Rule {
    let a = node.source(0)?;
    if let Some(mask) = node.optional(1) {
        has_type("the mask", mask, &MASKS)?;
        let batches = is_multiple(a.ne[2], mask.ne[2]) && is_multiple(a.ne[3], mask.ne[3]);
        require(
            mask.ne[0] == a.ne[0] && mask.ne[1] >= a.ne[1] && batches && mask.is_packed(),
            &format!("a mask of {:?} does not fit {:?}", mask.ne, a.ne),
        )?;
    }
    if let Some(sinks) = node.optional(2) {
        has_type("the sinks", sinks, &[DType::F32])?;
        require(sinks.ne[0] == a.ne[2], "the sinks are not one per head")?;
    }
    node.makes(a.ne)
}

pub(super) fn rope(node: &Node<'_>) -> Rule {
    let (a, positions) = (node.source(0)?, node.source(1)?);
    has_type("the positions", positions, &[DType::I32])?;
    let (width, mode, offset) = (
        node.size(1, "n_dims")?,
        node.param(2),
        node.size(15, "n_offs")?,
    );
    let each = if mode & SEVERAL_POSITIONS != 0 { 4 } else { 1 };
    require(mode & 1 == 0, "an old mode")?;
    require(
        positions.is_row() && positions.ne[0] == a.ne[2].saturating_mul(each),
        &format!("positions of {:?} do not fit {:?}", positions.ne, a.ne),
    )?;
    // Kinds for images rotate twice `n_dims` elements.
    let rotated = if mode == 24 { 2 * width } else { width };
    require(
        rotated
            .checked_add(offset)
            .is_some_and(|end| end <= a.ne[0]),
        &format!(
            "{width} rotated elements from {offset} exceed rows of {}",
            a.ne[0]
        ),
    )?;
    if let Some(factors) = node.optional(2) {
        has_type("the factors", factors, &[DType::F32])?;
        require(factors.ne[0] >= width / 2, "too few factors")?;
    }
    node.makes(a.ne)
}

pub(super) fn flash_attn(node: &Node<'_>) -> Rule {
    let (q, k, v) = (node.source(0)?, node.source(1)?, node.source(2)?);
    let [d, tokens, heads, streams] = q.ne;
    let [_, cells, kv_heads, _] = k.ne;
    require(
        k.ne[0] == d && is_multiple(heads, kv_heads) && k.ne[3] == streams,
        &format!("queries of {:?} do not fit keys of {:?}", q.ne, k.ne),
    )?;
    require(
        v.ne[1] == cells && is_multiple(heads, v.ne[2]) && v.ne[3] == streams,
        &format!("values of {:?} do not fit keys of {:?}", v.ne, k.ne),
    )?;
    if let Some(mask) = node.optional(3) {
        has_type("the mask", mask, &MASKS)?;
        let batches = is_multiple(heads, mask.ne[2]) && is_multiple(streams, mask.ne[3]);
        require(
            mask.ne[0] >= cells && mask.ne[1] >= tokens && batches,
            &format!(
                "a mask of {:?} does not fit {tokens} tokens and {cells} cells",
                mask.ne
            ),
        )?;
    }
    if let Some(sinks) = node.optional(4) {
        has_type("the sinks", sinks, &[DType::F32])?;
        require(sinks.ne[0] == heads, "the sinks are not one per head")?;
    }
    node.makes_type(DType::F32, [v.ne[0], heads, tokens, streams])
}

pub(super) fn lightning_indexer(node: &Node<'_>) -> Rule {
    let (q, k, w) = (node.source(0)?, node.source(1)?, node.source(2)?);
    let mask = node.source(3)?;
    has_type("the mask", mask, &MASKS)?;
    let [d, heads, tokens, streams] = q.ne;
    let cells = k.ne[2];
    equal("the keys", k.ne, [d, 1, cells, streams])?;
    equal("the weights", w.ne, [heads, tokens, 1, streams])?;
    require(
        mask.ne[..3] == [cells, tokens, 1] && is_multiple(streams, mask.ne[3]),
        &format!(
            "a mask of {:?} does not fit {tokens} tokens and {cells} cells",
            mask.ne
        ),
    )?;
    node.makes_type(DType::F32, [cells, tokens, 1, streams])
}

pub(super) fn top_k_mask(node: &Node<'_>) -> Rule {
    let (mask, picks) = (node.source(0)?, node.source(1)?);
    has_type("the mask", mask, &MASKS)?;
    has_type("the picks", picks, &[DType::I32])?;
    let rows = (1..4).all(|i| is_multiple(picks.ne[i], mask.ne[i]));
    require(
        rows,
        &format!("picks of {:?} do not fit a mask of {:?}", picks.ne, mask.ne),
    )?;
    let (scores, members) = (node.optional(2), node.optional(3));
    if let Some(scores) = scores {
        has_type("the scores", scores, &[DType::F32])?;
        require(
            scores.ne[1..] == picks.ne[1..],
            "scores and picks differ in rows",
        )?;
    }
    if let Some(members) = members {
        has_type("the blocks", members, &[DType::I32])?;
        let counts = scores.is_none_or(|s| s.ne[0] == members.ne[1]);
        require(
            members.is_matrix() && counts,
            "blocks and scores differ in number",
        )?;
    }
    if let Some(extra) = node.optional(4) {
        has_type("the extra cells", extra, &[DType::I32])?;
        require(
            extra.ne[1..] == picks.ne[1..],
            "extra cells and picks differ in rows",
        )?;
    }
    node.makes_type(
        mask.dtype,
        [mask.ne[0], picks.ne[1], picks.ne[2], picks.ne[3]],
    )
}

pub(super) fn get_rel_pos(node: &Node<'_>) -> Rule {
    let a = node.source(0)?;
    let n = node.result.ne[1];
    require(
        n > 0 && n.saturating_mul(2) - 1 == a.ne[1],
        "source 0 has another number of distances than the result",
    )?;
    node.makes_type(DType::F16, [a.ne[0], n, n, 1])
}

pub(super) fn add_rel_pos(node: &Node<'_>) -> Rule {
    let (a, w, h) = (node.source(0)?, node.source(1)?, node.source(2)?);
    for (what, t) in [("source 1", w), ("source 2", h)] {
        has_type(what, t, &[DType::F32])?;
    }
    equal("source 2", h.ne, w.ne)?;
    let square = w.ne[0].checked_mul(w.ne[0]) == Some(a.ne[0]);
    let places = w.ne[1].checked_mul(w.ne[2]) == Some(a.ne[1]);
    require(
        square && places && w.ne[3] == a.ne[2],
        &format!("positions of {:?} do not fit {:?}", w.ne, a.ne),
    )?;
    node.makes(a.ne)
}
