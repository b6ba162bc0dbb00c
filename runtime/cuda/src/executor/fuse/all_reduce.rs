//! Matches sums over devices, with the additions and norms that each device applies to the sum.
//!
//! The launch is in the queues of all participants. Each device reads all operands, and all devices end the launch
//! together.

use tpc_ir::op::BinaryKind;
use tpc_ir::{Inst, Op, Value};

use super::matcher::{DefWalker, is_binary};

const MAX_TAIL: usize = 5;

/// Returns the chains of additions and scaled norms after a sum on one device, longest first.
fn tails(defs: &DefWalker<'_>, sum: Value) -> Vec<Vec<Inst>> {
    let mut out = vec![Vec::new()];
    let mut done = 0;
    let mut ends = vec![sum];
    while done < out.len() {
        let (tail, end) = (out[done].clone(), ends[done]);
        done += 1;
        for user in defs.context.users(end) {
            let data = defs.graph().inst(*user);
            let mut more = vec![*user];
            let mut last = data.results.first().copied();
            if let (Op::Norm(_), Some(norm)) = (&data.op, last) {
                let mut users = defs.context.users(norm).iter();
                let by = users.find(|u| is_binary(defs.graph().inst(**u), BinaryKind::Mul));
                more.extend(by);
                last = by.map(|by| defs.graph().inst(*by).results[0]);
            } else if !is_binary(data, BinaryKind::Add) {
                continue;
            }
            let tail = [tail.clone(), more].concat();
            if let Some(last) = last.filter(|_| tail.len() <= MAX_TAIL) {
                out.push(tail);
                ends.push(last);
            }
        }
    }
    out.sort_by_key(|tail| std::cmp::Reverse(tail.len()));
    out
}

pub(super) fn propose(defs: &DefWalker<'_>) -> Vec<Vec<Inst>> {
    let mut out = Vec::new();
    for (inst, data) in defs.graph().insts() {
        let Op::AllReduce(_) = &data.op else { continue };
        let of_devices: Vec<Vec<Vec<Inst>>> =
            data.results.iter().map(|v| tails(defs, *v)).collect();
        let most = of_devices.iter().map(Vec::len).max().unwrap_or(0);
        for way in 0..most {
            // A device with fewer tails ends with the sum.
            let each = of_devices.iter().filter_map(|tails| tails.get(way));
            out.push(each.flatten().copied().chain([inst]).collect());
        }
    }
    out
}
