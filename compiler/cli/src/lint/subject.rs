//! The subject of `tpc lint`: a model, a capture, or a llama.cpp command line.

use std::path::{Path, PathBuf};

use super::args::Args;
use super::line::on_devices;
use crate::args::{Defaults, PlacementArgs};
use crate::beside;
use crate::output::Failure;
use crate::source::SourceArgs;
use crate::values::{DeviceLists, Parsed};
use tpc_core::beside::Request;
use tpc_core::placement::{DeviceList, Placement, SplitMode, shares};
use tpc_diag::{Diagnostic, codes, message};
use tpc_ggml::engines::{Backend, Build};
use tpc_ggml::llama_cpp::{CommandLine, Setting, Test, TpcCommand, device_count, quote};

pub(super) struct Subject {
    pub(super) source: SourceArgs,
    pub(super) placement: PlacementArgs,
    /// The devices of `--devices`, else of the command line, else the default. An invalid value is reported with the
    /// findings.
    pub(super) devices: Parsed<DeviceLists>,
    pub(super) line: Option<EngineLine>,
}

pub(super) struct EngineLine {
    pub(super) command: CommandLine,
    /// The equivalent `tpc plan` command for the engine of the line.
    pub(super) equivalent: String,
    /// The equivalent command for tpc's engine.
    pub(super) with_tpc: String,
    pub(super) build: &'static Build,
    /// The additional files in the line that exist on this machine.
    pub(super) beside: Request,
    /// True if neither the line nor the options give the number of devices.
    pub(super) assumed: bool,
    /// The test's label, if a benchmark has several tests.
    pub(super) label: String,
}

/// Returns the command lines: one per test of a benchmark, or none without a command.
pub(super) fn lines(args: &Args) -> Result<Vec<Test>, Failure> {
    if args.command.is_empty() {
        return Ok(Vec::new());
    }
    let command = CommandLine::parse(&args.command).map_err(Failure::usage)?;
    command.each().map_err(Failure::usage)
}

/// Returns llama.cpp's default shares of the layers, as in `-ts`: each device's usable memory in GiB. If all memories
/// are equal or one is unknown, all shares are 1.
pub(super) fn shares_of_memory(placement: &Placement) -> Vec<f64> {
    let memory = |d: usize| placement.topology.device(d).usable_memory();
    let all: Option<Vec<f64>> = (0..placement.devices.len()).map(memory).collect();
    match all {
        Some(all) if all.windows(2).any(|w| w[0] != w[1]) => {
            let gib = |m: &f64| (m / f64::from(1 << 30) * 10.0).round() / 10.0;
            all.iter().map(gib).collect()
        }
        _ => vec![1.0; placement.devices.len()],
    }
}

impl Subject {
    /// Reads the subject for one file. `devices` is the value in the settings.
    pub(super) fn from_args(
        args: &Args,
        file: Option<&Path>,
        devices: Option<&str>,
        line: Option<&Test>,
    ) -> Result<Subject, Failure> {
        let machine = machine(args, devices)?;
        let Some(Test { label, line }) = line else {
            let placement = args.placement.clone().on_machine_of(&machine);
            return Ok(Subject {
                source: SourceArgs::new(file.map(Path::to_owned), args.graph.clone()),
                devices: placement
                    .devices()
                    .unwrap_or_else(|| Ok(DeviceLists::all())),
                placement,
                line: None,
            });
        };
        if PlacementArgs::read(&[])?.on_machine_of(&args.placement) != args.placement {
            let message = "placement options precede a llama.cpp command";
            let d = Diagnostic::new(&codes::COMMAND_LINE, "command line", message);
            return Err(Failure::usage(d.help(
                "move them after `--`; only --devices, --topology, --link, --reserve and --host-memory may precede it",
            )));
        }
        let given = machine.devices();
        let counted = device_count(line);
        let of_file = given.is_none() && counted.assumed && machine.names_a_machine();
        let assumed = given.is_none() && counted.assumed && !of_file;
        let devices = given.unwrap_or_else(|| match of_file {
            true => Ok(DeviceLists::all()),
            false => DeviceLists::count(counted.count),
        });
        let command = match devices.as_ref().ok().and_then(|d| most(&machine, d)) {
            Some(n) => on_devices(line, n),
            None => line.clone(),
        };
        let named = file.map(|m| m.display().to_string());
        let Some(mut same) = TpcCommand::from_line(&command, named) else {
            return Err(Failure::usage(without_model(&command)));
        };
        let placement = PlacementArgs::read(&same.options)?.on_machine_of(&machine);
        let placement = placement.with_servers_at(command.servers_at());
        let source = SourceArgs::new(Some(PathBuf::from(&same.model)), None);
        // The shares depend on the number of devices, so the command omits them for a range of device counts.
        if let Ok(lists) = &devices
            && let [only] = lists.lists.as_slice()
            && let Some(split) = implied_split(&placement, only, source.defaults())
        {
            let words = ["-ts".to_owned(), shares(&split)];
            same.options.splice(2..2, words);
        }
        let beside = beside::of_line(&command);
        same.options.extend(beside.words());
        // The options before the command describe the machine. If they do not give devices, the command determines the
        // number.
        let mut machine = args.placement.machine_words();
        if args.placement.devices().is_none() && !of_file {
            let count = devices.as_ref().map_or("…", |lists| lists.text.as_str());
            machine.splice(0..0, ["--devices".to_owned(), count.to_owned()]);
        }
        Ok(Subject {
            source,
            placement,
            line: Some(EngineLine {
                equivalent: same.shell(&machine),
                with_tpc: same.for_tpc().shell(&machine),
                build: args.placement.build_of(command.maker),
                command,
                beside,
                assumed,
                label: label.clone(),
            }),
            devices,
        })
    }
}

impl EngineLine {
    /// Returns each device's back end: from the line (`-dev CUDA0,ROCm0`), or else from the card.
    pub(super) fn backends(&self, placement: &Placement) -> Vec<Option<Backend>> {
        let named = self.command.value(Setting::Devices);
        match named.filter(|_| placement.backend.is_none()) {
            Some(list) => list.split(',').map(Backend::of_device).collect(),
            None => placement.backends(),
        }
    }
}

fn most(machine: &PlacementArgs, devices: &DeviceLists) -> Option<usize> {
    let defaults = SourceArgs::new(None, None).defaults();
    let placed = devices
        .lists
        .iter()
        .filter_map(|list| machine.placement_on(list, defaults).ok());
    placed.map(|p| p.devices.len()).max()
}

fn without_model(line: &CommandLine) -> Diagnostic {
    let assigned = |word: &&String| word.starts_with("-m=") || word.starts_with("--model=");
    if let Some(word) = line.unknown.iter().find(assigned) {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let message = message!("unknown llama.cpp option `{}`: the program exits", word);
        let d = Diagnostic::new(&codes::COMMAND_LINE, "-m", message);
        return d.help(message!("write {} {}", name, quote(value)));
    }
    let message = "the command does not name a model file";
    let d = Diagnostic::new(&codes::COMMAND_LINE, "-m", message);
    d.help(
        "add -m MODEL.gguf; if llama.cpp downloads the model, name its repository first: tpc lint -hf USER/NAME -- \
         llama-server -hf USER/NAME",
    )
}

/// Returns a layer split's shares if the line does not give them.
fn implied_split(args: &PlacementArgs, list: &DeviceList, defaults: Defaults) -> Option<Vec<f64>> {
    // Planning reports invalid options.
    let placement = args.placement_on(list, defaults).ok()?;
    is_open(&placement).then(|| shares_of_memory(&placement))
}

/// True if layers are divided and `-ts` is not given.
pub(super) fn is_open(placement: &Placement) -> bool {
    placement.split_mode == SplitMode::Layer
        && placement.devices.len() > 1
        && placement.tensor_split.is_none()
}

/// Returns the machine's options. Without `--devices`, uses the devices of the settings.
fn machine(args: &Args, devices: Option<&str>) -> Result<PlacementArgs, Failure> {
    let Some(devices) = devices.filter(|_| args.placement.devices().is_none()) else {
        return Ok(args.placement.clone());
    };
    let mut words = args.placement.machine_words();
    words.push(format!("--devices={devices}"));
    PlacementArgs::read(&words)
}
