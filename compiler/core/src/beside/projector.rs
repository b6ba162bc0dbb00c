use tpc_gguf::GgufFile;

use super::{ExtraFileMemory, Part, Projector};
use crate::placement::Placement;

/// Patches that llama.cpp reserves for encoders of any image size: 46 × 46 tokens of four patches.
const PATCHES_OF_ANY_SIZE: u64 = 4 * 46 * 46;

/// Sound frames per batch: thirty seconds.
const FRAMES: u64 = 1500;

pub(super) fn projector(
    projector: &Projector,
    file: &GgufFile,
    placement: &Placement,
) -> ExtraFileMemory {
    let n = placement.devices.len();
    let mut out = ExtraFileMemory::none("mmproj", &projector.file, n);
    let tensors = file.header().tensors().iter();
    let part = Part {
        weights: tensors.map(|t| t.bytes).fold(0, u64::saturating_add),
        kv: 0,
        compute: compute(file),
    };
    let local = (0..n).find(|&d| !placement.topology.is_remote(d));
    let device = projector.device.filter(|&d| d < n).or(local);
    match device.filter(|_| !projector.on_host) {
        Some(d) => out.devices[d] = part,
        None => out.host = part,
    }
    out
}

/// Estimates an encoder's buffers. Each patch has a state, queries, keys, values, and the wider intermediate value of
/// attention and feed-forward. Attention is fused.
fn compute(file: &GgufFile) -> u64 {
    let metadata = file.header().metadata();
    let number = |key: String| metadata.get_u64(&key).ok().flatten();
    let of_tower = |tower: &str, patches: u64| {
        let get = |key: &str| number(format!("clip.{tower}.{key}"));
        let width = get("embedding_length")?;
        let inner = get("feed_forward_length").unwrap_or(4 * width);
        Some(patches.saturating_mul(4 * (2 * width + (4 * width).max(2 * inner))))
    };
    let size = number("clip.vision.image_size".to_owned());
    let patch = number("clip.vision.patch_size".to_owned()).filter(|&p| p > 0);
    let square = |size: u64, patch: u64| (size / patch).saturating_mul(size / patch);
    let patches = match (size.filter(|&s| s > 0), patch, takes_any_size(file)) {
        (Some(size), Some(patch), false) => square(size, patch),
        _ => PATCHES_OF_ANY_SIZE,
    };
    let towers = [of_tower("vision", patches), of_tower("audio", FRAMES)];
    towers.into_iter().flatten().fold(0, u64::saturating_add)
}

fn takes_any_size(file: &GgufFile) -> bool {
    let metadata = file.header().metadata();
    let keys = ["clip.projector_type", "clip.vision.projector_type"];
    let mut kinds = keys
        .iter()
        .filter_map(|k| metadata.get_str(k).ok().flatten());
    kinds.any(|k| k.contains("merger") || k.contains("pixtral") || k.contains("qwen"))
}
