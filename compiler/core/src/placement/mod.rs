//! Options of a plan: devices and weights, places of layers and tensors, cache types, batch sizes.

mod beside;
mod cluster;
mod described;
mod device_item;
mod devices;
mod draft_sources;
mod engine;
mod engine_options;
mod experts;
mod layer_pattern;
mod machine;
mod main_device;
mod network;
mod numa;
mod overrides;
mod reserve;
mod resolve;
mod shares;
mod stages;
mod words;

pub use beside::{Difference, ExtraFileMemory, Part};
pub use cluster::{ClusterList, MachineGroup};
pub use described::describe;
pub use device_item::{DeviceItem, MAX_DEVICES};
pub use devices::{DeviceKind, DeviceList, DeviceSpec, spell_devices};
pub use draft_sources::{DraftSources, parse_draft_sources};
pub use engine::{EngineChoice, maker, parse_backend, parse_engine};
pub use engine_options::EngineOptions;
pub use experts::HostExperts;
pub use layer_pattern::{LayerPattern, layer_of};
pub use machine::{Machine, MachineRequest, parse_devices};
pub use network::Servers;
pub use numa::{NumaNode, absent as absent_node};
pub use overrides::{Override, OverridePattern, Target, parse_overrides};
pub use reserve::{Reserve, parse_host_memory};
pub use resolve::{OverriddenPlaces, ResolvedPlacement, expert_weights, overridden, resolve};
pub use shares::{TensorSplit, parse_tensor_split};
pub use stages::{Unit, by_bytes, by_layers};
pub use words::shares;

use tpc_ir::DType;
use tpc_ir::program::{FileTarget, SumOrder, Target as Storage};
use tpc_passes::machine::{Engine, LinkKind, Topology};

use tpc_diag::{Diagnostic, codes};
use tpc_ggml::engines::{Backend, Build};
use tpc_models::{CACHE_TYPES, Drafting, GraphResult, IK_CACHE_TYPES, Stretch};

/// A mode of dividing a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitMode {
    /// The fastest mode, chosen by the planner.
    Auto,
    /// All on one device.
    None,
    /// Whole layers per device, in sequence.
    Layer,
    /// Each tensor split among all devices.
    Tensor,
    /// Whole layers per group of devices, and tensors split within groups. Only [`SplitMode::Auto`] chooses this mode.
    Hybrid,
}

impl SplitMode {
    /// True if devices share tensors.
    pub const fn splits_tensors(self) -> bool {
        matches!(self, SplitMode::Tensor | SplitMode::Hybrid)
    }

    /// Returns the mode's name in `--split-mode`.
    pub const fn name(self) -> &'static str {
        match self {
            SplitMode::Auto => "auto",
            SplitMode::None => "none",
            SplitMode::Layer => "layer",
            SplitMode::Tensor => "tensor",
            SplitMode::Hybrid => "hybrid",
        }
    }
}

/// The division of KV caches among devices that share tensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheSplit {
    /// By cells if that is needed to fit, faster, or as fast and smaller; otherwise by heads.
    #[default]
    Auto,
    /// By KV heads. Devices store the same heads if there are fewer heads than devices.
    Heads,
    /// By cells: each device stores a part of the cells of all heads.
    Cells,
}

impl CacheSplit {
    /// Returns the name in `--cache-split`.
    pub const fn name(self) -> &'static str {
        match self {
            CacheSplit::Auto => "auto",
            CacheSplit::Heads => "heads",
            CacheSplit::Cells => "cells",
        }
    }
}

/// The options of a plan.
#[derive(Clone, Debug)]
pub struct Placement {
    /// The devices.
    pub devices: Vec<DeviceSpec>,
    /// The machine.
    pub topology: Topology,
    /// The split mode.
    pub split_mode: SplitMode,
    /// Device weights, in whole layers for [`SplitMode::Layer`]. Without weights, tensors are split in proportion to
    /// bandwidth, and stages balance bytes.
    pub tensor_split: Option<Vec<f64>>,
    /// Tensors with their own place. The first match counts.
    pub overrides: Vec<Override>,
    /// Layers whose experts stay on the host.
    pub host_experts: HostExperts,
    /// True if KV caches stay on the host.
    pub kv_on_host: bool,
    /// The division of KV caches.
    pub cache_split: CacheSplit,
    /// Number of last layers on devices, the output counted as one; `None` for all.
    pub n_gpu_layers: Option<u64>,
    /// K cache type.
    pub cache_type_k: DType,
    /// V cache type.
    pub cache_type_v: DType,
    /// Context in tokens for all sequences together; `None` for the model's context.
    pub ctx_size: Option<u64>,
    /// The scaling of RoPE to a longer context, if the engine's options request it.
    pub stretch: Option<Stretch>,
    /// Maximum tokens of a batch.
    pub ubatch_size: u64,
    /// Number of parallel sequences.
    pub parallel: u64,
    /// Speculative decoding.
    pub drafting: Drafting,
    /// Result of the programs.
    pub result: GraphResult,
    /// The planned engine.
    pub engine: Engine,
    /// The engine's release. For tpc, llama.cpp's release for the printed command.
    pub build: &'static Build,
    /// The back end of all devices; `None` for each vendor's usual back end.
    pub backend: Option<Backend>,
    /// Engine options that change its memory.
    pub engine_options: EngineOptions,
    /// Tokens in the cache for decoding estimates.
    pub depth: u64,
    /// True if attention is fused. Without fused attention, other engines allocate and read the scores.
    pub flash_attention: bool,
    /// RPC servers with devices in other machines.
    pub servers: Servers,
    /// Order of sums over devices.
    pub sums: SumOrder,
    /// Weight formats on the devices.
    pub storage: &'static dyn Storage,
    /// The device of an unsplit model (`--main-gpu`). The default is the first device, or for `auto` the device with
    /// the most memory.
    pub main_device: Option<usize>,
    /// Memory of additional files, already subtracted from the topology.
    pub beside: Vec<ExtraFileMemory>,
    /// Notes on assumptions about the machine.
    pub notes: Vec<Diagnostic>,
}

impl Placement {
    /// Default of `ubatch_size`.
    pub const UBATCH: u64 = 512;

    /// Returns a requested cache type that only `ik_llama.cpp` supports.
    pub fn foreign_cache(&self) -> Option<DType> {
        let caches = [self.cache_type_k, self.cache_type_v];
        caches.into_iter().find(|t| t.is_ik())
    }

    /// True if the devices are in several machines without RPC servers.
    pub fn is_cluster(&self) -> bool {
        self.servers.count() == 0 && self.machine_count() > 1
    }

    /// Returns the number of machines. A plan for several machines runs as one process per machine.
    pub fn machine_count(&self) -> usize {
        self.topology.machines.count(self.devices.len())
    }

    /// Creates a placement with the default topology, f16 caches, the model's context and batches of 512.
    pub fn on(devices: Vec<DeviceSpec>) -> Placement {
        Placement {
            devices,
            topology: Topology::default(),
            split_mode: SplitMode::Tensor,
            tensor_split: None,
            overrides: Vec::new(),
            host_experts: HostExperts::NONE,
            kv_on_host: false,
            cache_split: CacheSplit::default(),
            n_gpu_layers: None,
            cache_type_k: DType::F16,
            cache_type_v: DType::F16,
            ctx_size: None,
            stretch: None,
            ubatch_size: Placement::UBATCH,
            parallel: 1,
            drafting: Drafting::None,
            result: GraphResult::Own,
            engine: Engine::Tpc,
            build: EngineChoice::default().build,
            backend: None,
            engine_options: EngineOptions::default(),
            depth: 0,
            flash_attention: true,
            servers: Servers::default(),
            sums: SumOrder::Auto,
            storage: &FileTarget,
            main_device: None,
            beside: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// Parses `auto`, `none`, `layer` or `tensor`. llama.cpp's `row` and `ik_llama.cpp`'s `graph` mean `tensor`.
///
/// # Errors
/// Returns TPC0400 for any other text.
pub fn parse_split_mode(text: &str) -> Result<SplitMode, Diagnostic> {
    match text {
        "auto" => Ok(SplitMode::Auto),
        "none" => Ok(SplitMode::None),
        "layer" => Ok(SplitMode::Layer),
        "tensor" | "row" | "graph" => Ok(SplitMode::Tensor),
        _ => {
            let message = format!("`{text}` is not a split mode");
            let d = Diagnostic::new(&codes::COMMAND_LINE, "--split-mode", message);
            Err(d.help("use auto, none, layer or tensor"))
        }
    }
}

/// Parses `heads`, `cells` or `auto`.
///
/// # Errors
/// Returns TPC0400 for any other text.
pub fn parse_cache_split(text: &str) -> Result<CacheSplit, Diagnostic> {
    let all = [CacheSplit::Auto, CacheSplit::Heads, CacheSplit::Cells];
    all.into_iter().find(|s| s.name() == text).ok_or_else(|| {
        let message = format!("`{text}` is not a division of the KV cache");
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--cache-split", message);
        d.help(
            "use heads, cells or auto: auto divides by cells if that is needed to fit, faster, or as fast and smaller",
        )
    })
}

/// Parses the number of layers on devices. `all`, `auto` and negative numbers mean all layers, as in llama.cpp. The
/// plan checks that they fit.
///
/// # Errors
/// Returns TPC0400 for any other text.
pub fn parse_gpu_layers(text: &str) -> Result<Option<u64>, Diagnostic> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("all") || text.eq_ignore_ascii_case("auto") {
        return Ok(None);
    }
    let number = text.parse::<i64>().map_err(|_| {
        Diagnostic::new(
            &codes::COMMAND_LINE,
            "--n-gpu-layers",
            format!("`{text}` is not a number of layers"),
        )
        .help("give a number such as 20, or `all`")
    })?;
    Ok(u64::try_from(number).ok())
}

/// Parses llama.cpp's name of a drafting strategy. tpc plans only drafting by the model's own blocks.
///
/// # Errors
/// Returns TPC0400 for any other text.
pub fn parse_spec_type(text: &str) -> Result<Drafting, Diagnostic> {
    match text {
        "none" => Ok(Drafting::None),
        "draft-mtp" => Ok(Drafting::Mtp),
        _ => {
            let message = format!("unknown drafting strategy `{text}`");
            let d = Diagnostic::new(&codes::COMMAND_LINE, "--spec-type", message);
            Err(d.help("use draft-mtp or none"))
        }
    }
}

/// Parses the order of sums over devices: `on` (the same bits as on one device), `off` or `auto`.
///
/// # Errors
/// Returns TPC0400 for any other text.
pub fn parse_deterministic(text: &str) -> Result<SumOrder, Diagnostic> {
    match text {
        "auto" => Ok(SumOrder::Auto),
        "on" => Ok(SumOrder::OneDevice),
        "off" => Ok(SumOrder::Cheapest),
        _ => {
            let message = format!("`{text}` is not on, off or auto");
            let d = Diagnostic::new(&codes::COMMAND_LINE, "--deterministic", message);
            Err(d.help(
                "use on, off or auto: on sums in the order of one device where possible; off sums in the cheapest \
                 order; auto is on if that costs at most 3 %",
            ))
        }
    }
}

/// Parses `on`, `off` or `auto`, which fuses attention.
///
/// # Errors
/// Returns TPC0400 for any other text.
pub fn parse_flash_attention(text: &str) -> Result<bool, Diagnostic> {
    match text {
        "on" | "auto" | "1" | "-1" | "true" | "enabled" => Ok(true),
        "off" | "0" | "false" | "disabled" => Ok(false),
        _ => {
            let message = format!("`{text}` is not on, off or auto");
            let d = Diagnostic::new(&codes::COMMAND_LINE, "--flash-attn", message);
            Err(d.help(
                "use on or auto for fused attention; off keeps the scores in memory with --engine llama.cpp",
            ))
        }
    }
}

/// Parses a kind of link between cards.
///
/// # Errors
/// Returns TPC0400 for any other text.
pub fn parse_link(text: &str) -> Result<LinkKind, Diagnostic> {
    let known = |k: &LinkKind| k.name().eq_ignore_ascii_case(text.trim());
    LinkKind::STATED.into_iter().find(known).ok_or_else(|| {
        let message = format!("unknown link `{text}`");
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--link", message);
        d.help("use nvlink, pcie-p2p (from card to card), pcie (through the host) or network; a topology file states other speeds")
    })
}

/// Checks that an engine supports a cache type.
///
/// # Errors
/// Returns TPC0400 for a type of `ik_llama.cpp` with another engine.
pub fn check_cache_type(option: &str, dtype: DType, engine: Engine) -> Result<(), Diagnostic> {
    if !dtype.is_ik() || engine == Engine::IkLlamaCpp {
        return Ok(());
    }
    let message = format!("only ik_llama.cpp supports {dtype} caches");
    let d = Diagnostic::new(&codes::COMMAND_LINE, option, message);
    Err(d.help("use q8_0, q5_1 or q4_0, or add --engine ik_llama.cpp"))
}

/// Parses a cache type. Use [`check_cache_type`] to check that an engine supports it.
///
/// # Errors
/// Returns TPC0400 for a type that is not supported for caches.
pub fn parse_cache_type(option: &str, text: &str) -> Result<DType, Diagnostic> {
    DType::from_name(text)
        .filter(|t| CACHE_TYPES.contains(t) || IK_CACHE_TYPES.contains(t))
        .ok_or_else(|| {
            let known: Vec<&str> = CACHE_TYPES.iter().map(|t| t.name()).collect();
            Diagnostic::new(
                &codes::COMMAND_LINE,
                option,
                format!("`{text}` is not a cache type"),
            )
            .help(format!("use one of {}", known.join(", ")))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_draft() {
        assert_eq!(parse_spec_type("none"), Ok(Drafting::None));
        assert_eq!(parse_spec_type("draft-mtp"), Ok(Drafting::Mtp));
        for bad in ["", "mtp", "draft-eagle3", "DRAFT-MTP"] {
            let found = parse_spec_type(bad).expect_err(bad);
            assert_eq!(found.help, Some("use draft-mtp or none".into()), "{bad}");
        }
    }

    #[test]
    fn layers_on_the_devices() {
        for (text, expected) in [("0", Some(0)), ("99", Some(99)), ("+3", Some(3))] {
            assert_eq!(parse_gpu_layers(text), Ok(expected), "{text}");
        }
        for all in ["all", "ALL", "auto", "-1", "-2", "-999"] {
            assert_eq!(parse_gpu_layers(all), Ok(None), "{all}");
        }
        for bad in ["", "x", "1.5", "1e3", "--", "99999999999999999999"] {
            let found = parse_gpu_layers(bad).expect_err(bad);
            assert_eq!(
                (found.code.id, found.help.is_some()),
                ("TPC0400", true),
                "{bad}"
            );
        }
    }
}
