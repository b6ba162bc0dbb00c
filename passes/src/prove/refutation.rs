use tpc_ir::{BudgetExceeded, Graph, Inst, Place, TensorType, Value};

/// The reason why a value is not justified.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RefutationReason {
    /// An operand is defined later.
    #[error("reads {operand} before it is defined")]
    Order {
        /// The operand.
        operand: Value,
    },
    /// An op reads operands from several places.
    #[error("reads operands from another place")]
    Places,
    /// An operand is neither a value of the model nor a part of one.
    #[error("reads {operand}, which is neither a value of the model nor a part of one")]
    Operand {
        /// The operand.
        operand: Value,
    },
    /// The model does not have this leaf.
    #[error("reads a tensor that the model does not have")]
    Leaf,
    /// A leaf, or an operand of a collective, is an impossible part.
    #[error("holds an impossible part: it cuts a quantisation block, or exceeds the whole")]
    Inexpressible,
    /// The declared type differs from the op's type.
    #[error("has another type than its op's result{}", found.as_ref().map_or_else(String::new, |t| format!(" ({t})")))]
    Type {
        /// The type that the op gives; `None` if the op rejects its operands.
        found: Option<TensorType>,
    },
    /// An instruction of the model reads a value before its definition, or its type is not the result type of its op.
    #[error("`{op}` of `{value}` is not valid in a model: its operands or types do not fit the op")]
    Model {
        /// The op's name.
        op: &'static str,
        /// The name of its first result.
        value: String,
    },
    /// The value is neither a value of the model, nor a part, nor a summand of one.
    #[error("is neither a value of the model, nor a part of one, nor a summand of one")]
    Value,
    /// The value has another name in the model.
    #[error("is a value of the model or a part of one, but has another name")]
    OtherValue,
    /// A summand is counted more than once or not at all.
    #[error(
        "is a summand that counts more than once or not at all: the devices' sum is not the model's value"
    )]
    Summand,
    /// The devices' parts of a tensor do not fit together.
    #[error(
        "holds a part that does not fit the parts of the other devices: a gap, another order, or another tensor"
    )]
    Part,
    /// A sum is used before it is complete.
    #[error("reads {operand}, which is only this device's summand: the all-reduce is missing")]
    Unreduced {
        /// The operand.
        operand: Value,
    },
    /// An output is not the model's value.
    #[error("gives the output `{name}`, but is not the model's output")]
    Output {
        /// The output's name.
        name: String,
    },
    /// An output is missing.
    #[error("the output `{name}` is missing")]
    Missing {
        /// The output's name.
        name: String,
    },
    /// The new content of a state differs from the model's.
    #[error("becomes the content of the state `{name}`, but is not the model's new content")]
    State {
        /// The state's name.
        name: String,
    },
    /// A part of a state is never updated.
    #[error("is a part of the state `{name}` that is never updated, but the model updates it")]
    Stale {
        /// The state's name.
        name: String,
    },
    /// Two values of different types were found equal.
    #[error("leads to a contradiction: two values of different types are equal")]
    Contradiction,
    /// The e-graph has too many terms.
    #[error("exceeds the proof's limit of terms")]
    Limit,
    /// The command's budget is exhausted.
    #[error("exceeds the budget: {0}")]
    Budget(BudgetExceeded),
}

/// The first unjustified op, with the reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Refutation {
    /// The instruction in the programs; `None` for a missing output.
    pub inst: Option<Inst>,
    /// The op's name.
    pub op: String,
    /// The name of the op's first result.
    pub value: String,
    /// The place of the op.
    pub place: String,
    /// The op's layer.
    pub layer: Option<u32>,
    /// The reason.
    pub what: RefutationReason,
    /// The device's value, expressed by the model's values.
    pub found: Option<String>,
    /// The model's value, as an expression.
    pub expected: Option<String>,
}

impl std::fmt::Display for Refutation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.inst.is_none() {
            return write!(f, "the proof stops: {}", self.what);
        }
        write!(
            f,
            "the proof stops at `{}` of `{}` on {}",
            self.op, self.value, self.place
        )?;
        if let Some(l) = self.layer {
            write!(f, " in layer {l}")?;
        }
        write!(f, ", which {}", self.what)
    }
}

impl std::error::Error for Refutation {}

impl Refutation {
    pub(super) fn at(programs: &Graph, inst: Inst, what: RefutationReason) -> Box<Refutation> {
        Refutation::of_output(programs, Some(inst), what)
    }

    /// Returns the refutation for an output; `None` as instruction for a missing output.
    pub(super) fn of_output(
        programs: &Graph,
        inst: Option<Inst>,
        what: RefutationReason,
    ) -> Box<Refutation> {
        let data = inst.map(|i| programs.inst(i));
        let value = data.and_then(|d| d.results.first().map(|&v| programs.value(v)));
        Box::new(Refutation {
            inst,
            op: data.map_or_else(String::new, |d| d.op.name().to_owned()),
            value: value.map_or_else(String::new, |v| v.name.clone()),
            place: value.map_or_else(String::new, |v| match v.place {
                Place::Device(d) => programs.device(d).name.clone(),
                other => other.to_string(),
            }),
            layer: data.and_then(|d| d.layer),
            what,
            found: None,
            expected: None,
        })
    }
}
