//! The rules of a GBNF grammar.

use super::chars::CharSet;

/// The index of an expression.
pub(super) type ExprId = usize;

/// The index of a rule.
pub(super) type RuleId = usize;

/// A part of a rule.
#[derive(Debug)]
pub(super) enum Expr {
    /// One character of a set.
    Class(CharSet),
    /// The text of another rule.
    Rule(RuleId),
    /// One expression after the other.
    Seq(Vec<ExprId>),
    /// One of the expressions.
    Alt(Vec<ExprId>),
    /// The expression at least `min` times, and at most `max` times.
    Repeat {
        item: ExprId,
        min: u32,
        max: Option<u32>,
    },
}

/// The extent of an expression whose rules are written out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// The number of characters and sets.
    pub(super) size: u64,
    /// The nesting of brackets.
    pub(super) depth: u64,
    /// True if the expression matches the empty text.
    pub(super) nullable: bool,
}

/// A grammar: expressions, and the body of each rule.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) exprs: Vec<Expr>,
    pub(super) bodies: Vec<ExprId>,
    pub(super) root: RuleId,
}

impl Rules {
    /// Returns the extent of each expression; `None` if the expression reaches a recursive rule.
    pub(super) fn extents(&self) -> Vec<Option<Extent>> {
        let mut out = vec![None; self.exprs.len()];
        loop {
            let mut changed = false;
            let ids = 0..self.exprs.len();
            // Both directions, because rules may follow or precede their uses.
            for id in ids.clone().chain(ids.rev()) {
                if out[id].is_none() {
                    out[id] = self.extent(id, &out);
                    changed |= out[id].is_some();
                }
            }
            if !changed {
                return out;
            }
        }
    }

    /// Returns an expression's extent if the extents of its parts are known.
    fn extent(&self, id: ExprId, known: &[Option<Extent>]) -> Option<Extent> {
        let leaf = |size: usize| Extent {
            size: size as u64,
            depth: 0,
            nullable: size == 0,
        };
        Some(match &self.exprs[id] {
            Expr::Class(_) => leaf(1),
            Expr::Rule(rule) => {
                let mut out = known[self.bodies[*rule]]?;
                out.depth += 1;
                out
            }
            Expr::Seq(items) => {
                let mut out = leaf(0);
                for &item in items {
                    let item = known[item]?;
                    out.size = out.size.saturating_add(item.size);
                    out.depth = out.depth.max(item.depth + 1);
                    out.nullable &= item.nullable;
                }
                out
            }
            Expr::Alt(items) => {
                let mut out = leaf(0);
                out.nullable = false;
                for &item in items {
                    let item = known[item]?;
                    out.size = out.size.saturating_add(item.size);
                    out.depth = out.depth.max(item.depth + 1);
                    out.nullable |= item.nullable;
                }
                out
            }
            Expr::Repeat { item, min, max } => {
                let item = known[*item]?;
                let times = u64::from(max.unwrap_or(*min + 1).max(1));
                Extent {
                    size: item.size.saturating_mul(times),
                    depth: item.depth + 1,
                    nullable: item.nullable || *min == 0,
                }
            }
        })
    }
}
