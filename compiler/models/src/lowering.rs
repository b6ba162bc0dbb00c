use tpc_ir::{Dim, Graph, Symbol, Value};

use super::blocks::builder::Builder;
use super::blocks::context::{Context, LayerContext};
use super::blocks::layer::LayerInputs;
use super::blocks::{embedding, head, hyper, layer, nextn, norm, per_layer, residual};
use super::description::{Arch, ModelResult};
use super::error::ArchError;
use super::families::find;
use super::hparams::{HParams, Join, LayerHParams, Loops, Stacks, WindowSpan};
use super::options::{GraphResult, LowerOptions};
use super::source::{FileTensors, TensorRole, TensorSource};
use super::stretch::RopeScaling;
use super::summary::{LoweredModel, Summary};
use tpc_gguf::Header;

/// Builds the graph of a header's model.
///
/// # Errors
/// Returns an error if the architecture is unknown, or metadata and tensors do not fit it.
pub fn lower(header: &Header, options: &LowerOptions) -> Result<LoweredModel, ArchError> {
    let metadata = header.metadata();
    let arch = find(metadata.require_str("general.architecture")?)?;
    let hparams = HParams::read(arch, metadata, Some(header), options.drafting)?;
    let mut tensors = FileTensors::new(header, arch.name);
    if let Some(draft) = hparams.drafts.iter().find(|d| !tensors.has_block(d.index)) {
        let (arch, index) = (arch.name, draft.index);
        let reason = format!("the metadata count block {index}, but its tensors are missing");
        return Err(ArchError::NoDrafts { arch, reason });
    }
    let n_block = hparams.layers.len() + hparams.drafts.len();
    let ignored_drafts = tensors.ignore_drafts(n_block..hparams.n_layer_all);
    let graph = assemble(arch, &hparams, options, &mut tensors)?;
    let summary = Summary {
        arch: arch.name,
        name: graph.name.clone(),
        n_layer: hparams.layers.len() as u64,
        n_draft: hparams.drafts.len() as u64,
        ignored_drafts,
        n_embd: hparams.n_embd,
        n_vocab: hparams.n_vocab,
        n_ctx_train: hparams.positions.n_ctx_train,
        stretch: RopeScaling::read(metadata, arch.name).of_context(),
        window: hparams.attention.window.and_then(WindowSpan::past),
        unused: tensors.unused_tensors(),
        ignored: tensors.ignored_tensors(),
    };
    Ok(LoweredModel { graph, summary })
}

pub(super) fn assemble(
    arch: &Arch,
    hparams: &HParams,
    options: &LowerOptions,
    source: &mut dyn TensorSource,
) -> Result<Graph, ArchError> {
    let model = Context {
        arch,
        hparams,
        options,
    };
    let name = hparams.name.as_deref().unwrap_or(arch.name);
    let mut b = Builder::new(name, batch_tokens(arch), source);
    let mut x = embedding::embedding(&mut b, &model)?;
    let beside = LayerInputs {
        per_layer: per_layer::inputs(&mut b, &model, x)?,
        first: Some(x),
    };
    if let Join::Hyper(hp) = &hparams.residual.join {
        x = hyper::start_streams(&mut b, &model, hp, x)?;
    }
    x = match hparams.loops {
        Loops::Counted { count, normed } => {
            let loops = hparams.layers.chunks(hparams.layers.len() / count);
            for (n, layers) in loops.enumerate() {
                if n > 0 && normed {
                    x = norm::output(&mut b, &model, x, "loop_norm")?;
                }
                x = run_layers(&mut b, model, beside, layers, x)?;
            }
            x
        }
        Loops::Stacks(form) => stacks(&mut b, model, beside, form, x)?,
    };
    b.enter(None);
    match &hparams.residual.join {
        Join::AttentionResiduals { .. } => {
            x = residual::mix_streams(&mut b, &model, "output_res_score", x)?;
        }
        Join::Hyper(hp) => x = hyper::merge_streams(&mut b, &model, hp, x)?,
        Join::Sequential
        | Join::FromNorms
        | Join::Normalised
        | Join::Parallel
        | Join::ByFfnNorm => {}
    }
    match (arch.head.result, options.result) {
        (ModelResult::Logits, GraphResult::Own) => {
            let logits = head::logits(&mut b, &model, x)?;
            b.output("logits", logits);
        }
        (ModelResult::Logits, GraphResult::Embeddings)
        | (ModelResult::Hidden | ModelResult::Projected, _) => {
            let embeddings = head::embeddings(&mut b, &model, x)?;
            b.output("embeddings", embeddings);
        }
    }
    drafts(&mut b, model, x)?;
    Ok(b.finish())
}

/// Returns the layers' output for the input `x: [n_embd, n_tokens]`.
fn run_layers(
    b: &mut Builder<'_>,
    model: Context<'_>,
    beside: LayerInputs,
    layers: &[LayerHParams],
    mut x: Value,
) -> Result<Value, ArchError> {
    for layer in layers {
        b.enter(Some(layer));
        let cx = LayerContext { model, layer };
        x = layer::layer(b, &cx, beside, x)?;
    }
    Ok(x)
}

/// Returns the high stack's last output for the embedding `x`, after the output norm.
fn stacks(
    b: &mut Builder<'_>,
    model: Context<'_>,
    beside: LayerInputs,
    form: Stacks,
    x: Value,
) -> Result<Value, ArchError> {
    let start = b.tensor_name("hrm", "z_l_init");
    let start = b.require(&start, &[model.hparams.embd()], TensorRole::Embedding)?;
    let [mut low, mut high] = [start, x];
    let runs = model.hparams.layers.chunks(form.layers);
    let last = runs.len().saturating_sub(1);
    for (n, layers) in runs.enumerate() {
        b.enter(layers.first());
        let input = b.add(high, low, "stack_inp")?;
        let mut y = run_layers(b, model, beside, layers, input)?;
        if n < last {
            y = norm::output(b, &model, y, "loop_norm")?;
        }
        if n % (form.low + 1) == form.low {
            high = y;
        } else {
            low = y;
        }
    }
    Ok(high)
}

/// Appends the draft blocks, from the last layer's output `x: [n_embd, n_tokens]`. The outputs `draft_logits`,
/// `draft_logits_2` and so on hold their logits.
fn drafts(b: &mut Builder<'_>, model: Context<'_>, mut x: Value) -> Result<(), ArchError> {
    let Some(form) = &model.arch.drafts else {
        return Ok(());
    };
    for (draft, layer) in (1..).zip(&model.hparams.drafts) {
        b.enter(Some(layer));
        let cx = LayerContext { model, layer };
        if draft == 1 {
            x = nextn::first_hidden(b, &cx, form, x)?;
        }
        let y = nextn::input(b, &cx, draft, x)?;
        let y = layer::layer(b, &cx, LayerInputs::default(), y)?;
        let output = nextn::output(b, &cx, form, y)?;
        x = output.hidden;
        let name = match draft {
            1 => "draft_logits".to_owned(),
            _ => format!("draft_logits_{draft}"),
        };
        b.output(name, output.logits);
    }
    b.enter(None);
    Ok(())
}

/// Returns the number of tokens of a batch: a product for recurrent layers and blocks of tokens, which read the batch
/// sequence by sequence.
fn batch_tokens(arch: &Arch) -> Dim {
    if arch.recurrent.is_none() && arch.attention.compressed.is_none() {
        return Symbol::NTokens.into();
    }
    let tokens = Dim::symbol(Symbol::NSeqs).checked_mul(&Symbol::NSeqTokens.into());
    tokens.expect("invariant: a product of two symbols does not overflow")
}
