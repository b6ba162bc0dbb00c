//! Faults in correct programs: the proof must find each fault and name the op.
//!
//! If the proof accepts a mutant, the test runs two batches, so that a lost state shows. The outputs must be correct.

mod cells;
pub(crate) mod draft;
mod faults;

use std::collections::BTreeMap;
use std::path::Path;

use tpc_core::golden::distance;
use tpc_core::pipeline::CompiledModel;
use tpc_core::placement::{
    CacheSplit, HostExperts, Placement, parse_overrides, parse_tensor_split,
};
use tpc_gguf::GgufFile;
use tpc_ir::{DType, Verified, stage};
use tpc_passes::prove::prove;
use tpc_runtime::{Batch, ExecError, Session, SessionConfig};
use tpc_tests::{Sweep, goldens};

use super::random::Rng;
use super::support::{FileWeights, golden, placement, plan};
use draft::{Draft, inst};
use faults::FAULTS;

const TOKENS: usize = 6;
/// Tokens in two blocks of cells.
const BLOCKS: usize = 80;
/// The maximum NMSE of equal logits; the order of sums may differ.
const SAME: f64 = 1e-12;

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    mutants: usize,
    caught: usize,
    /// Accepted mutants with correct outputs.
    equal: usize,
    /// Rejected mutants whose report names the changed op, or an op that reads its result.
    named: usize,
}

fn placements(devices: usize) -> Vec<(&'static str, Placement)> {
    let with = |set: &dyn Fn(&mut Placement)| {
        let mut p = placement(devices);
        p.split_mode = tpc_core::placement::SplitMode::Tensor;
        set(&mut p);
        p
    };
    let overridden = |text: &str| {
        with(&|p: &mut Placement| {
            let list = [text.to_owned()];
            p.overrides = parse_overrides(&list, &p.devices).unwrap_or_else(|e| panic!("{e}"));
        })
    };
    vec![
        ("tensor", with(&|_| {})),
        ("-nkvo", with(&|p| p.kv_on_host = true)),
        (
            "-ncmoe 1",
            with(&|p| p.host_experts = HostExperts::First(1)),
        ),
        ("-ot attn=CPU", overridden(r"blk\.0\.attn.*=CPU")),
        ("-ot ffn_down=CPU", overridden(".*ffn_down.*=CPU")),
        (
            "-ctk q8_0",
            with(&|p| (p.cache_type_k, p.cache_type_v) = (DType::Q8_0, DType::Q8_0)),
        ),
        (
            "--cache-split cells",
            with(&|p| p.cache_split = CacheSplit::Cells),
        ),
        (
            "-ts",
            with(&|p| {
                let shares = if devices == 4 { "3,1,2,2" } else { "3,1,2" };
                p.tensor_split = parse_tensor_split(shares, devices).ok();
            }),
        ),
    ]
}

fn logits(
    graph: &Verified<stage::Programs>,
    file: &GgufFile,
    compiled: &CompiledModel,
    tokens: &[u32],
) -> Result<Vec<f64>, ExecError> {
    let mut config = SessionConfig::new(tokens.len());
    if let Some(window) = compiled.model.summary.window {
        config = config.with_window(window, tokens.len());
    }
    let mut session = Session::new(graph, &FileWeights(file), config)?;
    let (first, second) = tokens.split_at(tokens.len() / 2);
    let mut out = Vec::new();
    for (batch, at) in [(first, 0), (second, first.len())] {
        let values = session.decode(&Batch::sequence(batch, at as u32, 0))?;
        out.extend_from_slice(&values.reals()?);
    }
    Ok(out)
}

fn judge(
    path: &Path,
    way: (&str, &Placement),
    each: usize,
    rng: &mut Rng,
    counts: &mut BTreeMap<&'static str, Count>,
) {
    let Some((file, compiled)) = plan(path, way.1) else {
        return;
    };
    let programs = &compiled.programs;
    let model = &compiled.model.graph;
    // Divided caches need several blocks of cells.
    let count = match way.1.cache_split {
        CacheSplit::Cells => BLOCKS,
        CacheSplit::Auto | CacheSplit::Heads => TOKENS,
    };
    let text = golden(path).tokens;
    let tokens: Vec<u32> = text.iter().copied().cycle().take(count).collect();
    let mut right: Option<Vec<f64>> = None;
    for fault in FAULTS.iter().chain(cells::FAULTS) {
        for _ in 0..each {
            let mut draft = Draft::new(programs);
            let Some(sites) = (fault.make)(&mut draft, rng, model) else {
                continue;
            };
            let Some(mutant) = draft.graph().filter(|g| *g != **programs) else {
                continue;
            };
            // The proof must find the fault even if the verifier rejects the programs.
            let mutant = Verified::unchecked(mutant);
            let count = counts.entry(fault.name).or_default();
            count.mutants += 1;
            match prove(model, &mutant) {
                Err(refutation) => {
                    count.caught += 1;
                    let near = |line: usize| {
                        let at = inst(line);
                        let reads = |i| {
                            let data = mutant.inst(i);
                            data.operands.iter().any(|&v| mutant.value(v).def.0 == at)
                        };
                        refutation.inst.is_some_and(|i| i == at || reads(i))
                    };
                    if sites.iter().any(|&s| near(s)) {
                        count.named += 1;
                    } else if std::env::var_os("TPC_MUTANTS").is_some() {
                        let said: Vec<String> = sites
                            .iter()
                            .map(|&s| {
                                let data = mutant.inst(inst(s));
                                let name = data.results.first().map(|&v| &mutant.value(v).name);
                                format!("{} of {name:?} at {s}", data.op.name())
                            })
                            .collect();
                        println!(
                            "{} {} {}: {refutation} ({:?}), changed {}",
                            path.display(),
                            way.0,
                            fault.name,
                            refutation.inst,
                            said.join(", ")
                        );
                    }
                }
                Ok(_) => {
                    let right = right.get_or_insert_with(|| {
                        logits(programs, &file, &compiled, &tokens)
                            .unwrap_or_else(|e| panic!("{e}"))
                    });
                    let found = logits(&mutant, &file, &compiled, &tokens);
                    let nmse = found.map(|f| distance(f, right.iter().copied()).nmse);
                    assert!(
                        nmse.as_ref().is_ok_and(|n| *n <= SAME),
                        "{} {}: {} at {sites:?} is accepted, but gives {nmse:?}\n{:?}",
                        path.display(),
                        way.0,
                        fault.name,
                        sites
                            .iter()
                            .map(|&s| mutant.inst(inst(s)))
                            .collect::<Vec<_>>()
                    );
                    count.equal += 1;
                }
            }
        }
    }
}

#[test]
fn every_fault_is_rejected_and_named() {
    let full = Sweep::asked() == Sweep::Full;
    let only = std::env::var("TPC_MODEL").unwrap_or_default();
    let mut counts = BTreeMap::new();
    let mut programs = 0;
    for (m, path) in goldens().iter().enumerate() {
        if !path.to_string_lossy().contains(&only) {
            continue;
        }
        for devices in [2, 3, 4] {
            let ways = placements(devices);
            let mut rng = Rng::new((m * 8 + devices) as u64);
            let chosen = (m + devices) % ways.len();
            for (k, (name, placement)) in ways.iter().enumerate() {
                // Per model, a sample has the plain split on one number of devices and a placement on another number.
                let sampled = match k {
                    0 => devices == 2 + m % 3,
                    _ => k == chosen && devices == 2 + (m + 1) % 3,
                };
                if !full && !sampled {
                    continue;
                }
                let each = if full { 3 } else { 1 };
                judge(path, (name, placement), each, &mut rng, &mut counts);
                programs += 1;
            }
        }
    }
    let mut all = Count::default();
    println!("{:<45} mutants  caught  equal  named", "fault");
    for (name, c) in &counts {
        println!(
            "{name:<45} {:>7} {:>7} {:>6} {:>6}",
            c.mutants, c.caught, c.equal, c.named
        );
        all.mutants += c.mutants;
        all.caught += c.caught;
        all.equal += c.equal;
        all.named += c.named;
    }
    println!(
        "{programs} programs: {} mutants, {} equal when run, {} faults, {} caught, {} named ({:.1} %)",
        all.mutants,
        all.equal,
        all.mutants - all.equal,
        all.caught,
        all.named,
        100.0 * all.named as f64 / all.caught.max(1) as f64
    );
    assert_eq!(all.mutants - all.equal, all.caught);
    // The models in the repository do not cover every kind.
    if only.is_empty() && tpc_tests::shared().is_some() {
        assert!(
            all.named * 100 >= all.caught * 95,
            "{} of {}",
            all.named,
            all.caught
        );

        let missing: Vec<&str> = (FAULTS.iter().chain(cells::FAULTS))
            .map(|f| f.name)
            .filter(|n| counts.get(n).is_none_or(|c| c.caught == 0))
            .collect();
        assert!(missing.is_empty(), "no mutant of {missing:?} was caught");
    }
}
