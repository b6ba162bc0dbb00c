//! Kernels that start before the previous kernel has ended: every tried order gives the same bits.

use tpc_cuda::Edges;
use tpc_cuda_emulator::Build;
use tpc_ir::DType;
use tpc_tests::goldens;

use super::{Subject, emulated};
use crate::support::{golden, name, one_by_one, placement, whole};

const MODELS: [(&str, usize); 2] = [("llama-dense", 1), ("gpt-oss-moe", 2)];

const FEW: usize = 12;

#[test]
fn kernels_that_start_early_have_the_same_bits() {
    let models = goldens();
    for (model, count) in MODELS {
        let path = models.iter().find(|p| name(p).starts_with(model));
        let path = path.unwrap_or_else(|| panic!("no golden of {model}"));
        let mut tokens = golden(path).tokens;
        if std::env::var("TPC_FULL").is_err() {
            tokens.truncate(FEW);
        }
        let subject = Subject::new(path, &placement(count, DType::F16), &tokens);
        let subject = subject.expect("it has a plan");
        let ways = [
            (Edges::Programmatic, Build::Checked, 3),
            (Edges::Full, Build::Plain, 1),
            (Edges::Programmatic, Build::Plain, 2),
        ];
        let mut first: Option<Vec<u64>> = None;
        for (edges, build, seed) in ways {
            let Some(driver) = emulated(count, seed, build) else {
                return;
            };
            // Cards decode 200 tokens, because an order that a card rarely takes shows only then.
            let rounds = match driver.is_card() {
                true => 200_usize.div_ceil(subject.tokens.len()),
                false => 1,
            };
            let session = subject.session_with(driver, edges);
            let mut session = session.unwrap_or_else(|e| panic!("{model}: {e}"));
            for round in 0..rounds {
                session.clear().expect("states are cleared");
                let mut logits = whole(&mut session, &subject.tokens);
                session.clear().expect("states are cleared");
                logits.extend(one_by_one(&mut session, &subject.tokens, 0));
                let bits: Vec<u64> = logits.into_iter().map(f64::to_bits).collect();
                let known = first.get_or_insert_with(|| bits.clone());
                assert!(
                    *known == bits,
                    "{model}: {edges:?}, {build:?}, round {round}"
                );
            }
        }
    }
}
