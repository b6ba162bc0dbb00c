//! Commands that run a plan with tpc, or with other engines that split in the same way.

mod devices;
mod embeds;
mod llama_cpp;
mod path;
mod refusal;
mod shell;

pub use shell::ShellCommand;

use schemars::JsonSchema;
use serde::Serialize;
use tpc_passes::machine::Engine;

use crate::foreign_types::ForeignTypes;
use crate::pipeline::{CAPTURE, CompiledModel};
use crate::placement::Placement;
use devices::order;
use embeds::embeds;
use llama_cpp::{Family, by_layers, command};
use path::{first_shard, is_address, path_word};

/// The commands that run a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Commands {
    /// `tpc run` with the options of the plan, started by `mpirun` on several machines; `None` for captured graphs and
    /// for models on the web.
    pub tpc: Option<ShellCommand>,
    /// The reason why `tpc` is absent.
    pub tpc_reason: Option<String>,
    /// llama.cpp's server with the same placement; `None` if not possible.
    #[serde(rename = "llama.cpp")]
    pub llama_cpp: Option<ShellCommand>,
    /// The reason why `llama_cpp` is absent.
    #[serde(rename = "llama.cpp_reason")]
    pub llama_cpp_reason: Option<String>,
    /// llama.cpp's server with a split by layers, if the planned split is not possible.
    #[serde(rename = "llama.cpp_by_layers")]
    pub llama_cpp_by_layers: Option<ShellCommand>,
    /// The device order that these commands assume, if devices differ.
    #[serde(rename = "llama.cpp_order", skip_serializing_if = "Option::is_none")]
    pub llama_cpp_order: Option<String>,
    /// ik_llama.cpp's server, if the plan is for this engine or no other engine runs the file.
    #[serde(rename = "ik_llama.cpp")]
    pub ik_llama_cpp: Option<ShellCommand>,
    /// The reason why `ik_llama_cpp` is absent.
    #[serde(rename = "ik_llama.cpp_reason")]
    pub ik_llama_cpp_reason: Option<String>,
    /// Requirements of the commands beyond the planned file.
    pub needs: Option<String>,
}

/// MPI reads the machines from this file.
const HOST_FILE: &str = "hosts";
/// Options of `mpirun`: one process per machine, which may use all cores. By default, Open MPI gives it one core.
pub(super) const ONE_PER_MACHINE: [&str; 4] = ["--map-by", "ppr:1:node", "--bind-to", "none"];

/// Returns the words that start one process per machine; an empty list for one machine.
fn launcher(placement: &Placement) -> Vec<String> {
    if !placement.is_cluster() {
        return Vec::new();
    }
    let n = placement.machine_count().to_string();
    let mut words = vec!["mpirun", "-np", &n, "--hostfile", HOST_FILE];
    words.extend(ONE_PER_MACHINE);
    words.into_iter().map(str::to_owned).collect()
}

impl Commands {
    /// Builds the commands for the model at `path`. `machine` contains the options for the machine.
    pub fn new(
        path: &str,
        machine: &[String],
        placement: &Placement,
        compiled: &CompiledModel,
    ) -> Commands {
        let mut out = Commands::default();
        if compiled.model.summary.arch == CAPTURE {
            let why = "it cannot load a captured graph";
            out.llama_cpp_reason = Some(why.to_owned());
            return out;
        }
        if path.contains(char::REPLACEMENT_CHARACTER) {
            let why = "the file name is not valid UTF-8: rename the file";
            out.tpc_reason = Some(why.to_owned());
            out.llama_cpp_reason = Some(why.to_owned());
            return out;
        }
        let first = path_word(&first_shard(path));
        let mut words = launcher(placement);
        words.extend(["tpc".to_owned(), "run".to_owned(), first]);
        words.extend(machine.iter().cloned());
        words.extend(placement.option_words(compiled.mode, compiled.main_device()));
        if placement.ctx_size.is_none() {
            words.extend(["-c".to_owned(), compiled.caches.n_ctx.to_string()]);
        }
        if embeds(compiled) {
            words.push("--embeddings".to_owned());
        }
        let foreign = ForeignTypes::of_graph(&compiled.model.graph);
        let names = (foreign.as_ref().map(ForeignTypes::names))
            .or_else(|| placement.foreign_cache().map(|t| t.to_string()));
        match (names, is_address(path)) {
            (Some(names), _) => {
                let why = format!("tpc does not support the types of ik_llama.cpp yet ({names})");
                out.tpc_reason = Some(why);
            }
            (None, false) => out.tpc = Some(ShellCommand::new(words)),
            (None, true) => {
                let why =
                    "tpc run needs the data on this machine: download the file and give its path";
                out.tpc_reason = Some(why.to_owned());
            }
        }
        match command(Family::LlamaCpp, path, placement, compiled) {
            Ok(c) => out.llama_cpp = Some(c),
            Err(refusal) => {
                if refusal.layers_instead {
                    out.llama_cpp_by_layers = by_layers(path, placement, compiled);
                }
                out.llama_cpp_reason = Some(refusal.why);
            }
        }
        let printed = out.llama_cpp.as_ref().or(out.llama_cpp_by_layers.as_ref());
        out.llama_cpp_order = printed.and_then(|c| order(placement, c.words()));
        if placement.engine == Engine::IkLlamaCpp || foreign.is_some() {
            match command(Family::IkLlamaCpp, path, placement, compiled) {
                Ok(c) => out.ik_llama_cpp = Some(c),
                Err(refusal) => out.ik_llama_cpp_reason = Some(refusal.why),
            }
        }
        out
    }

    /// Adds a note that the commands need the complete model, because the file lacks weights.
    #[must_use]
    pub fn of_header(mut self) -> Commands {
        if self.tpc.is_some() || self.ik_llama_cpp.is_some() {
            let what = "the file is a header without weights: the commands need the complete model";
            self.needs = Some(what.to_owned());
        }
        self
    }
}
