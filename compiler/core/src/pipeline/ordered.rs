use tpc_ir::program::SumOrder;
use tpc_passes::machine::Engine;

use super::{CAPTURE, CompiledModel, Origin, ways};
use crate::placement::Placement;

impl Origin<'_> {
    /// Returns the decoding speed of the same way with every sum in the order of one device, as a share of the plan's
    /// speed. `None` if there is no such plan, or if another engine runs it. Also `None` for captured graphs: they may be
    /// large, and the share takes a second plan.
    pub fn ordered_share(self, placement: &Placement, compiled: &CompiledModel) -> Option<f64> {
        let is_capture = compiled.model.summary.arch == CAPTURE;
        let asked = placement.sums == SumOrder::OneDevice;
        if is_capture || asked || placement.engine != Engine::Tpc {
            return None;
        }
        let placement = Placement {
            sums: SumOrder::OneDevice,
            split_mode: compiled.mode,
            ..placement.clone()
        };
        let stages = &compiled.resolved.layer_placement.stages;
        let mut ways = ways(&placement).into_iter();
        let way = ways.find(|w| w.mode == compiled.mode && w.stages == *stages)?;
        let prepared = self.prepare(&placement).ok()?;
        let draft = prepared.draft_once(&placement, &way).ok()?;
        let kept = draft.bits_error(&placement).is_none();
        kept.then(|| {
            compiled.estimate.decode_us / draft.estimate().decode_us.max(f64::MIN_POSITIVE)
        })
    }
}
