use std::fmt;

use super::codes;
use super::sharding_rule::ShardingRule;
use crate::code::Code;
use crate::dims::Dim;
use crate::dtype::DType;
use crate::entity::{Class, Device, Group, Value};
use crate::graph::MAX_LAYER;
use crate::interval::Interval;
use crate::op::TypeError;
use crate::place::Place;
use crate::sharding::{AxisTree, ClassRef};
use crate::text::Entity;
use crate::types::TensorType;

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError {
    /// The violated invariant.
    pub kind: VerifyErrorKind,
    /// The violating entity.
    pub entity: Entity,
}

impl VerifyError {
    pub(super) const fn new(kind: VerifyErrorKind, entity: Entity) -> VerifyError {
        VerifyError { kind, entity }
    }

    /// Returns the code of the invariant (`TPC0236`).
    pub const fn code(&self) -> &'static Code {
        self.kind.code()
    }

    /// Returns the cure.
    pub const fn help(&self) -> &'static str {
        self.kind.help()
    }
}

/// `v7: what is wrong`
impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.entity, self.kind)
    }
}

impl std::error::Error for VerifyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.kind)
    }
}

/// A defect in the parts of a weight or a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartsDefect {
    /// The value is on a group.
    #[error("the value is on a group, and its sharding gives the parts")]
    OnGroup,
    /// The number of lists is not four.
    #[error("expected a list per axis, 4 in all, found {0}")]
    Axes(usize),
    /// A range is empty, or begins before the end of the previous one.
    #[error("the ranges of axis {axis} are empty, overlap or do not ascend")]
    Order {
        /// The axis.
        axis: usize,
    },
    /// A range cuts a block.
    #[error("a range of axis 0 cuts a block of {block} elements")]
    Block {
        /// Elements of a block.
        block: u64,
    },
    /// The ranges and the axis differ in indices.
    #[error("the ranges of axis {axis} and the axis differ in the number of indices")]
    Count {
        /// The axis.
        axis: usize,
    },
}

/// The kinds of violations. [`super::CODES`] explains their codes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant names its fields")]
pub enum VerifyErrorKind {
    #[error("{detail}")]
    Sharding { rule: ShardingRule, detail: String },
    #[error("refers to {referent}, which does not exist")]
    Dangling { referent: Entity },
    #[error("reads {operand}, which no earlier instruction defines")]
    UsedBeforeDefined { operand: Value },
    #[error("{value} is among its results, but names another definition")]
    BackReference { value: Value },
    #[error("the graph does not have an output")]
    NoOutputs,
    #[error("output {first} also has the name {name:?}")]
    OutputName { name: String, first: usize },
    #[error("{value} is not defined by `state`")]
    NotAState { value: Value },
    #[error("output {first} also updates {state}")]
    UpdatedTwice { state: Value, first: usize },
    #[error("the new content {value} and the state {state} differ in {what}")]
    StateChanges {
        state: Value,
        value: Value,
        what: &'static str,
    },
    #[error("the state {name:?} is already defined by {first} at the same place")]
    StateName { name: String, first: Value },
    #[error("the group is empty")]
    EmptyGroup,
    #[error("{device} is in the group twice")]
    RepeatedDevice { device: Device },
    #[error("the range {}:{} of rank {rank} ends beyond the size {size}", .range.start, .range.len)]
    ClassRange {
        rank: usize,
        range: Interval,
        size: u64,
    },
    #[error("the range of rank {rank} begins before the range of a lower rank")]
    ClassOrder { rank: usize },
    #[error("no device has index {index}")]
    ClassGap { index: u64 },
    #[error("{class}, which splits it, has {ranges} ranges, but {group} has {devices} devices")]
    ClassRanks {
        class: Class,
        group: Group,
        ranges: usize,
        devices: usize,
    },
    #[error(
        "a leaf of axis {axis} has size {found}, but {class} is part of a class of size {size}"
    )]
    LeafSize {
        axis: usize,
        class: ClassRef,
        found: Dim,
        size: u64,
    },
    #[error("the tree of axis {axis} does not have a split leaf")]
    Unsplit { axis: usize },
    #[error("the tree `{found}` of axis {axis} is not in normal form: expected `{expected}`")]
    NotNormal {
        axis: usize,
        found: AxisTree,
        expected: AxisTree,
    },
    #[error("the op `{op}` has parameters that its text form cannot express")]
    OpText { op: &'static str },
    #[error("layer {layer} exceeds the maximum of {MAX_LAYER}")]
    Layer { layer: u32 },
    #[error("the number of elements of {ty} overflows")]
    TooLarge { ty: TensorType },
    #[error("the size {size} of axis {axis} of a weight is not a number")]
    WeightSize { axis: usize, size: Dim },
    #[error("`{op}` does not accept its operands: {source}")]
    Operands { op: &'static str, source: TypeError },
    #[error("`{op}` has {expected} results, found {found}")]
    ResultCount {
        op: &'static str,
        expected: usize,
        found: usize,
    },
    #[error("its type is {found}, but `{op}` gives {expected}")]
    ResultType {
        op: &'static str,
        expected: TensorType,
        found: TensorType,
    },
    #[error("`{op}` defines one value, found {found}")]
    LeafResults { op: &'static str, found: usize },
    #[error("rows of {size} elements are not whole blocks of {block} elements of {dtype}")]
    PartialBlock { dtype: DType, block: u64, size: u64 },
    #[error("malformed parts: {defect}")]
    Parts { defect: PartsDefect },
    #[error("its type is {found}, but this kind of input has {expected}")]
    InputType {
        expected: TensorType,
        found: TensorType,
    },
    #[error("`{op}` sums elements of {dtype}")]
    Summed { op: &'static str, dtype: DType },
    #[error("`{op}` cannot read operand {operand} of the quantised type {dtype}")]
    Blocks {
        op: &'static str,
        operand: usize,
        dtype: DType,
    },
    #[error("`{op}` cuts blocks of {dtype}")]
    CutBlocks { op: &'static str, dtype: DType },
    #[error("`{op}` reads operand {operand}, whose rows end inside blocks of {dtype}")]
    PartOfBlock {
        op: &'static str,
        operand: usize,
        dtype: DType,
    },
    #[error("`{op}` reads operand 0 from {first} and operand {operand} from {place}")]
    TwoPlaces {
        op: &'static str,
        first: Place,
        operand: usize,
        place: Place,
    },
    #[error("it is on {found}, but the operands of `{op}` are on {expected}")]
    ResultPlace {
        op: &'static str,
        expected: Place,
        found: Place,
    },
    #[error(
        "operand {operand} of `{op}` is on {place}: expected one group, or one distinct device per operand"
    )]
    Participant {
        op: &'static str,
        operand: usize,
        place: Place,
    },
    #[error("result {result} of `{op}` is on {found}, but operand {result} on {expected}")]
    ParticipantResult {
        op: &'static str,
        result: usize,
        expected: Place,
        found: Place,
    },
    #[error("it is an input on {place}")]
    InputPlace { place: Place },
    #[error("it has a sharding, but {place} is not a group")]
    ShardedAlone { place: Place },
    #[error("it {broken}, which the stage `{stage}` does not allow")]
    Stage {
        stage: &'static str,
        broken: &'static str,
    },
}

impl VerifyErrorKind {
    /// Returns the code of the invariant (`TPC0236`).
    pub const fn code(&self) -> &'static Code {
        match self {
            VerifyErrorKind::Sharding { rule, .. } => rule.code(),
            VerifyErrorKind::Dangling { .. } => &codes::DANGLING,
            VerifyErrorKind::UsedBeforeDefined { .. } => &codes::USED_BEFORE_DEFINED,
            VerifyErrorKind::BackReference { .. } => &codes::BACK_REFERENCE,
            VerifyErrorKind::NoOutputs => &codes::NO_OUTPUTS,
            VerifyErrorKind::OutputName { .. } => &codes::OUTPUT_NAME,
            VerifyErrorKind::NotAState { .. } => &codes::NOT_A_STATE,
            VerifyErrorKind::UpdatedTwice { .. } => &codes::UPDATED_TWICE,
            VerifyErrorKind::StateChanges { .. } => &codes::STATE_CHANGES,
            VerifyErrorKind::StateName { .. } => &codes::STATE_NAME,
            VerifyErrorKind::EmptyGroup | VerifyErrorKind::RepeatedDevice { .. } => {
                &codes::EMPTY_GROUP
            }
            VerifyErrorKind::ClassRange { .. } | VerifyErrorKind::ClassOrder { .. } => {
                &codes::CLASS_RANGE
            }
            VerifyErrorKind::ClassGap { .. } => &codes::CLASS_GAP,
            VerifyErrorKind::ClassRanks { .. } => &codes::CLASS_RANKS,
            VerifyErrorKind::LeafSize { .. } => &codes::LEAF_SIZE,
            VerifyErrorKind::Unsplit { .. } | VerifyErrorKind::NotNormal { .. } => &codes::UNSPLIT,
            VerifyErrorKind::OpText { .. } => &codes::OP_TEXT,
            VerifyErrorKind::Operands { .. } => &codes::OPERANDS,
            VerifyErrorKind::ResultCount { .. } | VerifyErrorKind::ResultType { .. } => {
                &codes::RESULT_COUNT
            }
            VerifyErrorKind::LeafResults { .. } => &codes::LEAF_RESULTS,
            VerifyErrorKind::PartialBlock { .. } => &codes::PARTIAL_BLOCK,
            VerifyErrorKind::Parts { .. } => &codes::PARTS,
            VerifyErrorKind::InputType { .. } => &codes::INPUT_TYPE,
            VerifyErrorKind::Summed { .. } => &codes::SUMMED,
            VerifyErrorKind::Blocks { .. }
            | VerifyErrorKind::CutBlocks { .. }
            | VerifyErrorKind::PartOfBlock { .. } => &codes::BLOCKS,
            VerifyErrorKind::TwoPlaces { .. } => &codes::TWO_PLACES,
            VerifyErrorKind::ResultPlace { .. } => &codes::RESULT_PLACE,
            VerifyErrorKind::Participant { .. } => &codes::PARTICIPANT,
            VerifyErrorKind::ParticipantResult { .. } => &codes::PARTICIPANT_RESULT,
            VerifyErrorKind::InputPlace { .. } => &codes::INPUT_PLACE,
            VerifyErrorKind::ShardedAlone { .. } => &codes::SHARDED_ALONE,
            VerifyErrorKind::Stage { .. } => &codes::STAGE,
            VerifyErrorKind::Layer { .. } => &codes::LAYER,
            VerifyErrorKind::TooLarge { .. } => &codes::TOO_LARGE,
            VerifyErrorKind::WeightSize { .. } => &codes::WEIGHT_SIZE,
        }
    }

    /// Returns the cure.
    pub const fn help(&self) -> &'static str {
        match self {
            VerifyErrorKind::Sharding { rule, .. } => rule.help(),
            VerifyErrorKind::Dangling { .. } => "declare the entity, or refer to a declared one",
            VerifyErrorKind::UsedBeforeDefined { .. } => {
                "move the instruction that defines it further up"
            }
            VerifyErrorKind::BackReference { .. } => {
                "keep the `def` that `Graph::push` sets; define another value instead"
            }
            VerifyErrorKind::NoOutputs => "add `output \"logits\" = …`",
            VerifyErrorKind::OutputName { .. } => "give the outputs different names",
            VerifyErrorKind::NotAState { .. } => {
                "name the value of the `state` instruction on the left of `=`"
            }
            VerifyErrorKind::UpdatedTwice { .. } => {
                "chain the two updates and output the last value"
            }
            VerifyErrorKind::StateChanges { .. } => {
                "give the new content the type, the place and the sharding of the state"
            }
            VerifyErrorKind::StateName { .. } => "give the states different names, or merge them",
            VerifyErrorKind::EmptyGroup => "add a device to the group, or remove the group",
            VerifyErrorKind::RepeatedDevice { .. } => "list each device once",
            VerifyErrorKind::ClassRange { .. } => "shorten the range; its form is `start:len`",
            VerifyErrorKind::ClassOrder { .. } => {
                "order the ranges by their starts: range `i` belongs to the group's device `i`"
            }
            VerifyErrorKind::ClassGap { .. } => "extend a range, so that some device has the index",
            VerifyErrorKind::ClassRanks { .. } => {
                "give the class one range per device; an idle device has an empty range"
            }
            VerifyErrorKind::LeafSize { .. } => {
                "give the leaf the size of the class divided by the divisor"
            }
            VerifyErrorKind::Unsplit { .. } => "omit the axis; omitted axes are whole",
            VerifyErrorKind::NotNormal { .. } => {
                "write the normal form; `Sharding::split` makes it"
            }
            VerifyErrorKind::OpText { .. } => {
                "parameters must not be NaN, and unused parameters must be zero"
            }
            VerifyErrorKind::Operands { .. } => "correct the operands, or the op's attributes",
            VerifyErrorKind::ResultCount { .. } => "declare one result per result of the op",
            VerifyErrorKind::ResultType { .. } => "declare the inferred type",
            VerifyErrorKind::LeafResults { .. } => "write one instruction per value",
            VerifyErrorKind::TooLarge { .. } => "correct the sizes",
            VerifyErrorKind::WeightSize { .. } => {
                "declare the sizes that the tensor has in the file"
            }
            VerifyErrorKind::PartialBlock { .. } => {
                "cut rows at blocks only, or store plain elements"
            }
            VerifyErrorKind::Parts { .. } => {
                "give four lists of ranges `start:len`, as lowering creates them"
            }
            VerifyErrorKind::InputType { .. } => {
                "declare the type that the kind prescribes, or use `input {name = \"…\"}`"
            }
            VerifyErrorKind::Summed { .. } => "sum f32, f16 or bf16 elements",
            VerifyErrorKind::Blocks { .. } => {
                "decode the operand with an op that reads quantised elements"
            }
            VerifyErrorKind::CutBlocks { .. } => {
                "keep axis 0 in place, and begin its slices at blocks"
            }
            VerifyErrorKind::PartOfBlock { .. } => {
                "only products read such weights; end the part's rows at blocks"
            }
            VerifyErrorKind::TwoPlaces { .. } => "move the operand to that place with `copy`",
            VerifyErrorKind::ResultPlace { .. } => {
                "an op runs at the place of its operands; move the result with `copy`"
            }
            VerifyErrorKind::Participant { .. } => {
                "give the collective one value of a group, or one value per device"
            }
            VerifyErrorKind::ParticipantResult { .. } => {
                "declare the results on the operands' devices, in the same order"
            }
            VerifyErrorKind::InputPlace { .. } => {
                "declare the input on the host and `copy` it to the devices"
            }
            VerifyErrorKind::ShardedAlone { .. } => {
                "remove the sharding; a single place holds whole values"
            }
            VerifyErrorKind::Stage { .. } => "run the pass that produces this stage",
            VerifyErrorKind::Layer { .. } => "number the layers from 0 to 65535",
        }
    }

    /// True if later sharding checks rely on the violated invariant.
    pub(super) const fn blocks_rule_checks(&self) -> bool {
        !matches!(
            self,
            VerifyErrorKind::NoOutputs
                | VerifyErrorKind::OutputName { .. }
                | VerifyErrorKind::NotAState { .. }
                | VerifyErrorKind::UpdatedTwice { .. }
                | VerifyErrorKind::StateChanges { .. }
                | VerifyErrorKind::StateName { .. }
                | VerifyErrorKind::OpText { .. }
                | VerifyErrorKind::Layer { .. }
                | VerifyErrorKind::InputType { .. }
                | VerifyErrorKind::InputPlace { .. }
                | VerifyErrorKind::Summed { .. }
                | VerifyErrorKind::Blocks { .. }
                | VerifyErrorKind::CutBlocks { .. }
                | VerifyErrorKind::PartOfBlock { .. }
        )
    }
}
