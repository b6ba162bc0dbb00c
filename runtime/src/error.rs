use tpc_ir::op::TypeError;
use tpc_ir::{Code, DType, Place, Value};

use crate::codes;
use crate::quant::QuantError;

/// Error of loading or running a program.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of each variant says what its fields hold"
)]
pub enum ExecError {
    #[error("{value} is on {place}, a group of devices: expected a single device")]
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
    #[error("the size {what} is not bound for this batch, or does not fit memory")]
    Size { what: String },
    #[error("{what} {index} is out of range: expected 0 to {bound}, exclusive")]
    Index {
        what: &'static str,
        index: i64,
        bound: usize,
    },
    #[error("tensor {tensor:?} is missing from the model")]
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
    #[error("the input {input} is not supplied")]
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
    #[error("no recurrent state is free for sequence {seq}: other sequences use all {cells}")]
    StatesFull { cells: usize, seq: u32 },
    #[error("cannot draft: no batch was decoded, or all draft blocks have run")]
    NothingToDraft,
    #[error("bad batch: {what}")]
    BadBatch { what: String },
    #[error("output {name:?} is missing from the graph")]
    MissingOutput { name: String },
    #[error("the graph is malformed: {what}")]
    Malformed { what: String },
    #[error(
        "{reader} reads {read}, the old content of the state {name:?}, after {update} has written {updated}"
    )]
    StaleRead {
        name: String,
        read: Value,
        reader: String,
        update: String,
        updated: Value,
    },
    #[error("{what}")]
    Parameter { what: String },
    /// The executor has no kernel for an op with these element types.
    #[error("{what}")]
    NoKernel { what: String },
    #[error("session file: {what}")]
    StateFile { what: String },
    #[error("the session file has format version {found}: this tpc reads versions up to {known}")]
    StateVersion { found: u32, known: u32 },
    #[error("the session was saved with another model: {what}")]
    StateModel { what: String },
    #[error("sequence {seq} cannot go back to position {pos}: {why}")]
    CannotRewind { seq: u32, pos: u64, why: String },
    #[error("sequence {seq} cannot get a stored prefix: {what}")]
    Prefix { seq: u32, what: String },
    #[error("the executor does not provide the state {state:?}")]
    NoStates { state: String },
    #[error("`{op}` is a leaf: its value comes from the interpreter, not from operands")]
    Leaf { op: &'static str },
    /// A device error with its own code and help.
    #[error("{what}")]
    Device { code: &'static Code, what: String },
    /// An error with the instruction or value that caused it.
    #[error("{at}: {cause}")]
    At { at: String, cause: Box<ExecError> },
}

impl ExecError {
    /// Adds the name of an instruction or value, unless the error already has one.
    #[must_use]
    pub fn at(self, at: impl FnOnce() -> String) -> ExecError {
        match self {
            ExecError::At { .. } => self,
            cause => ExecError::At {
                at: at(),
                cause: Box::new(cause),
            },
        }
    }

    /// Returns the error without the names of instructions and values.
    pub fn cause(&self) -> &ExecError {
        match self {
            ExecError::At { cause, .. } => cause.cause(),
            other => other,
        }
    }

    /// Returns the stable code: a device's code or one of [`super::CODES`].
    pub fn code(&self) -> &'static Code {
        use ExecError as E;
        match self {
            E::NotLowered { .. } => &codes::NOT_LOWERED,
            E::WrongPlace { .. } => &codes::WRONG_PLACE,
            E::Type(_) => &codes::TYPE,
            E::Shape { .. } => &codes::SHAPE,
            E::Elements { .. } => &codes::ELEMENTS,
            E::Size { .. } => &codes::SIZE,
            E::Index { .. } => &codes::INDEX,
            E::MissingWeight { .. } => &codes::MISSING_WEIGHT,
            E::WeightMismatch { .. } => &codes::WEIGHT_MISMATCH,
            E::CutBlock { .. } => &codes::CUT_BLOCK,
            E::PartRange { .. } => &codes::PART_RANGE,
            E::Quant(_) => &codes::QUANT,
            E::MissingInput { .. } => &codes::MISSING_INPUT,
            E::StateResized { .. } => &codes::STATE_RESIZED,
            E::CacheFull { .. } => &codes::CACHE_FULL,
            E::BadBatch { .. } => &codes::BAD_BATCH,
            E::MissingOutput { .. } => &codes::MISSING_OUTPUT,
            E::Malformed { .. } => &codes::MALFORMED,
            E::StaleRead { .. } => &codes::STALE_READ,
            E::Parameter { .. } => &codes::PARAMETER,
            E::Leaf { .. } => &codes::LEAF,
            E::StatesFull { .. } => &codes::STATES_FULL,
            E::NothingToDraft => &codes::NOTHING_TO_DRAFT,
            E::NoKernel { .. } => &codes::NO_KERNEL,
            E::StateFile { .. } => &codes::STATE_FILE,
            E::StateVersion { .. } => &codes::STATE_VERSION,
            E::StateModel { .. } => &codes::STATE_MODEL,
            E::CannotRewind { .. } => &codes::CANNOT_REWIND,
            E::Prefix { .. } => &codes::PREFIX,
            E::NoStates { .. } => &codes::NO_STATES,
            E::Device { code, .. } => code,
            E::At { cause, .. } => cause.code(),
        }
    }

    /// Returns help in one sentence.
    pub fn help(&self) -> &'static str {
        use ExecError as E;
        match self {
            E::NotLowered { .. } => "run the lowering pass, which makes one program per device",
            E::WrongPlace { .. } => "insert a copy or a collective that brings the value there",
            E::Type(_) => {
                "run the verifier, which points at the first op whose operands do not fit"
            }
            E::Shape { .. } => "compare the declared sizes with the sizes of the operands",
            E::Elements { .. } => "give indices and positions as integers, other values as reals",
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
            E::Quant(_) => "requantise the tensor to a supported type, such as q8_0",
            E::MissingInput { .. } => "supply the input by name, or set the window of the session",
            E::StateResized { .. } => "keep n_ctx between batches, or reset the states",
            E::CacheFull { .. } => "use a larger context, or remove finished sequences",
            E::StatesFull { .. } => "allow more sequences, or remove finished ones",
            E::NothingToDraft => {
                "plan with --spec-type draft-mtp, and draft after each batch at most once per block"
            }
            E::NoKernel { .. } => {
                "requantise the named weight, or use `tpc eval --executor reference`, which runs every op, slowly"
            }
            E::StateFile { .. } | E::StateVersion { .. } => {
                "omit the session file: tpc then evaluates the text again"
            }
            E::StateModel { .. } => {
                "use the model and the options of the run that saved the session"
            }
            E::CannotRewind { .. } => "evaluate the text again from its start",
            E::Prefix { .. } => "read the text instead, from an empty sequence",
            E::NoStates { .. } => "use --executor cpu, which provides its states",
            E::BadBatch { .. } => {
                "give one position and one sequence per token, with increasing positions"
            }
            E::MissingOutput { .. } => "name the output in the graph",
            E::Malformed { .. } => "run the verifier, which lists all errors",
            E::StaleRead { .. } => {
                "read the result of the update, or the old content before the update"
            }
            E::Parameter { .. } => "check the attributes of the op against its documentation",
            E::Leaf { .. } => "run the graph with the interpreter",
            E::Device { code, .. } => code.cure,
            E::At { cause, .. } => cause.help(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_ascend_and_are_complete() {
        let numbers = (500..=524).chain(572..=576).chain([630]);
        assert_eq!(codes::CODES.len(), numbers.clone().count());
        for (n, doc) in numbers.zip(codes::CODES) {
            assert_eq!(doc.id, format!("TPC0{n}"));
            assert!(!doc.cure.is_empty(), "{doc}");
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
