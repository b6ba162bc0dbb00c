//! Cures for a llama.cpp command line. Each edited line is linted before its cure is shown.

use super::line::on_devices;
use super::subject::{EngineLine, Subject, is_open, shares_of_memory};
use crate::args::{Defaults, PlacementArgs};
use tpc_core::advice::{Advice, Change};
use tpc_core::pipeline::compile;
use tpc_core::placement::{DeviceList, Override, Placement, SplitMode, Target};
use tpc_diag::{Diagnostic, Severity};
use tpc_ggml::engines::{Backend, Build};
use tpc_ggml::llama_cpp::{
    Arity, Buffer, CommandLine, Maker, OPTIONS, OptionSpec, ParsedOption, Program, Setting,
    TpcCommand, buffer, position, quote,
};
use tpc_lint::{Command, File, lint_command};
use tpc_passes::machine::Engine;

pub(super) struct Checked<'a> {
    build: &'static Build,
    backends: Vec<Option<Backend>>,
    line: &'a CommandLine,
    args: &'a PlacementArgs,
    list: &'a DeviceList,
    defaults: Defaults,
    file: File<'a>,
    devices: usize,
    model: String,
    assumed: bool,
    errors: Vec<Diagnostic>,
}

/// An option that replaces all options of the same setting.
struct Edit {
    replaces: &'static [Setting],
    words: [String; 2],
}

impl<'a> Checked<'a> {
    pub(super) fn new(
        subject: &'a Subject,
        engine: &'a EngineLine,
        list: &'a DeviceList,
        file: File<'a>,
        placement: &Placement,
    ) -> Checked<'a> {
        let mut out = Checked {
            line: &engine.command,
            build: engine.build,
            backends: engine.backends(placement),
            args: &subject.placement,
            list,
            defaults: subject.source.defaults(),
            file,
            devices: placement.devices.len(),
            model: subject.source.path(),
            assumed: engine.assumed,
            errors: Vec::new(),
        };
        out.errors = out.errors_of(out.line, placement);
        out
    }

    pub(super) fn engine(&self) -> Engine {
        match self.line.maker {
            Maker::LlamaCpp => Engine::LlamaCpp,
            Maker::IkLlamaCpp => Engine::IkLlamaCpp,
        }
    }

    /// Returns the errors in a command line.
    fn errors_of(&self, line: &CommandLine, placement: &Placement) -> Vec<Diagnostic> {
        let found = lint_command(&Command {
            line,
            build: self.build,
            backends: &self.backends,
            file: self.file,
            placement,
            equivalent: "",
            assumed: self.assumed,
        });
        let is_error = |d: &Diagnostic| d.severity == Severity::Error;
        found.into_iter().filter(is_error).collect()
    }

    /// Sets the advice's options to those of the edited line. Returns true if the cure may be shown: the edited line
    /// does not have new errors, and either requests the advised placement or has a proved plan that fits.
    pub(super) fn holds(&self, advice: &mut Advice) -> bool {
        let Some((line, words)) = self.edited(&advice.changes) else {
            return false;
        };
        advice.options = words;
        let line = on_devices(&line, self.devices);
        let Some(placement) = self.placement(&line) else {
            return false;
        };
        let is_new = |d: &Diagnostic| !self.errors.iter().any(|e| e.code == d.code);
        if self.errors_of(&line, &placement).iter().any(is_new) {
            return false;
        }
        if is_same(&placement, &advice.placement) {
            return true;
        }
        let planned = compile(self.file.file, &placement);
        planned.is_ok_and(|compiled| compiled.fits() && compiled.proof.is_ok())
    }

    fn placement(&self, line: &CommandLine) -> Option<Placement> {
        let same = TpcCommand::from_line(line, Some(self.model.clone()))?;
        let args = PlacementArgs::read(&same.options).ok()?;
        let args = args.on_machine_of(self.args);
        let mut placement = args.placement_on(self.list, self.defaults).ok()?;
        if is_open(&placement) {
            placement.tensor_split = Some(shares_of_memory(&placement));
        }
        Some(placement)
    }

    /// Returns the edited line, and the changed options as text.
    fn edited(&self, changes: &[Change]) -> Option<(CommandLine, String)> {
        let mut line = self.line.clone();
        let mut words: Vec<String> = Vec::new();
        for edit in changes.iter().map(|c| self.edits(c)) {
            for Edit {
                replaces,
                words: [name, value],
            } in edit?
            {
                line.options
                    .retain(|o| !replaces.contains(&o.spec.setting) || words.contains(&o.spelling));
                let spec = option(&line, &name)?;
                words.push(name.clone());
                let shown = match (self.line.kind, name.as_str()) {
                    // llama-bench separates tests by commas, and values in a test by slashes.
                    (Program::Bench, "-ts") => Some(value.replace(',', "/")),
                    (Program::Bench, "-ot") => Some(value.replace(',', ";")),
                    (Program::Bench, "-nkvo") => Some("1".to_owned()),
                    _ => (spec.arity == Arity::One).then(|| value.clone()),
                };
                words.extend(shown.map(|shown| quote(&shown)));
                line.options.push(ParsedOption {
                    spec,
                    spelling: name,
                    value,
                    from_env: false,
                });
            }
        }
        Some((line, words.join(" ")))
    }

    fn edits(&self, change: &Change) -> Option<Vec<Edit>> {
        let one = |replaces: &'static [Setting], name: &str, value: String| {
            Some(vec![Edit {
                replaces,
                words: [name.to_owned(), value],
            }])
        };
        let is_general = self.line.kind == Program::General;
        match change {
            Change::Mode(mode) => {
                let name = match (mode, self.line.maker) {
                    (SplitMode::Tensor, Maker::IkLlamaCpp) => "graph",
                    (mode, _) => mode.name(),
                };
                one(&[Setting::SplitMode], "-sm", name.to_owned())
            }
            Change::MainDevice(d) => one(&[Setting::MainGpu], "-mg", d.to_string()),
            Change::Shares(shares) => {
                let shown: Vec<String> = shares.iter().map(ToString::to_string).collect();
                one(&[Setting::TensorSplit], "-ts", shown.join(","))
            }
            Change::Overrides { all, .. } => {
                let placed = |o: &Override| Some(format!("{}={}", o.pattern, self.buffer(o)?));
                let mut texts: Vec<String> = all.iter().map(placed).collect::<Option<_>>()?;
                if self.line.kind == Program::Bench {
                    texts = vec![texts.join(",")];
                }
                let edit = |text: String| Edit {
                    replaces: &[Setting::Override],
                    words: ["-ot".to_owned(), text],
                };
                Some(texts.into_iter().map(edit).collect())
            }
            Change::HostExperts(n) => one(
                &[Setting::NCpuMoe, Setting::CpuMoe],
                "-ncmoe",
                n.to_string(),
            ),
            Change::GpuLayers { kept, .. } => one(&[Setting::GpuLayers], "-ngl", kept.to_string()),
            Change::KvOnHost => one(
                &[Setting::KvOffload, Setting::NoKvOffload],
                "-nkvo",
                "off".to_owned(),
            ),
            Change::Caches { types: [k, v], .. } => Some(vec![
                Edit {
                    replaces: &[Setting::CacheK],
                    words: ["-ctk".to_owned(), k.name().to_owned()],
                },
                Edit {
                    replaces: &[Setting::CacheV],
                    words: ["-ctv".to_owned(), v.name().to_owned()],
                },
            ]),
            // Other programs compute their contexts from their tests.
            Change::Context { .. } | Change::Sequences { .. } if !is_general => None,
            Change::Context { ctx_size, .. } => {
                one(&[Setting::CtxSize], "-c", ctx_size.to_string())
            }
            Change::Sequences { count, .. } => one(&[Setting::Parallel], "-np", count.to_string()),
            Change::Batch(n) => one(&[Setting::Ubatch], "-ub", n.to_string()),
        }
    }

    /// Returns the buffer name in the command line for an override's target.
    fn buffer(&self, o: &Override) -> Option<String> {
        let names = self.line.all(Setting::Override).flat_map(|given| {
            let parts = given.value.split(',');
            parts.filter_map(|part| Some(part.rsplit_once('=')?.1))
        });
        let is_place = |name: &&str| match (buffer(name), o.target) {
            (Some(Buffer::Host), Target::Host) => true,
            (Some(Buffer::Device(n)), Target::Device(d)) => position(self.line, name, n) == Some(d),
            _ => false,
        };
        let found = names.into_iter().find(is_place).map(str::to_owned);
        found.or_else(|| (o.target == Target::Host).then(|| "CPU".to_owned()))
    }
}

fn option(line: &CommandLine, name: &str) -> Option<&'static OptionSpec> {
    let is_switch = line.kind == Program::Bench && name == "-nkvo";
    if is_switch {
        return OPTIONS
            .iter()
            .find(|o| o.setting == Setting::KvOffload && o.arity == Arity::NegatedSwitch);
    }
    let mut known = line.kind.options(line.maker);
    known.find(|o| o.names.contains(&name))
}

fn is_same(a: &Placement, b: &Placement) -> bool {
    let main = |p: &Placement| (p.split_mode == SplitMode::None).then_some(p.main_device);
    a.split_mode == b.split_mode
        && a.tensor_split == b.tensor_split
        && a.overrides == b.overrides
        && a.host_experts == b.host_experts
        && a.kv_on_host == b.kv_on_host
        && a.n_gpu_layers == b.n_gpu_layers
        && (a.cache_type_k, a.cache_type_v) == (b.cache_type_k, b.cache_type_v)
        && a.ctx_size == b.ctx_size
        && (a.ubatch_size, a.parallel) == (b.ubatch_size, b.parallel)
        && a.drafting == b.drafting
        && main(a) == main(b)
}
