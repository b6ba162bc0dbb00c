//! Batches of one to eight tokens: a token has the same bits in each, so a draft or a neighbour does not change an answer.

use std::sync::Arc;

use tpc_core::pipeline::compile;
use tpc_cuda::{CudaExecutor, CudaOptions, CudaTarget};
use tpc_gguf::GgufFile;
use tpc_ir::DType;
use tpc_passes::assemble;
use tpc_runtime::Session;
use tpc_tests::goldens;

use super::devices;
use crate::support::{FileWeights, behind, config, golden, name, one_by_one, placement, shape};

/// The most tokens with one order of additions.
const MOST: usize = 8;
/// Tokens of a model: all widths divide them differently.
const TOKENS: usize = 17;

fn bits(logits: &[f64]) -> Vec<u64> {
    logits.iter().map(|x| x.to_bits()).collect()
}

/// Returns the widths that change the bits of a token; `None` without a C++ compiler.
fn other_widths(path: &std::path::Path, count: usize, cache: DType) -> Option<Vec<usize>> {
    let file = GgufFile::open(path).unwrap_or_else(|e| panic!("{e}"));
    let placed = tpc_core::placement::Placement {
        storage: &CudaTarget,
        ..placement(count, cache)
    };
    let Ok(compiled) = compile(&file, &placed) else {
        return Some(Vec::new());
    };
    let mut tokens = golden(path).tokens;
    tokens.truncate(TOKENS);
    let config = config(&compiled, tokens.len());
    let shapes = [shape(&config, 1), shape(&config, MOST)];
    let program = assemble(&compiled.programs, &shapes, &CudaTarget).expect("it is small");
    let options = CudaOptions::with_threads(1);
    let driver = devices(count, 3)?;
    let executor = CudaExecutor::new(Arc::new(program), &FileWeights(&file), driver, options);
    let session = executor.and_then(|e| Session::with_executor(Box::new(e), config));
    let mut session = session.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let alone = bits(&one_by_one(&mut session, &tokens, 0));
    let differs = |width: &usize| {
        session.clear().expect("states are cleared");
        let batches = tokens.chunks(*width).zip((0..).step_by(*width));
        let found: Vec<u64> = batches
            .flat_map(|(part, at)| bits(&behind(&mut session, part, at)))
            .collect();
        found != alone
    };
    Some((2..=MOST).filter(differs).collect())
}

#[test]
fn a_token_has_the_same_bits_in_batches_of_one_to_eight() {
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let mut wrong = Vec::new();
    for (i, path) in goldens().into_iter().enumerate() {
        let name = name(&path);
        if !name.contains(&only) {
            continue;
        }
        let cache = [DType::F16, DType::Q8_0][i / 2 % 2];
        // One device or two, in turn.
        let count = 1 + i % 2;
        match other_widths(&path, count, cache) {
            None => return,
            Some(widths) if widths.is_empty() => {}
            Some(widths) => wrong.push(format!("{name} on {count}: widths {widths:?}")),
        }
        println!("{name}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
