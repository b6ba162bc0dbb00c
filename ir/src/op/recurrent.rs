//! Recurrences over the tokens of a sequence: the short convolution, Mamba's selective scan and the gated delta rule.
//!
//! A scan has two results: the output of each token, and the state after the last token.

use super::attrs::{AttrError, AttrReader};
use super::head_groups::HeadGrouping;
use super::resize::size_independent;
use super::rule::{Expr, Linearity, Role, Rule, Slot, opd, res, res_of};
use super::types::{
    InferredTypes, TypeError, check_equal, check_integer, check_real, divides, expect_operands,
    f32_of, rank_at_most,
};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::dims::Dim;
use crate::types::TensorType;

/// The state (result 1) is read and written once, and updated per token.
fn scan_work(on: &dyn Extents) -> Work {
    let state = on.elements(Slot::Result(1));
    let tokens = on.size(Slot::Result(0), 2).unwrap_or(1) as f64;
    Work {
        flops: 6.0 * state * tokens,
        bytes: 8.0 * (state + on.elements(Slot::Result(0))),
    }
}

/// A convolution along time, per channel: `out[c, t, s] = Σₖ taps[k, c] · x[t + k, c, s]`.
///
/// Operands: `x: [d_conv − 1 + n_t, channels, n_s]` (the last steps before the batch, then the batch) and
/// `taps: [d_conv, channels]`; result `[channels, n_t, n_s]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SsmConv;

impl OpDef for SsmConv {
    const NAMES: &'static [&'static str] = &["ssm_conv"];
    const CATEGORY: OpCategory = OpCategory::Heavy;

    fn parse(_: &str, _: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(SsmConv)
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x, taps] = expect_operands(operands, "2")?;
        for (what, t, rank) in [("x", x, 3), ("taps", taps, 2)] {
            check_real(what, t)?;
            rank_at_most(rank, "axes beyond the convolution's", t)?;
        }
        check_equal("channels of x and taps", &x.dims[1], &taps.dims[1])?;
        let steps = x.dims[0]
            .checked_add(&Dim::ONE)
            .ok_or(TypeError::Overflow)?;
        let n_t = steps
            .checked_sub(&taps.dims[0])
            .ok_or_else(|| TypeError::Sizes {
                what: "fewer steps of x than taps reach back",
                left: x.dims[0].clone(),
                right: taps.dims[0].clone(),
            })?;
        Ok(f32_of([x.dims[1].clone(), n_t, x.dims[2].clone(), Dim::ONE]).into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        Rule::opaque()
            .eq(opd(0, 1), res(0))
            .eq(opd(1, 1), res(0))
            .eq(opd(0, 2), res(2))
            .role(Role::Whole, opd(0, 0))
            .role(Role::Whole, opd(1, 0))
            .role(Role::Whole, res(1))
            .linear(Linearity::PerOperand(vec![0, 1]))
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}

/// Mamba's selective scan. With `Δ = softplus(dt)` and head `h` in group `h / (heads / groups)`, each token does
/// `state[i, d, h] ← state[i, d, h] · e^(Δ[h] · A[i, h]) + B[i, group] · x[d, h] · Δ[h]` and reads
/// `y[d, h] = Σᵢ state[i, d, h] · C[i, group]`.
///
/// Operands: `state: [d_state, head_dim, heads, cells]`, `x: [head_dim, heads, n_t, n_s]`, `dt: [heads, n_t, n_s]`,
/// `A: [d_state or 1, heads]`, `B` and `C: [d_state, groups, n_t, n_s]`, and `ids: [n_s]`, the initial cell of each
/// sequence; without ids, one cell per sequence, in order. Results: `y` as `x`, and `[d_state, head_dim, heads, n_s]`.
///
/// In Mamba-1, each channel is a head of one element. In Mamba-2, `A` has one number per head.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SsmScan;

impl OpDef for SsmScan {
    const NAMES: &'static [&'static str] = &["ssm_scan"];
    const CATEGORY: OpCategory = OpCategory::Heavy;

    fn parse(_: &str, _: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(SsmScan)
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let (scan, ids) = match operands {
            [scan @ .., ids] if scan.len() == 6 => (scan, Some(*ids)),
            _ => (operands, None),
        };
        let [state, x, dt, a, b, c] = expect_operands(scan, "6 or 7")?;
        let reals = [
            ("state", state, 4),
            ("x", x, 4),
            ("dt", dt, 3),
            ("A", a, 2),
            ("B", b, 4),
            ("C", c, 4),
        ];
        for (what, t, rank) in reals {
            check_real(what, t)?;
            rank_at_most(rank, "axes beyond the scan's", t)?;
        }
        let [head_dim, heads, n_t, n_s] = &x.dims;
        let d_state = &state.dims[0];
        check_equal("head size of the state and x", &state.dims[1], head_dim)?;
        check_equal("heads of the state and x", &state.dims[2], heads)?;
        check_equal("heads of dt and x", &dt.dims[0], heads)?;
        check_equal("tokens of dt and x", &dt.dims[1], n_t)?;
        check_equal("sequences of dt and x", &dt.dims[2], n_s)?;
        if !a.dims[0].is_one() {
            check_equal("state size of A and the state", &a.dims[0], d_state)?;
        }
        check_equal("heads of A and x", &a.dims[1], heads)?;
        check_equal("state size of B and the state", &b.dims[0], d_state)?;
        divides("groups do not divide heads", &b.dims[1], heads)?;
        check_equal("tokens of B and x", &b.dims[2], n_t)?;
        check_equal("sequences of B and x", &b.dims[3], n_s)?;
        for (b, c) in b.dims.iter().zip(&c.dims) {
            check_equal("sizes of B and C", b, c)?;
        }
        match ids {
            Some(ids) => {
                check_integer("ids", ids)?;
                rank_at_most(1, "axes of ids beyond the first", ids)?;
                check_equal("sequences of ids and x", &ids.dims[0], n_s)?;
            }
            None => check_equal("sequences of the state and x", &state.dims[3], n_s)?,
        }
        Ok(InferredTypes::Types(vec![
            f32_of(x.dims.clone()),
            f32_of([
                d_state.clone(),
                head_dim.clone(),
                heads.clone(),
                n_s.clone(),
            ]),
        ]))
    }

    fn head_groupings(&self) -> &'static [HeadGrouping] {
        &[HeadGrouping {
            query: (1, 1),
            kv: &[(4, 1), (5, 1)],
            per_query: &[(0, 2), (2, 0), (3, 1)],
            results: &[1, 2],
        }]
    }

    fn rule(&self, operands: &[&TensorType], _: &[&TensorType]) -> Rule {
        let (state, x, dt, a, b, c) = (0, 1, 2, 3, 4, 5);
        let mut rule = Rule::opaque().same(x, &[0, 1, 2, 3]);
        for axis in 0..3 {
            rule = rule
                .eq(opd(dt, axis), opd(x, axis + 1))
                .eq(opd(state, axis), res_of(1, axis));
        }
        rule = rule
            .eq(opd(state, 1), opd(x, 0))
            .eq(opd(state, 2), opd(x, 1))
            .eq(opd(x, 3), res_of(1, 3))
            .eq(opd(a, 1), opd(x, 1))
            .eq(opd(b, 0), opd(state, 0))
            .role(Role::Whole, opd(state, 0))
            .role(Role::Whole, opd(x, 2));
        rule = match operands.get(6) {
            Some(_) => rule
                .eq(opd(6, 0), opd(x, 3))
                .role(Role::Whole, opd(state, 3)),
            None => rule.eq(opd(state, 3), opd(x, 3)),
        };
        for axis in 0..4 {
            rule = rule.eq(opd(b, axis), opd(c, axis));
        }
        for axis in 2..4 {
            rule = rule.eq(opd(b, axis), opd(x, axis));
        }
        if !operands[a].dims[0].is_one() {
            rule = rule.eq(opd(a, 0), opd(state, 0));
        }
        let (heads, groups) = (&operands[x].dims[1], &operands[b].dims[1]);
        match heads.checked_div(groups) {
            Some(each) if !each.is_one() => rule.eq(
                opd(x, 1),
                Expr::Product(vec![opd(b, 1), Expr::Fresh(0, each)]),
            ),
            _ => rule.eq(opd(x, 1), opd(b, 1)),
        }
    }

    fn work(&self, on: &dyn Extents) -> Work {
        scan_work(on)
    }

    size_independent!();
}

/// The gated delta rule. For head `h` and key head `h mod key_heads`, each token forgets
/// `state[i, j] ← state[i, j] · e^(g[i])`, corrects
/// `state[i, j] ← state[i, j] + k[i] · β · (v[j] − Σᵢ state[i, j] · k[i])` and reads
/// `y[j] = Σᵢ state[i, j] · q[i] / √dk`.
///
/// Operands: `q` and `k: [dk, key_heads, n_t, n_s]`, `v: [dv, heads, n_t, n_s]`, `g: [1 or dk, heads, n_t, n_s]`,
/// `beta: [1, heads, n_t, n_s]`, `state: [dk, dv, heads, n_s]`. Results: `y` as `v`, and the state after the last
/// token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GatedDeltaNet;

impl OpDef for GatedDeltaNet {
    const NAMES: &'static [&'static str] = &["gated_delta_net"];
    const CATEGORY: OpCategory = OpCategory::Heavy;

    fn parse(_: &str, _: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(GatedDeltaNet)
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [q, k, v, g, beta, state] = expect_operands(operands, "6")?;
        let names = ["q", "k", "v", "g", "beta", "state"];
        for (what, t) in names.into_iter().zip(operands) {
            check_real(what, t)?;
        }
        let [dv, heads, n_t, n_s] = &v.dims;
        let dk = &k.dims[0];
        for (q, k) in q.dims.iter().zip(&k.dims) {
            check_equal("sizes of q and k", q, k)?;
        }
        divides("key heads do not divide heads", &k.dims[1], heads)?;
        for t in [k, g, beta] {
            check_equal("tokens of k, g or beta and v", &t.dims[2], n_t)?;
            check_equal("sequences of k, g or beta and v", &t.dims[3], n_s)?;
        }
        for t in [g, beta] {
            check_equal("heads of g or beta and v", &t.dims[1], heads)?;
        }
        if !g.dims[0].is_one() {
            check_equal("key size of g and k", &g.dims[0], dk)?;
        }
        check_equal("numbers of beta per head", &beta.dims[0], &Dim::ONE)?;
        let expected = [dk, dv, heads, n_s];
        for (found, expected) in state.dims.iter().zip(expected) {
            check_equal("sizes of the state", found, expected)?;
        }
        Ok(InferredTypes::Types(vec![
            f32_of(v.dims.clone()),
            f32_of(state.dims.clone()),
        ]))
    }

    fn rule(&self, operands: &[&TensorType], _: &[&TensorType]) -> Rule {
        let (q, k, v, g, beta, state) = (0, 1, 2, 3, 4, 5);
        let mut rule = Rule::opaque()
            .same(v, &[0, 1, 2, 3])
            .eq(opd(state, 1), opd(v, 0))
            .eq(opd(state, 2), opd(v, 1))
            .eq(opd(state, 3), opd(v, 3))
            .eq(opd(k, 0), opd(state, 0))
            .role(Role::Whole, opd(k, 0))
            .role(Role::Whole, opd(v, 2));
        for axis in 0..4 {
            rule = rule
                .eq(opd(q, axis), opd(k, axis))
                .eq(opd(state, axis), res_of(1, axis));
        }
        for t in [g, beta] {
            for axis in 1..4 {
                rule = rule.eq(opd(t, axis), opd(v, axis));
            }
        }
        for axis in 2..4 {
            rule = rule.eq(opd(k, axis), opd(v, axis));
        }
        if !operands[g].dims[0].is_one() {
            rule = rule.eq(opd(g, 0), opd(k, 0));
        }
        // Key heads are the minor factor: a device holds the same key heads of every run.
        let (heads, key_heads) = (&operands[v].dims[1], &operands[k].dims[1]);
        match heads.checked_div(key_heads) {
            Some(times) if !times.is_one() => rule.eq(
                opd(v, 1),
                Expr::Product(vec![Expr::Fresh(0, times), opd(k, 1)]),
            ),
            _ => rule.eq(opd(v, 1), opd(k, 1)),
        }
    }

    fn work(&self, on: &dyn Extents) -> Work {
        scan_work(on)
    }

    size_independent!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Symbol;
    use crate::dtype::DType;

    fn f32s<const N: usize>(dims: [u64; N]) -> TensorType {
        TensorType::new(DType::F32, dims.map(Dim::constant))
    }

    fn i32s(n: u64) -> TensorType {
        TensorType::new(DType::I32, [Dim::constant(n)])
    }

    fn types(op: &impl OpDef, operands: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let operands: Vec<&TensorType> = operands.iter().collect();
        match op.infer(&operands)? {
            InferredTypes::Types(t) => Ok(t),
            InferredTypes::Declared => panic!("the types follow from the operands"),
        }
    }

    fn misfits(operands: &[TensorType]) -> impl Iterator<Item = (usize, usize, Vec<TensorType>)> {
        let all = operands.to_vec();
        (0..operands.len())
            .flat_map(|o| (0..4).map(move |a| (o, a)))
            .map(move |(o, a)| {
                let mut changed = all.clone();
                changed[o].dims[a] = Dim::constant(77);
                (o, a, changed)
            })
    }

    #[test]
    fn the_convolution_gives_a_step_per_token() {
        let t: Dim = Symbol::NTokens.into();
        let steps = t.checked_add(&3.into()).expect("small");
        let x = TensorType::new(DType::F32, [steps, 8.into(), 2.into()]);
        let found = types(&SsmConv, &[x, f32s([4, 8])]).expect("fits");
        let expected = TensorType::new(DType::F32, [8.into(), t, 2.into()]);
        assert_eq!(found, [expected]);
        let none = types(&SsmConv, &[f32s([3, 8]), f32s([4, 8])]).expect("fits");
        assert_eq!(none, [f32s([8, 0])]);
        assert!(types(&SsmConv, &[f32s([2, 8]), f32s([4, 8])]).is_err());
        assert!(types(&SsmConv, &[f32s([4, 8]), f32s([4, 7])]).is_err());
        assert!(types(&SsmConv, &[f32s([4, 8]), f32s([4, 8, 2])]).is_err());
    }

    fn scan(groups: u64) -> Vec<TensorType> {
        vec![
            f32s([5, 3, 4, 9]),
            f32s([3, 4, 6, 2]),
            f32s([4, 6, 2]),
            f32s([1, 4]),
            f32s([5, groups, 6, 2]),
            f32s([5, groups, 6, 2]),
            i32s(2),
        ]
    }

    #[test]
    fn a_scan_has_two_results() {
        let expected = [f32s([3, 4, 6, 2]), f32s([5, 3, 4, 2])];
        for groups in [1, 2, 4] {
            let mut operands = scan(groups);
            assert_eq!(types(&SsmScan, &operands).expect("fits"), expected);
            operands[3] = f32s([5, 4]);
            assert_eq!(types(&SsmScan, &operands).expect("fits"), expected);
        }
        assert!(types(&SsmScan, &scan(3)).is_err());
        let mut operands = scan(2);
        operands.pop();
        assert!(types(&SsmScan, &operands).is_err());
        operands[0] = f32s([5, 3, 4, 2]);
        assert_eq!(types(&SsmScan, &operands).expect("fits"), expected);
        // The number of cells is free; all other sizes must fit.
        for (operand, axis, operands) in misfits(&scan(2)) {
            let fits = types(&SsmScan, &operands).is_ok();
            assert_eq!(fits, (operand, axis) == (0, 3), "{operand} {axis}");
        }
    }

    fn delta(key_heads: u64) -> Vec<TensorType> {
        vec![
            f32s([5, key_heads, 6, 2]),
            f32s([5, key_heads, 6, 2]),
            f32s([3, 4, 6, 2]),
            f32s([1, 4, 6, 2]),
            f32s([1, 4, 6, 2]),
            f32s([5, 3, 4, 2]),
        ]
    }

    #[test]
    fn the_delta_rule_has_two_results() {
        let expected = [f32s([3, 4, 6, 2]), f32s([5, 3, 4, 2])];
        for key_heads in [1, 2, 4] {
            let mut operands = delta(key_heads);
            assert_eq!(types(&GatedDeltaNet, &operands).expect("fits"), expected);
            operands[3] = f32s([5, 4, 6, 2]);
            assert_eq!(types(&GatedDeltaNet, &operands).expect("fits"), expected);
        }
        assert!(types(&GatedDeltaNet, &delta(3)).is_err());
        for (operand, axis, operands) in misfits(&delta(2)) {
            assert!(
                types(&GatedDeltaNet, &operands).is_err(),
                "{operand} {axis}"
            );
        }
    }
}
