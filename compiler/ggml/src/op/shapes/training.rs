use tpc_ir::DType;

use super::{Node, Rule, equal, has_type, is_multiple, require};

/// Both sources and the result have the same sizes.
pub(super) fn same_shapes(node: &Node<'_>) -> Rule {
    let (a, b) = (node.source(0)?, node.source(1)?);
    equal("source 1", b.ne, a.ne)?;
    node.makes(a.ne)
}

pub(super) fn flash_attn_back(node: &Node<'_>) -> Rule {
    let (q, k, v, d) = (
        node.source(0)?,
        node.source(1)?,
        node.source(2)?,
        node.source(3)?,
    );
    let [width, tokens, heads, batches] = q.ne;
    let [_, cells, kv_heads, _] = k.ne;
    require(
        k.ne[0] == width && k.ne[3] == batches && is_multiple(heads, kv_heads),
        &format!("queries of {:?} do not fit keys of {:?}", q.ne, k.ne),
    )?;
    equal("source 2", v.ne, [cells, width, kv_heads, batches])?;
    equal("source 3", d.ne, [width, tokens, heads, batches])?;
    // The three gradients follow each other, each aligned to 16 bytes.
    let aligned = |n: Option<u64>| n.and_then(|n| n.checked_next_multiple_of(4));
    let total = [q, k, v]
        .iter()
        .try_fold(0_u64, |at, t| at.checked_add(aligned(t.elements())?));
    let total = total.ok_or("sizes exceed every memory")?;
    node.makes_type(DType::F32, [total, 1, 1, 1])
}

pub(super) fn cross_entropy_loss(node: &Node<'_>) -> Rule {
    let (a, b) = (node.source(0)?, node.source(1)?);
    equal("source 1", b.ne, a.ne)?;
    node.makes([1; 4])
}

pub(super) fn cross_entropy_loss_back(node: &Node<'_>) -> Rule {
    let (a, b, c) = (node.source(0)?, node.source(1)?, node.source(2)?);
    equal("source 0", a.ne, [1; 4])?;
    equal("source 2", c.ne, b.ne)?;
    node.makes(b.ne)
}

fn optimiser(node: &Node<'_>, states: usize, parameters: u64) -> Rule {
    let a = node.source(0)?;
    for i in 1..=states {
        equal(&format!("source {i}"), node.source(i)?.ne, a.ne)?;
    }
    let given = node.source(states + 1)?;
    has_type("the parameters", given, &[DType::F32])?;
    require(
        given.elements() == Some(parameters),
        &format!("{:?} parameters, not {parameters}", given.ne),
    )?;
    node.makes(a.ne)
}

pub(super) fn opt_step_adamw(node: &Node<'_>) -> Rule {
    optimiser(node, 3, 7)
}

pub(super) fn opt_step_sgd(node: &Node<'_>) -> Rule {
    optimiser(node, 1, 2)
}
