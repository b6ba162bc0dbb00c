//! Products with every weight format compile for cards, within the register limit.

use tpc_cuda::kernels::{Request, Tensor, select};
use tpc_cuda::nvrtc::{TARGETS, with_prelude};
use tpc_ir::DType;
use tpc_ir::op::MulMat;
use tpc_runtime::Options;

use crate::resources::Threads;

#[test]
fn products_with_every_format_compile_for_cards() {
    let Some(nvrtc) = super::nvrtc() else { return };
    let mut failed = Vec::new();
    let formats = DType::ALL.iter().filter(|t| !t.is_integer());
    for ((&dtype, target), columns) in formats
        .zip(TARGETS.iter().cycle())
        .zip([16, 1].iter().cycle())
    {
        let of = Tensor::new;
        let request = Request {
            operands: &[
                of(dtype, [4096, 4096, 1, 1]),
                of(DType::F32, [4096, *columns, 1, 1]),
            ],
            results: &[of(DType::F32, [4096, *columns, 1, 1])],
            options: Options::default(),
            multiprocessors: 132,
        };
        let kernel = select(&MulMat.into(), &request).unwrap_or_else(|e| panic!("{e}"));
        let (name, module) = (
            kernel.instance.name(),
            kernel.instance.single_kernel_source(),
        );
        match nvrtc.compile(name, &with_prelude(&module.text), target) {
            Ok(compiled) => {
                println!("{name} on {target}: {:?}", compiled.kernels);
                let mut threads = Threads::default();
                threads.add(&kernel);
                failed.extend(threads.faults(&compiled, target, nvrtc.version()));
            }
            Err(e) => failed.push(e.to_string()),
        }
    }
    assert!(failed.is_empty(), "{}\n{}", failed.len(), failed.join("\n"));
}
