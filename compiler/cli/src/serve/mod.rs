//! `tpc serve`: serves a model over HTTP.
//!
//! `tpc_serve` has the server; this module loads the model for it.

mod args;
mod log;

use std::sync::Arc;

use tpc_core::placement::SplitMode;
use tpc_diag::Diagnostic;
use tpc_engine::embed::{Embedder, Pooling};
use tpc_engine::generate::Generator;
use tpc_engine::{ExecutorKind, Loader, PreparedModel};
use tpc_gguf::GgufFile;
use tpc_ir::DType;
use tpc_serve::{BitsPromise, Function, Model, Server};
use tpc_text::{ChatTemplate, Tokenizer};

use crate::args::Defaults;
use crate::execution::{self, Opened};
use crate::generation::{self, Draft, Wanted};
use crate::output::{self, Failure};
pub(super) use args::Args;

/// The default number of parallel requests.
const SLOTS: u64 = 8;
/// The default context of a request, in tokens. Models trained on less have less.
const CONTEXT: u64 = 4096;

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    log::start(args.log_json());
    let options = args.options()?;
    let defaults = Defaults {
        cache: DType::F16,
        split_mode: SplitMode::Auto,
    };
    let kind = args.engine.executor(&args.placement, ExecutorKind::Cpu);
    let mut opened = args.subject.open(&args.placement, || {
        execution::placement(&args.placement, defaults, kind)
    })?;
    let kind = opened.executor(&args.engine, kind);
    let tokenizer = Tokenizer::from_gguf(&opened.file).map_err(Failure::usage)?;
    tokenizer.notes().iter().for_each(output::diagnostic);
    sizes(args, &mut opened);
    let ready = opened.plan()?;
    let parts = Parts {
        args,
        opened: &opened,
        ready: &ready,
        kind,
        tokenizer: Arc::new(tokenizer),
    };
    let server = Server::start(options, opened.sequences()).map_err(Failure::usage)?;
    tracing::info!(address = %server.address(), "listening; loading the model");
    match ready.embeds {
        true => parts.embed(server),
        false => parts.generate(server),
    }
}

/// Sets the number of sequences and the context, unless the options give them.
fn sizes(args: &Args, opened: &mut Opened) {
    if args.embeddings {
        opened.embed(0);
        return;
    }
    if !args.placement.says_parallel() {
        opened.parallel(SLOTS);
    }
    let trained = trained_context(&opened.file).unwrap_or(CONTEXT);
    let cells = trained
        .min(CONTEXT)
        .saturating_mul(opened.sequences() as u64);
    opened.default_context(cells);
}

fn trained_context(file: &GgufFile) -> Option<u64> {
    let metadata = file.header().metadata();
    let arch = metadata.get_str("general.architecture").ok().flatten()?;
    let key = format!("{arch}.context_length");
    metadata.get_u64(&key).ok().flatten().filter(|n| *n > 0)
}

struct Parts<'a> {
    args: &'a Args,
    opened: &'a Opened,
    ready: &'a PreparedModel,
    kind: ExecutorKind,
    tokenizer: Arc<Tokenizer>,
}

impl Parts<'_> {
    fn loader(&self, outputs: usize, sequences: usize) -> Result<Loader<'_>, Failure> {
        let Parts {
            args,
            opened,
            ready,
            kind,
            ..
        } = self;
        let executor = args.engine.executor_options(*kind, ready.n_devices())?;
        Ok(Loader {
            name: args.subject.path(),
            file: &opened.file,
            model: ready,
            ctx_size: usize::MAX,
            batch: ready.ubatch.max(1),
            outputs,
            sequences,
            executor: args.faults.apply(executor)?,
        })
    }

    fn model(&self, function: Function, n_ctx: usize, slots: usize) -> Model {
        let file = &self.opened.file;
        let template = ChatTemplate::from_gguf(file, None);
        let source = file.header().metadata().get_str("tokenizer.chat_template");
        let name = match self.args.alias() {
            Some(alias) => alias.clone(),
            None => self.ready.name.clone(),
        };
        let bits = self.ready.bits(self.kind);
        Model {
            name,
            tokenizer: Arc::clone(&self.tokenizer),
            template,
            template_source: source.ok().flatten().unwrap_or_default().to_owned(),
            function,
            n_ctx,
            n_ctx_train: trained_context(file),
            n_vocab: self.ready.n_vocab,
            recurrent: self.ready.recurrent,
            slots,
            bits: BitsPromise {
                same_on_one_device: bits.same,
                same_under_load: bits.neighbours && bits.widths.is_none(),
            },
            devices: self.ready.devices.clone(),
            bytes: self.ready.size.bytes,
        }
    }

    fn generate(&self, server: Server) -> Result<(), Failure> {
        let Parts { args, ready, .. } = self;
        if ready.bidirectional {
            let message = "the model generates by diffusion, not token by token";
            let d = Diagnostic::new(&crate::codes::BOTH_WAYS, "model", message);
            return Err(Failure::usage(
                d.help("serve a model that generates token by token"),
            ));
        }
        let most = ready.outputs.unwrap_or(usize::MAX).min(ready.ubatch.max(1));
        let slots = self
            .opened
            .sequences()
            .min(most / (ready.n_draft + 1))
            .max(1);
        let wanted: Wanted = args.drafts.wanted(&args.placement)?;
        let wanted = wanted.at_most((most / slots).max(1) - 1);
        let rows = ready.n_draft.max(wanted.most()) + 1;
        let loader = self.loader(slots.saturating_mul(rows), slots)?;
        let n_ctx = loader.sequence_ctx_size();
        let batch = loader.batch;
        execution::beyond_training(&self.opened.file, n_ctx).inspect(output::diagnostic);
        let draft = Draft::open(args.draft_options(), &loader)?;
        let mut session = execution::load(loader.clone(), &args.engine)?;
        let mut draft = draft.load(args.draft_options(), &loader)?;
        let model = self.model(Function::Text, n_ctx, slots);
        model.template.as_ref().map_or_else(
            |d| output::diagnostic(&d.clone().help("chats are not possible; completions are")),
            |template| template.notes().iter().for_each(output::diagnostic),
        );
        let mut generator = Generator::new(&mut session, n_ctx, batch);
        generation::add(&mut generator, &wanted, draft.as_mut());
        let address = server.address();
        server.generate(model, generator, || started(address, slots, n_ctx))?;
        Ok(())
    }

    fn embed(&self, server: Server) -> Result<(), Failure> {
        let Parts { args, ready, .. } = self;
        let embedder = Embedder::new(
            &self.opened.file,
            args.vectors.pooling,
            args.vectors.embd_normalize,
            ready.bidirectional,
        )?;
        let batch = ready.ubatch.min(ready.outputs.unwrap_or(usize::MAX)).max(1);
        let loader = self.loader(batch, 1)?;
        let n_ctx = match ready.bidirectional {
            // A text whose tokens attend to later tokens needs one batch.
            true => loader.sequence_ctx_size().min(batch),
            false => loader.sequence_ctx_size(),
        };
        let mut session = execution::load(loader, &args.engine)?;
        let function = match embedder.pooling() {
            Pooling::None => Function::TokenEmbeddings,
            _ => Function::Embeddings,
        };
        let model = self.model(function, n_ctx, 1);
        let address = server.address();
        server.embed(model, &mut session, &embedder, batch, || {
            started(address, 1, n_ctx);
        });
        Ok(())
    }
}

fn started(address: std::net::SocketAddr, slots: usize, n_ctx: usize) {
    tracing::info!(%address, slots, n_ctx, "the model is ready");
    let _ = output::result(&format!("serving at http://{address}\n"));
}
