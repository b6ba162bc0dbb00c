//! Products with what is added to them, and products of the same activations side by side.

use std::collections::BTreeMap;

use tpc_ir::op::BinaryKind;
use tpc_ir::{Inst, InstData, Op, Value};

use super::Together;
use super::gated::{OfExperts, of_experts};
use super::set::{Set, Up, is_binary};
use crate::kernels::Fused;
use crate::planes::Planes;

/// The most products side by side.
const MOST: usize = 6;

/// A product and what is added to it.
struct Product {
    weight: Value,
    x: Value,
    more: Vec<Value>,
    result: Value,
}

/// The product that ends with an instruction of the set.
fn product(set: &Set<'_>, data: &InstData) -> Option<Product> {
    let result = data.results[0];
    match &data.op {
        Op::MulMat(_) if set.are_f32(&[result]) => Some(Product {
            weight: data.operands[0],
            x: data.operands[1],
            more: Vec::new(),
            result,
        }),
        Op::Binary(_) if is_binary(data, BinaryKind::Add) => {
            let (inner, other) = set.inner(data)?;
            let inner = product(set, inner)?;
            let same = set.dims(inner.result) == set.dims(result);
            let fits = same && set.are_f32(&[result]) && set.is_float(other);
            let mut more = inner.more;
            more.push(other);
            fits.then_some(Product {
                more,
                result,
                ..inner
            })
        }
        _ => None,
    }
}

/// A product of experts and what is added for each.
fn of_each_expert(set: &Set<'_>) -> Option<Together> {
    let last = set.last()?;
    let OfExperts { product, more } = of_experts(set, last)?;
    let Op::MulMatId(op) = &product.op else {
        return None;
    };
    let mut operands = product.operands.to_vec();
    operands.push(more?);
    Some(Together {
        fused: Fused::MulMatIdAdd(op.clone()),
        operands,
        terms: Some(1),
        results: last.results.to_vec(),
    })
}

pub(super) fn read(set: &Set<'_>) -> Option<Together> {
    of_each_expert(set).or_else(|| of_weights(set))
}

fn of_weights(set: &Set<'_>) -> Option<Together> {
    // What nothing in the set reads ends a product.
    let graph = set.graph;
    let read = |v: &Value| {
        let mut insts = set.insts.iter();
        insts.any(|i| graph.inst(*i).operands.contains(v))
    };
    let ends = set
        .insts
        .iter()
        .filter(|i| !read(&graph.inst(**i).results[0]));
    let products: Option<Vec<Product>> = ends.map(|i| product(set, set.meet(*i))).collect();
    let products = products?;
    let in_planes = |p: &Product| set.is_packed(p.weight);
    let floats = |p: &Product| set.is_float(p.weight) && set.is_float(p.x) && p.more.len() == 1;
    if let [one] = products.as_slice() {
        if !in_planes(one) && !floats(one) {
            return None;
        }
        let mut operands = vec![one.weight, one.x];
        operands.extend(&one.more);
        return Some(Together {
            fused: Fused::MulMatAdd,
            operands,
            terms: in_planes(one).then_some(1),
            results: vec![one.result],
        });
    }
    let x = products.first()?.x;
    let fits = |p: &Product| p.x == x && in_planes(p);
    if products.len() > MOST || !products.iter().all(fits) {
        return None;
    }
    let mut operands = vec![x];
    for product in &products {
        operands.push(product.weight);
        operands.extend(&product.more);
    }
    Some(Together {
        fused: Fused::Joined(products.iter().map(|p| p.more.len()).collect()),
        operands,
        terms: Some(0),
        results: products.iter().map(|p| p.result).collect(),
    })
}

/// The sums that follow a product, each of which alone reads what comes before.
fn sums(up: &Up<'_>, product: Inst) -> Vec<Inst> {
    let mut out = vec![product];
    let mut last = product;
    while let Some((user, data)) = up.only_user(up.graph().inst(last).results[0])
        && is_binary(data, BinaryKind::Add)
    {
        out.push(user);
        last = user;
    }
    out
}

/// Whether what a sum adds is a weight: it is there from the beginning.
fn adds_weight(up: &Up<'_>, sum: Inst) -> bool {
    let mut operands = up.graph().inst(sum).operands.iter();
    operands.any(|v| matches!(up.of(*v).1.op, Op::Weight(_)))
}

/// But those that gate others.
pub(super) fn propose(up: &Up<'_>, gating: &[Inst]) -> Vec<Vec<Inst>> {
    let mut of: BTreeMap<Value, Vec<Inst>> = BTreeMap::new();
    let mut alone = Vec::new();
    for (inst, data) in up.graph().insts() {
        if let Op::AddId(_) = data.op {
            alone.push(vec![up.graph().value(data.operands[0]).def.0, inst]);
        }
        if !matches!(data.op, Op::MulMat(_)) || gating.binary_search(&inst).is_ok() {
            continue;
        }
        if up.around.format(data.operands[0]) == Planes::FORMAT {
            of.entry(data.operands[1]).or_default().push(inst);
        }
        let mut sums = sums(up, inst);
        while sums.len() > 1 {
            alone.push(sums.clone());
            sums.pop();
        }
    }
    let mut out = Vec::new();
    for products in of.into_values() {
        for side in products.chunks(MOST).filter(|side| side.len() > 1) {
            let biased = side.iter().flat_map(|p| {
                let mut sums = sums(up, *p);
                let biases = sums[1..]
                    .iter()
                    .take_while(|s| adds_weight(up, **s))
                    .count();
                sums.truncate(1 + biases);
                sums
            });
            out.push(biased.collect());
            out.push(side.to_vec());
        }
    }
    out.extend(alone);
    out
}
