//! Crossings: sums that begin in one section and end in a later one.
//!
//! To save an all-reduce, a device may keep its summand of a sum over several layers. In the section where the sum
//! begins, the summand is not a value of the model. This check only decides which sections are proved together. If it
//! wrongly accepts a summand, the proof fails in the next section.

use egg::Id;
use tpc_ir::Op;

use super::encoding::Encoding;
use super::language::Head;
use super::readings::{find_relation, readings};
use super::rules::linear::linear_arguments;

const DEPTH: usize = 24;

/// True if an e-class consists of devices' summands: parts of contractions, rows of a device's experts, values of the
/// model, and zeros. Additions and linear ops of summands are summands, too.
pub(super) fn is_open_sum(encoding: &Encoding<'_>, id: Id) -> bool {
    let mut seen = Vec::new();
    is_open(encoding, id, &mut seen, DEPTH)
}

fn is_open(encoding: &Encoding<'_>, id: Id, seen: &mut Vec<Id>, depth: usize) -> bool {
    let terms = &encoding.terms;
    let id = terms.graph.find(id);
    if terms.is_zero(id) || !encoding.counterparts(id).is_empty() {
        return true;
    }
    if depth == 0 || seen.contains(&id) {
        return false;
    }
    seen.push(id);
    let of_all = |args: &[Id], seen: &mut Vec<Id>| {
        args.iter().all(|&a| is_open(encoding, a, seen, depth - 1))
    };
    for term in terms.nodes(id).iter() {
        let open = match term.head {
            Head::Mask(_) => true,
            Head::Sum => of_all(&term.args, seen),
            Head::Atom { .. } | Head::Zero(_) => false,
            Head::View(_) | Head::Op { .. } => {
                is_summand(encoding, term.head, &term.args)
                    || linear_arguments(terms, term).iter().any(|(own, others)| {
                        let right = |a: &Id| !encoding.counterparts(*a).is_empty();
                        others.iter().all(right) && of_all(own, seen)
                    })
            }
        };
        if open {
            return true;
        }
    }
    false
}

/// True if a term sums over a part of the model's indices, or computes only some experts or rows.
fn is_summand(encoding: &Encoding<'_>, head: Head, args: &[Id]) -> bool {
    let Head::Op { op, .. } = head else {
        return false;
    };
    let op = encoding.terms.op(op);
    match op {
        // The biases of the device's own experts.
        Op::AddId(_) if args.first().is_some_and(|&x| encoding.terms.is_zero(x)) => true,
        _ => readings(&encoding.terms, args).iter().any(|reading| {
            let relation = find_relation(&encoding.terms, op, reading);
            relation.is_some_and(|r| r.summed.is_some() || r.mask.is_some())
        }),
    }
}
