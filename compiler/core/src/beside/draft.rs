use tpc_gguf::GgufFile;
use tpc_ir::{Device, Place};
use tpc_models::Drafting;
use tpc_passes::footprint::Footprint;
use tpc_passes::machine::Machines;

use super::header::{Blocks, Keys, block, blocks, cache, weights};
use super::{Draft, ExtraFileMemory, Part};
use crate::pipeline::Origin;
use crate::placement::{HostExperts, Placement, SplitMode};

pub(super) fn draft(
    draft: &Draft,
    file: &GgufFile,
    model: &GgufFile,
    placement: &Placement,
) -> ExtraFileMemory {
    let mut out = ExtraFileMemory::none("draft", &draft.file, placement.devices.len());
    let (own, positions) = own_placement(
        draft,
        draft.ctx_size.unwrap_or_else(|| ctx_size(model, placement)),
        placement,
    );
    let (devices, host) = planned_memory(file, &own).unwrap_or_else(|| by_header(file, &own));
    for (part, position) in devices.into_iter().zip(positions) {
        if let Some(device) = out.devices.get_mut(position) {
            *device = part;
        }
    }
    out.host = host;
    out
}

fn ctx_size(model: &GgufFile, placement: &Placement) -> u64 {
    let trained = || Keys::of(model).number("context_length");
    placement.ctx_size.or_else(trained).unwrap_or(4096).max(1)
}

/// Returns the draft model's placement, and the positions of its devices in the model's list.
fn own_placement(draft: &Draft, ctx_size: u64, placement: &Placement) -> (Placement, Vec<usize>) {
    let mut out = Placement {
        overrides: Vec::new(),
        host_experts: HostExperts::NONE,
        n_gpu_layers: draft.gpu_layers,
        cache_type_k: draft.cache_type_k,
        cache_type_v: draft.cache_type_v,
        ctx_size: Some(ctx_size),
        drafting: Drafting::None,
        depth: 0,
        main_device: None,
        notes: Vec::new(),
        beside: Vec::new(),
        ..placement.clone()
    };
    let all: Vec<usize> = (0..placement.devices.len()).collect();
    let chosen = draft.devices.iter().flatten().copied();
    let chosen: Vec<usize> = chosen.filter(|d| all.contains(d)).collect();
    let positions = match &draft.devices {
        Some(named) if named.is_empty() => {
            out.n_gpu_layers = Some(0);
            all
        }
        Some(_) if !chosen.is_empty() => chosen,
        _ => all,
    };
    let topology = &placement.topology;
    out.devices = positions
        .iter()
        .map(|&d| placement.devices[d].clone())
        .collect();
    out.topology.devices = positions
        .iter()
        .map(|&d| topology.device(d).clone())
        .collect();
    out.topology.links.clear();
    out.topology.machines = Machines::default();
    if let Some(shares) = &mut out.tensor_split {
        shares.truncate(positions.len());
    }
    if positions.len() < placement.devices.len()
        && out
            .tensor_split
            .as_ref()
            .is_some_and(|s| s.iter().all(|&x| x == 0.0))
    {
        out.tensor_split = None;
    }
    // A draft model on one device needs no tensor split. The default split is by layers.
    if positions.len() == 1 || placement.split_mode == SplitMode::Auto {
        out.split_mode = SplitMode::Layer;
    }
    (out, positions)
}

/// Computes the memory from a plan; `None` if tpc cannot plan the file.
fn planned_memory(file: &GgufFile, placement: &Placement) -> Option<(Vec<Part>, Part)> {
    let prepared = Origin::File(file).prepare(placement).ok()?;
    let draft = prepared.draft(placement).ok()?;
    let prints = draft.footprints();
    let part = |place| {
        prints
            .get(&place)
            .copied()
            .map_or_else(Part::default, of_print)
    };
    let devices = 0..placement.devices.len();
    let devices = devices.map(|d| part(Place::Device(Device::new(d))));
    Some((devices.collect(), part(Place::Host)))
}

fn of_print(print: Footprint) -> Part {
    let kv = print.kv.saturating_add(print.state);
    let stored = print
        .total()
        .saturating_sub(kv)
        .saturating_sub(print.compute);
    Part {
        weights: stored,
        kv,
        compute: print.compute,
    }
}

/// Computes the memory from the header. Blocks without keys read the model's cache.
fn by_header(file: &GgufFile, placement: &Placement) -> (Vec<Part>, Part) {
    let n = blocks(file);
    let places = Blocks::of(n, placement);
    let count = placement.devices.len();
    let (mut devices, mut host) = weights(file, &places, count);
    let ctx_size = placement.ctx_size.unwrap_or(0);
    let types = [placement.cache_type_k, placement.cache_type_v].map(tpc_ir::DType::element_bytes);
    for b in (0..n).filter(|&b| has_keys(file, b)) {
        let kv = cache(file, b, ctx_size, types);
        let part = |bytes| Part {
            kv: bytes,
            ..Part::default()
        };
        match places.block(b).filter(|_| !placement.kv_on_host) {
            None => host.add(part(kv)),
            Some(_) if places.is_split => devices
                .iter_mut()
                .for_each(|d| d.add(part(kv.div_ceil(count as u64)))),
            Some(d) => devices[d].add(part(kv)),
        }
    }
    let keys = Keys::of(file);
    let number = |key| keys.number(key).unwrap_or(0);
    let width = 4 * number("embedding_length") + 2 * number("feed_forward_length");
    let tensor = |name| file.header().tensor(name);
    let output = tensor("output.weight").or_else(|| tensor("token_embd.weight"));
    let rows = output.map_or(0, |t| t.ne[1]);
    let compute = 4 * (placement.ubatch_size * width + placement.parallel * rows);
    for part in devices.iter_mut().filter(|p| p.total() > 0) {
        part.compute = compute;
    }
    (devices, host)
}

/// True if a block computes keys. It then has a cache.
fn has_keys(file: &GgufFile, of: u64) -> bool {
    let keys = ["attn_k.", "attn_qkv.", "attn_kv_a_mqa."];
    let mut tensors = file.header().tensors().iter();
    tensors.any(|t| block(&t.name) == Some(of) && keys.iter().any(|k| t.name.contains(k)))
}
