//! Programs verify, and the reference executor equals the interpreter bit for bit.

use tpc_ir::program::{FileTarget, text, verify};
use tpc_ir::{DType, Program};
use tpc_passes::assemble;
use tpc_runtime::{Options, ProgramInterpreter, Session};
use tpc_tests::{Sweep, goldens};

use crate::support::{
    FileWeights, config, golden, name, one_by_one, placement, plan, shape, whole,
};

#[test]
fn programs_compute_what_their_graphs_do() {
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let mut failed = Vec::new();
    for path in goldens() {
        let name = name(&path);
        if !name.contains(&only) {
            continue;
        }
        let tokens = golden(&path).tokens;
        let all: &[usize] = &[1, 2, 3, 4];
        for &devices in Sweep::asked().pick(&all[1..3], all) {
            let (file, compiled) = plan(&path, &placement(devices, DType::F16));
            let config = config(&compiled, tokens.len());
            let shapes = [shape(&config, 1), shape(&config, tokens.len())];
            let program = assemble(&compiled.programs, &shapes, &FileTarget).expect("it is small");
            if let Err(errors) = verify(&program) {
                failed.push(format!(
                    "{name} on {devices}: {}: {}",
                    errors[0].code, errors[0]
                ));
                continue;
            }
            if !round_trips(&program) {
                failed.push(format!(
                    "{name} on {devices}: printing and parsing change the program"
                ));
            }
            let weights = FileWeights(&file);
            let mut wanted = Session::new(&compiled.programs, &weights, config).expect("loads");
            let wanted = whole(&mut wanted, &tokens);
            let executor = || {
                let seed = devices as u64 + 7;
                let executor =
                    ProgramInterpreter::new(&program, &weights, Options::default(), seed);
                Session::with_executor(Box::new(executor.expect("loads")), config)
                    .expect("it has logits")
            };
            let found = whole(&mut executor(), &tokens);
            if wanted
                .iter()
                .zip(&found)
                .any(|(a, b)| a.to_bits() != b.to_bits())
            {
                failed.push(format!("{name} on {devices}: other logits"));
            }
            let mut graph = Session::new(&compiled.programs, &weights, config).expect("loads");
            let wanted = one_by_one(&mut graph, &tokens[..4], 0);
            let found = one_by_one(&mut executor(), &tokens[..4], 0);
            if wanted
                .iter()
                .zip(&found)
                .any(|(a, b)| a.to_bits() != b.to_bits())
            {
                failed.push(format!("{name} on {devices}: other logits token by token"));
            }
        }
    }
    assert!(failed.is_empty(), "{}\n{failed:#?}", failed.len());
}

fn round_trips(program: &Program) -> bool {
    let printed = text::print(program);
    let again =
        text::parse(&printed.text, &[]).unwrap_or_else(|e| panic!("{} at {:?}", e[0], e[0].span));
    let spans = again.spans == printed.spans;
    let again = again.program().expect("its graph is valid");
    spans && again == *program && text::print(&again) == printed
}
