//! The memory of adapters. Each adapter tensor is at the place of the tensor that it changes.

use tpc_gguf::GgufFile;

use super::header::{Blocks, block, blocks};
use super::{Adapter, ExtraFileMemory, Part};
use crate::placement::{Placement, Target};

pub(super) fn adapter(
    adapter: &Adapter,
    file: &GgufFile,
    model: &GgufFile,
    placement: &Placement,
) -> ExtraFileMemory {
    let what = match adapter.is_control_vector {
        true => "control vector",
        false => "lora",
    };
    let mut out = ExtraFileMemory::none(what, &adapter.file, placement.devices.len());
    let places = Blocks::of(blocks(model), placement);
    for t in file.header().tensors() {
        let bytes = Part::weights(t.bytes);
        let base = t
            .name
            .trim_end_matches(".lora_a")
            .trim_end_matches(".lora_b");
        match place(base, &places, placement) {
            None => out.host.add(bytes),
            // A split back end keeps small tensors whole on every device.
            Some(_) if places.is_split => out.devices.iter_mut().for_each(|d| d.add(bytes)),
            Some(d) => out.devices[d].add(bytes),
        }
    }
    out
}

/// Returns the device of a tensor; `None` for the host.
fn place(base: &str, places: &Blocks, placement: &Placement) -> Option<usize> {
    let matching = placement.overrides.iter();
    let matching = matching.filter(|o| o.matches(base).unwrap_or(false));
    let layer = block(base);
    match matching.map(|o| o.target).next() {
        Some(Target::Host) => return None,
        Some(Target::Device(d)) => return Some(d),
        Some(Target::Mirrored) | None => {}
    }
    let is_expert = base.contains("_exps");
    if is_expert && layer.is_some_and(|l| placement.host_experts.contains(l)) {
        return None;
    }
    // Control vectors have one direction per layer, but not for the embedding.
    let direction = || base.strip_prefix("direction.")?.parse::<u64>().ok();
    match layer.or_else(direction) {
        Some(l) => places.block(l),
        None if base.starts_with("token_embd") => None,
        None => places.output(),
    }
}
