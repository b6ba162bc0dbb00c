use tpc_ir::factor::{Label, Var, solve};
use tpc_ir::op::{OpDef, Reshape};
use tpc_ir::{Dim, Graph, Inst, Op, RANK};

use super::Factors;
use crate::gcd::gcd;

/// A factor cut by a reshape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutReshape {
    /// The factor.
    pub factor: Var,
    /// The offset in the factor at which an axis of the result starts, in indices.
    pub at: Dim,
    /// Sizes that avoid the cut: an axis that would end inside a factor ends at the factor's end instead.
    pub instead: Option<[Dim; RANK]>,
}

/// Returns the factor that a reshape cuts. `None` for other ops, uncut factors, and tensors with several segments.
pub fn cut_reshape(graph: &Graph, factors: &Factors, inst: Inst) -> Option<CutReshape> {
    let data = graph.inst(inst);
    let Op::Reshape(reshape) = &data.op else {
        return None;
    };
    let operand = factors.axes[data.operands[0].index()];
    let major_first: Vec<Var> = operand.iter().rev().copied().collect();
    let mut leaves = factors.space.factors(&major_first);
    if leaves.iter().any(|&l| factors.space.segments(l).is_some()) {
        return None;
    }
    leaves.reverse();
    // The numbers of elements up to the end of each factor, minor first, starting with 1.
    let mut ends = vec![Dim::ONE];
    for &l in &leaves {
        ends.push(ends.last()?.checked_mul(factors.space.size(l))?);
    }
    let mut cut = None;
    let mut bounds = vec![Dim::ONE];
    let mut end = Dim::ONE;
    for size in &reshape.dims[..RANK - 1] {
        end = end.checked_mul(size)?;
        let (i, within) = position(&ends, &end)?;
        let Some(&leaf) = leaves.get(i) else { break };
        if factors.space.size(leaf).checked_div(&within).is_some() {
            add(&mut bounds, end.clone());
            continue;
        }
        cut.get_or_insert((leaf, within.clone()));
        if let (Some(a), Some(b)) = (factors.space.size(leaf).as_const(), within.as_const()) {
            add(&mut bounds, ends[i].checked_mul(&Dim::constant(gcd(a, b)))?);
        }
        add(&mut bounds, ends[i + 1].clone());
    }
    let (factor, at) = cut?;
    let instead = sizes(&bounds, ends.last()?).filter(|dims| has_no_cut(factors, &operand, dims));
    Some(CutReshape {
        factor,
        at,
        instead,
    })
}

fn position(ends: &[Dim], end: &Dim) -> Option<(usize, Dim)> {
    let divided = |(i, e): (usize, &Dim)| Some((i, end.checked_div(e)?));
    ends.iter().enumerate().rev().find_map(divided)
}

fn add(bounds: &mut Vec<Dim>, bound: Dim) {
    let last = bounds.last().and_then(|l| bound.checked_div(l));
    if last.is_some_and(|n| !n.is_one()) {
        bounds.push(bound);
    }
}

/// Returns the sizes of axes that end at `bounds`; the last axis takes the rest.
fn sizes(bounds: &[Dim], total: &Dim) -> Option<[Dim; RANK]> {
    let mut out = [Dim::ONE, Dim::ONE, Dim::ONE, Dim::ONE];
    let bounds = &bounds[..bounds.len().min(RANK)];
    for (i, bound) in bounds.iter().enumerate() {
        out[i] = bounds.get(i + 1).unwrap_or(total).checked_div(bound)?;
    }
    Some(out)
}

fn has_no_cut(factors: &Factors, operand: &[Var; RANK], dims: &[Dim; RANK]) -> bool {
    let mut space = factors.space.clone();
    let result = dims
        .clone()
        .map(|size| space.leaf_with_label(size, Label::Free));
    let reshape = Reshape { dims: dims.clone() };
    solve(&mut space, &reshape.rule(&[], &[]), &[*operand], &[result]).is_ok()
}
