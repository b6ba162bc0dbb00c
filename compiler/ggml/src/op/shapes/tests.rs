use super::*;

fn shape(dtype: DType, ne: [u64; RANK]) -> Shape {
    let mut nb = [dtype.block_bytes(); RANK];
    nb[1] = nb[0] * (ne[0] / dtype.block_len());
    nb[2] = nb[1] * ne[1];
    nb[3] = nb[2] * ne[2];
    Shape { dtype, ne, nb }
}

fn f32s(ne: [u64; RANK]) -> Shape {
    shape(DType::F32, ne)
}

fn ids(ne: [u64; RANK]) -> Shape {
    shape(DType::I32, ne)
}

fn check(op: OpKind, params: &[i32], result: Shape, sources: &[Shape]) -> Result<(), String> {
    let sources: Vec<Option<Shape>> = sources.iter().copied().map(Some).collect();
    let node = Node {
        op,
        params,
        result,
        sources: &sources,
    };
    node.check()
}

/// llama.cpp's issue 26825: ids for two batches of a table with one.
#[test]
fn rows_are_taken_from_batches_that_exist() {
    let table = f32s([4, 8, 1, 1]);
    let one = ids([3, 1, 1, 1]);
    assert_eq!(
        check(OpKind::GetRows, &[], f32s([4, 3, 1, 1]), &[table, one]),
        Ok(())
    );
    let two = ids([3, 2, 1, 1]);
    let refused = check(OpKind::GetRows, &[], f32s([4, 3, 2, 1]), &[table, two]);
    assert!(refused.is_err_and(|e| e.contains("do not fit source 0")));
}

/// llama.cpp's issue 26912: rows for two batches of a target with one.
#[test]
fn rows_are_written_to_batches_that_exist() {
    let target = f32s([4, 8, 1, 1]);
    let (rows, at) = (f32s([4, 3, 1, 1]), ids([3, 1, 1, 1]));
    assert_eq!(
        check(OpKind::SetRows, &[], target, &[rows, at, target]),
        Ok(())
    );
    let rows = f32s([4, 3, 2, 1]);
    let refused = check(OpKind::SetRows, &[], target, &[rows, at, target]);
    assert!(refused.is_err_and(|e| e.contains("do not fit the target")));
}

/// llama.cpp's issue 25764: parameters that move a part before the start of its target.
#[test]
fn parts_are_within_their_target() {
    let (all, part) = (f32s([4, 4, 1, 1]), f32s([2, 2, 1, 1]));
    for op in [OpKind::Acc, OpKind::Set] {
        assert_eq!(check(op, &[16, 64, 64, 40], all, &[all, part]), Ok(()));
        assert!(check(op, &[16, 64, 64, 44], all, &[all, part]).is_err());
        assert!(check(op, &[-16, 64, 64, 16], all, &[all, part]).is_err());
        assert!(check(op, &[16, 64, 64, -4], all, &[all, part]).is_err());
        assert!(check(op, &[i32::MAX, 64, 64, 0], all, &[all, part]).is_err());
    }
}

/// llama.cpp's issue 25704: a number of states that the result has no room for.
#[test]
fn results_have_room_for_all_states() {
    let (v, gate) = (f32s([4, 2, 3, 1]), f32s([1, 2, 3, 1]));
    let sources = [v, v, v, gate, gate, f32s([4, 4, 2, 1])];
    assert_eq!(
        check(OpKind::GatedDeltaNet, &[1], f32s([8, 7, 1, 1]), &sources),
        Ok(())
    );
    assert_eq!(
        check(OpKind::GatedDeltaNet, &[2], f32s([8, 11, 1, 1]), &sources),
        Ok(())
    );
    assert!(check(OpKind::GatedDeltaNet, &[2], f32s([8, 7, 1, 1]), &sources).is_err());
    assert!(
        check(
            OpKind::GatedDeltaNet,
            &[i32::MAX],
            f32s([8, 7, 1, 1]),
            &sources
        )
        .is_err()
    );
    assert!(check(OpKind::GatedDeltaNet, &[-1], f32s([8, 7, 1, 1]), &sources).is_err());
}

#[test]
fn products_multiply_equal_rows() {
    let (w, x) = (f32s([8, 4, 2, 1]), f32s([8, 3, 4, 1]));
    assert_eq!(
        check(OpKind::MulMat, &[], f32s([4, 3, 4, 1]), &[w, x]),
        Ok(())
    );
    let misfits = [
        (f32s([4, 3, 4, 1]), f32s([7, 3, 4, 1])),
        (f32s([4, 3, 3, 1]), f32s([8, 3, 3, 1])),
        (f32s([4, 9, 4, 1]), x),
        (shape(DType::F16, [4, 3, 4, 1]), x),
    ];
    for (result, x) in misfits {
        assert!(
            check(OpKind::MulMat, &[], result, &[w, x]).is_err(),
            "{result:?}"
        );
    }
    // A batch of 0 divides nothing.
    assert!(
        check(
            OpKind::MulMat,
            &[],
            f32s([4, 3, 4, 1]),
            &[f32s([8, 4, 0, 1]), x]
        )
        .is_err()
    );
    let experts = f32s([8, 4, 6, 1]);
    let (x, chosen) = (f32s([8, 1, 5, 1]), ids([2, 5, 1, 1]));
    assert_eq!(
        check(
            OpKind::MulMatId,
            &[],
            f32s([4, 2, 5, 1]),
            &[experts, x, chosen]
        ),
        Ok(())
    );
    let few = ids([2, 4, 1, 1]);
    assert!(
        check(
            OpKind::MulMatId,
            &[],
            f32s([4, 2, 5, 1]),
            &[experts, x, few]
        )
        .is_err()
    );
}

#[test]
fn attention_reads_cells_that_exist() {
    let (q, k) = (f32s([8, 3, 4, 1]), f32s([8, 16, 2, 1]));
    let mask = shape(DType::F16, [16, 3, 1, 1]);
    let out = f32s([8, 4, 3, 1]);
    let of = |v, mask| check(OpKind::FlashAttnExt, &[], out, &[q, k, v, mask]);
    assert_eq!(of(k, mask), Ok(()));
    assert!(of(f32s([8, 15, 2, 1]), mask).is_err());
    assert!(of(k, shape(DType::F16, [15, 3, 1, 1])).is_err());
    assert!(of(k, shape(DType::F16, [16, 2, 1, 1])).is_err());
    assert!(of(k, shape(DType::F16, [16, 3, 3, 1])).is_err());
}

/// ggml divides towards zero, so a kernel that exceeds the image may have one place.
#[test]
fn kernels_are_counted_as_ggml_counts_them() {
    let image = f32s([1, 1, 2, 1]);
    let kernel = f32s([3, 3, 2, 5]);
    let of = |stride: i32, side: u64| {
        let params = [stride, stride, 0, 0, 1, 1];
        check(
            OpKind::Conv2d,
            &params,
            f32s([side, side, 5, 1]),
            &[kernel, image],
        )
    };
    assert_eq!(of(3, 1), Ok(()));
    assert!(of(3, 2).is_err() && of(2, 1).is_err() && of(1, 1).is_err());
}

#[test]
fn every_op_needs_its_sources() {
    for &op in OpKind::ALL {
        let none = check(op, &[], f32s([1; 4]), &[]);
        let free = op.facts().least_sources == 0;
        let client = matches!(op, OpKind::Custom | OpKind::Arange);
        assert_eq!(none.is_ok(), free && !client, "{op}: {none:?}");
    }
}

/// No sizes make a rule panic.
#[test]
fn rules_bear_any_sizes() {
    let mut random = tpc_ir::random::SplitMix64::new(7);
    let edges = [0, 1, 2, 3, 4, 7, 32, 256, u64::from(u32::MAX), u64::MAX];
    let types = [DType::F32, DType::F16, DType::I32, DType::Q4K];
    let mut size = || edges[random.below(edges.len())];
    let mut any = |i: usize| Shape {
        dtype: types[i % types.len()],
        ne: std::array::from_fn(|_| size()),
        nb: std::array::from_fn(|_| size()),
    };
    let params = [
        [0; 16],
        [1; 16],
        [-1; 16],
        [i32::MAX; 16],
        [i32::MIN; 16],
        [2; 16],
    ];
    for &op in OpKind::ALL {
        for case in 0..300 {
            let sources: Vec<Shape> = (0..7).map(|i| any(i + case)).collect();
            let _ = check(op, &params[case % params.len()], any(case), &sources);
        }
    }
}
