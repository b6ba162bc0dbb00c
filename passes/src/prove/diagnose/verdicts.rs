//! Verdicts on values: correct if the operands are correct, and summands.

use std::collections::{BTreeMap, HashMap, HashSet};

use egg::Id;
use tpc_ir::op::BinaryKind;
use tpc_ir::{InstData, Op, Place, Value};

use crate::prove::encoding::Encoding;
use crate::prove::readings::{find_relation, readings};
use crate::prove::rules::linear::is_linear_in;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Sums that are values of the model.
    ModelSums,
    /// All sums, including the rest of a sum on one device.
    AnySum,
}

/// True for the model's attention over a part of the cells, and for views of it.
fn is_part_of_attention(encoding: &Encoding<'_>, id: Id) -> bool {
    let terms = &encoding.terms;
    let known = |id: Id| {
        let id = terms.graph.find(id);
        (terms.attention_parts.iter()).any(|&part| terms.graph.find(part) == id)
    };
    !terms.attention_parts.is_empty()
        && (known(id) || terms.views_of(id).into_iter().any(|(_, base)| known(base)))
}

#[derive(Default)]
pub(super) struct Verdicts {
    /// Per value, the sums that the value may be a summand of.
    pub(super) targets: HashMap<Value, Vec<Id>>,
    ok: HashMap<Value, bool>,
    pub(super) summands: HashSet<Value>,
}

impl Verdicts {
    pub(super) fn new(encoding: &mut Encoding<'_>, scope: Scope) -> Verdicts {
        let mut verdicts = Verdicts::default();
        verdicts.judge(encoding, scope);
        verdicts.by_name(encoding);
        verdicts
    }

    fn judge(&mut self, encoding: &mut Encoding<'_>, scope: Scope) {
        let programs = encoding.task.programs;
        for &inst in encoding.task.of_programs {
            let data = programs.inst(inst);
            for &v in &data.results {
                let targets = match encoding.terms.charge(1) {
                    true => self.find_targets(encoding, data, v, scope),
                    false => Vec::new(),
                };
                let whole = encoding.is_justified(v);
                // Zeros are a summand of every sum. Moving a value keeps its verdict.
                let zero = encoding.terms.is_zero(encoding.programs[&v]);
                let moved = data.op.is_movement() && data.operands.iter().all(|o| self.is_ok(o));
                let is_summand = |o: &Value| self.summands.contains(o);
                let summand = !targets.is_empty() || self.adds(encoding, data);
                if !whole && !zero && summand
                    || !whole && data.op.is_movement() && data.operands.iter().any(is_summand)
                {
                    self.summands.insert(v);
                }
                let id = encoding.programs[&v];
                let step = is_step(encoding, id)
                    || self.adds(encoding, data)
                    || is_part_of_attention(encoding, id);
                self.ok
                    .insert(v, whole || zero || moved || step || !targets.is_empty());
                self.targets.insert(v, targets);
            }
        }
    }

    /// Accepts the devices' values of one name if their sum is a value of the model.
    fn by_name(&mut self, encoding: &mut Encoding<'_>) {
        let programs = encoding.task.programs;
        let mut named: BTreeMap<&str, BTreeMap<Place, Value>> = BTreeMap::new();
        for &inst in encoding.task.of_programs {
            for &v in &programs.inst(inst).results {
                let data = programs.value(v);
                named.entry(&data.name).or_default().insert(data.place, v);
            }
        }
        for bundle in named.into_values() {
            if bundle.values().all(|v| self.is_ok(v)) || bundle.len() < 2 {
                continue;
            }
            let types: Vec<_> = bundle.values().map(|&v| &programs.value(v).ty).collect();
            if types.windows(2).any(|t| t[0] != t[1]) {
                continue;
            }
            let summands: Vec<Id> = bundle.values().map(|v| encoding.programs[v]).collect();
            if summands.windows(2).any(|w| w[0] == w[1]) {
                continue;
            }
            let sum = encoding.terms.sum(summands);
            if encoding.terms.is_model(sum) {
                for v in bundle.values() {
                    self.ok.insert(*v, true);
                }
            }
        }
    }

    fn find_targets(
        &self,
        encoding: &mut Encoding<'_>,
        data: &InstData,
        v: Value,
        scope: Scope,
    ) -> Vec<Id> {
        let (op, operands) = (&data.op, &data.operands);
        let id = encoding.programs[&v];
        let mut out = Vec::new();
        for (op, result, args) in encoding.terms.ops_of(id) {
            for reading in readings(&encoding.terms, &args) {
                if let Some(r) = find_relation(&encoding.terms, &op, &reading)
                    && (r.summed.is_some() || r.mask.is_some())
                {
                    let bases = reading.iter().map(|f| f.base).collect();
                    if matches!(r.op, Op::NormStats(_)) {
                        out.push(encoding.terms.add_op(&r.op, result, bases));
                    } else {
                        out.extend(encoding.terms.lookup_op(&r.op, result, bases));
                    }
                }
            }
        }
        out.extend(
            encoding
                .terms
                .masks_of(id)
                .into_iter()
                .map(|(_, value, _)| value),
        );
        // A linear function of a summand is a summand of the function of the sum. A summand plus a whole value is a
        // summand, too.
        let ids: Vec<Id> = operands.iter().map(|o| encoding.programs[o]).collect();
        let targets: Vec<Vec<Id>> = operands
            .iter()
            .map(|o| self.targets.get(o).cloned().unwrap_or_default())
            .collect();
        for args in combinations(&ids, &targets) {
            let replaced: Vec<usize> = (0..ids.len()).filter(|&k| args[k] != ids[k]).collect();
            let sum = matches!(op, Op::Binary(_) | Op::AddId(_));
            let linear =
                op.is_layout() || sum || is_linear_in(&encoding.terms, op, &args, &replaced);
            if linear && !replaced.is_empty() {
                out.push(encoding.terms.add_op(op, 0, args));
            }
        }
        let graph = &encoding.terms.graph;
        let mut out: Vec<Id> = out.into_iter().map(|id| graph.find(id)).collect();
        let is_step = matches!(op, Op::NormStats(_));
        let any = is_step || scope == Scope::AnySum;
        out.retain(|&id| any || graph[id].data.model.is_some());
        out.sort_unstable();
        out.dedup();
        out
    }

    /// True if a value is correct given correct operands, or comes from outside.
    pub(super) fn is_ok(&self, v: &Value) -> bool {
        self.ok.get(v).copied().unwrap_or(true)
    }

    /// True if an op makes a summand of a sum that is not in the model: it adds a whole value to a summand or to zeros,
    /// or is linear in such a summand.
    fn adds(&self, encoding: &Encoding<'_>, data: &InstData) -> bool {
        let known = |o: &Value| encoding.programs.get(o).copied();
        let zero = |o: &Value| known(o).is_some_and(|id| encoding.terms.is_zero(id));
        let summand = |o: &Value| zero(o) || self.summands.contains(o);
        let of_none =
            |o: &Value| self.summands.contains(o) && self.targets.get(o).is_none_or(Vec::is_empty);
        let operands = &data.operands;
        let right = operands.iter().all(|o| zero(o) || self.is_ok(o));
        if let Op::Binary(op) = &data.op
            && op.kind == BinaryKind::Add
        {
            return right && operands.iter().any(summand);
        }
        let args: Option<Vec<Id>> = operands.iter().map(known).collect();
        let linear = |k: usize| {
            args.as_ref()
                .is_some_and(|args| is_linear_in(&encoding.terms, &data.op, args, &[k]))
        };
        right && (0..operands.len()).any(|k| of_none(&operands[k]) && linear(k))
    }
}

/// True if an e-class holds the statistics of a norm of the model. Only split norms compute statistics as separate
/// values.
fn is_step(encoding: &Encoding<'_>, id: Id) -> bool {
    let of_model = |id: Id| encoding.terms.is_model(id);
    encoding
        .terms
        .ops_of(id)
        .into_iter()
        .any(|(op, _, args)| match &*op {
            Op::NormStats(_) => args.into_iter().all(of_model),
            Op::Concat(_) => args.into_iter().all(|a| a != id && is_step(encoding, a)),
            _ => false,
        })
}

/// Returns all argument lists in which arguments may be replaced by their target sums.
fn combinations(args: &[Id], targets: &[Vec<Id>]) -> Vec<Vec<Id>> {
    let mut out = vec![Vec::new()];
    for (&a, targets) in args.iter().zip(targets) {
        let choices = std::iter::once(a).chain(targets.iter().copied());
        let choices: Vec<Id> = choices.take(3).collect();
        out = out
            .iter()
            .flat_map(|reading: &Vec<Id>| {
                choices.iter().map(|&c| {
                    let mut reading = reading.clone();
                    reading.push(c);
                    reading
                })
            })
            .take(64)
            .collect();
    }
    out
}
