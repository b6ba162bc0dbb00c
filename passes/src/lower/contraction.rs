//! Contractions and look-ups over split factors: each index counts on one device only, and operands meet index by
//! index.

use tpc_ir::op::{Expr, LocalCtx, Pad, Role, Slot};
use tpc_ir::{Inst, InstData, Op, Place, Value};

use super::intervals::{overlaps, within};
use super::{LowerError, Lowering};

impl Lowering<'_> {
    /// Makes the operands of a contraction meet index by index, each index on one device only.
    pub(super) fn align_contraction(
        &mut self,
        inst: Inst,
        data: &InstData,
        ctx: &LocalCtx<'_>,
        local: &mut [Value],
        place: Place,
    ) -> Result<(), LowerError> {
        let types = |vs: &[Value]| {
            vs.iter()
                .map(|&v| &self.from.value(v).ty)
                .collect::<Vec<_>>()
        };
        if !data
            .operands
            .iter()
            .any(|&v| self.from.value(v).sharding.is_split())
        {
            return Ok(());
        }
        let rule = data.op.rule(&types(&data.operands), &types(&data.results));
        let product = matches!(data.op, Op::MulMat(_) | Op::MulMatId(_));
        let rank = ctx.rank;
        let rebase = || LowerError::Rebase {
            op: data.op.name(),
            value: format!("{inst}"),
            rank,
        };
        for (role, expr) in &rule.roles {
            let (
                Role::Reduce | Role::Gather | Role::Expert,
                Expr::Axis(Slot::Operand(first), axis),
            ) = (role, expr)
            else {
                continue;
            };
            // A product contracts the same axis of both its operands.
            let slots = if product && *role == Role::Reduce {
                0..2
            } else {
                *first..*first + 1
            };
            for slot in slots {
                let operand = ctx.operands[slot];
                let Some(tree) = &operand.sharding.axes[*axis] else {
                    continue;
                };
                if overlaps(tree, ctx.classes) {
                    let runs = tree.intervals(ctx.classes, rank).ok_or_else(rebase)?;
                    let owned = tree.owned_runs(ctx.classes, rank).ok_or_else(rebase)?;
                    local[slot] = self.select(
                        data,
                        rank,
                        local[slot],
                        *axis,
                        &within(&runs, &owned),
                        place,
                    )?;
                } else if slot == 1 && ctx.operands[0].sharding.granule > 1 {
                    let cover = ctx.operands[0].sharding.granule;
                    let runs = tree.intervals(ctx.classes, rank).ok_or_else(rebase)?;
                    let blocks = tpc_ir::sharding::granule_intervals(&runs, cover);
                    if let ([run], [block]) = (runs.as_slice(), blocks.as_slice()) {
                        let (before, after) = (run.start - block.start, block.end() - run.end());
                        if before + after > 0 {
                            let pad = Pad {
                                axis: *axis as u64,
                                before,
                                after,
                            };
                            local[slot] =
                                self.push(data, rank, pad.into(), vec![local[slot]], place)?;
                        }
                    } else if !runs.is_empty() {
                        return Err(rebase());
                    }
                }
            }
        }
        Ok(())
    }
}
