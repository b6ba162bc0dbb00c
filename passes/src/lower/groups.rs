//! Head groups of unequal size on a device: query heads per KV head, or channels per group of a scan.

use tpc_ir::op::{FlashAttn, LocalCtx, Slot, head_groups};
use tpc_ir::{Op, Value};

use super::LowerError;
use super::intervals::at_positions;
use super::lowering::{Lowering, Site};

impl Lowering<'_> {
    /// Runs an op once per size of head group. Returns `None` if one run covers all groups.
    pub(super) fn run_by_head_group(
        &mut self,
        site: Site<'_>,
        ctx: &LocalCtx<'_>,
        op: &Op,
        local: &[Value],
    ) -> Result<Option<Vec<Value>>, LowerError> {
        let is_split = |(o, a): (usize, usize)| ctx.operands[o].sharding.axes[a].is_some();
        let found = op
            .head_groupings()
            .iter()
            .find(|g| is_split(g.query) || is_split(g.kv[0]));
        let Some(grouping) = found else {
            return Ok(None);
        };
        let size = |(o, a): (usize, usize)| ctx.operands[o].ty.dims[a].as_const();
        let held = |(o, a): (usize, usize)| ctx.intervals(Slot::Operand(o), a);
        // Axes of run-time size are never grouped.
        let (Some(query), Some(kv)) = (size(grouping.query), size(grouping.kv[0])) else {
            return Ok(None);
        };
        let (Some(held_query), Some(held_kv)) = (held(grouping.query), held(grouping.kv[0])) else {
            return Ok(None);
        };
        let group = query.checked_div(kv).unwrap_or(1);
        let groups = head_groups(&held_query, &held_kv, group.max(1));
        let groups = groups.ok_or_else(|| self.rebase(site))?;
        match groups.as_slice() {
            [] => return Ok(None),
            [one] if one.kv.len == tpc_ir::sharding::total_len(&held_kv) => return Ok(None),
            _ => {}
        }
        let mut results: Vec<Vec<Value>> = vec![Vec::new(); grouping.results.len()];
        for group in groups {
            let mut operands = local.to_vec();
            let of_group = std::iter::once((grouping.query, group.query))
                .chain(grouping.kv.iter().map(|&at| (at, group.kv)))
                .chain(grouping.per_query.iter().map(|&at| (at, group.query)));
            for ((o, a), interval) in of_group {
                if o < operands.len() {
                    operands[o] = self.select(site, operands[o], a, &[interval])?;
                }
            }
            let mut op = op.clone();
            if let Op::FlashAttn(FlashAttn { heads: Some(w), .. }) = &mut op {
                w.heads = at_positions(&w.heads, group.query);
            }
            let types = self.infer(site, &op, &operands)?.unwrap_or_default();
            let of_group = self.push_with_type(site, op, operands, types);
            for (result, v) in results.iter_mut().zip(of_group) {
                result.push(v);
            }
        }
        let joined = results.into_iter().zip(grouping.results);
        let joined = joined.map(|(values, &axis)| self.concat(site, axis, values));
        joined.collect::<Result<_, _>>().map(Some)
    }
}
