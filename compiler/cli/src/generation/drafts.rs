//! Loads the sources of drafts.

use std::path::{Path, PathBuf};

use tpc_core::placement::{HostExperts, Placement, SplitMode};
use tpc_diag::Diagnostic;
use tpc_engine::generate::{DraftSource, Generator, ModelDrafts, NgramDrafts, same_vocabulary};
use tpc_engine::{AnySession, Loader, OTHER_DRAFT, PreparedModel, check_types};
use tpc_gguf::GgufFile;
use tpc_ir::DType;
use tpc_models::Drafting;

use super::draft_args::{DraftArgs, Wanted};
use crate::args::{Defaults, PlacementArgs};
use crate::execution::{self, ExecutionArgs};
use crate::input;
use crate::output::Failure;

/// The options that decide how a draft model is planned and loaded.
#[derive(Clone, Copy)]
pub(crate) struct DraftOptions<'a> {
    pub(crate) drafts: &'a DraftArgs,
    pub(crate) placement: &'a PlacementArgs,
    pub(crate) engine: &'a ExecutionArgs,
}

/// The draft model that the options name, if any: planned, but not loaded.
pub(crate) struct Draft(Option<DraftModel>);

struct DraftModel {
    path: PathBuf,
    file: GgufFile,
    ready: PreparedModel,
}

fn refused(path: &Path, message: &str) -> Failure {
    let d = Diagnostic::new(&OTHER_DRAFT, path.display().to_string(), message.to_owned());
    Failure::usage(d.help("give a smaller model of the same family"))
}

impl Draft {
    /// Opens and plans the draft model, if one is given, on the model's devices.
    pub(crate) fn open(args: DraftOptions<'_>, main: &Loader<'_>) -> Result<Draft, Failure> {
        let path = args.drafts.model_draft.as_deref();
        if let (Some(path), Some(_)) = (path, &main.executor.ranks) {
            let message = "a draft model does not run in several processes";
            let d = Diagnostic::new(&OTHER_DRAFT, path.display().to_string(), message);
            return Err(Failure::usage(d.help(
                "leave out --model-draft; n-gram drafts and the model's own drafts work",
            )));
        }
        let model = path.map(|path| DraftModel::open(args, path, main));
        Ok(Draft(model.transpose()?))
    }

    /// Loads the draft model like the model.
    pub(crate) fn load<'a>(
        &'a self,
        args: DraftOptions<'_>,
        main: &Loader<'_>,
    ) -> Result<Option<LoadedDraft<'a>>, Failure> {
        let model = self.0.as_ref().map(|model| model.load(args, main));
        model.transpose()
    }
}

impl DraftModel {
    fn open(args: DraftOptions<'_>, path: &Path, main: &Loader<'_>) -> Result<DraftModel, Failure> {
        let file = input::open_whole(path)?;
        check_types(&file)?;
        let file = input::with_data(file, path)?;
        let defaults = Defaults {
            cache: DType::F16,
            split_mode: SplitMode::Auto,
        };
        let own = execution::placement(args.placement, defaults, main.executor.kind)?;
        // Proportions and overrides are for the model, and bits of drafts do not matter.
        let placement = Placement {
            split_mode: SplitMode::Auto,
            tensor_split: None,
            overrides: Vec::new(),
            host_experts: HostExperts::NONE,
            n_gpu_layers: None,
            main_device: None,
            drafting: Drafting::None,
            ctx_size: Some(main.sequence_ctx_size().saturating_mul(main.sequences) as u64),
            ..own
        };
        let compiled = execution::plan(path, &file, &placement)?;
        let ready = PreparedModel::of_plan(compiled, &placement);
        if ready.embeds || ready.bidirectional {
            let message = "the draft model does not generate token by token";
            return Err(refused(path, message));
        }
        let sizes = [main.model.result_width, ready.result_width];
        same_vocabulary(&path.display().to_string(), [main.file, &file], sizes)?;
        Ok(DraftModel {
            path: path.to_owned(),
            file,
            ready,
        })
    }

    fn loader(&self, main: &Loader<'_>) -> Loader<'_> {
        Loader {
            name: &self.path,
            file: &self.file,
            model: &self.ready,
            ctx_size: usize::MAX,
            batch: self.ready.ubatch.max(1),
            outputs: 1,
            sequences: main.sequences,
            executor: main.executor.clone(),
        }
    }

    fn load<'a>(
        &'a self,
        args: DraftOptions<'_>,
        main: &Loader<'_>,
    ) -> Result<LoadedDraft<'a>, Failure> {
        let loader = self.loader(main);
        let (n_ctx, batch) = (loader.sequence_ctx_size(), loader.batch);
        Ok(LoadedDraft {
            session: execution::load(loader, args.engine)?,
            n_ctx,
            batch,
            n_vocab: self.ready.n_vocab,
        })
    }
}

/// A draft model with its session.
pub(crate) struct LoadedDraft<'a> {
    session: AnySession<'a>,
    n_ctx: usize,
    batch: usize,
    n_vocab: usize,
}

/// Adds the wanted sources to a generator.
pub(crate) fn add<'m>(
    generator: &mut Generator<'m>,
    wanted: &Wanted,
    draft: Option<&'m mut LoadedDraft<'_>>,
) {
    generator.pace.least = wanted.least;
    if let Some(sizes) = wanted.ngram {
        generator.drafts.push(Box::new(NgramDrafts { sizes }));
    }
    if let (Some(draft), Some(most)) = (draft, wanted.model) {
        let sizes = [draft.n_ctx, draft.batch];
        let source = ModelDrafts::new(&mut draft.session, sizes, draft.n_vocab, most);
        let source: Box<dyn DraftSource + 'm> = Box::new(source);
        generator.drafts.push(source);
    }
}
