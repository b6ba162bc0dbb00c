mod divided;

use super::*;
use crate::weights::MemoryWeights;
use tpc_ir::Output;
use tpc_ir::Window;
use tpc_ir::op::Op;
use tpc_ir::op::{
    Binary, BinaryKind, Concat, Copy, FlashAttn, GetRows, Input, MergeAttn, MulMat, Permute,
    Reshape, Rope, RopeMode, SetRows, Slice, State, Weight,
};
use tpc_ir::{
    CellParts, CellUnit, DType, Device, DeviceData, Dim, Graph, Place, Value, Verified, stage,
};

const VOCAB: u64 = 6;
/// Embedding width: two heads of two elements.
const WIDTH: u64 = 4;

/// A graph, and the place of its next values.
struct Builder(Graph, Place);

impl Builder {
    fn leaf(&mut self, op: impl Into<Op>, dtype: DType, dims: &[Dim]) -> Value {
        let dims: [Dim; 4] = std::array::from_fn(|i| dims.get(i).cloned().unwrap_or(Dim::ONE));
        let ty = TensorType { dtype, dims };
        let inst = self.0.push(op, vec![], vec![ty], self.1, None);
        self.0.inst(inst).results[0]
    }

    fn weight(&mut self, name: &str, rows: u64) -> Value {
        let op = Weight {
            tensor: name.into(),
            parts: None,
        };
        self.leaf(op, DType::F32, &[WIDTH.into(), rows.into()])
    }

    fn input(&mut self, kind: InputKind, dtype: DType, dims: &[Dim]) -> Value {
        self.leaf(Input { kind }, dtype, dims)
    }

    #[track_caller]
    fn op(&mut self, op: impl Into<Op>, operands: &[Value]) -> Value {
        self.0
            .push_with_inference(op, operands.to_vec(), self.1, None)
            .expect("operands fit")
    }

    /// Returns a number of cells in a graph with units, or in some parts of the cells.
    fn cells(&self, symbol: Symbol, parts: Option<CellParts>) -> Dim {
        let unit = self.0.cell_unit.0;
        let held = parts.map_or(unit, |p| unit / p.of * p.count);
        Dim::from(symbol).in_units(held).expect("it is small")
    }

    /// Stores `x` in a cache. Returns the cells that the batch attends to, as heads.
    fn cached(&mut self, name: &str, [x, rows]: [Value; 2], cache: &Cache) -> Value {
        let parts = cache.parts;
        let op = State {
            cells: parts,
            ..State::named(name)
        };
        let dims = [2.into(), 2.into(), self.cells(cache.ctx, parts)];
        let old = self.leaf(op, cache.dtype, &dims);
        let set = SetRows {
            axis: 2,
            cells: parts,
        };
        let value = self.op(set, &[old, x, rows]);
        self.0.outputs.push(Output::State { state: old, value });
        let kv = self.cells(cache.kv, parts);
        let slice = Slice {
            axis: 2,
            start: Dim::ZERO,
            len: kv,
        };
        let seen = self.op(slice, &[value]);
        self.op(Permute { axes: [0, 2, 1, 3] }, &[seen])
    }

    /// Attends to a cache: `[q, k, v, rows, mask]`.
    fn attend(
        &mut self,
        attn: FlashAttn,
        [q, k, v, rows, mask]: [Value; 5],
        cache: &Cache,
    ) -> Value {
        let k = self.cached("k", [k, rows], cache);
        let v = self.cached("v", [v, rows], cache);
        self.op(attn, &[q, k, v, mask])
    }

    /// Attends to parts of a cache, one per device, and joins the results on the host.
    fn attend_parts(
        &mut self,
        attn: &FlashAttn,
        values: [Value; 5],
        (cache, parts): (&Cache, &[CellParts]),
    ) -> Value {
        let on_device = |(i, &parts): (usize, &CellParts)| {
            let name = format!("cpu:{i}");
            self.0.devices.push(DeviceData { name });
            self.1 = Place::Device(Device::new(i));
            let mut values = values.map(|x| self.op(Copy, &[x]));
            values[4] = self.columns(values[4], cache.kv, parts);
            let cache = Cache {
                parts: Some(parts),
                ..*cache
            };
            let y = self.attend(attn.clone(), values, &cache);
            self.1 = Place::Host;
            self.op(Copy, &[y])
        };
        let parts: Vec<Value> = parts.iter().enumerate().map(on_device).collect();
        let all = self.op(Concat { axis: 3 }, &parts);
        self.op(MergeAttn, &[all])
    }

    /// Returns the columns of a mask for some parts of the cells.
    fn columns(&mut self, mask: Value, kv: Symbol, parts: CellParts) -> Value {
        let rounds = self.cells(kv, None);
        let rounds = rounds.checked_div(&(64 * parts.of).into()).expect("units");
        let t: Dim = Symbol::NTokens.into();
        let dims = [64.into(), parts.of.into(), rounds, t.clone()];
        let mask = self.op(Reshape { dims }, &[mask]);
        let slice = Slice {
            axis: 1,
            start: parts.first.into(),
            len: parts.count.into(),
        };
        let mask = self.op(slice, &[mask]);
        let dims = [self.cells(kv, Some(parts)), t, Dim::ONE, Dim::ONE];
        self.op(Reshape { dims }, &[mask])
    }
}

/// The caches of a graph.
struct Cache {
    dtype: DType,
    ctx: Symbol,
    kv: Symbol,
    parts: Option<CellParts>,
}

impl Cache {
    fn of(dtype: DType, swa: bool) -> Cache {
        let (ctx, kv) = match swa {
            true => (Symbol::NCtxSwa, Symbol::NKvSwa),
            false => (Symbol::NCtx, Symbol::NKv),
        };
        Cache {
            dtype,
            ctx,
            kv,
            parts: None,
        }
    }
}

/// The division of caches: the unit of cells, and the parts of each device; no parts for whole caches on the host.
struct Division {
    unit: u64,
    parts: Vec<CellParts>,
}

const WHOLE: Division = Division {
    unit: 1,
    parts: Vec::new(),
};

fn model(cache: DType, max_bias: f32, swa: bool) -> Verified<stage::Model> {
    Verified::new(graph(cache, max_bias, swa, &WHOLE)).expect("the model verifies")
}

const ROPE: Rope = Rope {
    mode: RopeMode::Norm,
    n_dims: 2,
    n_ctx_orig: 64,
    freq_base: 10000.0,
    freq_scale: 0.3,
    ext_factor: 0.0,
    attn_factor: 1.0,
    beta_fast: 32.0,
    beta_slow: 1.0,
};

fn graph(dtype: DType, max_bias: f32, swa: bool, division: &Division) -> Graph {
    let mut b = Builder(Graph::new("one layer"), Place::Host);
    b.0.cell_unit = CellUnit(division.unit);
    let t: Dim = Symbol::NTokens.into();
    let cache = Cache::of(dtype, swa);
    let (rows_kind, mask_kind) = match swa {
        true => (InputKind::CacheRowsSwa, InputKind::MaskSwa),
        false => (InputKind::CacheRows, InputKind::Mask),
    };
    let embd = b.weight("embd", VOCAB);
    let mix = b.weight("mix", WIDTH);
    let tokens = b.input(InputKind::Tokens, DType::I32, std::slice::from_ref(&t));
    let positions = b.input(InputKind::Positions, DType::I32, std::slice::from_ref(&t));
    let rows = b.input(rows_kind, DType::I64, std::slice::from_ref(&t));
    let mask = b.input(mask_kind, DType::F32, &[b.cells(cache.kv, None), t.clone()]);
    let wanted = b.input(
        InputKind::OutputRows,
        DType::I32,
        &[Symbol::NOutputs.into()],
    );
    let x = b.op(GetRows { window: None }, &[embd, tokens]);
    let dims = [2.into(), 2.into(), t.clone(), Dim::ONE];
    let v = b.op(MulMat, &[mix, x]);
    let v = b.op(Reshape { dims }, &[v]);
    let k = b.op(ROPE, &[v, positions]);
    let q = b.op(Permute { axes: [0, 2, 1, 3] }, &[k]);
    let attn = FlashAttn {
        scale: 0.7,
        max_bias,
        softcap: 0.0,
        heads: None,
        lse: !division.parts.is_empty(),
    };
    let y = match division.parts.as_slice() {
        [] => b.attend(attn, [q, k, v, rows, mask], &cache),
        parts => b.attend_parts(&attn, [q, k, v, rows, mask], (&cache, parts)),
    };
    let dims = [WIDTH.into(), t, Dim::ONE, Dim::ONE];
    let y = b.op(Reshape { dims }, &[y]);
    let add = Binary {
        kind: BinaryKind::Add,
    };
    let y = b.op(add, &[x, y]);
    let y = b.op(GetRows { window: None }, &[y, wanted]);
    let logits = b.op(MulMat, &[embd, y]);
    b.0.outputs.push(Output::Named("logits".into(), logits));
    b.0
}

fn weights() -> MemoryWeights {
    let mut w = MemoryWeights::new();
    for (name, rows) in [("embd", VOCAB), ("mix", WIDTH)] {
        let values: Vec<f32> = (0..WIDTH * rows).map(|i| (i as f32 * 1.3).sin()).collect();
        w.insert_f32(name, [WIDTH, rows, 1, 1], &values);
    }
    w
}

fn session<S: Executable>(graph: &Verified<S>, config: SessionConfig) -> ReferenceSession<'_> {
    Session::new(graph, &weights(), config).expect("loads")
}

const TEXT: [u32; 9] = [3, 1, 4, 1, 5, 0, 2, 5, 3];

fn in_batches(s: &mut ReferenceSession<'_>, seq: u32, sizes: &[usize]) -> Vec<Tensor> {
    let mut at = 0;
    let mut out = Vec::new();
    for &n in sizes {
        let batch = Batch::sequence(&TEXT[at..at + n], at as u32, seq);
        let logits = s.decode(&batch).expect("decodes");
        assert_eq!(logits.dims(), [VOCAB as usize, n, 1, 1]);
        out.extend((0..n).map(|i| logits.slice(1, i, 1).expect("ok")));
        at += n;
    }
    out
}

#[test]
fn batch_sizes_do_not_matter() {
    for (dtype, max_bias) in [(DType::F32, 0.0), (DType::F16, 0.0), (DType::F32, 8.0)] {
        let g = model(dtype, max_bias, false);
        let whole = in_batches(&mut session(&g, SessionConfig::new(16)), 0, &[9]);
        let parts = in_batches(&mut session(&g, SessionConfig::new(9)), 0, &[4, 1, 1, 3]);
        assert_eq!(whole, parts);
    }
}

#[test]
fn alibi_sees_distances() {
    let (a, b) = (model(DType::F32, 0.0, false), model(DType::F32, 8.0, false));
    let run = |g| in_batches(&mut session(g, SessionConfig::new(9)), 0, &[9]);
    let (a, b) = (run(&a), run(&b));
    assert_eq!(a[0], b[0], "one token has no distances");
    assert_ne!(a[8], b[8]);
}

#[test]
fn sequences_in_one_batch_are_as_if_alone() {
    let g = model(DType::F32, 0.0, false);
    let alone = in_batches(&mut session(&g, SessionConfig::new(9)), 0, &[9]);
    let mut s = session(&g, SessionConfig::new(32));
    let mut out = Vec::new();
    for i in 0..9 {
        let batch = Batch {
            tokens: vec![TEXT[8 - i], TEXT[i]],
            positions: vec![i as u32; 2],
            seq_ids: vec![5, 6],
            output_rows: vec![1],
        };
        out.push(s.decode(&batch).expect("decodes"));
    }
    for (a, b) in alone.iter().zip(&out) {
        let (a, b) = (a.reals().expect("real"), b.reals().expect("real"));
        assert!(a.iter().zip(b.iter()).all(|(a, b)| (a - b).abs() < 1e-14));
    }
}

#[test]
fn a_window_needs_no_more_cells_than_it_sees() {
    let g = model(DType::F32, 0.0, true);
    let roomy = SessionConfig::new(9).with_window(Window::Sliding(3), 9);
    let tight = SessionConfig::new(9).with_window(Window::Sliding(3), 4);
    let a = in_batches(&mut session(&g, roomy), 0, &[9]);
    let b = in_batches(&mut session(&g, tight), 0, &[3, 2, 1, 2, 1]);
    for (a, b) in a.iter().zip(&b) {
        let (a, b) = (a.reals().expect("real"), b.reals().expect("real"));
        assert!(a.iter().zip(b.iter()).all(|(a, b)| (a - b).abs() < 1e-14));
    }
    let full = in_batches(
        &mut session(&model(DType::F32, 0.0, false), SessionConfig::new(9)),
        0,
        &[9],
    );
    assert_eq!(a[2], full[2]);
    assert_ne!(a[3], full[3], "the window hides position 0");
}

#[test]
fn a_batch_that_fails_leaves_the_session() {
    let g = model(DType::F32, 0.0, false);
    let mut s = session(&g, SessionConfig::new(9));
    let code = |s: &mut ReferenceSession<'_>, b: &Batch| s.decode(b).expect_err("must fail").code();
    let expected = in_batches(&mut s, 0, &[9]);
    s.clear().expect("states are cleared");
    let first = in_batches(&mut s, 0, &[1]);
    assert_eq!(code(&mut s, &Batch::sequence(&[6], 1, 0)), "TPC0506");
    assert_eq!(code(&mut s, &Batch::sequence(&[1], 0, 0)), "TPC0515");
    assert_eq!(code(&mut s, &Batch::sequence(&[1; 9], 1, 0)), "TPC0514");
    let rest = s
        .decode(&Batch::sequence(&TEXT[1..], 1, 0))
        .expect("decodes");
    assert_eq!(first[0], expected[0]);
    assert_eq!(rest.slice(1, 7, 1), Ok(expected[8].clone()));
    s.remove_sequence(0);
    assert_eq!(in_batches(&mut s, 3, &[2])[1], expected[1]);
}

#[test]
fn only_wanted_logits_are_computed() {
    let g = model(DType::F32, 0.0, false);
    let all = in_batches(&mut session(&g, SessionConfig::new(9)), 0, &[9]);
    let mut s = session(&g, SessionConfig::new(9));
    let last = s.decode(&Batch::sequence(&TEXT, 0, 0).last_only());
    assert_eq!(last.as_ref(), Ok(&all[8]));
    let mut s = session(&g, SessionConfig::new(9));
    let none = s.decode(&Batch::default()).expect("an empty batch decodes");
    assert_eq!(none.dims(), [VOCAB as usize, 0, 1, 1]);
}

#[test]
fn what_a_session_needs_of_its_graph() {
    let g = model(DType::F32, 0.0, true);
    let mut s = session(&g, SessionConfig::new(9));
    let e = s.decode(&Batch::sequence(&[0], 0, 0));
    assert_eq!(e.expect_err("no window").code(), "TPC0512");
    let mut other = g.into_graph();
    other.outputs.pop();
    let other = Verified::<stage::Model>::new(other).expect("states are outputs, too");
    let e = Session::new(&other, &weights(), SessionConfig::new(9));
    assert_eq!(e.map(|_| ()).expect_err("no logits").code(), "TPC0516");
}
