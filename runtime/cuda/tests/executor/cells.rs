//! A device with a part of the cells of a cache: sizes count units of cells.

use std::sync::Arc;

use tpc_cuda::{CudaExecutor, CudaOptions, CudaTarget};
use tpc_cuda_emulator::Links;
use tpc_ir::op::InputKind;
use tpc_ir::program::{BatchShape, Program, verify};
use tpc_ir::text::parse;
use tpc_ir::verify::Verified;
use tpc_ir::{Bindings, Symbol, TensorType};
use tpc_passes::assemble;
use tpc_runtime::{
    BatchRun, Data, ExecError, Executor, MemoryWeights, Options, Outputs, ProgramInterpreter,
    Shape, Tensor,
};

use super::devices;

/// The device has every second block of 64 cells, from the second block on.
const CELLS: &str = r#"tpir 1
graph "cells"
cells 128
device dev0 "cuda:0"

v0 "x": f32[8, n_tokens] @host = input {name = "x"}
v1 "rows": i64[n_tokens] @host = input {kind = cache_rows}
v2: f32[8, n_tokens] @dev0 = copy v0
v3: i64[n_tokens] @dev0 = copy v1
v4 "cache": f32[8, 64*n_ctx] @dev0 = state {name = "cache", cell_parts = 1:1, of = 2}
v5: f32[8, 64*n_ctx] @dev0 = set_rows v4, v2, v3 {axis = 1, cell_parts = 1:1, of = 2}
v6: f32[8, 64*n_kv] @dev0 = slice v5 {axis = 1, start = 0, len = 64*n_kv}
v7: f32[8, 64*n_kv] @dev0 = add v6, v6
v8: f32[8, 64*n_kv] @host = copy v7

output "cells" = v8
output state v4 = v5
"#;

const CONTEXT: u64 = 384;

fn program() -> Arc<Program> {
    let parsed = parse(CELLS).unwrap_or_else(|e| panic!("{}", e[0]));
    let graph = Verified::new(parsed.graph).unwrap_or_else(|e| panic!("{e}"));
    let most = sizes(3, CONTEXT).in_units(128);
    let program = assemble(&graph, &[BatchShape { most }], &CudaTarget).expect("a small program");
    verify(&program).unwrap_or_else(|e| panic!("{}", e[0]));
    Arc::new(program)
}

fn sizes(tokens: u64, cells: u64) -> Bindings {
    Bindings::default()
        .with(Symbol::NTokens, tokens)
        .with(Symbol::NKv, cells)
        .with(Symbol::NCtx, CONTEXT)
}

/// Writes rows with the number of their cell, and returns the device's cells.
fn write<E: Executor>(executor: &mut E, sizes: &Bindings, cells: &[i64]) -> Vec<f64> {
    let mut outputs = Outputs::new(executor.interface());
    let mut batch = BatchRun::new(sizes);
    let mut host = |kind: &InputKind, ty: &TensorType| -> Result<Tensor, ExecError> {
        let values = cells.iter().flat_map(|c| [*c as f32; 8]).collect();
        let data = match kind {
            InputKind::CacheRows => Data::Int(cells.to_vec()),
            _ => Data::F32(values),
        };
        Tensor::new(Shape::of(ty, sizes)?.dims, data)
    };
    executor
        .run_phase(&mut batch, &mut host, &mut outputs)
        .unwrap_or_else(|e| panic!("{e}"));
    let cells = outputs.get(0).expect("an output").reals();
    cells.expect("reals").to_vec()
}

#[test]
fn a_device_has_its_part_of_the_cells() {
    let program = program();
    let weights = MemoryWeights::new();
    let reference = ProgramInterpreter::new(&program, &weights, Options::default(), 1);
    let mut reference = reference.expect("the program loads");
    let Some(driver) = devices(Links::Peers, 5) else {
        return;
    };
    let options = CudaOptions::with_threads(1);
    let executor = CudaExecutor::new(Arc::clone(&program), &weights, driver, options);
    let mut executor = executor.unwrap_or_else(|e| panic!("{e}"));
    for (used, cells) in [
        (64, vec![3, 63]),
        (128, vec![64, 5, 127]),
        (130, vec![128, 129]),
        (256, vec![190]),
        (384, vec![192, 383, 320]),
    ] {
        let batch = sizes(cells.len() as u64, used).in_units(128);
        let wanted = write(&mut reference, &batch, &cells);
        let found = write(&mut executor, &batch, &cells);
        assert_eq!(found.len() as u64, 8 * 64 * used.div_ceil(128));
        assert_eq!(found, wanted, "{used} cells");
        let own = cells.iter().filter(|c| *c / 64 % 2 == 1);
        for cell in own {
            let at = (cell / 128 * 64 + cell % 64) as usize * 8;
            assert_eq!(found[at], 2.0 * *cell as f64);
        }
    }
}
