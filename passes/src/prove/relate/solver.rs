//! Solves a rule's equations: derives patterns along result axes from patterns along operand axes.

use rustc_hash::FxHashMap;
use tpc_ir::op::{Expr, Slot};
use tpc_ir::{Dim, Interval, TensorType};

use crate::prove::index_set::{NotExpressible, Pattern, clip, common_unit, locate, units};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Var {
    Axis(Slot, usize),
    Fresh(usize),
}

/// The known patterns by axis. `None` as a pattern is a whole axis.
pub(super) struct Solver<'a> {
    pub(super) operands: &'a [&'a TensorType],
    pub(super) results: &'a [&'a TensorType],
    pub(super) known: FxHashMap<Var, Option<Pattern>>,
}

impl Solver<'_> {
    pub(super) fn solve(&mut self, equations: &[&(Expr, Expr)]) -> Result<(), NotExpressible> {
        loop {
            let before = self.known.len();
            let mut open = false;
            for (a, b) in equations {
                match (self.value(a)?, self.value(b)?) {
                    (Some(x), Some(y)) if x == y => {}
                    (Some(_), Some(_)) => return Err(NotExpressible),
                    (Some(x), None) => self.assign(b, x)?,
                    (None, Some(y)) => self.assign(a, y)?,
                    (None, None) => open = true,
                }
            }
            if self.known.len() == before {
                // No equation gives another pattern. If all operand axes are known, the op created the open axes, so
                // they are whole.
                let given = |(a, b): &&(Expr, Expr)| self.is_given(a) && self.is_given(b);
                if !open || !equations.iter().all(given) {
                    return if open && self.any_part() {
                        Err(NotExpressible)
                    } else {
                        Ok(())
                    };
                }
                self.make_whole(equations);
                if self.known.len() == before {
                    return Err(NotExpressible);
                }
            }
        }
    }

    fn is_given(&self, e: &Expr) -> bool {
        match e {
            Expr::Axis(slot @ Slot::Operand(_), a) => {
                self.known.contains_key(&Var::Axis(*slot, *a))
            }
            Expr::Axis(..) | Expr::Fresh(..) => true,
            Expr::Product(es) | Expr::Sum(es) => es.iter().all(|e| self.is_given(e)),
            Expr::Slice(e, ..) => self.is_given(e),
        }
    }

    /// Assumes that axes created by the op are whole, unless an equation determines them.
    fn make_whole(&mut self, equations: &[&(Expr, Expr)]) {
        let mut open: Vec<&Expr> = equations.iter().flat_map(|(a, b)| [a, b]).collect();
        while let Some(e) = open.pop() {
            match e {
                Expr::Fresh(n, _) => {
                    self.known.entry(Var::Fresh(*n)).or_insert(None);
                }
                Expr::Product(es) | Expr::Sum(es) => open.extend(es),
                Expr::Slice(e, ..) => open.push(e),
                Expr::Axis(..) => {}
            }
        }
    }

    fn any_part(&self) -> bool {
        self.known.values().any(Option::is_some)
    }

    fn size(&self, e: &Expr) -> Result<Dim, NotExpressible> {
        match e {
            Expr::Axis(Slot::Operand(o), a) => self
                .operands
                .get(*o)
                .map(|t| t.dims[*a].clone())
                .ok_or(NotExpressible),
            Expr::Axis(Slot::Result(r), a) => self
                .results
                .get(*r)
                .map(|t| t.dims[*a].clone())
                .ok_or(NotExpressible),
            Expr::Fresh(_, n) => Ok(n.clone()),
            Expr::Product(es) => {
                let sizes = self.sizes(es)?;
                Dim::product(&sizes).ok_or(NotExpressible)
            }
            Expr::Sum(es) => {
                let sizes = self.sizes(es)?;
                Dim::sum(&sizes).ok_or(NotExpressible)
            }
            Expr::Slice(_, _, len) => Ok(len.clone()),
        }
    }

    fn sizes(&self, es: &[Expr]) -> Result<Vec<Dim>, NotExpressible> {
        es.iter().map(|e| self.size(e)).collect()
    }

    pub(super) fn value(&self, e: &Expr) -> Result<Option<Option<Pattern>>, NotExpressible> {
        Ok(match e {
            Expr::Axis(slot, a) => self.known.get(&Var::Axis(*slot, *a)).cloned(),
            Expr::Fresh(n, _) => self.known.get(&Var::Fresh(*n)).cloned(),
            Expr::Product(es) => {
                let mut below = Dim::ONE;
                let mut found: Option<Pattern> = None;
                for e in es.iter().rev() {
                    let Some(pattern) = self.value(e)? else {
                        return Ok(None);
                    };
                    if let Some(p) = pattern
                        && found.replace(p.scaled(&below)?).is_some()
                    {
                        return Err(NotExpressible);
                    }
                    below = below.checked_mul(&self.size(e)?).ok_or(NotExpressible)?;
                }
                Some(found)
            }
            Expr::Sum(es) => {
                let mut indices = Vec::new();
                for e in es {
                    let Some(pattern) = self.value(e)? else {
                        return Ok(None);
                    };
                    indices.push(pattern);
                }
                if indices.iter().all(Option::is_none) {
                    return Ok(Some(None));
                }
                let sizes = self.sizes(es)?;
                Some(concatenate_segments(&indices, &sizes)?)
            }
            Expr::Slice(e, start, len) => match self.value(e)? {
                None => None,
                Some(None) => Some(None),
                Some(Some(p)) => {
                    let (Some(start), Some(len)) = (start.as_const(), len.as_const()) else {
                        return Err(NotExpressible);
                    };
                    let intervals = p.refine(&Dim::ONE, &self.size(e)?)?;
                    Some(Pattern::new(&Dim::ONE, len, clip(&intervals, start, len))?)
                }
            },
        })
    }

    fn assign(&mut self, e: &Expr, pattern: Option<Pattern>) -> Result<(), NotExpressible> {
        if let Some(known) = self.value(e)? {
            return if known == pattern {
                Ok(())
            } else {
                Err(NotExpressible)
            };
        }
        match e {
            Expr::Axis(slot, a) => {
                self.known.insert(Var::Axis(*slot, *a), pattern);
                Ok(())
            }
            Expr::Fresh(n, _) => {
                self.known.insert(Var::Fresh(*n), pattern);
                Ok(())
            }
            Expr::Product(es) => {
                let mut sizes = self.sizes(es)?;
                sizes.reverse();
                let mut at = None;
                if let Some(p) = &pattern {
                    at = Some(locate(p, &sizes)?);
                }
                for (i, e) in es.iter().rev().enumerate() {
                    let own = at.as_ref().filter(|(k, _)| *k == i).map(|(_, p)| p.clone());
                    self.assign(e, own)?;
                }
                Ok(())
            }
            Expr::Sum(es) => {
                let sizes = self.sizes(es)?;
                let parts = match &pattern {
                    None => vec![None; es.len()],
                    Some(p) => segments(p, &sizes)?,
                };
                for (e, p) in es.iter().zip(parts) {
                    self.assign(e, p)?;
                }
                Ok(())
            }
            Expr::Slice(..) if pattern.is_none() => Ok(()),
            Expr::Slice(..) => Err(NotExpressible),
        }
    }
}

fn concatenate_segments(
    indices: &[Option<Pattern>],
    sizes: &[Dim],
) -> Result<Option<Pattern>, NotExpressible> {
    let mut unit = sizes[0].clone();
    for (p, size) in indices.iter().zip(sizes) {
        unit = common_unit(&unit, p.as_ref().map_or(size, |p| &p.unit))?;
    }
    let mut intervals = Vec::new();
    let mut at = 0;
    for (p, size) in indices.iter().zip(sizes) {
        let len = units(size, &unit)?;
        let own = match p {
            Some(p) => p.refine(&unit, size)?,
            None => vec![Interval { start: 0, len }],
        };
        intervals.extend(own.iter().map(|r| Interval {
            start: at + r.start,
            len: r.len,
        }));
        at += len;
    }
    Pattern::new(&unit, at, intervals)
}

fn segments(pattern: &Pattern, sizes: &[Dim]) -> Result<Vec<Option<Pattern>>, NotExpressible> {
    let mut unit = pattern.unit.clone();
    for s in sizes {
        unit = common_unit(&unit, s)?;
    }
    let whole = Dim::sum(sizes).ok_or(NotExpressible)?;
    let intervals = pattern.refine(&unit, &whole)?;
    let mut at = 0;
    let mut out = Vec::new();
    for s in sizes {
        let len = units(s, &unit)?;
        out.push(Pattern::new(&unit, len, clip(&intervals, at, len))?);
        at += len;
    }
    if concatenate_segments(&out, sizes)?.as_ref() == Some(pattern) {
        Ok(out)
    } else {
        Err(NotExpressible)
    }
}
