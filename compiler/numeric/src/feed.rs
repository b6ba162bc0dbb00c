use tpc_ir::budget::Limits;
use tpc_ir::op::InputKind;
use tpc_ir::stage::Executable;
use tpc_ir::{Bindings, Dim, Op, Output, Resource, Symbol, TensorType, Verified, Window};
use tpc_runtime::Observer;
use tpc_runtime::{
    Batch, ExecError, Gelu, Interpreter, MemoryWeights, Options, Session, SessionConfig, Tensor,
    UnknownOps,
};

use tpc_synth::Rng;

/// The inputs of a small model.
#[derive(Clone, Debug)]
pub enum Feed {
    /// Tokens of two sequences in three batches. The window applies to sliding-window layers.
    Tokens(Option<Window>),
    /// Random inputs for a captured graph, in two batches with the captured sizes.
    Captured(Vec<(Symbol, u64)>),
}

#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// The name with the batch: `logits of batch 2`.
    pub(super) name: String,
    pub(super) values: Vec<f64>,
}

const CELLS: usize = 16;

/// Tokens of both sequences per batch: a prompt; a second prompt while the first sequence continues; one token each.
const BATCHES: [[u32; 2]; 3] = [[5, 0], [2, 3], [1, 1]];

const CAPTURED: usize = 2;

impl Feed {
    /// Returns the number of batches.
    pub fn batches(&self) -> usize {
        match self {
            Feed::Tokens(_) => BATCHES.len(),
            Feed::Captured(_) => CAPTURED,
        }
    }

    /// Returns the limits of a run. A captured graph has the limits of a command. A small model has its own limits,
    /// because each device still has whole quantisation blocks. The limits cover both runs.
    pub(super) fn limits(&self) -> Limits {
        match self {
            Feed::Captured(_) => Limits::COMMAND,
            Feed::Tokens(_) => Limits::COMMAND
                .with(Resource::Bytes, 1 << 30)
                .with(Resource::Steps, 160 * Limits::COMMAND.of(Resource::Steps)),
        }
    }

    pub(super) fn largest(&self) -> Bindings {
        let bind = |b: Bindings, &(s, n): &(Symbol, u64)| b.with(s, n);
        let cells = CELLS as u64;
        let tokens = BATCHES.iter().map(|b| u64::from(b[0] + b[1])).max();
        let tokens = tokens.unwrap_or(1);
        match self {
            Feed::Captured(batch) => batch.iter().fold(Bindings::default(), bind),
            Feed::Tokens(_) => [
                (Symbol::NTokens, tokens),
                (Symbol::NKv, cells),
                (Symbol::NKvSwa, cells),
                (Symbol::NCtx, cells),
                (Symbol::NCtxSwa, cells),
                (Symbol::NSeqs, 2),
                (Symbol::NSeqTokens, tokens),
                (Symbol::NSeqMax, 2),
                (Symbol::NOutputs, tokens),
            ]
            .iter()
            .fold(Bindings::default(), bind),
        }
    }

    /// Runs all batches in order, and returns the outputs. States persist between batches.
    pub(super) fn run<S: Executable>(
        &self,
        graph: &Verified<S>,
        weights: &MemoryWeights,
        observe: &mut Observer<'_>,
    ) -> Result<Vec<Answer>, ExecError> {
        match self {
            Feed::Tokens(window) => tokens(graph, weights, *window, observe),
            Feed::Captured(batch) => capture_run(graph, weights, batch, observe),
        }
    }
}

fn tokens<S: Executable>(
    graph: &Verified<S>,
    weights: &MemoryWeights,
    window: Option<Window>,
    observe: &mut Observer<'_>,
) -> Result<Vec<Answer>, ExecError> {
    let vocabulary = graph.outputs.iter().find_map(|o| match o {
        Output::Named(_, v) => graph.value(*v).ty.dims[0].as_const(),
        Output::State { .. } => None,
    });
    let vocabulary = u32::try_from(vocabulary.unwrap_or(1)).unwrap_or(u32::MAX);
    let drafts = graph
        .insts()
        .filter(
            |(_, d)| matches!(&d.op, Op::Input(i) if matches!(i.kind, InputKind::NextTokens(_))),
        )
        .count();
    let mut config = SessionConfig::new(CELLS).with_sequences(2);
    if let Some(window) = window {
        config = config.with_window(window, CELLS);
    }
    let mut session = Session::new(graph, weights, config)?;
    let token = |pos: u32, seq: u32| (pos * 7 + seq * 5 + 3) % vocabulary.max(1);
    let mut first = [0; 2];
    let mut out = Vec::new();
    for (number, lengths) in BATCHES.iter().enumerate() {
        let mut batch = Batch::default();
        for (seq, (&n, first)) in (0_u32..).zip(lengths.iter().zip(&mut first)) {
            for pos in *first..*first + n {
                batch.output_rows.push(batch.tokens.len() as u32);
                batch.tokens.push(token(pos, seq));
                batch.positions.push(pos);
                batch.seq_ids.push(seq);
            }
            *first += n;
        }
        let logits = session.decode_observed(&batch, observe)?;
        let mut add = |name: &str, t: &Tensor| -> Result<(), ExecError> {
            out.push(Answer {
                name: format!("{name} of batch {}", number + 1),
                values: t.reals()?.into_owned(),
            });
            Ok(())
        };
        add("logits", &logits)?;
        for ahead in 1..=drafts as u32 {
            let at = batch.positions.iter().zip(&batch.seq_ids);
            let next: Vec<u32> = at.map(|(&pos, &seq)| token(pos + ahead, seq)).collect();
            match session.draft(&next) {
                Ok(draft) => add(&format!("draft {ahead}"), &draft)?,
                Err(ExecError::NothingToDraft) => break,
                Err(e) => return Err(e),
            }
        }
    }
    Ok(out)
}

/// Options that give results even of ops that tpc does not know.
pub(super) const WITH_STAND_INS: Options = Options {
    gelu: Gelu::GgmlTable,
    unknown: UnknownOps::StandIn,
};

fn capture_run<S: Executable>(
    graph: &Verified<S>,
    weights: &MemoryWeights,
    batch: &[(Symbol, u64)],
    observe: &mut Observer<'_>,
) -> Result<Vec<Answer>, ExecError> {
    let bind = |b: Bindings, &(s, n): &(Symbol, u64)| b.with(s, n);
    let bindings = batch.iter().fold(Bindings::default(), bind);
    let cells = [Symbol::NKv, Symbol::NCtx, Symbol::NKvSwa, Symbol::NCtxSwa].map(Dim::symbol);
    let mut interpreter = Interpreter::new(graph, weights, WITH_STAND_INS)?;
    let mut out = Vec::new();
    for number in 0..CAPTURED {
        let mut inputs = |kind: &InputKind, ty: &TensorType| {
            let size = |d: &Dim| {
                let n = d.eval(&bindings).and_then(|n| usize::try_from(n).ok());
                n.ok_or_else(|| ExecError::Size {
                    what: format!("of an input {ty}"),
                })
            };
            let [a, b, c, d] = ty.dims.each_ref().map(size);
            let dims = [a?, b?, c?, d?];
            let n: usize = dims.iter().product();
            if ty.dtype.is_integer() {
                // Indices are below 8, because every indexed axis has eight entries, except the single cell of
                // recurrent states.
                let at = |i: usize| if number == 0 { i } else { n - 1 - i };
                Tensor::ints_of(dims, (0..n).map(|i| (at(i) % 8) as i64).collect())
            } else if cells.contains(&ty.dims[0]) {
                Tensor::reals_of(dims, vec![0.0; n])
            } else {
                let mut rng = Rng::new(3, &format!("{kind:?}"));
                let next =
                    |rng: &mut Rng| (rng.next_u64() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
                Tensor::reals_of(dims, (0..n).map(|_| next(&mut rng)).collect())
            }
        };
        let made = interpreter.run_observed(&bindings, &mut inputs, observe)?;
        for (name, tensor) in made {
            out.push(Answer {
                name: format!("{name} of batch {}", number + 1),
                values: tensor.reals()?.into_owned(),
            });
        }
    }
    Ok(out)
}
