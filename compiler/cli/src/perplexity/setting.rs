//! A model with the options of one setting.

use tpc_core::placement::SplitMode;
use tpc_diag::Diagnostic;
use tpc_engine::{ExecutorKind, Loader, PreparedModel};
use tpc_ir::DType;

use super::args::Args;
use crate::args::{Defaults, PlacementArgs};
use crate::execution::{self, Opened};
use crate::output::Failure;

/// The memory for the logits of a batch, in bytes.
const LOGITS: usize = 128 << 20;

pub(super) struct Setting {
    /// The options that differ from the command's; empty for the command's own.
    pub(super) name: String,
    pub(super) opened: Opened,
    pub(super) ready: PreparedModel,
    executor: ExecutorKind,
}

impl Setting {
    /// Opens and plans the model. `cells` is the context of a model; an artefact has its own.
    pub(super) fn open(args: &Args, name: &str, cells: usize) -> Result<Setting, Failure> {
        let words: Vec<String> = name.split_whitespace().map(str::to_owned).collect();
        let placement: PlacementArgs = args.placement.with(&words)?;
        let defaults = Defaults {
            cache: DType::F16,
            split_mode: SplitMode::Auto,
        };
        let executor = args.engine.executor(&placement, ExecutorKind::Cpu);
        let mut opened = (args.subject).open(&placement, || {
            execution::placement(&placement, defaults, executor)
        })?;
        opened.context(cells as u64);
        let executor = opened.executor(&args.engine, executor);
        let ready = opened.plan()?;
        if ready.embeds || ready.bidirectional {
            let message = "the model does not predict the next token of a text";
            let d = Diagnostic::new(&crate::codes::BOTH_WAYS, "model", message);
            return Err(Failure::usage(
                d.help("`tpc eval` gives the results of a whole sequence"),
            ));
        }
        Ok(Setting {
            name: name.to_owned(),
            opened,
            ready,
            executor,
        })
    }

    /// Returns the loader for windows of `context` tokens.
    pub(super) fn loader<'a>(
        &'a self,
        args: &'a Args,
        context: usize,
    ) -> Result<Loader<'a>, Failure> {
        let ready = &self.ready;
        let batch = ready.ubatch.min(context).max(1);
        let rows = LOGITS / size_of::<f32>() / ready.result_width.max(1);
        let rows = rows.min(ready.outputs.unwrap_or(usize::MAX));
        Ok(Loader {
            name: args.subject.path(),
            file: &self.opened.file,
            model: ready,
            ctx_size: context,
            batch,
            outputs: rows.clamp(1, batch),
            sequences: 1,
            executor: (args.faults)
                .apply((args.engine).executor_options(self.executor, ready.n_devices())?)?,
        })
    }
}
