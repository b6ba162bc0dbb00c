//! Files loaded besides the model, from options of `tpc plan` or from a llama.cpp command line.

use std::path::Path;

use crate::output::Failure;
use crate::values::{self, GpuLayers, Parsed};
use tpc_core::beside::{Adapter, Draft, ExtraFileMemory, Projector, Request, count};
use tpc_core::placement::{Placement, parse_cache_type};
use tpc_diag::{Diagnostic, codes};
use tpc_ggml::llama_cpp::CommandLine;
use tpc_gguf::GgufFile;
use tpc_ir::DType;
use tpc_models::Drafting;

/// Files that `tpc plan` counts in addition to the model.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Additional files, as llama.cpp loads them")]
pub(crate) struct BesideArgs {
    /// Draft model file; tpc counts its weights, cache and buffers [-md].
    #[arg(long, alias = "spec-draft-model", value_name = "FILE")]
    model_draft: Option<String>,
    /// Layers of the draft on devices [-ngld; default: all].
    #[arg(
        long, aliases = ["n-gpu-layers-draft", "spec-draft-ngl"],
        value_name = "N",
        allow_hyphen_values = true,
        requires = "model_draft",
        value_parser = values::gpu_layers()
    )]
    gpu_layers_draft: Option<Parsed<GpuLayers>>,
    /// Cells of the draft's KV cache [-cd; default: the model's context, as in llama.cpp].
    #[arg(long, value_name = "N", requires = "model_draft", value_parser = values::ctx_size())]
    ctx_size_draft: Option<Parsed<u64>>,
    /// Devices of the draft, such as `dev0,dev2`, or `none` for the host [-devd; default: all].
    #[arg(
        long,
        alias = "spec-draft-device",
        value_name = "LIST",
        requires = "model_draft"
    )]
    device_draft: Option<String>,
    /// Image or sound encoder, on the first device [-mm].
    #[arg(long, value_name = "FILE")]
    mmproj: Option<String>,
    /// Keep the encoder on the host.
    #[arg(long, requires = "mmproj")]
    no_mmproj_offload: bool,
    /// Device of the encoder, such as `dev1` [-mmdev].
    #[arg(long, value_name = "DEVICE", requires = "mmproj")]
    mmproj_device: Option<String>,
    /// LoRA adapters; repeatable.
    #[arg(long, value_name = "FILE,…")]
    lora: Vec<String>,
    /// Control vectors; repeatable.
    #[arg(long, value_name = "FILE,…")]
    control_vector: Vec<String>,
}

/// Returns the position that a device name such as `dev1` or `CUDA1` gives.
fn position(option: &str, name: &str) -> Result<usize, Failure> {
    use tpc_ggml::llama_cpp::{Buffer, buffer};
    match buffer(name) {
        Some(Buffer::Device(n)) => Ok(n),
        _ => {
            let message = format!("`{}` is not a device", tpc_diag::suggest::shorten(name));
            let d = Diagnostic::new(&codes::COMMAND_LINE, option, message);
            Err(Failure::usage(
                d.help("give a position such as dev0, or `none`"),
            ))
        }
    }
}

fn files(lists: &[String]) -> impl Iterator<Item = String> {
    let all = lists.iter().flat_map(|l| l.split(','));
    all.map(|f| f.trim().to_owned()).filter(|f| !f.is_empty())
}

impl BesideArgs {
    /// Returns the draft model's word, to replace a name by its file.
    pub(crate) fn draft_mut(&mut self) -> Option<&mut String> {
        self.model_draft.as_mut()
    }

    fn request(&self, caches: [DType; 2]) -> Result<Request, Failure> {
        fn given<T: Clone>(option: &Option<Parsed<T>>) -> Result<Option<T>, Failure> {
            option.clone().transpose().map_err(Failure::usage)
        }
        let mut out = Request::default();
        if let Some(file) = &self.model_draft {
            let mut draft = Draft::of(file);
            [draft.cache_type_k, draft.cache_type_v] = caches;
            draft.gpu_layers = given(&self.gpu_layers_draft)?.and_then(|GpuLayers(n)| n);
            draft.ctx_size = given(&self.ctx_size_draft)?.filter(|&n| n > 0);
            draft.devices = match self.device_draft.as_deref() {
                None => None,
                Some("none") => Some(Vec::new()),
                Some(list) => {
                    let all = list.split(',').map(|d| position("--device-draft", d));
                    Some(all.collect::<Result<_, _>>()?)
                }
            };
            out.draft = Some(draft);
        }
        if let Some(file) = &self.mmproj {
            let device = self.mmproj_device.as_deref().filter(|d| *d != "none");
            out.projector = Some(Projector {
                file: file.clone(),
                on_host: self.no_mmproj_offload || self.mmproj_device.as_deref() == Some("none"),
                device: device.map(|d| position("--mmproj-device", d)).transpose()?,
            });
        }
        let adapter = |is_control_vector| {
            move |file| Adapter {
                file,
                is_control_vector,
            }
        };
        out.adapters = files(&self.lora)
            .map(adapter(false))
            .chain(files(&self.control_vector).map(adapter(true)))
            .collect();
        Ok(out)
    }

    /// Adds the extra files' memory to the placement.
    pub(crate) fn on(&self, placement: Placement, model: &GgufFile) -> Result<Placement, Failure> {
        let request = self.request(placement.engine_options.draft_caches)?;
        if request.is_empty() {
            return Ok(placement);
        }
        let unread = |file: &str| GgufFile::open(file).err().map(|e| (file.to_owned(), e));
        let names = request.draft.iter().map(|d| d.file.as_str());
        let names = names.chain(request.projector.iter().map(|p| p.file.as_str()));
        let mut names = names.chain(request.adapters.iter().map(|a| a.file.as_str()));
        if let Some((file, e)) = names.find_map(unread) {
            let message = format!("`{file}` cannot be read: {e}");
            let d = Diagnostic::new(&codes::COMMAND_LINE, "additional files", message);
            return Err(Failure::usage(
                d.help("give a GGUF file; its header suffices"),
            ));
        }
        // The draft model's own file replaces the model's drafting blocks.
        let drafting = match request.draft {
            Some(_) => Drafting::None,
            None => placement.drafting,
        };
        let placement = Placement {
            drafting,
            ..placement
        };
        Ok(counted(&request, placement, model))
    }
}

pub(crate) fn counted(request: &Request, placement: Placement, model: &GgufFile) -> Placement {
    let open = |file: &str| GgufFile::open(file).ok();
    let beside: Vec<ExtraFileMemory> = count(request, model, &placement, &open);
    match beside.is_empty() {
        true => placement,
        false => placement.with_files(beside),
    }
}

/// Returns the additional files of a command line that exist on this machine.
pub(crate) fn of_line(line: &CommandLine) -> Request {
    let here = |file: &str| Path::new(file).exists();
    let kind = |option: &str, t: Option<&String>| {
        let parsed = t.and_then(|t| parse_cache_type(option, t).ok());
        parsed.unwrap_or(DType::F16)
    };
    let draft = line.draft_file().filter(|d| here(&d.file));
    let projector = line.projector_file().filter(|p| here(&p.file));
    let adapters = line.adapter_files().into_iter();
    Request {
        draft: draft.map(|d| Draft {
            cache_type_k: kind("-ctkd", d.cache_type_k.as_ref()),
            cache_type_v: kind("-ctvd", d.cache_type_v.as_ref()),
            gpu_layers: d.gpu_layers,
            ctx_size: d.ctx_size,
            devices: d.devices,
            file: d.file,
        }),
        projector: projector.map(|p| Projector {
            file: p.file,
            on_host: p.on_host,
            device: p.device,
        }),
        adapters: adapters
            .filter(|(file, _)| here(file))
            .map(|(file, is_control_vector)| Adapter {
                file,
                is_control_vector,
            })
            .collect(),
    }
}
