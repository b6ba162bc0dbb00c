//! Matches products with additions, and groups of products of the same activations.

use std::collections::BTreeMap;

use tpc_ir::op::BinaryKind;
use tpc_ir::{Inst, InstData, Op, Value};

use super::FusedLaunch;
use super::matcher::{DefWalker, Matcher, is_binary};
use super::mul_mat_glu::{ExpertProduct, expert_product};
use crate::kernels::FusedOp;
use crate::planes::Planes;

const MAX_PRODUCTS: usize = 6;

struct Product {
    weight: Value,
    x: Value,
    more: Vec<Value>,
    result: Value,
}

fn product(matcher: &Matcher<'_>, data: &InstData) -> Option<Product> {
    let result = data.results[0];
    match &data.op {
        Op::MulMat(_) if matcher.are_f32(&[result]) => Some(Product {
            weight: data.operands[0],
            x: data.operands[1],
            more: Vec::new(),
            result,
        }),
        Op::Binary(_) if is_binary(data, BinaryKind::Add) => {
            let (inner, other) = matcher.inner(data)?;
            let inner = product(matcher, inner)?;
            let same = matcher.dims(inner.result) == matcher.dims(result);
            let fits = same && matcher.are_f32(&[result]) && matcher.is_float(other);
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

fn expert_bias(matcher: &Matcher<'_>) -> Option<FusedLaunch> {
    let last = matcher.last()?;
    let ExpertProduct { product, more } = expert_product(matcher, last)?;
    let Op::MulMatId(op) = &product.op else {
        return None;
    };
    let mut operands = product.operands.to_vec();
    operands.push(more?);
    Some(FusedLaunch {
        op: FusedOp::MulMatIdAdd(op.clone()),
        operands,
        terms: Some(1),
        results: last.results.to_vec(),
    })
}

pub(super) fn read(matcher: &Matcher<'_>) -> Option<FusedLaunch> {
    expert_bias(matcher).or_else(|| dense_products(matcher))
}

fn dense_products(matcher: &Matcher<'_>) -> Option<FusedLaunch> {
    // No instruction of the set reads the result of a product's last instruction.
    let graph = matcher.graph;
    let read = |v: &Value| {
        let mut insts = matcher.insts.iter();
        insts.any(|i| graph.inst(*i).operands.contains(v))
    };
    let ends = matcher
        .insts
        .iter()
        .filter(|i| !read(&graph.inst(**i).results[0]));
    let products: Option<Vec<Product>> =
        ends.map(|i| product(matcher, matcher.visit(*i))).collect();
    let products = products?;
    let in_planes = |p: &Product| matcher.is_packed(p.weight);
    let floats =
        |p: &Product| matcher.is_float(p.weight) && matcher.is_float(p.x) && p.more.len() == 1;
    if let [one] = products.as_slice() {
        if !in_planes(one) && !floats(one) {
            return None;
        }
        let mut operands = vec![one.weight, one.x];
        operands.extend(&one.more);
        return Some(FusedLaunch {
            op: FusedOp::MulMatAdd,
            operands,
            terms: in_planes(one).then_some(1),
            results: vec![one.result],
        });
    }
    let x = products.first()?.x;
    let fits = |p: &Product| p.x == x && in_planes(p);
    if products.len() > MAX_PRODUCTS || !products.iter().all(fits) {
        return None;
    }
    let mut operands = vec![x];
    for product in &products {
        operands.push(product.weight);
        operands.extend(&product.more);
    }
    Some(FusedLaunch {
        op: FusedOp::GroupedMulMat(products.iter().map(|p| p.more.len()).collect()),
        operands,
        terms: Some(0),
        results: products.iter().map(|p| p.result).collect(),
    })
}

/// Returns a product and the chain of additions after it. Each addition is the only reader of the previous value.
fn sums(defs: &DefWalker<'_>, product: Inst) -> Vec<Inst> {
    let mut out = vec![product];
    let mut last = product;
    while let Some((user, data)) = defs.only_user(defs.graph().inst(last).results[0])
        && is_binary(data, BinaryKind::Add)
    {
        out.push(user);
        last = user;
    }
    out
}

fn adds_weight(defs: &DefWalker<'_>, sum: Inst) -> bool {
    let mut operands = defs.graph().inst(sum).operands.iter();
    operands.any(|v| matches!(defs.def(*v).1.op, Op::Weight(_)))
}

pub(super) fn propose(defs: &DefWalker<'_>, gating: &[Inst]) -> Vec<Vec<Inst>> {
    let mut of: BTreeMap<Value, Vec<Inst>> = BTreeMap::new();
    let mut alone = Vec::new();
    for (inst, data) in defs.graph().insts() {
        if let Op::AddId(_) = data.op {
            alone.push(vec![defs.graph().value(data.operands[0]).def.0, inst]);
        }
        if !matches!(data.op, Op::MulMat(_)) || gating.binary_search(&inst).is_ok() {
            continue;
        }
        if defs.context.format(data.operands[0]) == Planes::FORMAT {
            of.entry(data.operands[1]).or_default().push(inst);
        }
        let mut sums = sums(defs, inst);
        while sums.len() > 1 {
            alone.push(sums.clone());
            sums.pop();
        }
    }
    let mut out = Vec::new();
    for products in of.into_values() {
        for side in products.chunks(MAX_PRODUCTS).filter(|side| side.len() > 1) {
            let biased = side.iter().flat_map(|p| {
                let mut sums = sums(defs, *p);
                let biases = sums[1..]
                    .iter()
                    .take_while(|s| adds_weight(defs, **s))
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
