use tpc_ir::random::SplitMix64;
use tpc_ir::{DType, Graph, Op, RANK, Value};

use crate::capture::record::Layout;

pub(super) type Index = [u64; RANK];

pub(super) fn flat(ne: Index, idx: Index) -> u64 {
    let mut out = 0;
    for axis in (0..RANK).rev() {
        out = out * ne[axis] + idx[axis];
    }
    out
}

fn unflat(ne: Index, mut at: u64) -> Option<Index> {
    let mut out = [0; RANK];
    for (i, &n) in out.iter_mut().zip(&ne) {
        *i = at.checked_rem(n)?;
        at /= n;
    }
    (at == 0).then_some(out)
}

/// Returns the position of element `idx` in the owner's memory; `None` if the address is inside a block or an
/// element.
pub(super) fn element(layout: &Layout, dtype: DType, idx: Index) -> Option<u64> {
    let (len, bytes) = (dtype.block_len(), dtype.block_bytes());
    let steps = [idx[0] / len, idx[1], idx[2], idx[3]];
    let mut at = layout.offset;
    for (step, nb) in steps.iter().zip(layout.nb) {
        at = at.checked_add(step.checked_mul(nb)?)?;
    }
    at.is_multiple_of(bytes)
        .then(|| at / bytes * len + idx[0] % len)
}

/// Returns the index of a memory element, or `None` if it is outside the tensor. The tensor's elements must not
/// overlap.
pub(super) fn index_of(layout: &Layout, dtype: DType, element: u64) -> Option<Index> {
    let (len, bytes) = (dtype.block_len(), dtype.block_bytes());
    let mut left = (element / len * bytes).checked_sub(layout.offset)?;
    let sizes = [layout.ne[0] / len, layout.ne[1], layout.ne[2], layout.ne[3]];
    let mut axes: Vec<usize> = (0..RANK).filter(|&a| sizes[a] > 1).collect();
    axes.sort_by_key(|&a| std::cmp::Reverse(layout.nb[a]));
    let mut out = [0; RANK];
    for axis in axes {
        out[axis] = left.checked_div(layout.nb[axis])?.min(sizes[axis] - 1);
        left -= out[axis] * layout.nb[axis];
    }
    out[0] = out[0] * len + element % len;
    (left == 0).then_some(out)
}

/// Returns the value among `stops` with the element at position `at` of `v`, and the position in it; `None` if an op
/// computes the element.
pub(super) fn origin(graph: &Graph, v: Value, at: u64, stops: &[Value]) -> Option<(Value, u64)> {
    let sizes = |v: Value| -> Index {
        let dims = &graph.value(v).ty.dims;
        std::array::from_fn(|i| dims[i].as_const().unwrap_or(0))
    };
    let (mut v, mut at) = (v, at);
    while !stops.contains(&v) {
        let inst = graph.inst(graph.value(v).def.0);
        let x = *inst.operands.first()?;
        let ne = sizes(v);
        let mut idx = unflat(ne, at)?;
        match &inst.op {
            Op::Reshape(_) => {
                v = x;
                continue;
            }
            Op::Permute(p) => {
                let from = idx;
                for (axis, &to) in p.axes.iter().enumerate() {
                    idx[axis] = from[usize::try_from(to).ok()?];
                }
                v = x;
            }
            Op::Slice(s) => {
                idx[usize::try_from(s.axis).ok()?] += s.start.as_const()?;
                v = x;
            }
            Op::Concat(c) => {
                let axis = usize::try_from(c.axis).ok()?;
                let holds = |part: &&Value| {
                    let n = sizes(**part)[axis];
                    let here = idx[axis] < n;
                    if !here {
                        idx[axis] -= n;
                    }
                    here
                };
                v = *inst.operands.iter().find(holds)?;
            }
            Op::SetSlice(s) => {
                let new = *inst.operands.get(1)?;
                let axis = usize::try_from(s.axis).ok()?;
                let start = s.start.as_const()?;
                let inside = idx[axis].checked_sub(start);
                match inside.filter(|&i| i < sizes(new)[axis]) {
                    Some(i) => {
                        idx[axis] = i;
                        v = new;
                    }
                    None => v = x,
                }
            }
            _ => return None,
        }
        at = flat(sizes(v), idx);
    }
    Some((v, at))
}

/// Returns sample indices that distinguish maps from indices to memory: the ends of every axis, one step along each,
/// and some between. Small tensors have all indices sampled.
pub(super) fn samples(ne: Index) -> impl Iterator<Item = Index> {
    let elements: u64 = ne.iter().product();
    let mut out: Vec<Index> = Vec::new();
    if elements <= 32 {
        out.extend((0..elements).filter_map(|at| unflat(ne, at)));
    } else {
        for corner in 0..1_u32 << RANK {
            let at = |axis: usize| match corner >> axis & 1 {
                0 => 0,
                _ => ne[axis] - 1,
            };
            out.push(std::array::from_fn(at));
        }
        for axis in 0..RANK {
            let mut unit = [0; RANK];
            unit[axis] = 1.min(ne[axis] - 1);
            out.push(unit);
        }
        let mut random = SplitMix64::new(elements);
        for _ in 0..16 {
            out.extend(unflat(ne, random.next_u64() % elements));
        }
        out.sort_unstable();
        out.dedup();
    }
    out.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_and_indices_are_inverse() {
        let layout = Layout {
            ne: [3, 2, 4, 1],
            nb: [4, 64, 16, 128],
            offset: 32,
        };
        for idx in samples(layout.ne) {
            let e = element(&layout, DType::F32, idx).expect("whole elements");
            assert_eq!(index_of(&layout, DType::F32, e), Some(idx));
        }
        assert_eq!(index_of(&layout, DType::F32, 11), None, "a gap");
        assert_eq!(index_of(&layout, DType::F32, 0), None, "before it");
        let blocks = Layout {
            ne: [64, 2, 1, 1],
            nb: [34, 136, 272, 272],
            offset: 34,
        };
        assert_eq!(element(&blocks, DType::Q8_0, [33, 1, 0, 0]), Some(193));
        assert_eq!(index_of(&blocks, DType::Q8_0, 193), Some([33, 1, 0, 0]));
        assert_eq!(element(&layout, DType::F32, [0, 0, 0, 0]), Some(8));
    }

    #[test]
    fn samples_have_every_corner() {
        let all: Vec<Index> = samples([100, 1, 7, 3]).collect();
        assert!(all.contains(&[99, 0, 6, 2]) && all.contains(&[0, 0, 6, 0]));
        assert!(all.contains(&[1, 0, 0, 0]) && all.len() > 16);
        assert_eq!(samples([2, 3, 1, 1]).count(), 6);
        assert_eq!(samples([2, 0, 1, 1]).count(), 0);
    }
}
