use tpc_gguf::{GgufFile, Metadata};

use super::Part;
use crate::placement::{Placement, SplitMode, Unit, by_layers};

/// Parses the block of a tensor name: 3 in `blk.3.attn_q.weight`.
pub(super) fn block(name: &str) -> Option<u64> {
    name.strip_prefix("blk.")?.split('.').next()?.parse().ok()
}

pub(super) struct Keys<'f> {
    metadata: &'f Metadata,
    pub(super) arch: String,
}

impl<'f> Keys<'f> {
    pub(super) fn of(file: &'f GgufFile) -> Keys<'f> {
        let metadata = file.header().metadata();
        let arch = metadata.get_str("general.architecture");
        Keys {
            metadata,
            arch: arch.ok().flatten().unwrap_or_default().to_owned(),
        }
    }

    /// Reads a number, or the largest number of a per-layer array.
    pub(super) fn number(&self, key: &str) -> Option<u64> {
        let key = format!("{}.{key}", self.arch);
        let one = self.metadata.get_u64(&key).ok().flatten();
        one.or_else(|| {
            let all = self.metadata.get_array_u64(&key).ok().flatten()?;
            all.into_iter().max()
        })
    }

    fn per_layer(&self, key: &str, layers: u64) -> Option<Vec<u64>> {
        let key = format!("{}.{key}", self.arch);
        let n = usize::try_from(layers).ok()?;
        let all = self.metadata.get_u32_per_layer(&key, n).ok().flatten()?;
        Some(all.into_iter().map(u64::from).collect())
    }
}

/// Counts the blocks that have tensors. Ignores the header's block count.
pub(super) fn blocks(file: &GgufFile) -> u64 {
    let tensors = file.header().tensors().iter();
    let last = tensors.filter_map(|t| block(&t.name)).max();
    last.map_or(0, |l| l + 1)
}

/// The place of each block: a device's position, or `None` for the host.
pub(super) struct Blocks {
    /// Places of the blocks, then of the output.
    places: Vec<Option<usize>>,
    /// True if every device has a part of every block.
    pub(super) is_split: bool,
}

impl Blocks {
    pub(super) fn of(blocks: u64, placement: &Placement) -> Blocks {
        let n = usize::try_from(blocks).unwrap_or(usize::MAX).min(1 << 16);
        let devices = placement.devices.len();
        let kept = placement.n_gpu_layers.unwrap_or(u64::MAX);
        let on_host = (n as u64 + 1).saturating_sub(kept) as usize;
        let alone = placement.split_mode == SplitMode::None;
        let main = placement.main_device.unwrap_or(0);
        let shares = match (&placement.tensor_split, alone) {
            (_, true) => (0..devices)
                .map(|d| f64::from(u8::from(d == main)))
                .collect(),
            (Some(shares), false) => shares.clone(),
            (None, false) => memory_shares(placement),
        };
        let mut units = vec![Unit { bytes: 1 }; n + 2];
        units
            .iter_mut()
            .take(if on_host > 0 { on_host + 1 } else { 0 })
            .for_each(|u| u.bytes = 0);
        let stages = by_layers(&units, &shares);
        let place = |block: usize| (block >= on_host).then(|| stages[block + 1]);
        Blocks {
            places: (0..=n).map(place).collect(),
            is_split: placement.split_mode.splits_tensors() && devices > 1,
        }
    }

    pub(super) fn block(&self, block: u64) -> Option<usize> {
        let at = usize::try_from(block).ok();
        at.and_then(|b| self.places.get(b).copied()).flatten()
    }

    pub(super) fn output(&self) -> Option<usize> {
        self.places.last().copied().flatten()
    }
}

fn memory_shares(placement: &Placement) -> Vec<f64> {
    let n = placement.devices.len();
    let all: Option<Vec<f64>> = (0..n)
        .map(|d| placement.topology.device(d).usable_memory())
        .collect();
    all.filter(|m| m.iter().sum::<f64>() > 0.0)
        .unwrap_or_else(|| vec![1.0; n])
}

/// Computes the bytes of a block's KV cache with `cells` cells; 0 if the header lacks the sizes.
pub(super) fn cache(file: &GgufFile, block: u64, cells: u64, bytes: [f64; 2]) -> u64 {
    let keys = Keys::of(file);
    let layers = blocks(file).max(keys.number("block_count").unwrap_or(0));
    let of_block = |key: &str| {
        let all = keys.per_layer(key, layers)?;
        all.get(usize::try_from(block).ok()?).copied()
    };
    let heads = of_block("attention.head_count").or_else(|| keys.number("attention.head_count"));
    let kv_heads = of_block("attention.head_count_kv")
        .or_else(|| keys.number("attention.head_count_kv"))
        .or(heads);
    let (Some(kv_heads), Some(heads)) = (kv_heads, heads.filter(|&h| h > 0)) else {
        return 0;
    };
    let usual = keys.number("embedding_length").unwrap_or(0) / heads;
    let length = |key: &str| keys.number(key).unwrap_or(usual);
    let k = length("attention.key_length") as f64 * bytes[0];
    let v = length("attention.value_length") as f64 * bytes[1];
    (cells as f64 * kv_heads as f64 * (k + v)) as u64
}

/// Sums the tensor bytes per device and on the host. Blocks are on the devices that run them. The embedding is on the
/// host, other tensors are with the output. An embedding that is also the output is stored twice.
pub(super) fn weights(file: &GgufFile, blocks: &Blocks, devices: usize) -> (Vec<Part>, Part) {
    let mut out = vec![Part::default(); devices];
    let mut host = Part::default();
    let tied = file.header().tensor("output.weight").is_none();
    for t in file.header().tensors() {
        let bytes = Part::weights(t.bytes);
        let is_embedding = t.name.starts_with("token_embd.");
        if is_embedding {
            host.add(bytes);
        }
        let place = match block(&t.name) {
            Some(b) => blocks.block(b),
            None if is_embedding && !tied => continue,
            None => blocks.output(),
        };
        match place {
            _ if is_embedding && place.is_none() => {}
            None => host.add(bytes),
            Some(_) if blocks.is_split => {
                let n = devices as u64;
                out.iter_mut()
                    .for_each(|d| d.add(Part::weights(bytes.weights.div_ceil(n))));
            }
            Some(d) => out[d].add(bytes),
        }
    }
    (out, host)
}
