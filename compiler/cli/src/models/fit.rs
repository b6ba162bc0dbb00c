//! Plans a model to find out if it fits the devices.

use schemars::JsonSchema;
use serde::Serialize;
use tpc_core::pipeline::compile;
use tpc_core::placement::{Placement, SplitMode};
use tpc_diag::Severity;
use tpc_gguf::GgufFile;
use tpc_ir::DType;
use tpc_lint::plan_report;

use crate::args::{Defaults, PlacementArgs};
use crate::devices::{Here, here};
use crate::output::Failure;

/// The context of the second attempt, in tokens.
const SHORT_CONTEXT: u64 = 8192;

/// The devices of the question if models fit.
pub(super) struct Machine {
    /// The devices as words, such as `2x3090` or `cpu`.
    pub(super) devices: String,
    placement: Placement,
}

/// The answer to the question if a model fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Fit {
    /// True if the plan fits; `None` if the model cannot be planned.
    pub(super) fits: Option<bool>,
    /// The context, if the model fits only with a shorter one than its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ctx_size: Option<u64>,
    /// The code of the first error, if the model cannot be planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<&'static str>,
}

impl Machine {
    /// Returns the devices of the options, or else this machine's cards, or else its CPU.
    pub(super) fn new(args: &PlacementArgs) -> Result<Machine, Failure> {
        let args = match args.names_a_machine() {
            true => args.clone(),
            false => {
                let words = match here() {
                    Here::Cards(devices) => vec![format!("--devices={devices}")],
                    Here::Cpu(memory) => ["--devices=cpu".to_owned()]
                        .into_iter()
                        .chain(memory.map(|n| format!("--host-memory={n}")))
                        .collect(),
                };
                args.clone().on_machine_of(&PlacementArgs::read(&words)?)
            }
        };
        let defaults = Defaults {
            cache: DType::F16,
            split_mode: SplitMode::Auto,
        };
        let words = args.machine_words();
        let named = words.iter().position(|w| w == "--devices");
        let devices = named.and_then(|at| words.get(at + 1).cloned());
        Ok(Machine {
            devices: devices.unwrap_or_else(|| "the topology's devices".to_owned()),
            placement: args.placement(defaults)?,
        })
    }

    /// Plans the model with its context, and with a shorter one if it does not fit.
    pub(super) fn fit(&self, path: &str, file: &GgufFile) -> Fit {
        let first = Machine::plan(path, file, &self.placement);
        if first.fits != Some(false) || self.placement.ctx_size.is_some() {
            return first;
        }
        let shorter = Placement {
            ctx_size: Some(SHORT_CONTEXT),
            ..self.placement.clone()
        };
        match Machine::plan(path, file, &shorter).fits {
            Some(true) => Fit {
                fits: Some(true),
                ctx_size: Some(SHORT_CONTEXT),
                code: None,
            },
            _ => first,
        }
    }

    fn plan(path: &str, file: &GgufFile, placement: &Placement) -> Fit {
        let answer = |fits, code| Fit {
            fits,
            ctx_size: None,
            code,
        };
        let compiled = match compile(file, placement) {
            Ok(compiled) => compiled,
            Err(all) => {
                let error = all.iter().find(|d| d.severity == Severity::Error);
                return answer(None, error.map(|d| d.code.id));
            }
        };
        let report = plan_report(path, placement, &compiled);
        let too_small = |d: &tpc_diag::Diagnostic| {
            *d.code == *tpc_lint::CAPACITY && d.severity == Severity::Error
        };
        answer(Some(!report.diagnostics.iter().any(too_small)), None)
    }
}
