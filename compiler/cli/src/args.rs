//! The placement options of all subcommands.

mod overlay;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory, Parser};
use tpc_cpu::CpuTarget;
use tpc_cuda::CudaTarget;
use tpc_ir::DType;
use tpc_ir::program::{FileTarget, SumOrder, Target as Storage};
use tpc_passes::machine::LinkKind;

use super::engine_memory_args::EngineMemoryArgs;
use super::foreign;
use super::input;
use super::output::Failure;
use super::values::{self, DeviceLists, GpuLayers, Parsed};
use tpc_core::placement::{
    CacheSplit, DeviceKind, DeviceList, DeviceSpec, DraftSources, EngineChoice, HostExperts,
    Machine, MachineRequest, Override, OverridePattern, Placement, Reserve, Servers, SplitMode,
    TensorSplit, check_cache_type,
};
use tpc_core::topology::TopologyFile;
use tpc_diag::{Diagnostic, codes};
use tpc_engine::devices::numa;
use tpc_ggml::engines::{Backend, Build};
use tpc_ggml::llama_cpp::Maker;
use tpc_models::GraphResult;

/// The placement options.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Placement")]
pub(super) struct PlacementArgs {
    /// Devices: a count, cards such as `2x3090`, a list such as `cuda:0,cuda:1`, `numa` for this machine's NUMA nodes, or
    /// machines such as `2*8xH100-SXM@ib-ndr`; `tpc plan` compares several --devices [default: all of --topology, else
    /// one; run and bench: the CPU].
    #[arg(long, value_name = "SPEC", allow_negative_numbers = true, value_parser = values::devices())]
    devices: Vec<Parsed<DeviceLists>>,
    /// Topology file: devices and links of a machine; --devices may name its devices.
    #[arg(long, value_name = "FILE.ron")]
    topology: Option<PathBuf>,
    /// Links between cards: nvswitch, nvlink, pcie-p2p or pcie [default: as `tpc devices` shows].
    #[arg(long, value_name = "KIND", value_parser = values::link())]
    link: Option<Parsed<LinkKind>>,
    /// Memory per device left to the driver, such as `1GiB` or `2GiB,0` [default: 1GiB for a card, 0 for a cpu].
    #[arg(long, value_name = "BYTES", value_parser = values::reserve())]
    reserve: Option<Parsed<Reserve>>,
    /// Total host memory, such as `64GiB`, with any part that devices share [default: from --topology, else unknown].
    #[arg(long, value_name = "BYTES", value_parser = values::host_memory())]
    host_memory: Option<Parsed<f64>>,
    /// RPC servers of llama.cpp, `HOST:PORT,…`. Their devices come first; with -sm tensor, last.
    #[arg(long, value_name = "SERVERS", value_parser = values::servers())]
    rpc: Option<Parsed<Servers>>,
    /// Split of the model: auto, tensor, layer or none [-sm; default: auto; captured graphs: tensor].
    #[arg(long, value_name = "MODE", value_parser = values::split_mode())]
    split_mode: Option<Parsed<SplitMode>>,
    /// Proportions of the model per device, such as `3,1` [-ts].
    #[arg(
        long,
        value_name = "N,…",
        allow_hyphen_values = true,
        value_parser = values::tensor_split()
    )]
    tensor_split: Option<Parsed<TensorSplit>>,
    /// Device of -sm none, by its position in --devices [-mg; default: 0].
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::main_gpu())]
    main_gpu: Option<Parsed<u64>>,
    /// Place matching tensors on the host, a device, or mirrored; repeatable [-ot].
    #[arg(long, value_name = "REGEX=PLACE", value_parser = values::overrides())]
    override_tensor: Vec<Parsed<Vec<OverridePattern>>>,
    /// Keep the experts of the first N layers on the host [-ncmoe].
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::n_cpu_moe())]
    n_cpu_moe: Option<Parsed<u64>>,
    /// Keep all experts on the host [-cmoe].
    #[arg(long)]
    cpu_moe: bool,
    /// Keep the KV cache on the host [-nkvo].
    #[arg(long)]
    no_kv_offload: bool,
    /// Divide the KV cache by heads or by cells; auto: by cells if needed to fit, faster, or as fast and smaller.
    #[arg(long, value_name = "heads|cells|auto", default_value = "auto", value_parser = values::cache_split())]
    cache_split: Parsed<CacheSplit>,
    /// Run the last N layers and the output (which counts as one layer) on devices; a number, `all` or `auto` [-ngl;
    /// default: all].
    #[arg(
        long,
        alias = "gpu-layers",
        value_name = "N",
        allow_hyphen_values = true,
        value_parser = values::gpu_layers()
    )]
    n_gpu_layers: Option<Parsed<GpuLayers>>,
    /// Type of the K cache [-ctk; default: f16; eval: f32].
    #[arg(long, value_name = "TYPE", value_parser = values::cache_type_k())]
    cache_type_k: Option<Parsed<DType>>,
    /// Type of the V cache [-ctv; default: f16; eval: f32].
    #[arg(long, value_name = "TYPE", value_parser = values::cache_type_v())]
    cache_type_v: Option<Parsed<DType>>,
    /// Cells of the KV cache, such as 32768 or 32k; 0: the model's context; plan compares several, such as 8k,32k [default: 0].
    #[arg(
        long,
        short = 'c',
        value_name = "N",
        value_delimiter = ',',
        allow_negative_numbers = true,
        value_parser = values::ctx_size()
    )]
    ctx_size: Vec<Parsed<u64>>,
    /// Largest batch, in tokens [-ub; default: 512].
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::ubatch_size())]
    ubatch_size: Option<Parsed<u64>>,
    /// Number of sequences [-np; default: 1].
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::parallel())]
    parallel: Option<Parsed<u64>>,
    /// Drafting: `draft-mtp` by the file's drafting blocks, which plans include; for run, also `ngram-simple` by repeated
    /// text, and `draft-simple` by --model-draft; a list is possible.
    #[arg(long, value_name = "TYPE", default_value = "none", value_parser = values::spec_type())]
    spec_type: Parsed<DraftSources>,
    /// Engine to plan for: tpc, llama.cpp or ik_llama.cpp, with a release if not the newest.
    #[arg(long, value_name = "NAME[@VERSION]", default_value = "tpc", value_parser = values::engine())]
    engine: Parsed<EngineChoice>,
    /// Back end of llama.cpp's devices: CUDA, ROCm, Vulkan, SYCL, Metal, CPU or RPC [default: by the cards' vendor].
    #[arg(long, value_name = "NAME", value_parser = values::backend())]
    backend: Option<Parsed<Backend>>,
    /// Cached tokens for the estimate of the decoding speed.
    #[arg(long, value_name = "N", default_value = "0", allow_negative_numbers = true, value_parser = values::depth())]
    depth: Parsed<u64>,
    /// Reduce over devices in single-device order, bit for bit; auto: if this costs at most 3 %.
    #[arg(
        long,
        value_name = "on|off|auto",
        num_args = 0..=1,
        default_value = "auto",
        default_missing_value = "on",
        value_parser = values::deterministic()
    )]
    deterministic: Parsed<SumOrder>,
    /// Fused attention [-fa]. tpc always fuses; with --engine llama.cpp, `off` adds the memory of the scores.
    #[arg(
        long,
        value_name = "on|off|auto",
        num_args = 0..=1,
        default_value = "auto",
        default_missing_value = "on",
        value_parser = values::flash_attention()
    )]
    flash_attn: Parsed<bool>,
    /// The options of an engine's command that change its memory.
    #[command(flatten)]
    engine_memory: EngineMemoryArgs,
}

#[derive(Debug, Parser)]
#[command(no_binary_name = true, args_override_self = true)]
struct PlacementOnly {
    #[command(flatten)]
    placement: PlacementArgs,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Defaults {
    pub(super) cache: DType,
    pub(super) split_mode: SplitMode,
}

fn choices<T: Clone>(values: &[T]) -> Vec<Vec<T>> {
    if values.is_empty() {
        return vec![Vec::new()];
    }
    values.iter().map(|v| vec![v.clone()]).collect()
}

fn only<T: Clone>(option: &str, values: &[Parsed<T>]) -> Option<Parsed<T>> {
    match values {
        [] => None,
        [one] => Some(one.clone()),
        [..] => {
            let message = format!(
                "{option} is given {} times, but takes one value here",
                values.len()
            );
            let d = Diagnostic::new(&codes::COMMAND_LINE, option, message);
            Some(Err(
                d.help("give one value; only `tpc plan` compares several")
            ))
        }
    }
}

fn given<T: Clone>(option: &Option<Parsed<T>>) -> Result<Option<T>, Failure> {
    option.clone().transpose().map_err(Failure::usage)
}

impl PlacementArgs {
    /// True if the options give the number of parallel sequences.
    pub(super) const fn says_parallel(&self) -> bool {
        self.parallel.is_some()
    }

    /// Reads placement options from words of a command line.
    pub(super) fn read(words: &[String]) -> Result<PlacementArgs, Failure> {
        let words = foreign::normalise(words.iter().map(OsString::from));
        let said =
            foreign::translate_words(words, &PlacementOnly::command()).map_err(Failure::usage)?;
        let read = PlacementOnly::try_parse_from(said.arguments);
        let read = read.map_err(|e| Failure::usage(super::usage(&e)))?;
        Ok(read.placement)
    }

    /// Returns these options with the machine options of `other`.
    pub(super) fn on_machine_of(self, other: &PlacementArgs) -> PlacementArgs {
        PlacementArgs {
            devices: other.devices.clone(),
            topology: other.topology.clone(),
            link: other.link.clone(),
            reserve: other.reserve.clone(),
            engine: match other.engine == Ok(EngineChoice::default()) {
                true => self.engine,
                false => other.engine.clone(),
            },
            backend: other.backend.clone().or(self.backend),
            host_memory: other.host_memory.clone(),
            ..self
        }
    }

    /// True if every given option has its value in `made`, or the default if `made` lacks the option. Ignores machine
    /// options.
    pub(super) fn agree_with(&self, made: &PlacementArgs) -> bool {
        fn one<T: PartialEq>(
            given: &Option<Parsed<T>>,
            made: &Option<Parsed<T>>,
            usual: &T,
        ) -> bool {
            match (given, made) {
                (None, _) => true,
                (Some(given), Some(made)) => given == made,
                (Some(given), None) => given.as_ref() == Ok(usual),
            }
        }
        fn all<T: PartialEq>(given: &[T], made: &[T]) -> bool {
            given.is_empty() || given == made
        }
        let none = PlacementArgs::read(&[]).ok();
        let defaults = |is: fn(&PlacementArgs, &PlacementArgs) -> bool| {
            is(self, made) || none.as_ref().is_some_and(|none| is(self, none))
        };
        let modes = self.split_mode.is_none()
            || self.split_mode == made.split_mode
            || matches!(self.split_mode, Some(Ok(SplitMode::Auto)));
        modes
            && (self.tensor_split.is_none() || self.tensor_split == made.tensor_split)
            && all(&self.override_tensor, &made.override_tensor)
            && (self.main_gpu.is_none() || self.main_gpu == made.main_gpu)
            && one(&self.n_cpu_moe, &made.n_cpu_moe, &0)
            && (!self.cpu_moe || made.cpu_moe)
            && (!self.no_kv_offload || made.no_kv_offload)
            && (self.n_gpu_layers.is_none() || self.n_gpu_layers == made.n_gpu_layers)
            && one(&self.cache_type_k, &made.cache_type_k, &DType::F16)
            && one(&self.cache_type_v, &made.cache_type_v, &DType::F16)
            && all(&self.ctx_size, &made.ctx_size)
            && one(&self.ubatch_size, &made.ubatch_size, &Placement::UBATCH)
            && one(&self.parallel, &made.parallel, &1)
            && defaults(|a, b| {
                let drafting = |p: &PlacementArgs| p.spec_type.clone().map(DraftSources::drafting);
                drafting(a) == drafting(b)
            })
            && defaults(|a, b| a.engine == b.engine)
            && defaults(|a, b| a.engine_memory.agrees_with(&b.engine_memory))
            && defaults(|a, b| a.depth == b.depth)
            && defaults(|a, b| a.deterministic == b.deterministic)
            && defaults(|a, b| a.cache_split == b.cache_split)
            && defaults(|a, b| a.flash_attn == b.flash_attn)
            && defaults(|a, b| a.rpc == b.rpc)
    }

    /// Returns the release in the options if `maker` made it, else the maker's newest release.
    pub(super) fn build_of(&self, maker: Maker) -> &'static Build {
        let given = self.engine.as_ref().ok().map(|choice| choice.build);
        let given = given.filter(|build| build.engine == maker);
        given.unwrap_or_else(|| Build::newest(maker))
    }

    pub(super) fn devices(&self) -> Option<Parsed<DeviceLists>> {
        only("--devices", &self.devices)
    }

    pub(super) fn names_a_machine(&self) -> bool {
        !self.devices.is_empty() || self.topology.is_some()
    }

    pub(super) fn says_links(&self) -> bool {
        self.link.is_some() || self.reserve.is_some() || self.host_memory.is_some()
    }

    pub(super) fn topology_path(&self) -> Option<&Path> {
        self.topology.as_deref()
    }

    pub(super) fn topology_bytes(&self) -> Result<Option<Vec<u8>>, Failure> {
        let path = self.topology.as_deref();
        path.map(|p| input::read_file(p, MAX_TOPOLOGY)).transpose()
    }

    /// Returns the context size if given and above 0.
    pub(super) fn ctx_size(&self) -> Result<Option<u64>, Failure> {
        Ok(given(&only("--ctx-size", &self.ctx_size))?.filter(|&n| n > 0))
    }

    pub(super) fn each(&self) -> Vec<PlacementArgs> {
        let devices: Vec<Parsed<DeviceLists>> = (self.devices.iter())
            .flat_map(|lists| match lists {
                Ok(lists) => lists.each().into_iter().map(Ok).collect(),
                Err(d) => vec![Err(d.clone())],
            })
            .collect();
        let mut out = Vec::new();
        for devices in choices(&devices) {
            for ctx_size in choices(&self.ctx_size) {
                out.push(PlacementArgs {
                    devices: devices.clone(),
                    ctx_size,
                    ..self.clone()
                });
            }
        }
        out
    }

    pub(super) fn machine_words(&self) -> Vec<String> {
        let mut out = Vec::new();
        if let Some(Ok(lists)) = self.devices() {
            out.extend(["--devices".to_owned(), lists.text]);
        }
        if let Some(path) = &self.topology {
            out.extend(["--topology".to_owned(), path.display().to_string()]);
        }
        if let Some(Ok(link)) = &self.link {
            out.extend(["--link".to_owned(), link.name().to_owned()]);
        }
        if let Some(Ok(reserve)) = &self.reserve {
            out.extend(["--reserve".to_owned(), reserve.to_string()]);
        }
        if let Some(Ok(memory)) = &self.host_memory {
            let memory = Reserve::Each(*memory).to_string();
            out.extend(["--host-memory".to_owned(), memory]);
        }
        out
    }

    pub(super) fn draft_sources(&self) -> Result<DraftSources, Failure> {
        self.spec_type.clone().map_err(Failure::usage)
    }

    /// Returns the maximum number of drafted tokens, if given.
    pub(super) fn drafted_tokens(&self) -> Result<Option<u64>, Failure> {
        self.engine_memory.drafted_tokens()
    }

    pub(super) fn cache_types(&self) -> Result<[Option<DType>; 2], Failure> {
        Ok([given(&self.cache_type_k)?, given(&self.cache_type_v)?])
    }

    pub(super) fn placement(&self, defaults: Defaults) -> Result<Placement, Failure> {
        let lists = match self.devices() {
            Some(lists) => lists,
            None => Ok(DeviceLists::all()),
        };
        let lists = lists.map_err(Failure::usage)?;
        self.placement_on(lists.only().map_err(Failure::usage)?, defaults)
    }

    pub(super) fn placement_on(
        &self,
        list: &DeviceList,
        defaults: Defaults,
    ) -> Result<Placement, Failure> {
        let Machine {
            devices,
            topology,
            notes,
        } = self.machine(list)?;
        let split_mode = given(&self.split_mode)?.unwrap_or(defaults.split_mode);
        let tensor_split = given(&self.tensor_split)?
            .map(|split| split.among(devices.len()))
            .transpose()
            .map_err(Failure::usage)?;
        let all = |is: fn(DeviceKind) -> bool| devices.iter().all(|d| is(d.kind));
        let storage: &dyn Storage = match () {
            () if all(DeviceKind::is_processor) => &CpuTarget,
            () if all(|k| matches!(k, DeviceKind::Cuda(_))) => &CudaTarget,
            () => &FileTarget,
        };
        let [k, v] = self.cache_types()?;
        let engine = self.engine.clone().map_err(Failure::usage)?;
        for (option, dtype) in [("--cache-type-k", k), ("--cache-type-v", v)] {
            let checked = dtype.map_or(Ok(()), |t| check_cache_type(option, t, engine.engine));
            checked.map_err(Failure::usage)?;
        }
        let GpuLayers(n_gpu_layers) = given(&self.n_gpu_layers)?.unwrap_or(GpuLayers(None));
        let out = Placement {
            overrides: self.overrides(&devices)?,
            devices,
            host_experts: match (self.cpu_moe, given(&self.n_cpu_moe)?) {
                (true, _) => HostExperts::All,
                (false, Some(n)) => HostExperts::First(n),
                (false, None) => HostExperts::NONE,
            },
            kv_on_host: self.no_kv_offload,
            cache_split: self.cache_split.clone().map_err(Failure::usage)?,
            n_gpu_layers,
            topology,
            split_mode,
            tensor_split,
            cache_type_k: k.unwrap_or(defaults.cache),
            cache_type_v: v.unwrap_or(defaults.cache),
            ctx_size: self.ctx_size()?,
            stretch: None,
            ubatch_size: given(&self.ubatch_size)?.unwrap_or(Placement::UBATCH),
            parallel: given(&self.parallel)?.unwrap_or(1),
            drafting: self.draft_sources()?.drafting(),
            result: GraphResult::Own,
            engine: engine.engine,
            build: engine.build,
            backend: given(&self.backend)?,
            engine_options: self.engine_memory.options(self.parallel.is_none())?,
            depth: self.depth.clone().map_err(Failure::usage)?,
            flash_attention: self.flash_attn.clone().map_err(Failure::usage)?,
            servers: self.servers()?,
            sums: self.deterministic.clone().map_err(Failure::usage)?,
            storage,
            main_device: None,
            beside: Vec::new(),
            notes,
        };
        self.with_main(out)
    }

    fn with_main(&self, mut out: Placement) -> Result<Placement, Failure> {
        match given(&self.main_gpu)? {
            Some(main) if matches!(out.split_mode, SplitMode::None | SplitMode::Auto) => {
                out.with_main_device(main).map_err(Failure::usage)
            }
            Some(main) => {
                let message = format!("--main-gpu {main}: a main device needs -sm none or auto");
                let d = Diagnostic::new(&crate::codes::NO_INFLUENCE, "--main-gpu", message);
                out.notes
                    .push(d.help("leave out --main-gpu, or add -sm none"));
                Ok(out)
            }
            None => Ok(out),
        }
    }

    fn machine(&self, list: &DeviceList) -> Result<Machine, Failure> {
        let file = self.topology.as_deref().map(read_topology).transpose()?;
        let reserve = given(&self.reserve)?;
        let nodes = match list.names_nodes() {
            true => numa::here(),
            false => Vec::new(),
        };
        let request = MachineRequest {
            list: Some(list),
            file: file.as_ref(),
            way: given(&self.link)?,
            reserve: reserve.as_ref(),
            host_memory: given(&self.host_memory)?,
            servers: self.servers()?,
            nodes: &nodes,
        };
        request.machine().map_err(Failure::usage)
    }

    /// Returns the options with the servers' devices at these positions of the list.
    pub(super) fn with_servers_at(mut self, positions: Option<Vec<usize>>) -> PlacementArgs {
        if let Some(Ok(servers)) = &mut self.rpc {
            servers.at = positions;
        }
        self
    }

    /// Returns the servers of `--rpc`. llama.cpp lists their devices first, but last under a tensor split.
    fn servers(&self) -> Result<Servers, Failure> {
        let mut servers = given(&self.rpc)?.unwrap_or_default();
        servers.last = given(&self.split_mode)? == Some(SplitMode::Tensor);
        Ok(servers)
    }

    fn overrides(&self, devices: &[DeviceSpec]) -> Result<Vec<Override>, Failure> {
        let mut out = Vec::new();
        for list in &self.override_tensor {
            for pattern in list.clone().map_err(Failure::usage)? {
                out.push(pattern.among(devices).map_err(Failure::usage)?);
            }
        }
        Ok(out)
    }
}

/// The longest accepted topology file, in bytes.
const MAX_TOPOLOGY: u64 = 16 << 20;

pub(super) fn read_topology(path: &Path) -> Result<TopologyFile, Failure> {
    let name = path.display().to_string();
    let unusable = |message: String, cure: Option<String>| {
        let d = Diagnostic::new(&codes::TOPOLOGY_FILE, &name, message);
        let cure = cure.unwrap_or_else(|| "`tpc explain TPC0403` shows a valid file".to_owned());
        Failure::usage(d.help(cure))
    };
    let bytes = input::read_file(path, MAX_TOPOLOGY)?;
    if bytes.starts_with(b"GGUF") {
        let message = "a GGUF model, not a topology file".to_owned();
        let cure = "give --topology a text file that describes the machine, or name cards: --devices 2x3090";
        return Err(unusable(message, Some(cure.to_owned())));
    }
    let text = std::str::from_utf8(&bytes)
        .map_err(|e| unusable(format!("byte {} is not UTF-8 text", e.valid_up_to()), None))?;
    TopologyFile::from_ron(text).map_err(|e| unusable(e.to_string(), e.cure.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> PlacementArgs {
        let words: Vec<String> = words.iter().map(|&w| w.to_owned()).collect();
        PlacementArgs::read(&words).expect("the options are known")
    }

    #[test]
    fn a_cache_type_that_is_given_is_told_from_the_default() {
        let types = |words: &[&str]| read(words).cache_types().expect("cache types");
        assert_eq!(types(&[]), [None, None]);
        assert_eq!(types(&["-ctk", "f16"]), [Some(DType::F16), None]);
    }

    #[test]
    fn values_are_refused_with_codes_and_cures() {
        let defaults = Defaults {
            cache: DType::F16,
            split_mode: SplitMode::Auto,
        };
        for (words, code) in [
            (["--devices", "two"], "TPC0400"),
            (["--devices", "2..3"], "TPC0400"),
            (["--devices", "2x3900"], "TPC0400"),
            (["--link", "wire"], "TPC0400"),
            (["--link", "nvlink"], "TPC0400"),
            (["--reserve", "1024"], "TPC0400"),
            (["-sm", "rows"], "TPC0400"),
            (["-c", "32kb"], "TPC0400"),
            (["-c", "-1"], "TPC0400"),
            (["--depth", "full"], "TPC0400"),
            (["--deterministic", "maybe"], "TPC0400"),
            (["-ub", "0"], "TPC0400"),
            (["-np", "0"], "TPC0400"),
            (["-ncmoe", "-1"], "TPC0400"),
            (["-ts", "1,2"], "TPC0400"),
            (["-ngl", "1.5"], "TPC0400"),
            (["-ctv", "q2_k"], "TPC0400"),
            (["--spec-type", "ngram"], "TPC0400"),
            (["-ot", "ffn"], "TPC0410"),
            (["-ot", "ffn=dev1"], "TPC0410"),
        ] {
            let refused = read(&words).placement(defaults).expect_err("refused");
            let [d] = refused.diagnostics.as_slice() else {
                panic!("{words:?}: {:?}", refused.diagnostics)
            };
            assert_eq!((refused.status, d.code.id), (2, code), "{words:?}");
            assert!(d.help.is_some(), "{words:?}");
        }
    }

    #[test]
    fn a_range_of_counts_has_a_list_for_each() {
        let lists = read(&["--devices", "2..4"]).devices().expect("given");
        let lists = lists.expect("a range").lists;
        assert_eq!(lists, [2, 3, 4].map(DeviceList::Count));
        let lists = read(&["--devices", "1..2x3090"]).devices().expect("given");
        let lists = lists.expect("a range").lists;
        let devices = |l: &DeviceList| Machine::of(l).expect("cards").devices.len();
        assert_eq!(lists.iter().map(devices).collect::<Vec<_>>(), [1, 2]);
    }
}
