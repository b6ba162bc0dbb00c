//! Heads that meet KV heads, or groups of a scan, in unequal numbers on a device.

use tpc_ir::op::{Concat, FlashAttn, LocalCtx, Slot, pieces};
use tpc_ir::{InstData, Op, Place, Value};

use super::intervals::nth;
use super::{LowerError, Lowering};

impl Lowering<'_> {
    /// An op whose indices meet in groups that are not alike on this device runs once per kind of group.
    pub(super) fn by_pieces(
        &mut self,
        data: &InstData,
        ctx: &LocalCtx<'_>,
        op: &Op,
        local: &[Value],
        place: Place,
    ) -> Result<Option<Vec<Value>>, LowerError> {
        let rank = ctx.rank;
        let rebase = || LowerError::Rebase {
            op: op.name(),
            value: String::new(),
            rank,
        };
        let is_split = |(o, a): (usize, usize)| ctx.operands[o].sharding.axes[a].is_some();
        let found = op
            .groupings()
            .iter()
            .find(|g| is_split(g.many) || is_split(g.few[0]));
        let Some(grouping) = found else {
            return Ok(None);
        };
        let size = |(o, a): (usize, usize)| ctx.operands[o].ty.dims[a].as_const();
        let runs = |(o, a): (usize, usize)| ctx.intervals(Slot::Operand(o), a);
        // Axes whose sizes are known at run time only are never grouped.
        let (Some(many), Some(few)) = (size(grouping.many), size(grouping.few[0])) else {
            return Ok(None);
        };
        let (Some(m), Some(f)) = (runs(grouping.many), runs(grouping.few[0])) else {
            return Ok(None);
        };
        let group = many.checked_div(few).unwrap_or(1);
        let parts = pieces(&m, &f, group.max(1)).ok_or_else(rebase)?;
        let held = tpc_ir::sharding::total_len(&f);
        match parts.as_slice() {
            [] => return Ok(None),
            [one] if one.few.len == held => return Ok(None),
            _ => {}
        }
        // Per result of the op, those of the pieces.
        let mut made: Vec<Vec<Value>> = vec![Vec::new(); grouping.results.len()];
        for piece in parts {
            let mut operands = local.to_vec();
            let wanted = [(grouping.many, piece.many)]
                .into_iter()
                .chain(grouping.few.iter().map(|&at| (at, piece.few)))
                .chain(grouping.along.iter().map(|&at| (at, piece.many)));
            for ((o, a), run) in wanted {
                if o < operands.len() {
                    operands[o] = self.select(data, rank, operands[o], a, &[run], place)?;
                }
            }
            let mut op = op.clone();
            if let Op::FlashAttn(FlashAttn { heads: Some(w), .. }) = &mut op {
                w.heads = nth(&w.heads, piece.many);
            }
            let results = self.push_all(data, rank, op, operands, place)?;
            for (of_result, v) in made.iter_mut().zip(results) {
                of_result.push(v);
            }
        }
        let joined = made.into_iter().zip(grouping.results);
        let joined = joined.map(|(of_result, &axis)| match of_result.as_slice() {
            [one] => Ok(*one),
            _ => {
                let axis = axis as u64;
                self.push(data, rank, Concat { axis }.into(), of_result, place)
            }
        });
        joined.collect::<Result<_, _>>().map(Some)
    }
}
