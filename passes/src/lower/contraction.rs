//! Contractions and look-ups over split factors: one device contracts each index, and operands hold the same indices.

use tpc_ir::op::{Expr, LocalCtx, Pad, Role, Slot};
use tpc_ir::{AxisTree, Value};

use super::LowerError;
use super::intervals::{overlaps, positions};
use super::lowering::{Lowering, Site};

impl Lowering<'_> {
    /// Aligns operands so that exactly one device contracts each index.
    pub(super) fn align_contraction(
        &mut self,
        site: Site<'_>,
        ctx: &LocalCtx<'_>,
        local: &mut [Value],
    ) -> Result<(), LowerError> {
        let data = site.data;
        let split = |&v: &Value| self.from.value(v).sharding.is_split();
        if !data.operands.iter().any(split) {
            return Ok(());
        }
        let rule = self.rule(data);
        let product = data.op.is_product();
        for (role, expr) in &rule.roles {
            let (
                Role::Reduce | Role::Gather | Role::Expert,
                Expr::Axis(Slot::Operand(first), axis),
            ) = (role, expr)
            else {
                continue;
            };
            // A product contracts the same axis of both operands.
            let slots = if product && *role == Role::Reduce {
                0..2
            } else {
                *first..*first + 1
            };
            for slot in slots {
                let Some(tree) = &ctx.operands[slot].sharding.axes[*axis] else {
                    continue;
                };
                if overlaps(tree, ctx.classes) {
                    local[slot] = self.select_owned(site, local[slot], *axis, tree)?;
                } else if slot == 1 {
                    let granule = ctx.operands[0].sharding.granule;
                    local[1] = self.pad_to_granules(site, local[1], *axis, tree, granule)?;
                }
            }
        }
        Ok(())
    }

    fn select_owned(
        &mut self,
        site: Site<'_>,
        part: Value,
        axis: usize,
        tree: &AxisTree,
    ) -> Result<Value, LowerError> {
        let classes = &self.from.classes;
        let held = tree.intervals(classes, site.rank);
        let owned = tree.owned_runs(classes, site.rank);
        let (held, owned) = held.zip(owned).ok_or_else(|| self.rebase(site))?;
        self.select(site, part, axis, &positions(&held, &owned))
    }

    /// Pads a device's part with zeros to the storage granules that the device's weight holds whole.
    fn pad_to_granules(
        &mut self,
        site: Site<'_>,
        part: Value,
        axis: usize,
        tree: &AxisTree,
        granule: u64,
    ) -> Result<Value, LowerError> {
        if granule <= 1 {
            return Ok(part);
        }
        let held = tree.intervals(&self.from.classes, site.rank);
        let held = held.ok_or_else(|| self.rebase(site))?;
        let stored = tpc_ir::sharding::granule_intervals(&held, granule);
        match (held.as_slice(), stored.as_slice()) {
            ([], _) => Ok(part),
            ([held], [stored]) if held == stored => Ok(part),
            ([held], [stored]) => {
                let pad = Pad {
                    axis: axis as u64,
                    before: held.start - stored.start,
                    after: stored.end() - held.end(),
                };
                self.push(site, pad, vec![part])
            }
            _ => Err(self.rebase(site)),
        }
    }
}
