use tpc_ir::op::{OpCategory, Role, Rule};
use tpc_ir::{Graph, InstData, Interval, Op};

/// The relation between a value of a device and the sums of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SumState {
    /// Every element has the bits that one device computes.
    Exact,
    /// Every row has the bits of one device, or is zero because another device has the row.
    OneRow,
    /// A device's part of a product's sum.
    Part(Part),
    /// Statistics of a device's part of a norm.
    Statistics,
    /// Computed from a part of a sum before the parts were added.
    Late,
}

/// A device's part of a product's sum over K.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The weight.
    pub(super) tensor: String,
    /// The whole K.
    pub(super) k: u64,
    /// The summed interval; `None` if the device sums several intervals.
    pub(super) interval: Option<Interval>,
    /// True if the product adds two sums, one per term of the activations.
    pub(super) small: bool,
}

impl SumState {
    pub(super) fn part(&self) -> Option<&Part> {
        match self {
            SumState::Part(part) => Some(part),
            _ => None,
        }
    }
}

/// Returns the state of a value that holds elements of values in these states.
pub(super) fn joined<'a>(states: impl Iterator<Item = &'a SumState>) -> SumState {
    let mut states = states.cloned();
    let first = states.next().unwrap_or(SumState::Exact);
    states.fold(first, |a, b| match (a, b) {
        (SumState::Part(a), SumState::Part(b)) if (a.k, a.interval) == (b.k, b.interval) => {
            SumState::Part(Part {
                small: a.small || b.small,
                ..a
            })
        }
        (a, b) if a == b => a,
        // Zeros and whole rows are rows that one device has.
        _ => SumState::Late,
    })
}

/// Returns the state of the results of an op that is not a collective. `k` is the part of K that a product sums over,
/// and `small` is true if the product has two terms.
pub(super) fn of_op(
    programs: &Graph,
    data: &InstData,
    operands: &[&SumState],
    (k, small): (Option<Part>, bool),
) -> SumState {
    let exact = operands.iter().all(|s| matches!(s, SumState::Exact));
    match (&data.op, data.op.category()) {
        (Op::NormStats(_), _) => SumState::Statistics,
        (_, category) if category.is_leaf() => SumState::Exact,
        (op, OpCategory::Product) => match (k, window(op)) {
            (Some(part), false) if exact => SumState::Part(Part { small, ..part }),
            (Some(_), _) => SumState::Late,
            (None, true) if rows_of_one(operands) => SumState::OneRow,
            (None, false) if exact => SumState::Exact,
            (None, _) => SumState::Late,
        },
        (Op::GetRows(op), _) if op.window.is_some() => match exact {
            true => SumState::OneRow,
            false => SumState::Late,
        },
        // The owner of a row adds the expert's bias.
        (Op::AddId(op), _) if op.window.is_some() => match operands {
            [SumState::OneRow, SumState::Exact, SumState::Exact] => SumState::OneRow,
            _ => SumState::Late,
        },
        // Indices are never parts of sums.
        (Op::GetRows(_), _)
        | (_, OpCategory::Layout | OpCategory::Selection | OpCategory::Repetition) => {
            operands[0].clone()
        }
        (_, OpCategory::Assembly | OpCategory::Copy) => joined(operands.iter().copied()),
        _ if exact => SumState::Exact,
        (op, _) if rows_of_one(operands) && keeps_rows(programs, data, operands, op) => {
            SumState::OneRow
        }
        _ => SumState::Late,
    }
}

fn rows_of_one(operands: &[&SumState]) -> bool {
    let fits = |s: &&SumState| matches!(s, SumState::Exact | SumState::OneRow);
    operands.iter().all(fits)
}

fn window(op: &Op) -> bool {
    match op {
        Op::MulMatId(op) => op.window.is_some(),
        _ => false,
    }
}

/// True if zero rows of the operands give zero rows, and the op adds no rows to each other.
fn keeps_rows(programs: &Graph, data: &InstData, operands: &[&SumState], op: &Op) -> bool {
    let ty = |v: &tpc_ir::Value| &programs.value(*v).ty;
    let types: Vec<_> = data.operands.iter().map(ty).collect();
    let results: Vec<_> = data.results.iter().map(ty).collect();
    let rule: Rule = op.rule(&types, &results);
    let adds = rule.roles.iter().any(|(role, _)| *role != Role::Whole);
    let all = operands.iter().all(|s| matches!(s, SumState::OneRow));
    let product = matches!(op, Op::Binary(b) if b.kind == tpc_ir::op::BinaryKind::Mul);
    !adds && rule.keeps_zero && (all || product)
}
