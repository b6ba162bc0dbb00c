//! Lifts an op from parts of operands to the whole operands, by the op's rule.
//!
//! The equations of a rule relate indices of result axes to indices of operand axes. The solver derives the index sets
//! of the results from these equations. It fails if the operands' parts do not match.
//!
//! - `parameters.rs`: the op on whole operands, with parameters adapted from the device's part;
//! - `solver.rs`: solves the equations for the results;
//! - `groups.rs`: grouped indices, which have a condition instead of an equation;
//! - `copies.rs`: operands that repeat a value.

mod copies;
mod groups;
mod parameters;
mod solver;

use std::hash::{Hash, Hasher};
use std::rc::Rc;

use rustc_hash::FxHashMap;
use tpc_ir::op::{Expr, InferredTypes, Role, Rule, Slot};
use tpc_ir::{Dim, Op, RANK, TensorType};

use super::index_set::{IndexSet, NotExpressible, Pattern, from_axes, selected_dims};
use super::language::Mask;
use solver::{Solver, Var};

pub(super) use copies::Copies;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) ty: TensorType,
    /// The elements of the whole tensor that the part has.
    pub(super) indices: IndexSet,
    pub(super) axes: Axes,
    /// The copies in the part, for each axis along which the whole tensor repeats a value. Copies are equal, so only
    /// the other operands determine which copies.
    pub(super) copies: [Option<Copies>; RANK],
    pub(super) dims: [Dim; RANK],
}

impl Hash for Part {
    /// Omits the patterns along the axes, which follow from `indices`.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.ty, &self.indices, &self.copies, &self.dims).hash(state);
    }
}

impl Part {
    pub(super) fn is_whole(&self) -> bool {
        self.indices.is_empty() && self.copies.iter().all(Option::is_none)
    }
}

/// An op on whole operands. The results of the op on parts are parts of the op's results on whole operands.
#[derive(Clone, Debug)]
pub(super) struct Relation {
    pub(super) op: Op,
    /// The elements of each whole result that the part has.
    pub(super) results: Vec<IndexSet>,
    /// The summed indices; `None` for all. If some are missing, the result is one term of a sum.
    pub(super) summed: Option<Pattern>,
    /// The computed rows or experts; `None` for all. Other rows are zero.
    pub(super) mask: Option<Mask>,
}

pub(super) type Axes = [Option<Pattern>; RANK];

/// Relates `op` on `parts` to the same op on whole operands.
///
/// `model` is the model's op: the parts alone do not determine the start of a set slice.
///
/// # Errors
/// Returns an error if the operands' parts do not match, or if the op's rule does not determine the results.
pub(super) fn relate(
    op: &Op,
    parts: &[Rc<Part>],
    model: Option<&Op>,
) -> Result<Relation, NotExpressible> {
    let axes: Vec<Axes> = parts.iter().map(|p| p.axes.clone()).collect();
    let (whole, mask) = parameters::lift_parameters(op, parts, &axes, model)?;
    let types: Vec<&TensorType> = parts.iter().map(|p| &p.ty).collect();
    let Ok(InferredTypes::Types(results)) = whole.infer(&types) else {
        return Err(NotExpressible);
    };
    let result_types: Vec<&TensorType> = results.iter().collect();
    let rule = whole.rule(&types, &result_types);
    let mut solver = Solver {
        operands: &types,
        results: &result_types,
        known: known_patterns(parts, &axes),
    };
    let grouped = groups::meeting(&whole, parts, &axes)?;
    let equations: Vec<&(Expr, Expr)> = rule
        .equations
        .iter()
        .filter(|(a, b)| !groups::replace_equation(&grouped, a, b))
        .collect();
    solver.solve(&equations)?;
    check_copies(&solver, parts)?;
    let summed = check_roles(&solver, &rule, mask)?;
    check_spoken(&rule, &axes)?;
    let results = results
        .iter()
        .enumerate()
        .map(|(r, ty)| result(&solver, r, ty))
        .collect::<Result<_, _>>()?;
    Ok(Relation {
        op: whole,
        results,
        summed,
        mask,
    })
}

/// Returns the patterns along the operands' axes, except axes with copies, which the solver derives.
fn known_patterns(parts: &[Rc<Part>], axes: &[Axes]) -> FxHashMap<Var, Option<Pattern>> {
    let mut known = FxHashMap::default();
    for (o, (part, axes)) in parts.iter().zip(axes).enumerate() {
        for (a, pattern) in axes.iter().enumerate() {
            if part.copies[a].is_none() {
                known.insert(Var::Axis(Slot::Operand(o), a), pattern.clone());
            }
        }
    }
    known
}

fn check_copies(solver: &Solver<'_>, parts: &[Rc<Part>]) -> Result<(), NotExpressible> {
    for (o, part) in parts.iter().enumerate() {
        for (a, copies) in part.copies.iter().enumerate() {
            let Some(copies) = copies else { continue };
            let known = solver.known.get(&Var::Axis(Slot::Operand(o), a));
            let held = known.ok_or(NotExpressible)?.as_ref();
            if !copies.are_selected(held, &part.ty.dims[a], &part.dims[a])? {
                return Err(NotExpressible);
            }
        }
    }
    Ok(())
}

/// Checks that parts of axes with a role are allowed. Returns the summed indices; `None` for all.
fn check_roles(
    solver: &Solver<'_>,
    rule: &Rule,
    mask: Option<Mask>,
) -> Result<Option<Pattern>, NotExpressible> {
    let mut summed = None;
    for (role, expr) in &rule.roles {
        let Some(Some(pattern)) = solver.value(expr)? else {
            continue;
        };
        match role {
            // The rule on owned writes handles parts of cells.
            Role::Whole | Role::Norm | Role::Owned => return Err(NotExpressible),
            Role::Reduce => match &summed {
                None => summed = Some(pattern),
                Some(other) if *other == pattern => {}
                Some(_) => return Err(NotExpressible),
            },
            Role::Gather | Role::Expert => {
                mask.ok_or(NotExpressible)?;
            }
        }
    }
    Ok(summed)
}

/// Checks that the rule mentions each axis with a part. Along other axes, the rule says nothing about parts.
fn check_spoken(rule: &Rule, axes: &[Axes]) -> Result<(), NotExpressible> {
    for (o, axes) in axes.iter().enumerate() {
        for (a, pattern) in axes.iter().enumerate() {
            let at = (o, a);
            let in_equation = |(l, r): &(Expr, Expr)| mentions(l, at) || mentions(r, at);
            let spoken = rule.equations.iter().any(in_equation)
                || rule.roles.iter().any(|(_, e)| mentions(e, at));
            if pattern.is_some() && !spoken {
                return Err(NotExpressible);
            }
        }
    }
    Ok(())
}

fn result(solver: &Solver<'_>, r: usize, ty: &TensorType) -> Result<IndexSet, NotExpressible> {
    let axes: Axes = std::array::from_fn(|a| {
        let known = solver.known.get(&Var::Axis(Slot::Result(r), a));
        known.cloned().flatten()
    });
    // Devices store only whole blocks.
    let block = ty.dtype.block_len();
    if block > 1
        && let Some(p) = &axes[0]
        && p.unit.checked_div(&block.into()).is_none()
    {
        return Err(NotExpressible);
    }
    selected_dims(&axes, &ty.dims)?;
    from_axes(&axes, &ty.dims)
}

fn is_axis(e: &Expr, at: (usize, usize)) -> bool {
    matches!(e, Expr::Axis(Slot::Operand(o), a) if (*o, *a) == at)
}

fn mentions(e: &Expr, at: (usize, usize)) -> bool {
    match e {
        Expr::Axis(..) => is_axis(e, at),
        Expr::Fresh(..) => false,
        Expr::Product(es) | Expr::Sum(es) => es.iter().any(|e| mentions(e, at)),
        Expr::Slice(e, ..) => mentions(e, at),
    }
}
