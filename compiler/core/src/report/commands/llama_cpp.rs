use tpc_ir::DType;
use tpc_models::Drafting;
use tpc_passes::machine::Engine;
use tpc_passes::place::{LayerPlace, LayerPlacement};

use super::devices::{buffer, devices};
use super::embeds::embeds;
use super::path::{first_shard, is_address, path_word};
use super::refusal::Refusal;
use super::shell::ShellCommand;
use crate::foreign_types::ForeignTypes;
use crate::pipeline::{CompiledModel, tensor_limit};
use crate::placement::{
    HostExperts, Override, Placement, SplitMode, Target, overridden, resolve, shares,
};

/// Default batch in tokens (`-b`), which limits `-ub`.
const BATCH: u64 = 2048;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    LlamaCpp,
    IkLlamaCpp,
}

pub(super) fn command(
    family: Family,
    path: &str,
    placement: &Placement,
    compiled: &CompiledModel,
) -> Result<ShellCommand, Refusal> {
    refuse_files(family, placement, compiled)?;
    if placement.is_cluster() {
        let why = "it uses devices of other machines only through RPC servers (--rpc HOST:PORT,…)";
        return Err(Refusal::new(why));
    }
    let mode = match compiled.mode {
        SplitMode::Hybrid => {
            let why = "it does not combine a split by layers with a split of tensors";
            return Err(Refusal {
                why: why.to_owned(),
                layers_instead: true,
            });
        }
        SplitMode::Tensor => {
            let (engine, name) = match family {
                Family::LlamaCpp => (Engine::LlamaCpp, "tensor"),
                Family::IkLlamaCpp => (Engine::IkLlamaCpp, "graph"),
            };
            match tensor_limit(engine, &compiled.model, placement) {
                Some(limit) => return Err(limit.into()),
                None => name,
            }
        }
        SplitMode::Layer => "layer",
        SplitMode::None | SplitMode::Auto => "none",
    };
    words(path, placement, compiled, mode).map(ShellCommand::new)
}

fn refuse_files(
    family: Family,
    placement: &Placement,
    compiled: &CompiledModel,
) -> Result<(), Refusal> {
    let model = &compiled.model;
    let towers = model.summary.towers().count();
    if towers > 0 {
        let why = format!(
            "it does not load files that contain an image or sound encoder ({towers} tensors): use the publisher's \
             text file and its mmproj file"
        );
        return Err(Refusal::new(why));
    }
    if family == Family::IkLlamaCpp {
        return Ok(());
    }
    if let Some(cache) = placement.foreign_cache() {
        let why = format!("it does not support {cache} caches, a type of ik_llama.cpp");
        return Err(Refusal::new(why));
    }
    match ForeignTypes::of_graph(&model.graph) {
        Some(foreign) => Err(Refusal::new(format!(
            "it does not support the types of ik_llama.cpp ({})",
            foreign.names()
        ))),
        None => Ok(()),
    }
}

pub(super) fn by_layers(
    path: &str,
    placement: &Placement,
    compiled: &CompiledModel,
) -> Option<ShellCommand> {
    let fits = (compiled.candidates.iter())
        .find(|c| c.mode == SplitMode::Layer)
        .is_none_or(|c| c.fits);
    let words = words(path, placement, compiled, "layer").ok();
    words.filter(|_| fits).map(ShellCommand::new)
}

fn override_words(placement: &Placement) -> Result<Vec<String>, Refusal> {
    let word = |o: &Override| {
        if o.pattern.contains(',') {
            let why = format!("it ends the pattern of -ot {} at the comma", o.pattern);
            return Err(Refusal::new(why));
        }
        let place = match o.target {
            Target::Host => "CPU".to_owned(),
            Target::Device(d) => buffer(&placement.devices, d)?,
            Target::Mirrored => {
                let why = "its -ot cannot place a tensor whole on every device";
                return Err(Refusal::new(why));
            }
        };
        Ok(format!("{}={place}", o.pattern))
    };
    placement.overrides.iter().map(word).collect()
}

fn words(
    path: &str,
    placement: &Placement,
    compiled: &CompiledModel,
    mode: &str,
) -> Result<Vec<String>, Refusal> {
    let option = if is_address(path) { "-mu" } else { "-m" };
    let path = path_word(&first_shard(path));
    let mut out = vec!["llama-server".to_owned(), option.to_owned(), path];
    let mut put = |words: &[&str]| out.extend(words.iter().map(|&w| w.to_owned()));
    let n = placement.devices.len();
    let used = devices(&placement.devices)?;
    if let Some(list) = &used {
        put(&["-dev", list]);
    }
    if n > 1 {
        put(&["-sm", mode]);
        if mode == "none" && used.is_none() {
            let main = compiled.main_device().unwrap_or(0);
            put(&["-mg", &main.to_string()]);
        }
        if let Some(split) = proportions(placement, compiled, mode) {
            put(&["-ts", &split]);
        }
    }
    let all = compiled.model.summary.n_block() + 1;
    let everything = if all > 99 { 999 } else { 99 };
    let layers = placement.n_gpu_layers.filter(|&l| l < all);
    put(&["-ngl", &layers.unwrap_or(everything).to_string()]);
    for word in override_words(placement)? {
        put(&["-ot", &word]);
    }
    match placement.host_experts {
        HostExperts::NONE => {}
        HostExperts::First(n) => put(&["-ncmoe", &n.to_string()]),
        HostExperts::All => put(&["-cmoe"]),
    }
    if placement.kv_on_host {
        put(&["-nkvo"]);
    }
    put(&["-c", &compiled.caches.n_ctx.to_string()]);
    for (option, cache) in [
        ("-ctk", placement.cache_type_k),
        ("-ctv", placement.cache_type_v),
    ] {
        if cache != DType::F16 {
            put(&[option, cache_name(cache)]);
        }
    }
    let ubatch = placement.ubatch_size;
    if ubatch > BATCH {
        put(&["-b", &ubatch.to_string()]);
    }
    if ubatch != Placement::UBATCH {
        put(&["-ub", &ubatch.to_string()]);
    }
    let fused = if placement.flash_attention {
        "on"
    } else {
        "off"
    };
    put(&["-np", &placement.parallel.to_string(), "-fa", fused]);
    if embeds(compiled) {
        put(&["--embeddings"]);
    }
    if placement.drafting == Drafting::Mtp {
        put(&["--spec-type", "draft-mtp"]);
    }
    if placement.servers.count() > 0 {
        put(&["--rpc", &placement.servers.to_string()]);
    }
    for b in &placement.beside {
        out.extend(beside_words(&b.words));
    }
    Ok(out)
}

fn beside_words(words: &[String]) -> Vec<String> {
    let mut out = words.to_vec();
    for i in 1..out.len() {
        if matches!(out[i - 1].as_str(), "-devd" | "-mmdev") {
            out[i] = out[i].replace("dev", "CUDA");
        }
    }
    out
}

const fn cache_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Q8Kv => "q8_KV",
        other => other.name(),
    }
}

/// Returns the `-ts` that gives the planned division.
fn proportions(placement: &Placement, compiled: &CompiledModel, mode: &str) -> Option<String> {
    match mode {
        "none" => None,
        "layer" if compiled.mode == SplitMode::Layer => {
            layers_per_device(placement, compiled, &compiled.resolved.layer_placement)
        }
        // By default the program divides layers by free memory, not by bytes of layers.
        "layer" => layers_per_device(placement, compiled, &split_by_layers(placement, compiled)?),
        _ => Some(match &placement.tensor_split {
            Some(split) => shares(split),
            None => simplify(&compiled.request.device_weights()),
        }),
    }
}

fn split_by_layers(placement: &Placement, compiled: &CompiledModel) -> Option<LayerPlacement> {
    let model = &compiled.model;
    let devices = placement.devices.len();
    let memory: Option<Vec<f64>> = (0..devices)
        .map(|d| placement.topology.device(d).usable_memory())
        .collect();
    let shares = placement.tensor_split.clone().or(memory);
    let resolved = resolve(
        &model.graph,
        model.summary.n_block(),
        placement,
        &overridden(&model.graph, placement).ok()?,
        (0..devices).map(|d| vec![d]).collect(),
        &shares.unwrap_or_else(|| vec![1.0; devices]),
        &compiled.memory_batch(),
    );
    Some(resolved.layer_placement)
}

/// Formats the number of layers per device; the output counts as a layer. llama.cpp gives a device the layers whose
/// positions are in its interval of the sum, so these proportions give the same division.
fn layers_per_device(
    placement: &Placement,
    compiled: &CompiledModel,
    layer_placement: &LayerPlacement,
) -> Option<String> {
    let mut counts = vec![0_u64; placement.devices.len()];
    let mut count = |place: &LayerPlace, n: u64| {
        if let LayerPlace::Stage(s) = place
            && let Some(c) =
                (layer_placement.stages.get(*s)).and_then(|stage| counts.get_mut(*stage.first()?))
        {
            *c += n;
        }
    };
    layer_placement.layers.iter().for_each(|p| count(p, 1));
    // The program counts drafting blocks as layers, even if they are not planned.
    let ignored = compiled
        .model
        .summary
        .ignored_drafts
        .map_or(0, |d| d.blocks);
    if let Some(last) = layer_placement.layers.last() {
        count(last, ignored);
    }
    count(&layer_placement.epilogue, 1);
    let shown: Vec<String> = counts.iter().map(ToString::to_string).collect();
    counts.iter().any(|&c| c > 0).then(|| shown.join(","))
}

/// Reduces weights to small numbers: equal weights to `1,1`, other weights to percentages.
fn simplify(weights: &[f64]) -> String {
    let sum: f64 = weights.iter().sum();
    let first = weights.first().copied().unwrap_or(1.0);
    if sum <= 0.0 || weights.iter().all(|w| (w - first).abs() <= first * 1e-9) {
        return vec!["1"; weights.len()].join(",");
    }
    let shown: Vec<String> = (weights.iter())
        .map(|w| ((w / sum * 1000.0).round() / 10.0).to_string())
        .collect();
    shown.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_small_numbers() {
        assert_eq!(simplify(&[936e9, 936e9]), "1,1");
        assert_eq!(simplify(&[3.0, 1.0]), "75,25");
        assert_eq!(simplify(&[936e9, 448e9]), "67.6,32.4");
        assert_eq!(simplify(&[0.0, 0.0]), "1,1");
    }
}
