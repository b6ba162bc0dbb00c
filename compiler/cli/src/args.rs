//! The placement options, the same for every subcommand.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser};
use tpc_passes::machine::Topology;

use super::output::Failure;
use tpc_core::placement::{
    Placement, SplitMode, parse_cache_type, parse_devices, parse_gpu_layers, parse_overrides,
    parse_spec_type, parse_tensor_split,
};
use tpc_diag::Diagnostic;

/// llama.cpp's short forms of several letters, and the options that they mean.
const SHORT: [(&str, &str); 12] = [
    ("-sm", "--split-mode"),
    ("-ts", "--tensor-split"),
    ("-ot", "--override-tensor"),
    ("-ncmoe", "--n-cpu-moe"),
    ("-cmoe", "--cpu-moe"),
    ("-nkvo", "--no-kv-offload"),
    ("-ngl", "--n-gpu-layers"),
    ("-ctk", "--cache-type-k"),
    ("-ctv", "--cache-type-v"),
    ("-ub", "--ubatch-size"),
    ("-np", "--parallel"),
    ("-fa", "--flash-attn"),
];

/// Replaces llama.cpp's short forms by the long ones, up to a `--`.
pub fn normalise(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut literal = false;
    arguments
        .into_iter()
        .map(|a| {
            literal |= a == "--";
            let long = a.to_str().filter(|_| !literal).and_then(|a| {
                let (name, value) = a.split_once('=').map_or((a, None), |(n, v)| (n, Some(v)));
                let (_, long) = SHORT.iter().find(|(s, _)| *s == name)?;
                Some(value.map_or_else(|| (*long).to_owned(), |v| format!("{long}={v}")))
            });
            long.map_or(a, OsString::from)
        })
        .collect()
}

/// How the model is divided.
#[derive(Clone, Debug, PartialEq, Args)]
pub(super) struct PlacementArgs {
    /// A count, or a list such as `cpu,cpu` or `cuda:0,cuda:1` [default: 1].
    #[arg(long, value_name = "SPEC")]
    devices: Option<String>,
    /// Device and link profiles.
    #[arg(long, value_name = "FILE.ron")]
    topology: Option<PathBuf>,
    /// auto, none, layer or tensor [-sm; default auto, for captured graphs tensor].
    #[arg(long, value_name = "MODE")]
    split_mode: Option<String>,
    /// Proportions of the devices, such as `3,1` [-ts].
    #[arg(long, value_name = "N,…", allow_hyphen_values = true)]
    tensor_split: Option<String>,
    /// Place matching tensors on the host, a device, or mirrored [-ot].
    #[arg(long, value_name = "REGEX=PLACE")]
    override_tensor: Vec<String>,
    /// Experts of the first N layers stay on the host [-ncmoe].
    #[arg(long, value_name = "N")]
    n_cpu_moe: Option<u64>,
    /// All experts stay on the host [-cmoe].
    #[arg(long)]
    cpu_moe: bool,
    /// The KV cache stays on the host [-nkvo].
    #[arg(long)]
    no_kv_offload: bool,
    /// Layers beyond the last N stay on the host; the output counts as one. `all` and `auto` keep none there [-ngl].
    #[arg(
        long,
        alias = "gpu-layers",
        value_name = "N",
        allow_hyphen_values = true
    )]
    n_gpu_layers: Option<String>,
    /// Type of the K cache: f32 f16 bf16 q8_0 q5_1 q5_0 q4_1 q4_0 iq4_nl [-ctk; default f16].
    #[arg(long, value_name = "TYPE")]
    cache_type_k: Option<String>,
    /// Type of the V cache [-ctv; default f16].
    #[arg(long, value_name = "TYPE")]
    cache_type_v: Option<String>,
    /// Cells of the KV cache [default: the model's context].
    #[arg(long, short = 'c', value_name = "N")]
    ctx_size: Option<u64>,
    /// Largest batch of tokens [-ub].
    #[arg(long, default_value_t = Placement::UBATCH, value_name = "N")]
    ubatch_size: u64,
    /// Number of sequences [-np].
    #[arg(long, default_value_t = 1, value_name = "N")]
    parallel: u64,
    /// What guesses tokens ahead: `draft-mtp` plans the blocks that the file has for it, `none` leaves them out.
    #[arg(long, value_name = "TYPE", default_value = "none")]
    spec_type: String,
    /// Accepted and without effect: attention is always fused [-fa].
    #[arg(long, value_name = "on|off|auto", num_args = 0..=1, default_missing_value = "on")]
    flash_attn: Option<String>,
}

/// The placement options by themselves.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Only {
    #[command(flatten)]
    placement: PlacementArgs,
}

impl PlacementArgs {
    /// The options that these words are.
    pub(super) fn read(words: &[String]) -> Result<PlacementArgs, Failure> {
        let words = normalise(words.iter().map(OsString::from));
        let read = Only::try_parse_from(words).map_err(|e| Failure::usage(super::usage(&e)))?;
        Ok(read.placement)
    }

    /// These options for the machine that `other` describes.
    pub(super) fn on_machine_of(self, other: &PlacementArgs) -> PlacementArgs {
        PlacementArgs {
            devices: other.devices.clone(),
            topology: other.topology.clone(),
            ..self
        }
    }

    /// Whether `--devices` is given.
    pub(super) fn says_devices(&self) -> bool {
        self.devices.is_some()
    }

    /// What `--devices` says.
    pub(super) fn devices(&self) -> &str {
        self.devices.as_deref().unwrap_or("1")
    }

    /// The placement, with caches of type `cache` and in this split mode where the options say nothing.
    pub(super) fn placement(
        &self,
        cache: tpc_ir::DType,
        mode: SplitMode,
    ) -> Result<Placement, Failure> {
        self.placement_on(self.devices(), cache, mode)
    }

    /// The same on other devices than `--devices` says.
    pub(super) fn placement_on(
        &self,
        devices: &str,
        cache: tpc_ir::DType,
        mode: SplitMode,
    ) -> Result<Placement, Failure> {
        let devices = parse_devices(devices).map_err(Failure::usage)?;
        let split_mode = match self.split_mode.as_deref().unwrap_or(mode.name()) {
            "auto" => SplitMode::Auto,
            "none" => SplitMode::None,
            "tensor" | "row" => SplitMode::Tensor,
            "layer" => SplitMode::Layer,
            other => {
                let d = Diagnostic::error(
                    "TPC0400",
                    "--split-mode",
                    format!("`{other}` is not a split mode"),
                );
                return Err(Failure::usage(d.help("auto, none, layer or tensor")));
            }
        };
        let tensor_split = match &self.tensor_split {
            Some(t) => Some(parse_tensor_split(t, devices.len()).map_err(Failure::usage)?),
            None => None,
        };
        let topology = match &self.topology {
            None => Topology::default(),
            Some(path) => {
                let name = path.display().to_string();
                let unusable = |message: String| {
                    let d = Diagnostic::error("TPC0403", &name, message);
                    Failure::usage(d.help("`tpc explain TPC0403` shows one"))
                };
                let bytes = std::fs::read(path).map_err(|e| Failure::file(path, &e))?;
                let text = std::str::from_utf8(&bytes)
                    .map_err(|e| unusable(format!("byte {} is no text", e.valid_up_to())))?;
                Topology::from_ron(text).map_err(|e| unusable(e.to_string()))?
            }
        };
        let kind = |option: &str, given: &Option<String>| match given {
            Some(t) => parse_cache_type(option, t).map_err(Failure::usage),
            None => Ok(cache),
        };
        let overrides = parse_overrides(&self.override_tensor, &devices).map_err(Failure::usage)?;
        Ok(Placement {
            devices,
            overrides,
            n_cpu_moe: if self.cpu_moe {
                u64::MAX
            } else {
                self.n_cpu_moe.unwrap_or(0)
            },
            kv_on_host: self.no_kv_offload,
            n_gpu_layers: match &self.n_gpu_layers {
                Some(n) => parse_gpu_layers(n).map_err(Failure::usage)?,
                None => None,
            },
            topology,
            split_mode,
            tensor_split,
            cache_type_k: kind("--cache-type-k", &self.cache_type_k)?,
            cache_type_v: kind("--cache-type-v", &self.cache_type_v)?,
            ctx_size: self.ctx_size,
            ubatch_size: self.ubatch_size,
            parallel: self.parallel,
            drafting: parse_spec_type(&self.spec_type).map_err(Failure::usage)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_of_several_letters() {
        let given = [
            "tpc", "plan", "-ctk", "q8_0", "-ts=3,1", "-c", "7", "--", "-ts",
        ]
        .map(OsString::from);
        let long = normalise(given);
        let expected = [
            "tpc",
            "plan",
            "--cache-type-k",
            "q8_0",
            "--tensor-split=3,1",
            "-c",
            "7",
            "--",
            "-ts",
        ];
        assert_eq!(long, expected.map(OsString::from));
    }
}
