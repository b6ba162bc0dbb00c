//! Runs the suite on CUDA kernels: on emulated devices that check each access, in random orders, or on the card in
//! `TPC_TEST_DRIVER`. Cases with wrong result sizes are omitted, because launches infer sizes.

mod attention;
mod attention_parts;
mod attention_shapes;
mod planted;
mod prompt;
mod rig;

use rig::{Rig, kernel, rig, tolerated};
use tpc_cuda::kernels::{Request, Tensor as Sizes, select};
use tpc_cuda_emulator::Build;
use tpc_ir::DType;
use tpc_ir::op::Op;
use tpc_op_cases::suite::{self, ExecutorUnderTest, Factory};
use tpc_op_cases::{Random, Stored};
use tpc_runtime::{Data, Shape};

const CUDA: Factory = Factory {
    executor: "cuda",
    cases: 4,
    build: boxed,
};

fn boxed() -> Vec<Box<dyn ExecutorUnderTest>> {
    let rig = rig(7, Build::Checked).map(|rig| Box::new(rig) as Box<dyn ExecutorUnderTest>);
    rig.into_iter().collect()
}

#[test]
fn kernels_of_half_the_ops_agree_with_the_reference() {
    suite::agree(&CUDA, 0, 2);
}

#[test]
fn kernels_of_the_other_ops_agree_with_the_reference() {
    suite::agree(&CUDA, 1, 2);
}

#[test]
fn indices_out_of_range_are_told() {
    suite::refuse_indices(&CUDA);
}

#[test]
fn weights_of_every_format_are_decoded() {
    let Some(mut rig) = rig(5, Build::Plain) else {
        return;
    };
    for &dtype in DType::ALL.iter().filter(|t| !t.is_integer()) {
        let n = dtype.block_len() as usize * 3;
        let random = Random::new(dtype.name(), 1);
        let bytes = dtype.block_bytes() as usize * 3;
        // Bytes below 0x70 do not encode infinite or NaN scales.
        let bytes: Vec<u8> = (0..bytes).map(|_| random.below(0x70) as u8).collect();
        let mut wanted = vec![0.0; n];
        tpc_runtime::quant::dequantise(dtype, &bytes, &mut wanted).expect("a decoder");
        let request = Request {
            operands: &[Sizes::new(dtype, [n, 1, 1, 1])],
            results: &[Sizes::new(DType::F32, [n, 1, 1, 1])],
            options: tpc_runtime::Options::default(),
            multiprocessors: 2,
        };
        let op = Op::Copy(tpc_ir::op::Copy);
        let kernel = select(&op, &request).unwrap_or_else(|e| panic!("{e}"));
        let zeros = Data::F64(vec![0.0; n]);
        let mut x = Stored::poison(
            Shape {
                dtype,
                dims: [n, 1, 1, 1],
            },
            &random,
        )
        .dense();
        x.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
        let y = Stored::of(DType::F32, [n, 1, 1, 1], &zeros, &random).dense();
        let left = rig.launch((&kernel, None), (vec![x], vec![y]), None);
        let left = left.unwrap_or_else(|e| panic!("{dtype}: {e}"));
        let found = left.results[0].tensor();
        let found = found.reals().expect("reals");
        for (i, (f, w)) in found.iter().zip(&wanted).enumerate() {
            let w = f64::from(*w);
            let near = *f == w || (f - w).abs() <= 1e-6 * w.abs().max(1e-30);
            assert!(near, "{dtype} element {i}: found {f}, expected {w}");
        }
    }
}
