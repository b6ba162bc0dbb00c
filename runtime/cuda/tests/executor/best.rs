//! The largest logits, found by devices, are the largest of all logits.

use super::*;
use tpc_test_devices::{CountingDriver, Tally};

/// Logits in two parts on two devices, joined on the host.
const PARTS: &str = r#"tpir 1
graph "parts"
device dev0 "cuda:0"
device dev1 "cuda:1"

v0 "a": f32[5000, n_tokens] @host = input {name = "a"}
v1 "b": f32[3001, n_tokens] @host = input {name = "b"}
v2: f32[5000, n_tokens] @dev0 = copy v0
v3: f32[3001, n_tokens] @dev1 = copy v1
v4: f32[5000, n_tokens] @dev0 = add v2, v2
v5: f32[3001, n_tokens] @dev1 = add v3, v3
v6: f32[5000, n_tokens] @host = copy v4
v7: f32[3001, n_tokens] @host = copy v5
v8: f32[8001, n_tokens] @host = concat v6, v7 {axis = 0}

output "logits" = v8
"#;

const SIZES: [usize; 2] = [5000, 3001];
const VOCABULARY: usize = 8001;
const MOST: u64 = 10;

type Counted = CudaExecutor<CountingDriver<TestDriver>>;

fn executor(seed: u64) -> Option<(Counted, Tally)> {
    let parsed = parse(PARTS).unwrap_or_else(|e| panic!("{}", e[0]));
    let graph = Verified::new(parsed.graph).unwrap_or_else(|e| panic!("{e}"));
    let of = |n| BatchShape {
        most: Bindings::default().with(Symbol::NTokens, n),
    };
    let program = assemble(&graph, &[of(2), of(MOST)], &CudaTarget).expect("a small program");
    verify(&program).unwrap_or_else(|e| panic!("{}", e[0]));
    let (driver, tally) = CountingDriver::new(devices(Links::Peers, seed)?);
    let options = CudaOptions::with_threads(1);
    let weights = MemoryWeights::new();
    let executor = CudaExecutor::new(Arc::new(program), &weights, driver, options);
    Some((executor.unwrap_or_else(|e| panic!("{e}")), tally))
}

/// Runs a batch whose logits are twice `rows`, and asks for the largest logits of each row.
fn outputs(executor: &mut Counted, rows: &[Vec<f32>], wanted: Option<usize>) -> Outputs {
    let sizes = Bindings::default().with(Symbol::NTokens, rows.len() as u64);
    let mut outputs = Outputs::new(executor.interface());
    outputs.want_best(wanted);
    let mut host = |_: &InputKind, ty: &TensorType| -> Result<Tensor, ExecError> {
        let dims = Shape::of(ty, &sizes)?.dims;
        let part = match dims[0] == SIZES[0] {
            true => 0..SIZES[0],
            false => SIZES[0]..VOCABULARY,
        };
        let values = rows.iter().flat_map(|row| row[part.clone()].to_vec());
        Tensor::new(dims, Data::F32(values.collect()))
    };
    executor
        .run_phase(&mut BatchRun::new(&sizes), &mut host, &mut outputs)
        .unwrap_or_else(|e| panic!("{e}"));
    outputs
}

/// Rows with equal logits, zeros of both signs and infinities.
fn rows(n: usize, seed: u64) -> Vec<Vec<f32>> {
    let random = Random::new("logits", seed);
    let few = [0.0, -0.0, 1.0, -1.0, f32::NEG_INFINITY];
    let row = |r: usize| match r % 3 {
        0 => (0..VOCABULARY).map(|_| random.real() as f32).collect(),
        1 => (0..VOCABULARY)
            .map(|i| {
                if i % 97 == 0 {
                    2.5
                } else {
                    random.real() as f32
                }
            })
            .collect(),
        _ => (0..VOCABULARY)
            .map(|i| few[(i * 7 + r) % 5].min(0.0))
            .collect(),
    };
    (0..n).map(row).collect()
}

/// Returns the largest logits of a row of all logits, with their bits.
fn largest(row: &[f32], count: usize) -> Vec<(u32, u32)> {
    let mut all: Vec<(u32, f32)> = (0..).zip(row.iter().map(|x| x + x)).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    all.truncate(count);
    all.iter()
        .map(|(id, logit)| (*id, logit.to_bits()))
        .collect()
}

#[test]
fn devices_find_the_largest_logits() {
    for seed in 0..3 {
        let Some((mut executor, tally)) = executor(seed) else {
            return;
        };
        for (n, wanted) in [(1, 1), (2, 40), (9, 3), (MOST as usize, 64)] {
            let rows = rows(n, seed);
            tally.take();
            let found = outputs(&mut executor, &rows, Some(wanted));
            let calls = tally.take();
            assert_eq!((calls.launches, calls.waits, calls.reads.len()), (2, 1, 0));
            let best = found.best().expect("the largest logits");
            assert!(found.get(0).is_none(), "all logits were copied");
            assert_eq!(best.rows(), n);
            for (r, row) in rows.iter().enumerate() {
                let mut got = best.row(r).to_vec();
                got.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
                let got: Vec<(u32, u32)> = got.iter().map(|b| (b.0, b.1.to_bits())).collect();
                assert_eq!(got, largest(row, wanted), "seed {seed}, row {r} of {n}");
            }
        }
    }
}

#[test]
fn unusable_logits_are_copied_to_the_host() {
    let Some((mut executor, _)) = executor(0) else {
        return;
    };
    let bad = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    for (i, bad) in bad.into_iter().enumerate() {
        let mut rows = rows(2, i as u64);
        match bad == f32::NEG_INFINITY {
            true => rows[1].fill(bad),
            false => rows[1][SIZES[0] + 17] = bad,
        }
        let found = outputs(&mut executor, &rows, Some(4));
        assert!(found.best().is_none(), "{bad}");
        let all = found.get(0).expect("all logits");
        let all: Vec<u64> = all
            .reals()
            .expect("reals")
            .iter()
            .map(|x| x.to_bits())
            .collect();
        let given = rows.iter().flatten().map(|x| f64::from(x + x).to_bits());
        assert_eq!(all, given.collect::<Vec<_>>(), "{bad}");
    }
}

#[test]
fn all_logits_are_copied_if_they_are_wanted() {
    let Some((mut executor, _)) = executor(0) else {
        return;
    };
    let rows = rows(2, 5);
    for wanted in [None, Some(0), Some(65)] {
        let found = outputs(&mut executor, &rows, wanted);
        assert!(
            found.best().is_none() && found.get(0).is_some(),
            "{wanted:?}"
        );
    }
}
