use super::label::Label;
use super::space::{Space, Var};
use super::unify_error::UnifyError;
use crate::dims::Dim;
use crate::op::{Expr, Rule, Slot};
use crate::types::RANK;

/// The variables of a tensor's axes.
pub type Axes = [Var; RANK];

/// Solves the equations of `rule`, refining `space`.
///
/// # Errors
/// Returns the index of the first equation that cannot hold.
pub fn solve(
    space: &mut Space,
    rule: &Rule,
    operands: &[Axes],
    results: &[Axes],
) -> Result<(), (usize, UnifyError)> {
    let mut fresh = Vec::new();
    for (i, (a, b)) in rule.equations.iter().enumerate() {
        let a = eval(space, a, operands, results, &mut fresh).map_err(|c| (i, c))?;
        let b = eval(space, b, operands, results, &mut fresh).map_err(|c| (i, c))?;
        space.unify(&a, &b).map_err(|c| (i, c))?;
    }
    Ok(())
}

const fn axis_of(slot: Slot, axis: usize, operands: &[Axes], results: &[Axes]) -> Var {
    match slot {
        Slot::Operand(i) => operands[i][axis],
        Slot::Result(i) => results[i][axis],
    }
}

fn eval(
    space: &mut Space,
    expr: &Expr,
    operands: &[Axes],
    results: &[Axes],
    fresh: &mut Vec<(usize, Var)>,
) -> Result<Vec<Var>, UnifyError> {
    Ok(match expr {
        Expr::Axis(slot, axis) => vec![axis_of(*slot, *axis, operands, results)],
        Expr::Fresh(id, size) => match fresh.iter().find(|(i, _)| i == id) {
            Some((_, v)) => vec![*v],
            None => {
                let v = space.leaf(size.clone());
                fresh.push((*id, v));
                vec![v]
            }
        },
        Expr::Product(parts) => {
            let mut out = Vec::new();
            for p in parts {
                out.extend(eval(space, p, operands, results, fresh)?);
            }
            out
        }
        Expr::Sum(parts) => {
            let mut segments = Vec::new();
            for p in parts {
                let p = eval(space, p, operands, results, fresh)?;
                segments.push(space.product(p));
            }
            space.check_segment_count(&segments)?;
            vec![space.sum(segments)]
        }
        Expr::Slice(of, start, len) => {
            let of = eval(space, of, operands, results, fresh)?;
            if len.is_zero() {
                return Ok(vec![space.leaf_with_label(Dim::ZERO, Label::Whole)]);
            }
            space.slice(&of, start, len)?
        }
    })
}

impl Rule {
    /// Returns the variable of a role's axis; `None` for expressions other than axes.
    pub fn role_var(expr: &Expr, operands: &[Axes], results: &[Axes]) -> Option<Var> {
        match expr {
            Expr::Axis(slot, axis) => Some(axis_of(*slot, *axis, operands, results)),
            Expr::Fresh(..) | Expr::Product(_) | Expr::Sum(_) | Expr::Slice(..) => None,
        }
    }
}
