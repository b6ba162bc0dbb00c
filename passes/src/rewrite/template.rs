use tpc_ir::{Class, ClassData, Graph, Value};

use super::analysis::Table;
use super::language::{OpRef, TypesRef};
use super::report::{Counts, Outcome};
use super::skeleton::Section;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Leaf(u32),
    /// A result, as (step, result).
    Step(u32, u32),
}

#[derive(Clone, Debug)]
pub(super) enum TemplateStep {
    Leaf(u32),
    Apply {
        op: OpRef,
        types: TypesRef,
        operands: Vec<Source>,
        /// The section's values that the results take their names from.
        origins: Vec<Option<u32>>,
    },
}

#[derive(Debug)]
pub(super) struct Form {
    pub(super) steps: Vec<TemplateStep>,
    pub(super) roots: Vec<Source>,
    pub(super) transfers: Counts,
    /// The price, in µs per generated token.
    pub(super) us: f64,
}

/// A rewritten section without names, shared by all sections of its skeleton.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) table: Table,
    pub(super) cheapest: Form,
    /// The cheapest form without late sums, if different.
    pub(super) ordered: Option<Form>,
    pub(super) outcome: Outcome,
}

impl Template {
    /// Returns the form to use. If `ordered`, returns the form without late sums, if any.
    pub(super) fn form(&self, ordered: bool) -> &Form {
        let form = self.ordered.as_ref().filter(|_| ordered);
        form.unwrap_or(&self.cheapest)
    }
}

pub(super) fn instantiate(
    graph: &Graph,
    section: &Section,
    (table, form): (&Table, &Form),
    out: &mut Graph,
    map: &mut [Option<Value>],
) {
    let mut defined: Vec<Vec<Value>> = Vec::with_capacity(form.steps.len());
    let mut layer = section.layer;
    for step in &form.steps {
        match step {
            TemplateStep::Leaf(i) => {
                let v = section.leaves[*i as usize];
                let data = graph.value(v);
                let inst = graph.inst(data.def.0);
                let types = vec![data.ty.clone()];
                let new = out.push(inst.op.clone(), Vec::new(), types, data.place, inst.layer);
                let new = out.inst(new).results[0];
                let to = out.value_mut(new);
                to.name.clone_from(&data.name);
                to.sharding.clone_from(&data.sharding);
                map[v.index()] = Some(new);
                defined.push(vec![new]);
            }
            TemplateStep::Apply {
                op,
                types: refs,
                operands,
                origins,
            } => {
                let of_results = table.types(*refs);
                let origin = |i: usize| origins[i].map(|o| section.values[o as usize]);
                if let Some(v) = origin(0) {
                    layer = graph.inst(graph.value(v).def.0).layer;
                }
                let operands = operands
                    .iter()
                    .map(|&from| resolve(section, &defined, map, from))
                    .collect();
                let plain = of_results.iter().map(|o| o.ty.clone()).collect();
                let op = table.op(*op).clone();
                let new = out.push(op, operands, plain, of_results[0].place, layer);
                let results = out.inst(new).results.clone();
                for (i, (&v, o)) in results.iter().zip(of_results).enumerate() {
                    let sharding = o.sharding.rename_classes(&mut |c: Class| match section
                        .classes
                        .get(c.index())
                    {
                        Some(&own) => own,
                        None => class_of(out, &table.classes[c.index()]),
                    });
                    let to = out.value_mut(v);
                    to.sharding = sharding;
                    if let Some(named) = origin(i) {
                        to.name.clone_from(&graph.value(named).name);
                    }
                }
                defined.push(results);
            }
        }
    }
    for (&root, &from) in section.skeleton.roots.iter().zip(&form.roots) {
        let v = section.values[root as usize];
        map[v.index()] = Some(resolve(section, &defined, map, from));
    }
}

fn class_of(graph: &mut Graph, class: &ClassData) -> Class {
    let known = graph.classes.iter().position(|c| c == class);
    Class::new(known.unwrap_or_else(|| {
        graph.classes.push(class.clone());
        graph.classes.len() - 1
    }))
}

fn resolve(
    section: &Section,
    defined: &[Vec<Value>],
    map: &[Option<Value>],
    from: Source,
) -> Value {
    match from {
        Source::Leaf(i) => {
            let v = section.leaves[i as usize];
            map[v.index()].expect("invariant: leaves are defined before they are used")
        }
        Source::Step(step, result) => defined[step as usize][result as usize],
    }
}
