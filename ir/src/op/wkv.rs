use super::attrs::{AttrError, AttrReader};
use super::resize::size_independent;
use super::rule::{Role, Rule, Slot, opd, res_of};
use super::types::{
    InferredTypes, TypeError, check_equal, check_real, expect_operands, f32_of, rank_at_most,
};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::types::TensorType;

/// RWKV's recurrence with a decay per key element. Each token of a head does
/// `state[i, j] ← state[i, j] · w[i] + k[i] · v[j] + b[i] · Σₗ a[l] · state[l, j]`, where the sum reads the old state.
/// It reads `y[j] = Σᵢ r[i] · state[i, j]` from the new state, or with a bonus `u` from the old one:
/// `y[j] = Σᵢ r[i] · (state[i, j] + u[i] · k[i] · v[j])`.
///
/// Operands: `r`, `w` and `k: [dk, heads, n_t, n_s]`, `v: [dv, heads, n_t, n_s]`, `state: [dk, dv, heads, n_s]`; then
/// nothing, or the bonus `u: [dk, heads]`, or the correction `a` and `b: [dk, heads, n_t, n_s]`. Results: `y` as `v`,
/// and the state after the last token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wkv;

const STATE: usize = 4;

impl OpDef for Wkv {
    const NAMES: &'static [&'static str] = &["wkv"];
    const CATEGORY: OpCategory = OpCategory::Heavy;

    fn parse(_: &str, _: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(Wkv)
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let (main, more) = operands.split_at(operands.len().min(5));
        let [r, w, k, v, state] = expect_operands(main, "5 to 7")?;
        let names = ["r", "w", "k", "v", "state"];
        for (what, t) in names.into_iter().zip(main) {
            check_real(what, t)?;
        }
        let [dv, heads, n_t, n_s] = &v.dims;
        let dk = &r.dims[0];
        let of_keys = |t: &TensorType| {
            let expected = [dk, heads, n_t, n_s];
            let mut both = t.dims.iter().zip(expected);
            both.try_for_each(|(found, n)| check_equal("sizes of keys and values", found, n))
        };
        for t in [r, w, k] {
            of_keys(t)?;
        }
        let expected = [dk, dv, heads, n_s];
        for (found, n) in state.dims.iter().zip(expected) {
            check_equal("sizes of the state", found, n)?;
        }
        match more {
            [] => {}
            [bonus] => {
                check_real("the bonus", bonus)?;
                rank_at_most(2, "axes of the bonus beyond the second", bonus)?;
                check_equal("elements of the bonus and keys", &bonus.dims[0], dk)?;
                check_equal("heads of the bonus and values", &bonus.dims[1], heads)?;
            }
            more => {
                let [a, b] = expect_operands(more, "5 to 7")?;
                for t in [a, b] {
                    check_real("the correction", t)?;
                    of_keys(t)?;
                }
            }
        }
        Ok(InferredTypes::Types(vec![
            f32_of(v.dims.clone()),
            f32_of(state.dims.clone()),
        ]))
    }

    fn rule(&self, operands: &[&TensorType], _: &[&TensorType]) -> Rule {
        let (r, v) = (0, 3);
        let mut rule = Rule::opaque()
            .same(v, &[0, 1, 2, 3])
            .eq(opd(STATE, 0), opd(r, 0))
            .eq(opd(STATE, 1), opd(v, 0))
            .eq(opd(STATE, 2), opd(v, 1))
            .eq(opd(STATE, 3), opd(v, 3))
            .role(Role::Whole, opd(r, 0))
            .role(Role::Whole, opd(v, 2));
        let mut of_keys = vec![0, 1, 2];
        match operands.len() {
            6 => {
                rule = rule.eq(opd(5, 0), opd(r, 0)).eq(opd(5, 1), opd(v, 1));
            }
            n => of_keys.extend(5..n),
        }
        for t in of_keys {
            if t != r {
                rule = rule.eq(opd(t, 0), opd(r, 0));
            }
            for axis in 1..4 {
                rule = rule.eq(opd(t, axis), opd(v, axis));
            }
        }
        for axis in 0..4 {
            rule = rule.eq(opd(STATE, axis), res_of(1, axis));
        }
        rule
    }

    fn work(&self, on: &dyn Extents) -> Work {
        let state = on.elements(Slot::Result(1));
        let tokens = on.size(Slot::Result(0), 2).unwrap_or(1) as f64;
        Work {
            flops: 8.0 * state * tokens,
            bytes: 8.0 * (state + on.elements(Slot::Result(0))),
        }
    }

    size_independent!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::Dim;
    use crate::dtype::DType;

    fn f32s<const N: usize>(dims: [u64; N]) -> TensorType {
        TensorType::new(DType::F32, dims.map(Dim::constant))
    }

    fn types(operands: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let operands: Vec<&TensorType> = operands.iter().collect();
        match Wkv.infer(&operands)? {
            InferredTypes::Types(t) => Ok(t),
            InferredTypes::Declared => panic!("the types follow from the operands"),
        }
    }

    #[test]
    fn every_form_has_two_results_and_no_free_size() {
        let keys = || f32s([5, 4, 6, 2]);
        let main = vec![
            keys(),
            keys(),
            keys(),
            f32s([3, 4, 6, 2]),
            f32s([5, 3, 4, 2]),
        ];
        let with = |more: &[TensorType]| [main.as_slice(), more].concat();
        let forms = [with(&[]), with(&[f32s([5, 4])]), with(&[keys(), keys()])];
        let expected = [f32s([3, 4, 6, 2]), f32s([5, 3, 4, 2])];
        for form in &forms {
            assert_eq!(types(form).expect("fits"), expected);
            for (operand, axis) in (0..form.len()).flat_map(|o| (0..4).map(move |a| (o, a))) {
                let mut changed = form.clone();
                changed[operand].dims[axis] = Dim::constant(77);
                assert!(types(&changed).is_err(), "{operand} {axis}");
            }
        }
        assert!(types(&with(&[keys(), keys(), keys()])).is_err());
        assert!(types(&main[..4]).is_err());
    }
}
