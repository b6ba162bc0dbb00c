use tpc_ir::DType;

use super::{Node, Rule, Shape, equal, has_type, is_multiple, require};

fn all_f32(node: &Node<'_>, count: usize) -> Rule {
    for i in 0..count {
        if let Some(t) = node.optional(i) {
            has_type(&format!("source {i}"), t, &[DType::F32])?;
        }
    }
    Ok(())
}

/// Returns the number of states in the result.
fn states(node: &Node<'_>) -> Result<u64, String> {
    // Older releases leave the parameter at 0.
    Ok(node.size(0, "K")?.max(1))
}

fn product(all: &[u64]) -> Result<u64, String> {
    let mut each = all.iter();
    let n = each.try_fold(1_u64, |n, &x| n.checked_mul(x));
    n.ok_or_else(|| "sizes exceed every memory".to_owned())
}

pub(super) fn ssm_conv(node: &Node<'_>) -> Rule {
    let (x, c) = (node.source(0)?, node.source(1)?);
    let [steps, channels, seqs, more] = x.ne;
    require(more == 1 && c.is_matrix(), "a source has too many axes")?;
    require(
        c.ne[1] == channels && c.ne[0] > 0 && c.ne[0] - 1 <= steps,
        &format!("a kernel of {:?} does not fit {:?}", c.ne, x.ne),
    )?;
    node.makes_type(DType::F32, [channels, steps - (c.ne[0] - 1), seqs, 1])
}

pub(super) fn ssm_scan(node: &Node<'_>) -> Rule {
    let (s, x, dt) = (node.source(0)?, node.source(1)?, node.source(2)?);
    let (a, b, c) = (node.source(3)?, node.source(4)?, node.source(5)?);
    let ids = node.source(6)?;
    has_type("ids", ids, &[DType::I32])?;
    let [width, dim, heads, _] = s.ne;
    let [_, _, tokens, seqs] = x.ne;
    require(
        x.ne[..2] == [dim, heads],
        &format!("states of {:?} do not fit {:?}", s.ne, x.ne),
    )?;
    equal("dt", dt.ne, [heads, tokens, seqs, 1])?;
    require(
        a.is_matrix() && a.ne[1] == heads && (a.ne[0] == 1 || a.ne[0] == width),
        &format!("A of {:?} does not fit states of {:?}", a.ne, s.ne),
    )?;
    equal("C", c.ne, b.ne)?;
    require(
        b.ne[0] == width && b.ne[2..] == [tokens, seqs] && is_multiple(heads, b.ne[1]),
        &format!("B of {:?} does not fit {:?}", b.ne, x.ne),
    )?;
    require(
        ids.is_row() && ids.ne[0] == seqs,
        "ids is not one per sequence",
    )?;
    let state = product(&[states(node)?, width, dim, heads, seqs])?;
    let total = product(&x.ne)?.checked_add(state);
    let total = total.ok_or("sizes exceed every memory")?;
    node.makes_type(DType::F32, [total, 1, 1, 1])
}

/// Checks sources of sizes `[S, H, tokens]` and a state of `S · S · H` per sequence.
fn heads(node: &Node<'_>, count: usize, state: usize) -> Rule {
    all_f32(node, count + 1)?;
    let first = node.source(0)?;
    let [size, heads, tokens, _] = first.ne;
    for i in 0..count {
        let t = node.source(i)?;
        equal(&format!("source {i}"), t.ne, [size, heads, tokens, 1])?;
    }
    let state = node.source(state)?;
    let seqs = state.ne[1];
    let all = product(&[size, size, heads, seqs])?;
    require(
        state.elements() == Some(all) && is_multiple(tokens, seqs),
        &format!("states of {:?} do not fit {:?}", state.ne, first.ne),
    )?;
    let rows = product(&[size, seqs])?.checked_add(tokens);
    let rows = rows.ok_or("sizes exceed every memory")?;
    node.makes_type(DType::F32, [product(&[size, heads])?, rows, 1, 1])
}

pub(super) fn rwkv_wkv6(node: &Node<'_>) -> Rule {
    let (k, first) = (node.source(0)?, node.source(3)?);
    let all = product(&[k.ne[0], k.ne[1]])?;
    require(
        first.elements() == Some(all),
        &format!(
            "the factors {:?} of the first token do not fit {:?}",
            first.ne, k.ne
        ),
    )?;
    // The factors of the first token are not per token.
    let sources = [
        node.sources[0],
        node.sources[1],
        node.sources[2],
        node.sources[4],
        node.sources[5],
    ];
    let others = Node {
        sources: &sources,
        ..*node
    };
    heads(&others, 4, 4)
}

pub(super) fn rwkv_wkv7(node: &Node<'_>) -> Rule {
    heads(node, 6, 6)
}

pub(super) fn gated_linear_attn(node: &Node<'_>) -> Rule {
    heads(node, 4, 4)
}

pub(super) fn gated_delta_net(node: &Node<'_>) -> Rule {
    all_f32(node, 6)?;
    let (q, k, v) = (node.source(0)?, node.source(1)?, node.source(2)?);
    let (g, beta, state) = (node.source(3)?, node.source(4)?, node.source(5)?);
    let [size, heads, tokens, seqs] = v.ne;
    equal("source 1", k.ne, q.ne)?;
    require(
        q.ne[2..] == [tokens, seqs] && q.ne[0] == size && is_multiple(heads, q.ne[1]),
        &format!("keys of {:?} do not fit values of {:?}", k.ne, v.ne),
    )?;
    let gate = |t: &Shape, width: u64| equal("the gate", t.ne, [width, heads, tokens, seqs]);
    gate(g, if g.ne[0] == 1 { 1 } else { size })?;
    gate(beta, 1)?;
    let all = product(&[size, size, heads, seqs])?;
    require(
        state.elements() == Some(all),
        &format!("states of {:?} do not fit values of {:?}", state.ne, v.ne),
    )?;
    let rows = product(&[states(node)?, size, seqs])?.checked_add(product(&[tokens, seqs])?);
    let rows = rows.ok_or("sizes exceed every memory")?;
    node.makes_type(DType::F32, [product(&[size, heads])?, rows, 1, 1])
}

pub(super) fn hc_comb(node: &Node<'_>) -> Rule {
    all_f32(node, 3)?;
    let (mixes, scale, base) = (node.source(0)?, node.source(1)?, node.source(2)?);
    let streams = mixes.ne[0].saturating_add(1).isqrt().saturating_sub(1);
    node.positive(1, "n_iter")?;
    require(
        streams > 0 && (2 + streams).checked_mul(streams) == Some(mixes.ne[0]) && mixes.is_matrix(),
        &format!("mixes of {:?} are not those of streams", mixes.ne),
    )?;
    require(
        scale.is_row() && scale.ne[0] >= 3,
        "scale has fewer than 3 numbers",
    )?;
    equal("base", base.ne, [mixes.ne[0], 1, 1, 1])?;
    node.makes_type(DType::F32, [streams, streams, mixes.ne[1], 1])
}

pub(super) fn hc_pre(node: &Node<'_>) -> Rule {
    all_f32(node, 2)?;
    let (x, w) = (node.source(0)?, node.source(1)?);
    let [n, streams, tokens, more] = x.ne;
    require(
        more == 1 && streams > 0,
        "source 0 is not [n, streams, tokens]",
    )?;
    let is_gated = node.param(1) != 0;
    let expected = match is_gated {
        true => [n, streams, tokens, 1],
        false => [streams, tokens, 1, 1],
    };
    equal("the weights", w.ne, expected)?;
    node.makes_type(DType::F32, [n, tokens, 1, 1])
}

pub(super) fn hc_post(node: &Node<'_>) -> Rule {
    all_f32(node, 4)?;
    let (x, residual, post) = (node.source(0)?, node.source(1)?, node.source(2)?);
    let ([n, tokens, ..], streams) = (x.ne, residual.ne[1]);
    equal("source 0", x.ne, [n, tokens, 1, 1])?;
    equal("the residual", residual.ne, [n, streams, tokens, 1])?;
    equal("post", post.ne, [streams, tokens, 1, 1])?;
    if let Some(comb) = node.optional(3) {
        equal("comb", comb.ne, [streams, streams, tokens, 1])?;
    }
    node.makes_type(DType::F32, [n, streams, tokens, 1])
}
