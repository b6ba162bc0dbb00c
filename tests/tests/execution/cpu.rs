//! Golden models on the CPU executor: as near to the exact logits as the engine is that made them.

use std::sync::Arc;

use tpc_core::golden::{Golden, distance};
use tpc_cpu::{CpuExecutor, CpuOptions, CpuTarget};
use tpc_ir::DType;
use tpc_ir::program::verify;
use tpc_passes::assemble;
use tpc_runtime::{Options, Session};
use tpc_tests::{Sweep, goldens};

use crate::support::{
    FileWeights, config, golden, name, one_by_one, placement, plan, shape, whole,
};

/// The distance of the engine's own logits from the exact ones, and what may be added.
fn allowed(path: &std::path::Path, exact: &Golden, name: &str) -> f64 {
    if ["-f32", "-f16", "-bf16"].iter().any(|t| name.ends_with(t)) {
        return 5e-6;
    }
    const MOST: f64 = 5e-4;
    // The repository carries the exact logits only.
    let beside = path.with_extension("logits");
    let shared = tpc_tests::shared().map(|s| s.join("golden").join(format!("{name}.logits")));
    let own = [Some(beside), shared]
        .into_iter()
        .flatten()
        .find(|p| p.exists());
    let Some(own) = own else { return MOST };
    let bytes = std::fs::read(&own).unwrap_or_else(|e| panic!("{}: {e}", own.display()));
    let own = Golden::parse(name, &bytes).unwrap_or_else(|e| panic!("{e}"));
    let wide = |g: &Golden| g.logits.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    let engine = distance(wide(exact), wide(&own)).nmse;
    // Where a router's choice flips for the engine, it may flip here.
    (engine + 1e-4).min(MOST.max(engine))
}

#[test]
fn golden_models_agree_on_the_cpu() {
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let mut failed = Vec::new();
    for path in goldens() {
        let name = name(&path);
        if !name.contains(&only) {
            continue;
        }
        let exact = golden(&path);
        let allowed = allowed(&path, &exact, &name);
        let tokens = &exact.tokens;
        let all: &[usize] = &[1, 2, 3, 4];
        for &devices in Sweep::asked().pick(&all[..3], all) {
            let (file, compiled) = plan(&path, &placement(devices, DType::F16));
            let config = config(&compiled, tokens.len());
            let shapes = [shape(&config, 1), shape(&config, tokens.len())];
            let program = assemble(&compiled.programs, &shapes, &CpuTarget).expect("it is small");
            if let Err(errors) = verify(&program) {
                failed.push(format!(
                    "{name} on {devices}: {}: {}",
                    errors[0].code, errors[0]
                ));
                continue;
            }
            let program = Arc::new(program);
            let session = |threads| {
                let options = CpuOptions {
                    threads,
                    options: Options::default(),
                };
                let executor = CpuExecutor::new(Arc::clone(&program), &FileWeights(&file), options);
                executor.and_then(|e| Session::with_executor(e, config))
            };
            let mut two = match session(2) {
                Ok(session) => session,
                Err(e) => {
                    failed.push(format!("{name} on {devices}: {e}"));
                    continue;
                }
            };
            let found = whole(&mut two, tokens);
            let wanted = exact.logits.iter().map(|&x| f64::from(x));
            let d = distance(wanted, found.iter().copied());
            if d.nmse.is_nan() || d.nmse > allowed {
                failed.push(format!(
                    "{name} on {devices}: NMSE {:e}, {allowed:e} allowed",
                    d.nmse
                ));
            }
            let each = one_by_one(&mut session(1).expect("it has loaded before"), tokens);
            let d = distance(found.iter().copied(), each.iter().copied());
            if d.nmse.is_nan() || d.max_abs > 1e-5 {
                failed.push(format!(
                    "{name} on {devices}: token by token differs by {:e}",
                    d.max_abs
                ));
            }
        }
    }
    assert!(failed.is_empty(), "{}\n{failed:#?}", failed.len());
}
