use super::*;
use crate::transfers::Traffic;
use crate::weights::MemoryWeights;
use tpc_ir::op::{
    AllReduce, Binary, BinaryKind, Copy, Input, MulMat, Reshape, SetRows, Slice, Unary, UnaryKind,
};
use tpc_ir::{DType, Device, DeviceData, Dim, Group, GroupData, Symbol};

const HOST: Place = Place::Host;

fn dev(i: usize) -> Place {
    Place::Device(Device::new(i))
}

fn f32s<const K: usize>(dims: [u64; K]) -> TensorType {
    TensorType::new(DType::F32, dims.map(Dim::constant))
}

fn per_token(n: u64) -> TensorType {
    TensorType::new(DType::F32, [n.into(), Symbol::NTokens.into()])
}

fn run_of(start: u64, len: u64) -> Interval {
    Interval { start, len }
}

fn weight(tensor: &str, parts: Option<Vec<Vec<Interval>>>) -> Weight {
    Weight {
        tensor: tensor.into(),
        parts,
    }
}

fn input(name: &str) -> Input {
    Input {
        kind: InputKind::Other(name.into()),
    }
}

fn state(name: &str) -> State {
    State::named(name)
}

fn leaf(g: &mut Graph, op: impl Into<Op>, ty: TensorType, place: Place) -> Value {
    let inst = g.push(op, vec![], vec![ty], place, None);
    g.inst(inst).results[0]
}

#[track_caller]
fn op(g: &mut Graph, op: impl Into<Op>, operands: &[Value], place: Place) -> Value {
    g.push_with_inference(op, operands.to_vec(), place, None)
        .expect("operands fit")
}

fn relu() -> Unary {
    Unary {
        kind: UnaryKind::Relu,
    }
}

fn add() -> Binary {
    Binary {
        kind: BinaryKind::Add,
    }
}

fn wave(n: usize, k: f32) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * k).sin()).collect()
}

fn ffn_weights() -> MemoryWeights {
    let mut w = MemoryWeights::new();
    let mut bytes = Vec::new();
    crate::quant::quantise(DType::Q8_0, &wave(32 * 96, 0.37), &mut bytes).expect("whole blocks");
    w.insert("up", DType::Q8_0, [32, 96, 1, 1], bytes);
    w.insert_f32("down", [96, 5, 1, 1], &wave(96 * 5, 0.73));
    w
}

fn up_type(n: u64) -> TensorType {
    TensorType::new(DType::Q8_0, [32.into(), n.into()])
}

fn whole_ffn() -> Graph {
    let mut g = Graph::new("whole");
    let x = leaf(&mut g, input("x"), per_token(32), HOST);
    let up = leaf(&mut g, weight("up", None), up_type(96), HOST);
    let down = leaf(&mut g, weight("down", None), f32s([96, 5]), HOST);
    let h = op(&mut g, MulMat, &[up, x], HOST);
    let h = op(&mut g, relu(), &[h], HOST);
    let y = op(&mut g, MulMat, &[down, h], HOST);
    g.outputs.push(Output::Named("y".into(), y));
    g
}

fn split_ffn() -> Graph {
    let mut g = Graph::new("split");
    for i in 0..3 {
        let name = format!("cpu:{i}");
        g.devices.push(DeviceData { name });
    }
    let x = leaf(&mut g, input("x"), per_token(32), HOST);
    let mut partial = Vec::new();
    for (i, hidden) in [run_of(0, 64), run_of(64, 32), run_of(96, 0)]
        .into_iter()
        .enumerate()
    {
        let all = |n| vec![run_of(0, n)];
        let up = weight("up", Some(vec![all(32), vec![hidden], all(1), all(1)]));
        let down = weight("down", Some(vec![vec![hidden], all(5), all(1), all(1)]));
        let x = op(&mut g, Copy, &[x], dev(i));
        let up = leaf(&mut g, up, up_type(hidden.len), dev(i));
        let down = leaf(&mut g, down, f32s([hidden.len, 5]), dev(i));
        let h = op(&mut g, MulMat, &[up, x], dev(i));
        let h = op(&mut g, relu(), &[h], dev(i));
        partial.push(op(&mut g, MulMat, &[down, h], dev(i)));
    }
    let places: Vec<Place> = (0..3).map(dev).collect();
    let sum = g.push_at(AllReduce, partial, vec![per_token(5); 3], &places, None);
    let last = g.inst(sum).results[1];
    let y = op(&mut g, Copy, &[last], HOST);
    g.outputs.push(Output::Named("y".into(), y));
    g
}

fn run_ffn(graph: &Graph, tokens: usize) -> (Tensor, Interpreter<'_>) {
    let mut interpreter =
        Interpreter::unverified(graph, &ffn_weights(), Options::default()).expect("loads");
    let bindings = Bindings::default().with(Symbol::NTokens, tokens as u64);
    let x: Vec<f64> = (0..32 * tokens).map(|i| (i as f64).cos()).collect();
    let mut out = interpreter
        .run(&bindings, &mut |_, _| {
            Tensor::reals_of([32, tokens, 1, 1], x.clone())
        })
        .expect("runs");
    (out.remove("y").expect("named"), interpreter)
}

#[test]
fn a_split_program_computes_what_the_whole_one_does() {
    let (whole, split) = (whole_ffn(), split_ffn());
    for tokens in [0, 1, 7] {
        let (a, b) = (run_ffn(&whole, tokens).0, run_ffn(&split, tokens).0);
        assert_eq!(a.dims(), [5, tokens, 1, 1]);
        let (a, b) = (a.reals().expect("real"), b.reals().expect("real"));
        for (x, y) in a.iter().zip(b.iter()) {
            assert!((x - y).abs() < 1e-13, "{x} against {y}");
        }
    }
}

#[test]
fn bytes_are_counted_per_place_and_kind() {
    let graph = split_ffn();
    let interpreter = run_ffn(&graph, 2).1;
    let weights: Vec<u64> = interpreter
        .places()
        .values()
        .map(|p| p.weight_bytes)
        .collect();
    // Rows of 34 bytes in q8_0 and 4 · 5 bytes of f32 per hidden unit.
    assert_eq!(weights, [64 * 54, 32 * 54, 0]);
    let expected = Transfers {
        copy: Traffic {
            count: 4,
            bytes: 3 * 32 * 2 * 4 + 5 * 2 * 4,
        },
        all_reduce: Traffic {
            count: 1,
            bytes: 3 * 5 * 2 * 4,
        },
        ..Transfers::default()
    };
    assert_eq!(*interpreter.transfers(), expected);
    let graph = whole_ffn();
    let interpreter = run_ffn(&graph, 2).1;
    assert_eq!(interpreter.places()[&HOST].weight_bytes, 96 * 54);
    assert_eq!(*interpreter.transfers(), Transfers::default());
}

#[test]
fn a_part_named_twice_is_stored_once() {
    let mut g = Graph::new("tied");
    let a = leaf(&mut g, weight("down", None), f32s([96, 5]), HOST);
    let b = leaf(&mut g, weight("down", None), f32s([96, 5]), HOST);
    let y = op(&mut g, add(), &[a, b], HOST);
    g.outputs.push(Output::Named("y".into(), y));
    let interpreter =
        Interpreter::unverified(&g, &ffn_weights(), Options::default()).expect("loads");
    assert_eq!(interpreter.places()[&HOST].weight_bytes, 96 * 5 * 4);
}

fn no_inputs(kind: &InputKind, _: &TensorType) -> Result<Tensor, ExecError> {
    panic!("no input {kind:?} in this graph")
}

/// Runs a graph on the weights of [`ffn_weights`], with 32 zeros as input `x`.
#[track_caller]
fn error_of(g: &Graph) -> ExecError {
    let mut zeros = |_: &InputKind, _: &TensorType| Tensor::reals_of([32, 1, 1, 1], vec![0.0; 32]);
    Interpreter::unverified(g, &ffn_weights(), Options::default())
        .and_then(|mut i| i.run(&Bindings::default(), &mut zeros))
        .expect_err("must fail")
}

#[test]
fn an_op_reads_only_the_memory_of_its_place() {
    let mut g = Graph::new("apart");
    let x = leaf(&mut g, input("x"), f32s([32]), dev(0));
    let there = op(&mut g, Copy, &[x], dev(1));
    let y = op(&mut g, add(), &[x, there], dev(1));
    g.value_mut(y).name = "sum".into();
    g.outputs.push(Output::Named("y".into(), y));
    let e = error_of(&g);
    assert_eq!(e.code(), "TPC0501");
    assert_eq!(
        e.to_string(),
        "inst2 add (v2 sum): reads v0, which lives on dev0, from the memory of dev1"
    );
}

#[test]
fn a_participant_of_a_collective_reads_its_own_memory() {
    let mut g = Graph::new("swapped");
    let a = leaf(&mut g, input("x"), f32s([32]), dev(0));
    let b = leaf(&mut g, input("x"), f32s([32]), dev(1));
    let types = vec![f32s([32]); 2];
    g.push_at(AllReduce, vec![b, a], types, &[dev(0), dev(1)], None);
    assert_eq!(error_of(&g).code(), "TPC0501");
}

#[test]
fn a_group_is_not_a_place_to_run_on() {
    let mut g = Graph::new("group");
    g.groups.push(GroupData {
        devices: vec![Device::new(0), Device::new(1)],
    });
    leaf(&mut g, input("x"), f32s([32]), Place::Group(Group::new(0)));
    assert_eq!(error_of(&g).code(), "TPC0500");
}

#[test]
fn what_the_graph_declares_is_checked() {
    let mut g = Graph::new("sizes");
    leaf(&mut g, input("x"), f32s([31]), HOST);
    assert_eq!(error_of(&g).code(), "TPC0503");

    let mut g = Graph::new("kind");
    let ty = TensorType::new(DType::I32, [32.into()]);
    leaf(&mut g, input("x"), ty, HOST);
    assert_eq!(error_of(&g).code(), "TPC0504");

    let mut g = Graph::new("result");
    let x = leaf(&mut g, input("x"), f32s([32]), HOST);
    let y = g.push(relu(), vec![x], vec![f32s([33])], HOST, None);
    let y = g.inst(y).results[0];
    g.value_mut(y).name = "wide".into();
    let e = error_of(&g);
    assert_eq!(e.code(), "TPC0503");
    assert!(e.to_string().contains("wide"), "{e}");

    let mut g = Graph::new("results");
    let x = leaf(&mut g, input("x"), f32s([32]), HOST);
    g.push(relu(), vec![x], vec![f32s([32]); 2], HOST, None);
    assert_eq!(error_of(&g).code(), "TPC0517");

    let mut g = Graph::new("weight type");
    leaf(&mut g, weight("down", None), up_type(5), HOST);
    assert_eq!(error_of(&g).code(), "TPC0508");

    let mut g = Graph::new("weight sizes");
    leaf(&mut g, weight("down", None), f32s([96, 4]), HOST);
    assert_eq!(error_of(&g).code(), "TPC0508");

    let mut g = Graph::new("weight name");
    leaf(&mut g, weight("gate", None), f32s([96, 5]), HOST);
    let e = error_of(&g);
    assert_eq!(e.code(), "TPC0507");
    assert_eq!(
        e.to_string(),
        "inst0 weight (v0): tensor \"gate\" is missing from the model"
    );
}

#[test]
fn values_and_outputs_must_be_defined() {
    let mut g = Graph::new("early");
    g.push(relu(), vec![Value::new(1)], vec![f32s([1])], HOST, None);
    assert_eq!(error_of(&g).code(), "TPC0517");
    let mut g = Graph::new("beyond");
    g.outputs.push(Output::Named("y".into(), Value::new(3)));
    assert_eq!(error_of(&g).code(), "TPC0517");
    let mut g = Graph::new("no state");
    let x = leaf(&mut g, input("x"), f32s([32]), HOST);
    g.outputs.push(Output::State { state: x, value: x });
    assert_eq!(error_of(&g).code(), "TPC0517");
}

/// Returns a `dtype` state of 64 elements in rows of 32; each batch writes the input to row 1.
fn row_writer(dtype: DType) -> Graph {
    let mut g = Graph::new("rows");
    let ty = TensorType::new(dtype, [32.into(), Symbol::NCtx.into()]);
    let cache = leaf(&mut g, state("cache"), ty, HOST);
    let x = leaf(&mut g, input("x"), f32s([32]), HOST);
    let index = TensorType::new(DType::I64, [1.into()]);
    let rows = Input {
        kind: InputKind::CacheRows,
    };
    let rows = leaf(&mut g, rows, index, HOST);
    let written = op(&mut g, SetRows::along(1), &[cache, x, rows], HOST);
    g.outputs.push(Output::State {
        state: cache,
        value: written,
    });
    g.outputs.push(Output::Named("before".into(), cache));
    g
}

#[test]
fn states_keep_what_is_written_in_their_type() {
    let third = 1.0 / 3.0;
    for (dtype, bytes, stored) in [
        (DType::F32, 256, third),
        (DType::F16, 128, 0.333_251_953_125),
        (DType::Q8_0, 68, 0.002_624_511_718_75 * 127.0),
    ] {
        let g = row_writer(dtype);
        let bindings = Bindings::default().with(Symbol::NCtx, 2);
        let mut i =
            Interpreter::unverified(&g, &MemoryWeights::new(), Options::default()).expect("loads");
        let mut inputs = |kind: &InputKind, _: &TensorType| match kind {
            InputKind::CacheRows => Tensor::ints_of([1; 4], vec![1]),
            _ => Tensor::reals_of([32, 1, 1, 1], vec![third; 32]),
        };
        let first = i.run(&bindings, &mut inputs).expect("runs");
        assert_eq!(*first["before"].reals().expect("real"), [0.0; 64]);
        let second = i.run(&bindings, &mut inputs).expect("runs");
        let expected = [[0.0; 32], [stored; 32]].concat();
        assert_eq!(*second["before"].reals().expect("real"), expected);
        assert_eq!(i.places()[&HOST].state_bytes, bytes);

        let grown = bindings.with(Symbol::NCtx, 3);
        let e = i.run(&grown, &mut inputs).expect_err("another n_ctx");
        assert_eq!(e.code(), "TPC0513");
        i.reset_states().expect("cannot fail");
        let fresh = i.run(&grown, &mut inputs).expect("runs");
        assert_eq!(fresh["before"].len(), 96);
    }
}

#[test]
fn a_batch_that_fails_leaves_the_states() {
    let g = row_writer(DType::F32);
    let bindings = Bindings::default().with(Symbol::NCtx, 2);
    let mut i =
        Interpreter::unverified(&g, &MemoryWeights::new(), Options::default()).expect("loads");
    let run = |i: &mut Interpreter<'_>, row| {
        i.run(&bindings, &mut |kind, _| match kind {
            InputKind::CacheRows => Tensor::ints_of([1; 4], vec![row]),
            _ => Tensor::reals_of([32, 1, 1, 1], vec![1.0; 32]),
        })
    };
    run(&mut i, 1).expect("runs");
    let kept = i.state(Value::new(0)).cloned();
    assert_eq!(run(&mut i, 2).expect_err("row 2 of 2").code(), "TPC0506");
    assert_eq!(i.state(Value::new(0)).cloned(), kept);
}

#[test]
fn a_state_rounds_a_value_of_a_wider_type() {
    let mut g = Graph::new("shift");
    let ty = TensorType::new(DType::F16, [2.into()]);
    let s = leaf(&mut g, state("s"), ty, HOST);
    let x = leaf(&mut g, input("x"), f32s([2]), HOST);
    let sum = op(&mut g, add(), &[s, x], HOST);
    g.outputs.push(Output::State {
        state: s,
        value: sum,
    });
    let mut i =
        Interpreter::unverified(&g, &MemoryWeights::new(), Options::default()).expect("loads");
    let mut inputs = |_: &InputKind, _: &TensorType| Tensor::reals_of([2, 1, 1, 1], vec![0.1; 2]);
    i.run(&Bindings::default(), &mut inputs).expect("runs");
    let kept = i.state(s).expect("written");
    assert_eq!(kept.reals().expect("real")[0], 0.099_975_585_937_5);
}

#[test]
fn an_observer_sees_every_value_once() {
    let g = whole_ffn();
    let mut i = Interpreter::unverified(&g, &ffn_weights(), Options::default()).expect("loads");
    let mut seen = Vec::new();
    let mut observe = |v: Value, t: &Tensor| seen.push((v.index(), t.dims()[0]));
    let mut inputs = |_: &InputKind, _: &TensorType| Tensor::reals_of([32, 1, 1, 1], vec![1.0; 32]);
    i.run_observed(&Bindings::default(), &mut inputs, &mut observe)
        .expect("runs");
    assert_eq!(seen, [(0, 32), (1, 32), (2, 96), (3, 96), (4, 96), (5, 5)]);
}

#[test]
fn values_die_after_their_last_use_unless_they_are_wanted() {
    let g = whole_ffn();
    let schedule = Schedule::new(&g).expect("well-formed");
    let steps = schedule.steps(0).iter();
    let dead: Vec<Vec<usize>> = steps
        .map(|s| s.dead.iter().map(|v| v.index()).collect())
        .collect();
    let none = Vec::new;
    assert_eq!(
        dead,
        [none(), none(), none(), vec![0, 1], vec![3], vec![2, 4]]
    );
}

#[test]
fn views_of_an_empty_batch() {
    let mut g = Graph::new("empty");
    let x = leaf(&mut g, state("x"), per_token(4), HOST);
    let slice = Slice {
        axis: 1,
        start: Dim::ZERO,
        len: Symbol::NTokens.into(),
    };
    let y = op(&mut g, slice, &[x], HOST);
    let dims = [2.into(), 2.into(), Symbol::NTokens.into(), Dim::ONE];
    let y = op(&mut g, Reshape { dims }, &[y], HOST);
    g.outputs.push(Output::Named("y".into(), y));
    let mut i =
        Interpreter::unverified(&g, &MemoryWeights::new(), Options::default()).expect("loads");
    let none = Bindings::default().with(Symbol::NTokens, 0);
    let out = i.run(&none, &mut no_inputs).expect("runs");
    assert_eq!(out["y"].dims(), [2, 2, 0, 1]);
}
