//! Checks the sizes of records. A capture may have any sizes, but equations hold only for valid ops.

use tpc_ir::RANK;

use crate::capture::Record;
use crate::op::{Family, GgmlOp, OpKind};

type Sizes4 = [u64; RANK];

pub(super) fn fit(t: &Record, records: &[Record]) -> bool {
    let sizes: Option<Vec<Sizes4>> = t.src.iter().map(|s| Some(records[(*s)?].ne())).collect();
    let Some(x) = sizes else {
        return true;
    };
    let ne = t.ne();
    let elements = |ne: Sizes4| ne.iter().product::<u64>();
    let divides = |small: Sizes4, large: Sizes4| {
        small
            .iter()
            .zip(&large)
            .all(|(s, l)| *s > 0 && l.is_multiple_of(*s))
    };
    match (&t.op, x.as_slice()) {
        (GgmlOp::Malformed(..) | GgmlOp::Unknown(_), _) => true,
        (op, all) if op.family() == Family::Elementwise || op.family() == Family::Norm => {
            matches!(all, [x] if *x == ne)
        }
        (op, all) if op.family() == Family::Binary => {
            matches!(all, [a, b] if *a == ne && divides(*b, ne))
        }
        (op, all) if op.family() == Family::Gated => match all {
            [both] => both[0] == 2 * ne[0] && both[1..] == ne[1..],
            [a, b] => *a == ne && *b == ne,
            _ => false,
        },
        (GgmlOp::MulMat(_), all) => match all {
            [a, b] => {
                let batches = (2..RANK).all(|i| a[i] > 0 && b[i].is_multiple_of(a[i]));
                a[0] == b[0] && ne == [a[1], b[1], b[2], b[3]] && batches
            }
            _ => false,
        },
        (GgmlOp::Concat(p), all) => match all {
            [a, b] => (0..RANK).all(|i| match p.axis == i as u64 {
                true => a[i] + b[i] == ne[i],
                false => a[i] == ne[i] && b[i] == ne[i],
            }),
            _ => false,
        },
        (GgmlOp::SoftMax(_) | GgmlOp::Rope(_), all) => all.first() == Some(&ne),
        (op, all) if op.is(OpKind::Repeat) => matches!(all, [x] if divides(*x, ne)),
        (GgmlOp::Reshape | GgmlOp::Cont, all) => {
            all.first().is_some_and(|x| elements(*x) == elements(ne))
        }
        (GgmlOp::Permute(p), [x, ..]) => (0..RANK).all(|i| ne[p.axes[i]] == x[i]),
        (GgmlOp::Transpose, [x, ..]) => ne == [x[1], x[0], x[2], x[3]],
        (GgmlOp::Permute(_) | GgmlOp::Transpose, []) => false,
        _ => true,
    }
}
