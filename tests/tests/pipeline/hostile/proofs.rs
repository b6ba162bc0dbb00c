//! Randomly changed programs. The proof must quickly reject them, or accept only programs that compute the same. The
//! proof runs even if the verifier rejects the programs.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use tpc_core::golden::distance;
use tpc_ir::op::{Attr, AttrReader};
use tpc_ir::{Bindings, DType, Dim, Graph, Interval, Op, Place, Symbol, Verified, stage, text};
use tpc_passes::prove::prove;
use tpc_tests::Sweep;

use super::SLOWEST;
use crate::captures::{random_weights, run_at_random};
use crate::mutants::draft::Draft;
use crate::random::Rng;

/// The maximum NMSE for another order of sums.
const SAME: f64 = 1e-20;

fn witnesses() -> Vec<(String, Graph, Graph)> {
    let folder = tpc_tests::data().join("proof");
    let mut names: Vec<String> = fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{e}"))
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .filter_map(|n| Some(n.strip_suffix(".model.tpir")?.to_owned()))
        .collect();
    names.sort();
    let read = |name: &str, kind: &str| {
        let path = folder.join(format!("{name}.{kind}.tpir"));
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{e}"));
        text::parse(&text)
            .unwrap_or_else(|e| panic!("{}", e[0]))
            .graph
    };
    let read = |name: String| {
        let (model, programs) = (read(&name, "model"), read(&name, "programs"));
        (name, model, programs)
    };
    names.into_iter().map(read).collect()
}

fn size(rng: &mut Rng) -> Dim {
    let n = *rng.pick(&[
        0,
        1,
        2,
        3,
        4,
        5,
        7,
        8,
        16,
        1 << 31,
        1 << 32,
        1 << 62,
        u64::MAX,
    ]);
    let symbol = Dim::from(*rng.pick(&Symbol::ALL));
    let n = Dim::constant(n);
    let found = match rng.range(0, 5) {
        0 => symbol.checked_mul(&n),
        1 => symbol.checked_add(&n),
        2 => symbol.checked_mul(&Dim::from(*rng.pick(&Symbol::ALL))),
        _ => None,
    };
    found.unwrap_or(n)
}

fn interval(rng: &mut Rng) -> Interval {
    let n = [0, 1, 2, 3, 4, 8, u64::MAX / 2, u64::MAX];
    let (start, len) = (*rng.pick(&n), *rng.pick(&n));
    Interval { start, len }
}

fn attribute(value: &Attr, rng: &mut Rng) -> Attr {
    match value {
        Attr::Dim(_) | Attr::Negative(_) => Attr::Dim(size(rng)),
        Attr::Float(_) => {
            let numbers = [
                0.0,
                -0.0,
                1.0,
                -1.0,
                0.5,
                1e38,
                1e-45,
                f32::INFINITY,
                f32::NEG_INFINITY,
                f32::NAN,
            ];
            Attr::Float(*rng.pick(&numbers))
        }
        Attr::Interval(_) => Attr::Interval(interval(rng)),
        Attr::List(all) => {
            let mut all = all.clone();
            match rng.range(0, 3) {
                0 => drop(all.pop()),
                1 => all.push(Attr::Interval(interval(rng))),
                _ if all.is_empty() => {}
                _ => {
                    let at = (rng.next() % all.len() as u64) as usize;
                    all[at] = attribute(&all[at], rng);
                }
            }
            Attr::List(all)
        }
        Attr::Word(w) => Attr::Word(w.clone()),
        Attr::Str(s) => Attr::Str(s.clone()),
    }
}

/// Changes a parameter of an op. Returns the op unchanged if it has no parameter or refuses the value.
fn parameter(op: &Op, rng: &mut Rng) -> Op {
    let mut attrs = op.attrs();
    if attrs.is_empty() {
        return op.clone();
    }
    let at = (rng.next() % attrs.len() as u64) as usize;
    attrs[at].1 = attribute(&attrs[at].1, rng);
    let given = attrs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    let other = Op::parse(op.name(), AttrReader::new(given.collect()));
    other.and_then(Result::ok).unwrap_or_else(|| op.clone())
}

fn change(d: &mut Draft, ops: &[Op], rng: &mut Rng) {
    let line = (rng.next() % d.lines.len() as u64) as usize;
    let cell = (rng.next() % d.cells.len() as u64) as usize;
    match rng.range(0, 9) {
        0..=2 => d.lines[line].op = parameter(&d.lines[line].op, rng),
        3 => d.cells[cell].ty.dims[(rng.next() % 4) as usize] = size(rng),
        4 => {
            let types = [DType::F32, DType::F16, DType::I32, DType::Q8_0, DType::Q4K];
            d.cells[cell].ty.dtype = *rng.pick(&types);
        }
        5 => d.lines[line].layer = *rng.pick(&[None, Some(0), Some(1), Some(7), Some(u32::MAX)]),
        6 if !d.lines[line].operands.is_empty() => {
            let k = (rng.next() % d.lines[line].operands.len() as u64) as usize;
            d.lines[line].operands[k] = cell;
        }
        7 => {
            // Add or remove an operand.
            if rng.one_in(2) {
                d.lines[line].operands.push(cell);
            } else {
                d.lines[line].operands.pop();
            }
        }
        8 => {
            let place = *rng.pick(&d.cells.iter().map(|c| c.place).collect::<Vec<Place>>());
            d.cells[cell].place = place;
        }
        _ => d.lines[line].op = rng.pick::<Op>(ops).clone(),
    }
}

/// The maximum number of elements in a value of a graph that is run.
const LARGEST: u64 = 1 << 14;

const BATCH: [(Symbol, u64); 2] = [(Symbol::NTokens, 8), (Symbol::NOutputs, 8)];

/// True if a graph is small enough to run, and has no quantised weights.
fn runs(graph: &Graph) -> bool {
    let bind = |b: Bindings, &(s, n): &(Symbol, u64)| b.with(s, n);
    let batch = BATCH.iter().fold(Bindings::default(), bind);
    let plain = |op: &Op, dtype: DType| !matches!(op, Op::Weight(_)) || dtype == DType::F32;
    graph.values().all(|(v, data)| {
        let small = data.ty.dims.iter().try_fold(1_u64, |n, d| {
            n.checked_mul(d.eval(&batch)?).filter(|&n| n <= LARGEST)
        });
        small.is_some() && plain(graph.def_op(v), data.ty.dtype)
    })
}

fn same(model: &Graph, programs: &Graph) -> Result<(), String> {
    let (Ok(model), Ok(programs)) = (
        Verified::<stage::Model>::new(model.clone()),
        Verified::<stage::Programs>::new(programs.clone()),
    ) else {
        return Ok(());
    };
    if !runs(&model) || !runs(&programs) {
        return Ok(());
    }
    let weights = random_weights(&model);
    let Ok(whole) = run_at_random(&model, &weights, &BATCH, 2) else {
        return Ok(());
    };
    let parts = run_at_random(&programs, &weights, &BATCH, 2).map_err(|e| e.to_string())?;
    for (name, expected) in &whole {
        let d = distance(expected.iter().copied(), parts[name].iter().copied());
        if d.nmse.is_nan() || d.nmse > SAME {
            return Err(format!("{name}: NMSE {:e}", d.nmse));
        }
    }
    Ok(())
}

#[test]
fn changed_programs_are_refused_or_the_same() {
    let asked = std::env::var("TPC_CASES").ok().and_then(|n| n.parse().ok());
    let count: u64 = asked.unwrap_or_else(|| Sweep::asked().pick(6_000, 200_000));
    let first: u64 = std::env::var("TPC_SEED").map_or(0, |n| n.parse().unwrap_or(0));
    let witnesses = witnesses();
    let ops: Vec<Op> = witnesses
        .iter()
        .flat_map(|(_, m, p)| m.insts().chain(p.insts()).map(|(_, i)| i.op.clone()))
        .collect();
    let (mut refused, mut unverified, mut accepted) = (0, 0, 0);
    for seed in first..first + count {
        let mut rng = Rng::new(seed.wrapping_mul(0x9E37) ^ 0x9F00);
        let (name, model, programs) = rng.pick(&witnesses);
        // The model's programs, or the model itself as programs.
        let of_model = rng.one_in(4);
        let mut draft = Draft::new(if of_model { model } else { programs });
        for _ in 0..rng.range(1, 3) {
            change(&mut draft, &ops, &mut rng);
        }
        let Some(changed) = draft.graph() else {
            continue;
        };
        let model = if of_model && rng.one_in(2) {
            &changed
        } else {
            model
        };
        let start = Instant::now();
        let judged = catch_unwind(AssertUnwindSafe(|| {
            let text = changed.to_string();
            if let Ok(parsed) = text::parse(&text) {
                let verified = tpc_ir::verify::verify(&parsed.graph);
                drop(verified);
            }
            let sound = Verified::<stage::Programs>::new(changed.clone()).is_ok();
            let verdict = prove(
                &Verified::unchecked(model.clone()),
                &Verified::unchecked(changed.clone()),
            );
            (sound, verdict.is_ok())
        }));
        let took = start.elapsed();
        let said = || format!("seed {seed}, {name}:\n{model}\n{changed}");
        let Ok((sound, proved)) = judged else {
            panic!("{}: it panics", said());
        };
        assert!(took < SLOWEST, "{}: {took:?}", said());
        match (sound, proved) {
            (_, false) => refused += 1,
            (false, true) => unverified += 1,
            (true, true) => {
                accepted += 1;
                same(model, &changed).unwrap_or_else(|e| panic!("{}: accepted, but {e}", said()));
            }
        }
    }
    println!(
        "{refused} refused, {accepted} accepted and the same, {unverified} accepted though the verifier refuses them"
    );
    assert!(refused > accepted && accepted > 0);
}
