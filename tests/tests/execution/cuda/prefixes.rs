//! Prefixes on cards: ranges of states are read and written where they are.

use std::sync::Arc;

use tpc_core::pipeline::compile;
use tpc_core::placement::Placement;
use tpc_cuda::{CudaExecutor, CudaOptions, CudaTarget};
use tpc_engine::prefix::{BLOCK, PrefixStore};
use tpc_gguf::GgufFile;
use tpc_ir::DType;
use tpc_passes::assemble;
use tpc_runtime::{Batch, CellKind, Executor, Session, SessionConfig};
use tpc_test_devices::TestDriver;
use tpc_tests::goldens;

use super::{ALONE, devices, nmse};
use crate::support::{FileWeights, golden, name, placement, shape};

/// Caches: full, with a window, and hybrid with recurrent states.
const MODELS: [&str; 3] = ["llama-dense", "gemma3", "falcon-h1"];
const EACH: usize = 64;
/// Tokens of a prefix: more than a window of the models.
const PREFIX: usize = BLOCK;
const READ: usize = 40;

type CudaSession = Session<CudaExecutor<TestDriver>>;

/// Returns a session of two sequences; `None` without a C++ compiler.
fn session(path: &std::path::Path, count: usize) -> Option<CudaSession> {
    let file = GgufFile::open(path).unwrap_or_else(|e| panic!("{e}"));
    let placed = Placement {
        storage: &CudaTarget,
        ..placement(count, DType::F16)
    };
    let compiled = compile(&file, &placed).unwrap_or_else(|d| panic!("{}", d[0]));
    let config = SessionConfig::new(2 * EACH).with_sequences(2);
    let config = match compiled.model.summary.window {
        Some(window) => config.with_window(window, 2 * EACH),
        None => config,
    };
    let config = config.with_parts(2, EACH);
    let config = config.in_units(compiled.programs.cell_unit);
    let shapes = [shape(&config, 1), shape(&config, 8)];
    let program = assemble(&compiled.programs, &shapes, &CudaTarget).expect("it is small");
    let driver = devices(count, 3)?;
    let options = CudaOptions::with_threads(1);
    let executor = CudaExecutor::new(Arc::new(program), &FileWeights(&file), driver, options);
    let session = executor.and_then(|e| Session::with_executor(Box::new(e), config));
    Some(session.unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

fn decode(s: &mut CudaSession, tokens: &[u32], at: usize, seq: u32) -> Vec<f64> {
    let parts = tokens.chunks(8).zip((at as u32..).step_by(8));
    let decode = |(part, at): (&[u32], u32)| {
        let logits = s.decode(&Batch::sequence(part, at, seq));
        let logits = logits.unwrap_or_else(|e| panic!("{e}"));
        logits.reals().expect("logits are real").to_vec()
    };
    parts.flat_map(decode).collect()
}

/// Returns the cells and states of a sequence of [`PREFIX`] tokens.
fn cells(s: &CudaSession, seq: u32) -> Vec<u8> {
    let layout = s.prefix_layout().expect("states can be read");
    let mut out = Vec::new();
    for kind in [CellKind::Full, CellKind::Windowed] {
        let read = s.read_cells(seq, kind, 0..PREFIX as u64, &mut out);
        let has = kind == CellKind::Full || s.config().window.is_some();
        assert_eq!(read.expect("cells are read"), has);
    }
    let read = s.read_recurrent(seq, &mut out).expect("states are read");
    assert_eq!(read, layout.recurrent > 0);
    let each = layout.full + layout.windowed;
    assert_eq!(out.len(), PREFIX * each + layout.recurrent);
    out
}

#[test]
fn a_restored_prefix_has_the_bytes_of_a_computed_one() {
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let sampled = |n: &str| n.contains(&only) && MODELS.iter().any(|m| n.starts_with(m));
    for path in goldens().into_iter().filter(|p| sampled(&name(p))) {
        let tokens = golden(&path).tokens;
        for count in [1, 2] {
            let Some(mut s) = session(&path, count) else {
                return;
            };
            let what = format!("{} on {count}", name(&path));
            decode(&mut s, &tokens[..PREFIX], 0, 0);
            let mut store = PrefixStore::new(1 << 30);
            let stored = store.save(&s, 0, &tokens[..PREFIX]);
            assert_eq!(stored.expect("saved"), PREFIX, "{what}");
            let restored = store.restore(&mut s, 1, &tokens[..READ]);
            assert_eq!(restored.expect("restored"), PREFIX, "{what}");
            assert!(cells(&s, 0) == cells(&s, 1), "{what}: other bytes");
            let wanted = decode(&mut s, &tokens[PREFIX..READ], PREFIX, 0);
            let found = decode(&mut s, &tokens[PREFIX..READ], PREFIX, 1);
            let far = nmse(&what, READ - PREFIX, &wanted, &found);
            assert!(far <= ALONE, "{what}: {far:e}");
            println!("{what}: {far:.2e}");
        }
    }
}

/// Reads and writes of ranges and of whole states see each other, before and after a batch.
#[test]
fn ranges_and_copies_of_states_agree() {
    let path = goldens()
        .into_iter()
        .find(|p| name(p).starts_with("llama-dense"));
    let path = path.expect("a golden model");
    let file = GgufFile::open(&path).unwrap_or_else(|e| panic!("{e}"));
    let placed = Placement {
        storage: &CudaTarget,
        ..placement(1, DType::F16)
    };
    let compiled = compile(&file, &placed).unwrap_or_else(|d| panic!("{}", d[0]));
    let shapes = [shape(&SessionConfig::new(EACH), 1)];
    let program = assemble(&compiled.programs, &shapes, &CudaTarget).expect("it is small");
    let Some(driver) = devices(1, 3) else {
        return;
    };
    let options = CudaOptions::with_threads(1);
    let executor = CudaExecutor::new(Arc::new(program), &FileWeights(&file), driver, options);
    let mut e = executor.unwrap_or_else(|e| panic!("{e}"));
    let states = e.interface().states.clone();
    let (state, other) = (states[0].value, states[1].value);
    let range = |e: &CudaExecutor<TestDriver>, state, at| {
        let mut bytes = [0; 4];
        let kept = e.read_state(state, at, &mut bytes).expect("read");
        kept.then_some(bytes)
    };
    assert_eq!(e.write_state(state, 10, &[1, 2, 3, 4]), Ok(true));
    assert_eq!(range(&e, state, 9), Some([0, 1, 2, 3]));
    let whole = e.state(state).expect("read").expect("kept").to_vec();
    assert_eq!(whole[9..15], [0, 1, 2, 3, 4, 0]);
    // The host has a copy now.
    assert_eq!(e.write_state(state, 12, &[7]), Ok(true));
    assert_eq!(range(&e, state, 10), Some([1, 2, 7, 4]));
    assert_eq!(e.state(state).expect("read").expect("kept")[12], 7);
    // The copy has bytes that the device does not have yet.
    e.state_mut(other).expect("read").expect("kept")[5] = 9;
    assert_eq!(range(&e, other, 4), Some([0, 9, 0, 0]));
    assert_eq!(e.write_state(other, 6, &[8]), Ok(true));
    let end = whole.len();
    assert_eq!(range(&e, state, end - 3), None);
    assert_eq!(range(&e, state, usize::MAX), None);
    assert_eq!(e.write_state(state, end, &[1]), Ok(false));
    let mut s = Session::with_executor(Box::new(e), SessionConfig::new(EACH));
    let s = s.as_mut().expect("it has logits");
    s.decode(&Batch::sequence(&[3], 40, 0)).expect("it runs");
    // The batch has written the first cell of each cache.
    let cell = end / EACH;
    assert_eq!(range(s.executor(), other, cell), Some([0; 4]));
    let mut first = vec![0; cell];
    assert_eq!(s.executor().read_state(other, 0, &mut first), Ok(true));
    assert!(first.iter().any(|b| *b != 0));
}
