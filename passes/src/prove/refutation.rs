//! What a proof that fails says: the op whose value cannot be justified, and why.

use tpc_ir::{Graph, Inst, Place, TensorType, Value};

/// Why a value is not what the model says.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unproven {
    /// An operand is defined later.
    #[error("reads {operand} before it is defined")]
    Order {
        /// The operand.
        operand: Value,
    },
    /// An op sees more than one place.
    #[error("runs where not all of its operands are")]
    Places,
    /// An operand from an earlier layer is not a value of the model.
    #[error("reads {operand}, which is no value of the model")]
    Operand {
        /// The operand.
        operand: Value,
    },
    /// A leaf is not one of the model.
    #[error("reads a tensor that the model does not have")]
    Leaf,
    /// What it holds of a leaf, or what a collective does, makes no sense.
    #[error(
        "holds a part that cannot be: it cuts a quantisation block, or the parts do not make up the whole"
    )]
    Meaning,
    /// The declared type is not what the op gives.
    #[error("has another type than its op gives{}", found.as_ref().map_or_else(String::new, |t| format!(" ({t})")))]
    Type {
        /// What the op gives, if it takes its operands at all.
        found: Option<TensorType>,
    },
    /// The value is nothing that the model has.
    #[error(
        "is neither a value of the model, nor a part of one, nor a term of a sum that makes one"
    )]
    Value,
    /// A value of the model, but not the one of that name.
    #[error("is a value of the model or a part of one, but of another one than its name says")]
    Another,
    /// A term of a sum is counted more than once or not at all.
    #[error("is a term of a sum that does not make the model's value")]
    Term,
    /// What the devices hold of a tensor does not go together.
    #[error("holds a part that does not go with those of the other devices")]
    Part,
    /// A sum is used before it is done.
    #[error(
        "reads {operand}, which is only this device's term of a sum: the all-reduce is missing"
    )]
    Unreduced {
        /// The operand.
        operand: Value,
    },
    /// An output is another value than the model's.
    #[error("gives output `{name}`, but is not that value of the model")]
    Output {
        /// The output's name.
        name: String,
    },
    /// An output is missing.
    #[error("output `{name}` is missing")]
    Missing {
        /// The output's name.
        name: String,
    },
    /// The new content of a state is another than the model's.
    #[error("becomes the content of state `{name}`, but is not the model's")]
    State {
        /// The state's name.
        name: String,
    },
    /// A part of a state is never renewed.
    #[error("keeps state `{name}`, which the model renews")]
    Stale {
        /// The state's name.
        name: String,
    },
    /// Two values of different types were found equal.
    #[error("led to a contradiction: two values of different types were found equal")]
    Contradiction,
    /// The region is too large to be proved.
    #[error("needs more terms than the proof may make")]
    Limit,
}

/// The first op that is not justified.
#[derive(Clone, Debug, PartialEq)]
pub struct Refutation {
    /// The instruction of the programs; `None` when something is missing.
    pub inst: Option<Inst>,
    /// Its op's name.
    pub op: String,
    /// Its value's name.
    pub value: String,
    /// Where it runs.
    pub place: String,
    /// The layer that it belongs to.
    pub layer: Option<u32>,
    /// What is wrong.
    pub what: Unproven,
    /// What it computes, in terms of the model's values.
    pub found: Option<String>,
    /// What the model says there.
    pub expected: Option<String>,
}

impl std::fmt::Display for Refutation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.inst.is_none() {
            return write!(f, "{}", self.what);
        }
        write!(f, "`{}` of `{}` on {}", self.op, self.value, self.place)?;
        if let Some(l) = self.layer {
            write!(f, " in layer {l}")?;
        }
        write!(f, " {}", self.what)
    }
}

impl std::error::Error for Refutation {}

impl Refutation {
    /// A fault of an instruction.
    pub(super) fn at(programs: &Graph, inst: Inst, what: Unproven) -> Box<Refutation> {
        Refutation::of_output(programs, Some(inst), what)
    }

    /// A fault of an instruction, or of none.
    pub(super) fn of_output(
        programs: &Graph,
        inst: Option<Inst>,
        what: Unproven,
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
