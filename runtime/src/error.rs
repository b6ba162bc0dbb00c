//! What can go wrong when a program runs, and what to do about it.

use tpc_ir::op::TypeError;
use tpc_ir::{CodeDoc, DType, Place, Value};

use crate::quant::QuantError;

/// Why a program could not be loaded or run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of each variant says what its fields hold"
)]
pub enum ExecError {
    #[error("{value} lives on {place}, a group of devices: lower the graph to programs first")]
    NotLowered { value: Value, place: Place },
    #[error("reads {value}, which lives on {home}, from the memory of {place}")]
    WrongPlace {
        value: Value,
        home: Place,
        place: Place,
    },
    #[error(transparent)]
    Type(#[from] TypeError),
    #[error("{what} is {found:?}: expected {expected:?}")]
    Shape {
        what: String,
        expected: [usize; 4],
        found: [usize; 4],
    },
    #[error("{what} has {found} elements: expected {expected}")]
    Elements {
        what: &'static str,
        expected: &'static str,
        found: &'static str,
    },
    #[error("the size {what} has no value for this batch, or does not fit memory")]
    Size { what: String },
    #[error("{what} {index} is out of range: expected 0 to {bound}, exclusive")]
    Index {
        what: &'static str,
        index: i64,
        bound: usize,
    },
    #[error("the model has no tensor {tensor:?}")]
    MissingWeight { tensor: String },
    #[error("tensor {tensor:?}: expected {expected}, found {found}")]
    WeightMismatch {
        tensor: String,
        expected: String,
        found: String,
    },
    #[error(
        "tensor {tensor:?}: the part {start}:{len} of axis 0 cuts a block of {dtype}, which holds {} elements",
        dtype.block_len()
    )]
    CutBlock {
        tensor: String,
        dtype: DType,
        start: u64,
        len: u64,
    },
    #[error("tensor {tensor:?}: the part {start}:{len} of axis {axis} is beyond its size {size}")]
    PartRange {
        tensor: String,
        axis: usize,
        start: u64,
        len: u64,
        size: u64,
    },
    #[error(transparent)]
    Quant(#[from] QuantError),
    #[error("nothing is known of the input {input}")]
    MissingInput { input: String },
    #[error("state {state:?} has sizes {kept:?} from earlier batches: expected {expected:?}")]
    StateResized {
        state: String,
        kept: [usize; 4],
        expected: [usize; 4],
    },
    #[error(
        "the KV cache is full: {needed} cells needed, {free} of {cells} free{}",
        window.map_or_else(String::new, |w| format!(" (cells of a window of {w})"))
    )]
    CacheFull {
        needed: usize,
        free: usize,
        cells: usize,
        window: Option<u64>,
    },
    #[error("sequence {seq} finds no state: {cells} sequences have one already")]
    StatesFull { cells: usize, seq: u32 },
    #[error("there is no batch that tokens can be drafted for, or the graph drafts no more")]
    NothingToDraft,
    #[error("bad batch: {what}")]
    BadBatch { what: String },
    #[error("the graph has no output named {name:?}")]
    MissingOutput { name: String },
    #[error("the graph is malformed: {what}")]
    Malformed { what: String },
    #[error("{what}")]
    Parameter { what: String },
    #[error("`{op}` is a leaf: its value comes from the interpreter, not from operands")]
    Leaf { op: &'static str },
    /// Another error, with the instruction or value it concerns.
    #[error("{at}: {cause}")]
    At { at: String, cause: Box<ExecError> },
}

impl ExecError {
    /// The same error, naming the instruction or value that it concerns. The innermost name stays.
    #[must_use]
    pub(crate) fn at(self, at: impl FnOnce() -> String) -> ExecError {
        match self {
            ExecError::At { .. } => self,
            cause => ExecError::At {
                at: at(),
                cause: Box::new(cause),
            },
        }
    }

    /// The error without the name of what it concerns.
    pub fn cause(&self) -> &ExecError {
        match self {
            ExecError::At { cause, .. } => cause.cause(),
            other => other,
        }
    }

    /// The stable code, `TPC0500` to `TPC0521`; the key into [`CODES`].
    pub fn code(&self) -> &'static str {
        use ExecError as E;
        match self {
            E::NotLowered { .. } => "TPC0500",
            E::WrongPlace { .. } => "TPC0501",
            E::Type(_) => "TPC0502",
            E::Shape { .. } => "TPC0503",
            E::Elements { .. } => "TPC0504",
            E::Size { .. } => "TPC0505",
            E::Index { .. } => "TPC0506",
            E::MissingWeight { .. } => "TPC0507",
            E::WeightMismatch { .. } => "TPC0508",
            E::CutBlock { .. } => "TPC0509",
            E::PartRange { .. } => "TPC0510",
            E::Quant(_) => "TPC0511",
            E::MissingInput { .. } => "TPC0512",
            E::StateResized { .. } => "TPC0513",
            E::CacheFull { .. } => "TPC0514",
            E::BadBatch { .. } => "TPC0515",
            E::MissingOutput { .. } => "TPC0516",
            E::Malformed { .. } => "TPC0517",
            E::Parameter { .. } => "TPC0518",
            E::Leaf { .. } => "TPC0519",
            E::StatesFull { .. } => "TPC0520",
            E::NothingToDraft => "TPC0521",
            E::At { cause, .. } => cause.code(),
        }
    }

    /// What to do about it, in one sentence.
    pub fn help(&self) -> &'static str {
        use ExecError as E;
        match self {
            E::NotLowered { .. } => "run the lowering pass, which makes one program per device",
            E::WrongPlace { .. } => "insert a copy or a collective that brings the value there",
            E::Type(_) => {
                "run the verifier, which points at the first op whose operands do not fit"
            }
            E::Shape { .. } => "compare the sizes the graph declares with those of the operands",
            E::Elements { .. } => {
                "give indices and positions as integers, everything else as reals"
            }
            E::Size { .. } => {
                "bind every symbol of the graph, or choose a smaller context or batch"
            }
            E::Index { .. } => "check token ids against the vocabulary and rows against the cache",
            E::MissingWeight { .. } => "check the model file against the architecture it names",
            E::WeightMismatch { .. } => "build the graph from the header of the same model file",
            E::CutBlock { .. } => {
                "choose ranges that end at blocks, or let the planner choose them"
            }
            E::PartRange { .. } => {
                "choose ranges within the tensor, or let the planner choose them"
            }
            E::Quant(_) => "requantise the tensor to a type that can be executed, such as q8_0",
            E::MissingInput { .. } => "supply the input by name, or set the window of the session",
            E::StateResized { .. } => "keep n_ctx from batch to batch, or reset the states",
            E::CacheFull { .. } => "use a larger context, or forget sequences that are finished",
            E::StatesFull { .. } => {
                "make room for more sequences, or forget those that are finished"
            }
            E::NothingToDraft => {
                "plan with --spec-type draft-mtp, and draft after each batch at most once per block"
            }
            E::BadBatch { .. } => "give one position and one sequence per token, positions rising",
            E::MissingOutput { .. } => "name the output in the graph",
            E::Malformed { .. } => "run the verifier, which lists everything that is wrong",
            E::Parameter { .. } => "check the attributes of the op against its documentation",
            E::Leaf { .. } => "run the graph with the interpreter",
            E::At { cause, .. } => cause.help(),
        }
    }
}

/// The documentation of every code of this crate, in order.
pub const CODES: &[CodeDoc] = &[
    CodeDoc {
        code: "TPC0500",
        title: "graph is not lowered",
        doc: "A value lives on a group of devices. Groups exist while shardings are decided; what runs are programs of \
              single devices. Example: interpreting the result of the planner. Cure: run the lowering pass first.",
    },
    CodeDoc {
        code: "TPC0501",
        title: "op reads from another place",
        doc: "Each place has a memory of its own, and an op reads from that of its own place only. \
              Example: an `add` on dev1 whose operand was computed on dev0. \
              Cure: a `copy` or a collective in between; where the lowering made the program, it is a bug.",
    },
    CodeDoc {
        code: "TPC0502",
        title: "operands do not fit the op",
        doc: "The tensors that reach an op have sizes or element types it does not take, or are too few or too many. \
              Example: a `mul_mat` whose operands have rows of 64 and 32. Cure: the verifier finds the op that is wrong.",
    },
    CodeDoc {
        code: "TPC0503",
        title: "tensor has another size than declared",
        doc: "What an op produced, or what the caller gave as an input, has not the sizes that the graph declares for \
              it under this batch's bindings. Example: a mask of 8 cells where n_kv is 16. \
              Cure: make the declaration, the bindings and the data agree.",
    },
    CodeDoc {
        code: "TPC0504",
        title: "integers and reals mixed up",
        doc: "A tensor holds integers where real numbers are needed, or the reverse. Example: positions given as f64. \
              Cure: indices, positions and token ids are integers, everything else is real.",
    },
    CodeDoc {
        code: "TPC0505",
        title: "size has no value",
        doc: "A symbolic size is negative for this batch, overflows, or the tensor does not fit memory. \
              Example: `n_ctx - n_kv` with more cells in use than there are. \
              Cure: bind every symbol to its true value; use a smaller context or batch.",
    },
    CodeDoc {
        code: "TPC0506",
        title: "index out of range",
        doc: "An index that is data names no row, expert or position. Example: token 32000 of a vocabulary of 32000. \
              Cure: token ids start at 0 and must come from the model's own tokenizer.",
    },
    CodeDoc {
        code: "TPC0507",
        title: "tensor is missing from the model",
        doc: "The graph names a tensor that the weight source does not have. Example: `output.weight` in a model with \
              tied embeddings. Cure: build the graph from the same file's header.",
    },
    CodeDoc {
        code: "TPC0508",
        title: "tensor is not what the graph declares",
        doc: "A tensor of the model has another type, other sizes or another number of bytes than the graph says. \
              Example: a graph made for the q4_k file run on the q8_0 file. Cure: build the graph from the same file.",
    },
    CodeDoc {
        code: "TPC0509",
        title: "part of a tensor cuts a block",
        doc: "Quantised tensors are stored in blocks along axis 0, and a device holds whole blocks. \
              Example: rows 0:48 of axis 0 in q8_0, whose blocks hold 32. \
              Cure: ranges that start and end at multiples of the block length.",
    },
    CodeDoc {
        code: "TPC0510",
        title: "part of a tensor is beyond its size",
        doc: "A weight's `parts` name indices that the tensor does not have. Example: 96:64 of an axis of 128. \
              Cure: check the ranges of the split.",
    },
    CodeDoc {
        code: "TPC0511",
        title: "type cannot be executed",
        doc: "There is no decoder for the tensor's type, or no encoder for the state's, or rows are not whole blocks. \
              Planning knows every GGUF type; execution knows most. Example: an iq2_xs weight; a q8_0 cache with rows \
              of 24. Cure: requantise the tensor, or choose another cache type.",
    },
    CodeDoc {
        code: "TPC0512",
        title: "input is not supplied",
        doc: "The graph has an input that the caller does not know. Example: `mask_swa` in a session without a window. \
              Cure: configure the window, or supply inputs of other names through the callback.",
    },
    CodeDoc {
        code: "TPC0513",
        title: "state changes its size",
        doc: "A state keeps its content from batch to batch, so its sizes must stay. Example: another n_ctx in the \
              second batch. Cure: keep the bindings that states depend on, or reset the states.",
    },
    CodeDoc {
        code: "TPC0514",
        title: "KV cache is full",
        doc: "More tokens are to be stored than there are free cells. A sliding-window cache frees a cell when no \
              further token of its sequence can see it; it needs about window + batch cells per sequence. \
              Cure: a larger context, a smaller batch, or forgetting finished sequences.",
    },
    CodeDoc {
        code: "TPC0515",
        title: "bad batch",
        doc: "The lists of a batch disagree in length, positions of a sequence do not rise, or an output row names no \
              token. Example: decoding position 5 twice. Cure: one position and one sequence per token.",
    },
    CodeDoc {
        code: "TPC0516",
        title: "output is missing",
        doc: "The graph does not name the output that is asked for. Example: a session on a graph without `logits`. \
              Cure: name the output in the graph.",
    },
    CodeDoc {
        code: "TPC0517",
        title: "malformed graph",
        doc: "The graph breaks a rule that the verifier checks: a value is used before it is defined, an op has \
              another number of results than it declares. Cure: run the verifier.",
    },
    CodeDoc {
        code: "TPC0518",
        title: "attribute does not make sense",
        doc: "An op's attribute contradicts its operands. Example: a flash_attn on 4 heads whose `heads` names 3. \
              Cure: see the op's documentation.",
    },
    CodeDoc {
        code: "TPC0519",
        title: "leaf evaluated as an op",
        doc: "Weights, inputs and states have no operands; the interpreter supplies their values. \
              Cure: run the graph with the interpreter.",
    },
    CodeDoc {
        code: "TPC0520",
        title: "recurrent states are full",
        doc: "Recurrent layers keep a state per sequence, and the session has room for a number of sequences that was \
              set beforehand. Example: a second sequence in a session for one. \
              Cure: more room, or forgetting sequences that are finished.",
    },
    CodeDoc {
        code: "TPC0521",
        title: "nothing to draft",
        doc: "A session drafts after it has decoded a batch, once per block that guesses a token. It has decoded none, all \
              blocks have run for the last one, or the graph has no such blocks. Example: drafting twice with a model \
              that guesses one token. Cure: plan with `--spec-type draft-mtp`; decode first.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_ascend_and_are_complete() {
        for (i, doc) in CODES.iter().enumerate() {
            assert_eq!(doc.code, format!("TPC05{i:02}"));
            assert!(doc.doc.contains("Cure:"), "{}", doc.code);
        }
    }

    #[test]
    fn a_named_error_keeps_its_code_and_its_first_name() {
        let e = ExecError::Leaf { op: "weight" };
        let e = e.at(|| "inst3".into()).at(|| unreachable!("already named"));
        assert_eq!(e.code(), "TPC0519");
        assert!(e.to_string().starts_with("inst3: `weight` is a leaf"));
        assert_eq!(e.cause(), &ExecError::Leaf { op: "weight" });
    }
}
