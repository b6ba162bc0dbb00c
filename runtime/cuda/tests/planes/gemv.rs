//! Products with one column, by warps: each number of rows per warp, with and without a short last tile.

use tpc_ir::DType;
use tpc_ir::op::MulMat;
use tpc_op_cases::Random;

use crate::rig::Rig;
use crate::{Weight, columns, types};

/// Compares a product of one column with the same column in a product of two, which tensor cores compute.
fn compare(rig: &mut Rig, dtype: DType, (k, rows): (usize, usize)) {
    let random = Random::new(dtype.name(), 31);
    let weight = Weight::random(dtype, [k, rows, 1, 1], &random);
    let x = columns(k, 2, &random);
    let together = rig.product(&MulMat.into(), &weight, (&x, [k, 2, 1, 1]), None);
    for c in 0..2 {
        let column = &x[c * k..][..k];
        let alone = rig.product(&MulMat.into(), &weight, (column, [k, 1, 1, 1]), None);
        assert_eq!(alone.len(), rows);
        for (r, (a, b)) in alone.iter().zip(&together[c * rows..]).enumerate() {
            assert_eq!(
                a.to_bits(),
                b.to_bits(),
                "{dtype}, {k} wide, row {r} of {rows}: {a}, {b}"
            );
        }
    }
}

#[test]
fn one_column_has_the_bits_of_two() {
    let Some(mut rig) = Rig::new(41) else { return };
    for dtype in types() {
        // Full tiles only; 2304 and 2240 end with a short tile.
        compare(&mut rig, dtype, (2048, 6));
        compare(
            &mut rig,
            dtype,
            (if dtype.block_len() == 256 { 2304 } else { 2240 }, 6),
        );
    }
}

/// Odd numbers of rows: the last warp shares rows with the warp before it.
#[test]
fn warps_compute_two_and_four_rows() {
    let Some(mut rig) = Rig::new(42) else { return };
    for (dtype, rows) in [
        (DType::Q4K, 4099),
        (DType::Q6K, 4097),
        (DType::Q8_0, 2049),
        (DType::Mxfp4, 2051),
    ] {
        compare(&mut rig, dtype, (2048, rows));
    }
}
