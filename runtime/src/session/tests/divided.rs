//! Sessions with caches that are divided by cells.

use super::*;
use crate::executor::Host;
use crate::quant::{dequantise, quantise};
use crate::states::CellKind;
use crate::tensor::{Data, Shape};

/// The reference executor with states that a session can read and write.
struct Kept<'g> {
    inner: Interpreter<'g>,
    sizes: Bindings,
}

impl Kept<'_> {
    fn shape(&self, state: Value) -> Shape {
        let states = &self.inner.interface().states;
        let info = states.iter().find(|s| s.value == state).expect("a state");
        info.shape(&self.sizes).expect("it is small")
    }

    fn bytes(&self, state: Value) -> Vec<u8> {
        let shape = self.shape(state);
        let Some(content) = self.inner.state(state) else {
            return vec![0; shape.bytes() as usize];
        };
        let mut out = Vec::new();
        let values: Vec<f32> = content
            .reals()
            .expect("real")
            .iter()
            .map(|&v| v as f32)
            .collect();
        quantise(shape.dtype, &values, &mut out).expect("a cache type");
        out
    }
}

impl Executor for Kept<'_> {
    fn interface(&self) -> &crate::executor::Interface {
        self.inner.interface()
    }

    fn lookahead(&self, run: &BatchRun) -> Option<u32> {
        self.inner.lookahead(run)
    }

    fn run_phase(
        &mut self,
        run: &mut BatchRun,
        host: &mut dyn Host,
        outputs: &mut Outputs,
    ) -> Result<(), ExecError> {
        self.inner.run_phase(run, host, outputs)
    }

    fn commit(&mut self) {
        self.inner.commit();
    }

    fn discard(&mut self) {
        self.inner.discard();
    }

    fn reset_states(&mut self) -> Result<(), ExecError> {
        self.inner.reset_states()
    }

    fn read_state(&self, state: Value, offset: usize, to: &mut [u8]) -> Result<bool, ExecError> {
        let bytes = self.bytes(state);
        let from = bytes.get(offset..).and_then(|b| b.get(..to.len()));
        Ok(from.map(|from| to.copy_from_slice(from)).is_some())
    }

    fn write_state(
        &mut self,
        state: Value,
        offset: usize,
        bytes: &[u8],
    ) -> Result<bool, ExecError> {
        let (shape, mut all) = (self.shape(state), self.bytes(state));
        let to = all.get_mut(offset..).and_then(|b| b.get_mut(..bytes.len()));
        let Some(to) = to else {
            return Ok(false);
        };
        to.copy_from_slice(bytes);
        let mut values = vec![0.0; shape.dims.iter().product()];
        dequantise(shape.dtype, &all, &mut values)?;
        let values = values.into_iter().map(f64::from).collect();
        self.inner
            .set_state(state, Tensor::new(shape.dims, Data::F64(values))?);
        Ok(true)
    }
}

fn divided(
    dtype: DType,
    max_bias: f32,
    swa: bool,
    division: &Division,
) -> Verified<stage::Programs> {
    Verified::new(graph(dtype, max_bias, swa, division)).expect("the programs verify")
}

fn kept(graph: &Verified<stage::Programs>, config: SessionConfig) -> Session<Kept<'_>> {
    let inner = Interpreter::new(graph, &weights(), Options::default()).expect("loads");
    let config = config.in_units(graph.cell_unit);
    let sizes = config.batch_shape(1, 1).most;
    Session::with_executor(Box::new(Kept { inner, sizes }), config).expect("has logits")
}

fn part(first: u64, count: u64, of: u64) -> CellParts {
    CellParts { first, count, of }
}

/// Divisions with one part, equal parts, unequal parts, parts in another order and longer rounds.
fn divisions() -> Vec<Division> {
    vec![
        Division {
            unit: 64,
            parts: vec![part(0, 1, 1)],
        },
        Division {
            unit: 128,
            parts: vec![part(0, 1, 2), part(1, 1, 2)],
        },
        Division {
            unit: 192,
            parts: vec![part(2, 1, 3), part(0, 2, 3)],
        },
        Division {
            unit: 384,
            parts: vec![part(0, 1, 2), part(1, 1, 2)],
        },
    ]
}

fn text(n: usize) -> Vec<u32> {
    (0..n).map(|i| TEXT[(i * i / 7 + i) % TEXT.len()]).collect()
}

/// Reads tokens `from..to` of the text in batches of at most `each`. Returns the logits.
fn read<E: Executor>(
    s: &mut Session<E>,
    seq: u32,
    (from, to): (usize, usize),
    each: usize,
) -> Vec<f64> {
    let text = text(to);
    let mut out = Vec::new();
    for at in (from..to).step_by(each) {
        let end = to.min(at + each);
        let batch = Batch::sequence(&text[at..end], at as u32, seq);
        out.extend(
            s.decode(&batch)
                .expect("decodes")
                .reals()
                .expect("real")
                .iter(),
        );
    }
    out
}

#[track_caller]
fn same(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len());
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!(
            (a - b).abs() < 1e-10,
            "{what}: {i}: found {a}, expected {b}"
        );
    }
}

#[test]
fn a_divided_cache_gives_the_results_of_a_whole_one() {
    for (dtype, max_bias) in [(DType::F16, 0.0), (DType::F32, 8.0)] {
        let run = |division: &Division| {
            let g = divided(dtype, max_bias, false, division);
            let mut s = session(&g, SessionConfig::new(300));
            let cells = 300_usize.next_multiple_of(division.unit as usize);
            assert_eq!(s.config().n_ctx, cells);
            let mut out = read(&mut s, 0, (0, 200), 70);
            out.extend(read(&mut s, 0, (200, 220), 1));
            s.truncate(0, 130).expect("goes back");
            out.extend(read(&mut s, 0, (130, 210), 33));
            out
        };
        let whole = run(&WHOLE);
        for d in divisions() {
            same(&run(&d), &whole, &format!("{:?} of {}", d.parts, d.unit));
        }
    }
}

#[test]
fn a_window_moves_through_a_divided_cache() {
    let run = |division: &Division| {
        let g = divided(DType::F16, 0.0, true, division);
        let config = SessionConfig::new(600).with_window(Window::Sliding(40), 384);
        let mut s = session(&g, config);
        let mut out = read(&mut s, 0, (0, 500), 70);
        s.truncate(0, 480).expect("the window is there");
        out.extend(read(&mut s, 0, (480, 530), 7));
        out
    };
    let whole = run(&WHOLE);
    for d in divisions() {
        same(&run(&d), &whole, &format!("{:?} of {}", d.parts, d.unit));
    }
}

#[test]
fn a_sequence_has_the_same_bits_in_company() {
    for d in divisions() {
        let g = divided(DType::F16, 0.0, false, &d);
        let n = 2 * d.unit as usize;
        let alone = read(
            &mut session(&g, SessionConfig::new(n)),
            1,
            (0, 200.min(n)),
            50,
        );
        let mut s = session(&g, SessionConfig::new(3 * n).with_parts(3, usize::MAX));
        read(&mut s, 0, (0, 90), 40);
        let mut found = read(&mut s, 1, (0, 100), 50);
        read(&mut s, 0, (90, 120), 1);
        read(&mut s, 2, (0, 128), 128);
        found.extend(read(&mut s, 1, (100, 200.min(n)), 50));
        assert_eq!(found, alone, "{:?} of {}", d.parts, d.unit);
    }
}

#[test]
fn sequences_share_a_divided_cache() {
    let run = |division: &Division| {
        let g = divided(DType::F16, 0.0, false, division);
        let mut s = session(&g, SessionConfig::new(384));
        let mut out = Vec::new();
        for at in 0..8 {
            for seq in 0..3 {
                out.extend(read(&mut s, seq, (at * 14, at * 14 + 14), 14));
            }
        }
        s.remove_sequence(1);
        out.extend(read(&mut s, 2, (112, 140), 9));
        out.extend(read(&mut s, 4, (0, 60), 60));
        out
    };
    let whole = run(&WHOLE);
    for d in divisions() {
        same(&run(&d), &whole, &format!("{:?} of {}", d.parts, d.unit));
    }
}

#[test]
fn keys_turn_in_the_place_that_has_them() {
    let run = |division: &Division| {
        let g = divided(DType::F16, 0.0, false, division);
        let mut s = kept(&g, SessionConfig::new(384));
        read(&mut s, 0, (0, 10), 10);
        read(&mut s, 1, (0, 250), 70);
        s.shift(1, 20, 90).expect("keys turn");
        read(&mut s, 1, (160, 200), 8)
    };
    let whole = run(&WHOLE);
    for d in divisions() {
        same(&run(&d), &whole, &format!("{:?} of {}", d.parts, d.unit));
    }
}

#[test]
fn a_session_loads_on_another_division() {
    let all: Vec<Division> = [WHOLE].into_iter().chain(divisions()).collect();
    let config = || SessionConfig::new(768).with_window(Window::Sliding(50), 384);
    for swa in [false, true] {
        let graphs: Vec<_> = all
            .iter()
            .map(|d| divided(DType::F16, 0.0, swa, d))
            .collect();
        let mut expected = None;
        let mut files = Vec::new();
        for g in &graphs {
            let mut s = kept(g, config());
            read(&mut s, 3, (0, 280), 60);
            let mut file = Vec::new();
            s.save(7, &[(3, text(280))], &mut file).expect("saves");
            files.push(file);
            let next = read(&mut s, 3, (280, 300), 4);
            same(
                &next,
                expected.get_or_insert_with(|| next.clone()),
                "as read",
            );
        }
        assert!(
            files.iter().all(|f| *f == files[0]),
            "a file does not tell the division"
        );
        let expected = expected.expect("graphs");
        for g in &graphs {
            let mut s = kept(g, config());
            read(&mut s, 5, (0, 9), 9);
            let texts = s.load(7, &files[0]).expect("loads");
            assert_eq!(texts, [(3, text(280))]);
            same(&read(&mut s, 3, (280, 300), 4), &expected, "as loaded");
        }
    }
}

#[test]
fn prefixes_have_the_bytes_of_a_whole_cache() {
    let cells = |division: &Division| {
        let g = divided(DType::F16, 0.0, false, division);
        let mut s = kept(&g, SessionConfig::new(384));
        read(&mut s, 0, (0, 260), 70);
        let mut out = Vec::new();
        let read = s.read_cells(0, CellKind::Full, 30..250, &mut out);
        assert_eq!(read, Ok(true));
        out
    };
    let whole = cells(&WHOLE);
    for d in divisions() {
        assert_eq!(cells(&d), whole, "{:?} of {}", d.parts, d.unit);
        let g = divided(DType::F16, 0.0, false, &d);
        let mut s = kept(&g, SessionConfig::new(384));
        let mut block = Vec::new();
        let mut other = kept(&g, SessionConfig::new(384));
        let expected = read(&mut other, 0, (0, 240), 40);
        let read_cells = other.read_cells(0, CellKind::Full, 0..200, &mut block);
        assert_eq!(read_cells, Ok(true));
        let prefix = Prefix {
            block: 200,
            full: vec![&block],
            ..Prefix::default()
        };
        s.restore_prefix(0, &prefix).expect("it fits");
        let found = read(&mut s, 0, (200, 240), 40);
        assert_eq!(found, expected[expected.len() - found.len()..]);
    }
}

#[test]
fn a_state_without_a_place_for_some_cells_is_unknown() {
    for parts in [vec![part(0, 1, 2)], vec![part(0, 1, 3), part(2, 1, 3)]] {
        let unit = 64 * parts[0].of;
        let g = divided(DType::F16, 0.0, false, &Division { unit, parts });
        let mut s = kept(&g, SessionConfig::new(384));
        read(&mut s, 0, (0, 5), 5);
        let saved = s.save(7, &[], &mut Vec::new()).map_err(|e| e.to_string());
        let unknown = ExecError::NoStates { state: "k".into() };
        assert_eq!(saved, Err(unknown.to_string()));
        assert!(s.prefix_layout().is_none());
    }
}
