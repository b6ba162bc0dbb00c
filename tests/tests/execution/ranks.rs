//! Programs with devices in several processes (ranks, here threads): the logits have the bits of one process.

use std::path::Path;
use std::sync::Arc;

use tpc_core::placement::{Placement, SplitMode};
use tpc_cpu::{CoreSets, CpuExecutor, CpuOptions, CpuTarget};
use tpc_ir::DType;
use tpc_ir::program::Target;
use tpc_runtime::ranks::{Channels, Endpoint, Leader, RankSeat, Ranks, Share, Transport, follow};
use tpc_runtime::{ExecError, Executor, Session};
use tpc_tests::{Sweep, goldens};

use crate::support::{Assembled, FileWeights, behind, name, one_by_one, placed, plan};

pub(crate) const WAYS: [&str; 9] = [
    "",
    "-sm layer",
    "-sm auto",
    "--cache-split cells",
    "-ngl 1",
    "-cmoe",
    "-nkvo",
    "-ts 3,1,2,1",
    "-ot output.*=CPU",
];

/// Returns a rank's seat.
pub(crate) fn seat(
    model: &Assembled,
    end: &Endpoint,
    ranks: &Ranks,
) -> Result<RankSeat, ExecError> {
    Ok(RankSeat {
        share: Share::of(&model.program, ranks.clone(), end.rank())?,
        transport: Arc::new(end.clone()),
    })
}

fn executor(model: &Assembled, end: &Endpoint, ranks: &Ranks) -> Result<CpuExecutor, ExecError> {
    let seat = seat(model, end, ranks)?;
    let (program, weights) = (Arc::clone(&model.program), FileWeights(&model.file));
    let options = CpuOptions::with_threads(1);
    CpuExecutor::on_rank(
        program,
        &weights,
        options,
        (&CoreSets::default(), Some(seat)),
    )
}

/// Runs a batch and single tokens, then saves the session. Returns the logits and the file.
pub(crate) fn run<E: Executor>(executor: E, model: &Assembled) -> (Vec<f64>, Vec<u8>) {
    let session = Session::with_executor(Box::new(executor), model.config);
    let mut session = session.unwrap_or_else(|e| panic!("{e}"));
    let (head, rest) = model.tokens.split_at(model.tokens.len() / 2);
    let mut out = behind(&mut session, head, 0);
    out.extend(one_by_one(&mut session, rest, head.len()));
    let mut saved = Vec::new();
    let texts = [(0, model.tokens.clone())];
    if session.save(7, &texts, &mut saved).is_ok() {
        session.clear().unwrap_or_else(|e| panic!("{e}"));
        session
            .load(7, &saved)
            .unwrap_or_else(|e| panic!("loading: {e}"));
        let mut again = Vec::new();
        session
            .save(7, &texts, &mut again)
            .unwrap_or_else(|e| panic!("saving again: {e}"));
        assert!(saved == again, "a loaded session differs");
    }
    (out, saved)
}

/// Runs a model on ranks, whose executors `make` loads.
pub(crate) fn on_ranks<E: Executor + 'static>(
    model: &Assembled,
    ranks: &Ranks,
    make: &(impl Fn(&Assembled, &Endpoint, &Ranks) -> Result<E, ExecError> + Sync),
) -> (Vec<f64>, Vec<u8>) {
    let mut ends = Channels::connect(ranks.count());
    let first = ends.remove(0);
    std::thread::scope(|scope| {
        for end in ends {
            scope.spawn(move || {
                let done =
                    make(model, &end, ranks).and_then(|mut executor| follow(&mut executor, &end));
                if let Err(e) = done {
                    end.fail(&e.to_string());
                }
            });
        }
        let own = make(model, &first, ranks).unwrap_or_else(|e| panic!("{e}"));
        let program = Arc::clone(&model.program);
        let leader = Leader::new(
            Box::new(own),
            program,
            ranks.clone(),
            Arc::new(first),
            Arc::new(()),
        );
        run(leader, model)
    })
}

fn check(path: &Path, (way, placement): (&str, &Placement), ranks: &[Ranks]) -> bool {
    let tokens: Vec<u32> = (0..8).map(|i| (i * 37 + i * i) % 100).collect();
    let Some(model) = Assembled::new(path, placement, &tokens, &CpuTarget) else {
        return false;
    };
    let program = Arc::clone(&model.program);
    let weights = FileWeights(&model.file);
    let options = CpuOptions::with_threads(placement.devices.len());
    let one = CpuExecutor::new(program, &weights, options).unwrap_or_else(|e| panic!("{e}"));
    let want = run(one, &model);
    for ranks in ranks {
        let got = on_ranks(&model, ranks, &executor);
        let what = format!("{} {way} on {:?}", name(path), ranks.of_devices());
        assert!(want.0 == got.0, "{what}: the logits differ");
        assert!(want.1 == got.1, "{what}: the saved session differs");
    }
    true
}

#[test]
fn logits_have_the_bits_of_one_process() {
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let mut checked = 0;
    for (i, path) in goldens().iter().enumerate() {
        if !name(path).contains(&only) {
            continue;
        }
        let ways: Vec<&str> = match Sweep::asked() {
            Sweep::Full => WAYS.to_vec(),
            // All models split tensors. Each other way has a part of the models.
            Sweep::Sample => vec!["", WAYS[1 + i % (WAYS.len() - 1)]],
        };
        for way in ways {
            let of = |of: &[usize], count| Ranks::new(of.to_vec(), count).expect("ranks");
            let two = [Ranks::even(2, 2), of(&[1, 1], 2), of(&[1, 0], 2)];
            checked += usize::from(check(path, (way, &placed(2, way)), &two));
            let four = [
                Ranks::even(4, 2),
                Ranks::even(4, 4),
                of(&[0, 0, 0, 1], 2),
                of(&[2, 0, 1, 1], 3),
            ];
            checked += usize::from(check(path, (way, &placed(4, way)), &four));
        }
    }
    assert!(checked > 0 || !only.is_empty(), "no model was checked");
}

/// Two machines with two slow devices and a slow network, for which `auto` divides layers across machines and tensors
/// inside.
const SLOW: &str = r#"Topology(
    devices: [(name: "d", count: 4, memory: "2 GiB", reserve: "0", bandwidth: "1 MB/s", flops: "10 MFLOP/s")],
    machines: [(devices: 2, count: 2)],
    link: (bandwidth: "500 GB/s", latency_us: 0.1),
    network: (bandwidth: "100 MB/s", latency_us: 500000),
)"#;

#[test]
fn plans_of_groups_have_the_bits_of_one_process() {
    let file = std::env::temp_dir().join(format!("tpc-ranks-{}.ron", std::process::id()));
    std::fs::write(&file, SLOW).expect("a temporary file");
    let words = ["--topology", &file.display().to_string(), "-sm", "auto"].map(str::to_owned);
    let placement = tpc::placement(&words, DType::F16, SplitMode::Auto);
    let placement = placement.unwrap_or_else(|d| panic!("{}", d[0]));
    std::fs::remove_file(&file).expect("the file exists");
    let mut groups = 0;
    for (i, path) in goldens().iter().enumerate() {
        if i % Sweep::asked().pick(3, 1) != 0 {
            continue;
        }
        let (_, compiled) = plan(path, &placement);
        if compiled.mode == SplitMode::Hybrid {
            let ranks = [[0, 0, 1, 1], [0, 1, 1, 0]];
            let ranks = ranks.map(|of| Ranks::new(of.to_vec(), 2).expect("ranks"));
            groups += usize::from(check(path, ("in groups", &placement), &ranks));
        }
    }
    assert!(groups > 0, "no plan has groups");
}

/// Runs a token that does not exist on two ranks, whose executors `make` loads. All ranks end.
pub(crate) fn fails_on_all<E: Executor + 'static>(
    model: &Assembled,
    make: &(impl Fn(&Assembled, &Endpoint, &Ranks) -> Result<E, ExecError> + Sync),
) {
    let ranks = Ranks::even(2, 2);
    let mut ends = Channels::connect(2);
    let (second, first) = (ends.remove(1), ends.remove(0));
    std::thread::scope(|scope| {
        let ranks = &ranks;
        let other = scope.spawn(move || {
            let mut executor = make(model, &second, ranks).expect("it loads");
            follow(&mut executor, &second)
        });
        let own = Box::new(make(model, &first, ranks).expect("it loads"));
        let program = Arc::clone(&model.program);
        let leader = Leader::new(own, program, ranks.clone(), Arc::new(first), Arc::new(()));
        let mut session = Session::with_executor(Box::new(leader), model.config).expect("logits");
        // One rank finds an index out of range.
        let batch = tpc_runtime::Batch::sequence(&[u32::MAX >> 1], 0, 0);
        session.decode(&batch).expect_err("no such token");
        let after = session.decode(&tpc_runtime::Batch::sequence(&[1], 0, 0));
        assert_eq!(after.expect_err("the ranks have ended").code(), "TPC0630");
        drop(session);
        let ended = other.join().expect("no panic");
        ended.expect_err("all ranks fail");
    });
}

/// Returns a small model on two devices.
pub(crate) fn small(target: &'static dyn Target) -> Assembled {
    let path = goldens()
        .into_iter()
        .find(|p| name(p).contains("llama-dense"));
    let path = path.expect("the repository has this model");
    Assembled::new(&path, &placed(2, ""), &[1, 2, 3], target).expect("a plan")
}

#[test]
fn a_failure_ends_all_ranks() {
    fails_on_all(&small(&CpuTarget), &executor);
}
