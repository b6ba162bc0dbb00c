use crate::random::SplitMix64;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{MAX_DEPTH, MAX_ERRORS, MAX_LEAVES, MAX_TEXT, ParseError, parse, print};
use crate::op::{
    AllGather, AllReduce, ArgSort, Binary, BinaryKind, BlockInput, BlockPart, Clamp, Concat, Copy,
    FlashAttn, GatedDeltaNet, GetRows, Glu, GluKind, HeadWindow, Input, InputKind, MulMat,
    MulMatId, NgramRows, Norm, NormKind, Op, Pad, Permute, Repeat, Reshape, Rope, RopeMode, Scale,
    SetRows, SetSlice, Slice, SortOrder, SsmConv, SsmScan, State, Sum, TopK, TopKMask, TopMask,
    Unary, UnaryKind, Weight,
};
use crate::{
    AxisTree, CellParts, Class, ClassData, ClassRef, DType, Device, DeviceData, Dim, Graph, Group,
    GroupData, Interval, Output, Place, Sharding, Symbol, TensorType, Unreduced, Value,
};

const SAMPLE: &str = r#"; a comment
tpir 1
graph "llama"
device dev0 "cpu:0"
device dev1 "cpu:\"1\" \u{7}"
group tp0 = [dev0, dev1]
class c0 "kv heads ; not a comment" size 8 ranges [0:4, 4:4]
class c3 "" size 24 ranges [0:12, 12:12] ; numbers may leave gaps

v0 "inp_tokens": i32[n_tokens] @host = input {kind = tokens}
v1: f32[1024, 2*n_kv*n_tokens + 3, 1, 7] @tp0 = weight {tensor = "x", parts = [[0:4, 8:4], [], [0:18446744073709551615], [0:1]]}
layer 0
v2 "Qcur-0": f32[4096, n_tokens] @tp0 split(0: c0*512) = mul_mat v1, v1
v4: f32[4096, n_tokens] @tp0 partial = scale v1 {scale = -1e-5, bias = inf}
v5: f32[4096] @tp0 owner_masked(c3) = clamp v1 {min = -inf, max = 0.1}
v7: q6_k[14336, 4096] @tp0 split(0: c3/4*256 granule 256, 1: (2 + c0 + [n_kv])*8 + 64) = weight {tensor = "b"}
v8: f32[16] @dev0, v9: f32[16] @dev1 = all_reduce v5, v5
v10: f32[4096] @host = slice v8 {axis = 0, start = -n_kv + n_ctx, len = 3*n_seqs - 2}
layer none
output "logits" = v9
output state v10 = v8
"#;

fn errors(text: &str) -> Vec<ParseError> {
    parse(text).expect_err("the text has errors")
}

#[test]
fn the_sample_round_trips_and_numbers_are_made_consecutive() {
    let parsed = parse(SAMPLE).expect("sample");
    let printed = print(&parsed.graph);
    let again = parse(&printed.text).expect("printed text");
    assert_eq!(again.graph, parsed.graph);
    assert_eq!(again.spans, printed.spans);
    assert_eq!(print(&again.graph), printed);
    assert_eq!(parsed.graph.to_string(), printed.text);
    let lines: Vec<&str> = printed.text.lines().collect();
    assert!(
        lines.contains(
            &"v5: q6_k[14336, 4096] @tp0 split(0: c1/4*256 granule 256, 1: (2 + c0 + [n_kv])*8 + 64) = weight {tensor = \"b\"}"
        ),
        "{}",
        printed.text
    );
    assert!(lines.contains(&"output state v8 = v6"));
    let span = parsed.spans.values[2];
    assert_eq!(
        &SAMPLE[span.range()],
        "v2 \"Qcur-0\": f32[4096, n_tokens] @tp0 split(0: c0*512)"
    );
    let span = parsed.spans.insts[2];
    assert!(SAMPLE[span.range()].ends_with("split(0: c0*512) = mul_mat v1, v1"));
    assert_eq!(
        &SAMPLE[parsed.spans.classes[1].range()],
        "class c3 \"\" size 24 ranges [0:12, 12:12]"
    );
}

#[test]
fn an_empty_graph_round_trips() {
    let graph = Graph::new("");
    assert_eq!(parse(&graph.to_string()).map(|p| p.graph), Ok(graph));
}

#[test]
fn each_line_reports_its_own_defect_only() {
    let text = "tpir 1
graph \"g\"
device dev0 cpu
group tp0 = [dev0]
v0: f32[8] @tp0 = weight {tensor = \"a\" }
v1: flt[8] @tp0, v2 \"n\": f32[8] @tp0 = relu v0
v3: f32[8] @tp0 = relu v1, v2
v4: f32[8] @tp0 = relu v9
v5: f32[8] @tp0 = reluu v3
output \"x\" = v5
";
    let found: Vec<_> = errors(text)
        .iter()
        .map(|e| (e.span.line(text), e.code().id))
        .collect();
    let expected = [
        (3, "TPC0205"),
        (6, "TPC0207"),
        (8, "TPC0209"),
        (9, "TPC0211"),
    ];
    assert_eq!(found, expected);
    let e = &errors(text)[3];
    assert_eq!(&text[e.span.range()], "reluu");
    assert_eq!(e.help(), "did you mean `relu`?");
}

#[test]
fn errors_are_capped() {
    let text = format!("tpir 1\n{}", "?\n".repeat(1000));
    assert_eq!(errors(&text).len(), MAX_ERRORS);
}

#[test]
fn overlong_texts_are_refused() {
    let text = "\0".repeat(MAX_TEXT + 1);
    assert_eq!(errors(&text)[0].code(), "TPC0219");
}

#[test]
fn nesting_and_leaves_are_bounded() {
    let value = |sharding: &str, attrs: &str| {
        format!(
            "tpir 1\ngraph \"\"\nv0: f32[8] @host {sharding} = weight {{tensor = \"\", parts = {attrs}}}\n"
        )
    };
    let parens = |n: usize| format!("split(0: {}4{})", "(".repeat(n), ")".repeat(n));
    let lists = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    let leaves = |n: usize| format!("split(0: {})", vec!["2"; n].join("*"));
    assert!(parse(&value(&parens(MAX_DEPTH), "[]")).is_ok());
    assert!(parse(&value(&leaves(MAX_LEAVES), "[]")).is_ok());
    for text in [
        value(&parens(MAX_DEPTH + 1), "[]"),
        value(&parens(300_000), "[]"),
        value(&leaves(MAX_LEAVES + 1), "[]"),
        value("", &lists(MAX_DEPTH + 1)),
        value("", &lists(300_000)),
    ] {
        let found = errors(&text);
        assert_eq!(found[0].code(), "TPC0213", "{:?}", found[0]);
    }
    assert_eq!(errors(&value("", &lists(3)))[0].code(), "TPC0212");
}

#[test]
fn sizes_that_arithmetic_cannot_hold_are_errors() {
    let dim =
        |d: &str| format!("tpir 1\ngraph \"\"\nv0: f32[{d}] @host = weight {{tensor = \"\"}}\n");
    let powers = vec!["n_kv"; 300].join("*");
    let all = "(1)";
    for bad in [
        "-3",
        "2 - 3",
        "18446744073709551615 + 1",
        "n_kv + 18446744073709551615",
        "9223372036854775808*n_kv",
        "4294967296*4294967296*n_kv",
        powers.as_str(),
    ] {
        assert_eq!(errors(&dim(bad))[0].code(), "TPC0208", "{bad}");
    }
    assert_eq!(errors(&dim(all))[0].code(), "TPC0205");
    let ok = parse(&dim(
        "18446744073709551615, n_kv - n_kv, 3 - n_kv, n_kv*n_ctx*2*3",
    ));
    let types = ok.expect("sizes").graph;
    let ty = types.value(Value::new(0)).ty.to_string();
    assert_eq!(ty, "f32[18446744073709551615, 0, -n_kv + 3, 6*n_kv*n_ctx]");
}

#[test]
fn a_megabyte_is_read_in_no_time() {
    let head = "tpir 1\ngraph \"\"\n";
    let value = "v0: f32[8] @host = weight {tensor = \"a\"";
    let many = |unit: &str| unit.repeat((1 << 20) / unit.len());
    let values: String = (0..20_000)
        .map(|i| format!("v{i} \"name\": f32[8, n_tokens] @host = weight {{tensor = \"a\"}}\n"))
        .collect();
    let attrs: String = (0..80_000).map(|i| format!("a{i} = 1, ")).collect();
    let texts = [
        format!("{head}{values}"),
        format!("{head}{value}, {attrs}}}"),
        format!("{head}{value}, parts = [{}]}}", many("0:1, ")),
        format!("{head}v0: f32[{}", many("1*")),
        format!("{head}v0: f32[{}", many("n_kv - n_kv + ")),
        format!("{head}v0: f32[8] @host split(0: {}", many("2 + 3*(")),
        format!("{head}{value}, {} = 1}}", many("a")),
        format!("{head}graph \"{}", many("\\n")),
        format!("{head}graph \"{}", many("\\")),
        format!("{head}graph \"{}\"", many("ä")),
        format!("{head}{}", many("\n")),
        format!("{head}{}", many("v0\n")),
        format!("{head}{}", many(";")),
        format!("{head}v0: f32[{}", many("9")),
        format!("{head}{value}, x = 0.{}}}", many("9")),
        format!("{head}v0: f32[8] @host = {} v0", many("r")),
        format!("{head}class c0 \"\" size 1 ranges [{}]", many("0:1,")),
        many("("),
    ];
    for text in texts {
        let start = Instant::now();
        let _ = parse(&text);
        let spent = start.elapsed();
        let shown: String = text.chars().take(80).collect();
        assert!(spent < Duration::from_secs(2), "{spent:?} for {shown:?}");
    }
}

fn check_hostile(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match parse(&text) {
        Ok(parsed) => {
            let printed = print(&parsed.graph);
            let again = parse(&printed.text).expect("printed text parses");
            assert_eq!(print(&again.graph), printed);
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            for e in errors {
                assert!(text.get(e.span.range()).is_some(), "{e:?} in {text:?}");
                assert!(e.to_string().len() < 300 && !e.help().is_empty());
            }
        }
    }
}

#[test]
fn truncated_texts_do_not_panic() {
    for n in 0..SAMPLE.len() {
        check_hostile(&SAMPLE.as_bytes()[..n]);
        check_hostile(&SAMPLE.as_bytes()[n..]);
    }
}

#[test]
fn mutated_texts_do_not_panic() {
    const SPLICES: &[&str] = &[
        "18446744073709551615",
        "9223372036854775808*n_kv",
        "\n",
        "[[[[",
        "((((",
        "*n_kv*n_kv",
        " - 1",
        "c0/",
        "0:",
        "\\u{",
        "\u{2028}ß\0",
        "v0",
        "nan",
        "-",
        "\"",
        "granule(3)",
        "split(1: c0)",
    ];
    let mut rng = SplitMix64::new(1);
    let lines: Vec<&str> = SAMPLE.split_inclusive('\n').collect();
    for _ in 0..100_000 {
        let mut bytes: Vec<u8> = lines[1..9].concat().into_bytes();
        for _ in 0..3 {
            bytes.extend_from_slice(lines[9 + rng.below(lines.len() - 9)].as_bytes());
        }
        for _ in 0..=rng.below(4) {
            let at = rng.below(bytes.len());
            match rng.below(5) {
                0 => bytes[at] = u8::try_from(rng.below(256)).expect("a byte"),
                1 => bytes[at] = SAMPLE.as_bytes()[rng.below(SAMPLE.len())],
                2 => drop(bytes.remove(at)),
                3 => {
                    let splice = SPLICES[rng.below(SPLICES.len())].bytes();
                    bytes.splice(at..at, splice).for_each(drop);
                }
                _ => {
                    let end = (at + rng.below(20)).min(bytes.len());
                    let piece = bytes[at..end].to_vec();
                    let to = rng.below(bytes.len());
                    bytes.splice(to..to, piece).for_each(drop);
                }
            }
        }
        check_hostile(&bytes);
    }
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[a-z]{1,8}-[0-9]",
        any::<String>(),
        Just("\\u{41}\"\n\r\t\0;\u{85}\u{2028}\u{10ffff}".to_owned()),
    ]
}

fn any_dim() -> impl Strategy<Value = Dim> {
    let symbol = proptest::sample::select(Symbol::ALL.to_vec());
    let term = (1..9_u64, proptest::collection::vec(symbol, 0..3));
    let poly = (proptest::collection::vec((term, any::<bool>()), 1..4)).prop_filter_map(
        "negative",
        |terms| {
            terms
                .iter()
                .try_fold(Dim::constant(5), |sum, ((n, symbols), minus)| {
                    let symbols: Vec<Dim> = symbols.iter().map(|&s| s.into()).collect();
                    let term = Dim::product(&symbols)?.checked_mul(&Dim::constant(*n))?;
                    if *minus {
                        sum.checked_sub(&term)
                    } else {
                        sum.checked_add(&term)
                    }
                })
        },
    );
    prop_oneof![
        Just(Dim::ONE),
        any::<u64>().prop_map(Dim::constant),
        (1..5000_u64).prop_map(Dim::constant),
        poly
    ]
}

fn any_type() -> impl Strategy<Value = TensorType> {
    let dtype = proptest::sample::select(DType::ALL.to_vec());
    let dims = [any_dim(), any_dim(), any_dim(), any_dim()];
    (dtype, dims).prop_map(|(dtype, dims)| TensorType { dtype, dims })
}

fn any_run() -> impl Strategy<Value = Interval> {
    (any::<u64>(), any::<u64>()).prop_map(|(start, len)| Interval {
        start,
        len: len.min(u64::MAX - start),
    })
}

fn any_tree() -> impl Strategy<Value = AxisTree> {
    let leaf = prop_oneof![
        any_dim().prop_map(AxisTree::whole),
        proptest::sample::select(vec![1_u64, 2, 3, 24]).prop_map(|div| AxisTree::Leaf {
            size: Dim::constant(24 / div),
            split: Some(ClassRef {
                class: Class::new(0),
                div
            }),
        }),
    ];
    let tree = leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 2..4).prop_map(AxisTree::Product),
            proptest::collection::vec(inner, 2..4).prop_map(AxisTree::Sum),
        ]
    });
    tree.prop_map(|t| t.simplify())
}

fn any_sharding() -> impl Strategy<Value = Sharding> {
    let axis = || proptest::option::weighted(0.3, any_tree().prop_map(Box::new));
    let pending = prop_oneof![
        Just(Unreduced::None),
        Just(Unreduced::Partial),
        Just(Unreduced::OwnerMasked(Class::new(1)))
    ];
    let cover = prop_oneof![Just(1_u64), Just(256), Just(0)];
    ([axis(), axis(), axis(), axis()], pending, cover).prop_map(|(axes, pending, cover)| Sharding {
        axes,
        unreduced: pending,
        granule: cover,
    })
}

fn any_place() -> impl Strategy<Value = Place> {
    prop_oneof![
        Just(Place::Host),
        (0..3_usize).prop_map(|i| Place::Device(Device::new(i))),
        Just(Place::Group(Group::new(0))),
    ]
}

fn any_float() -> impl Strategy<Value = f32> {
    any::<u32>()
        .prop_map(f32::from_bits)
        .prop_filter("NaN is TPC0235", |x| !x.is_nan())
}

fn any_rope_mode() -> impl Strategy<Value = RopeMode> {
    prop_oneof![
        Just(RopeMode::Norm),
        Just(RopeMode::Neox),
        any::<[u64; 4]>().prop_map(|sections| RopeMode::Mrope { sections }),
        any::<[u64; 4]>().prop_map(|sections| RopeMode::Imrope { sections }),
    ]
}

fn any_op() -> impl Strategy<Value = Op> {
    let runs = || proptest::collection::vec(any_run(), 0..3);
    let dims = || [any_dim(), any_dim(), any_dim(), any_dim()];
    let parts = || proptest::option::of(proptest::collection::vec(runs(), 4));
    let cell_parts = || {
        let some = (0_u64..4, 1_u64..4, 0_u64..4).prop_map(|(first, count, more)| CellParts {
            first,
            count,
            of: first + count + more,
        });
        proptest::option::of(some)
    };
    let unary = proptest::sample::select(UnaryKind::ALL.to_vec());
    let binary = proptest::sample::select(BinaryKind::ALL.to_vec());
    let norm = proptest::sample::select(NormKind::ALL.to_vec());
    let float = any_float;
    let small: Vec<BoxedStrategy<Op>> = vec![
        (any_name(), parts())
            .prop_map(|(tensor, parts)| Weight { tensor, parts }.into())
            .boxed(),
        (any_name(), parts(), cell_parts())
            .prop_map(|(name, parts, cells)| State { name, parts, cells }.into())
            .boxed(),
        any_name()
            .prop_map(|name| {
                Input {
                    kind: InputKind::Other(name),
                }
                .into()
            })
            .boxed(),
        (1..=u32::MAX)
            .prop_map(|ahead| {
                Input {
                    kind: InputKind::NextTokens(ahead),
                }
                .into()
            })
            .boxed(),
        Just(
            Input {
                kind: InputKind::MaskSwa,
            }
            .into(),
        )
        .boxed(),
        unary.prop_map(|kind| Unary { kind }.into()).boxed(),
        binary.prop_map(|kind| Binary { kind }.into()).boxed(),
        (float(), float())
            .prop_map(|(scale, bias)| Scale { scale, bias }.into())
            .boxed(),
        (float(), float())
            .prop_map(|(min, max)| Clamp { min, max }.into())
            .boxed(),
        (float(), float())
            .prop_map(|(alpha, limit)| {
                Glu {
                    kind: GluKind::SwigluOai,
                    alpha,
                    limit,
                }
                .into()
            })
            .boxed(),
        Just(Glu::new(GluKind::Swiglu).into()).boxed(),
        (norm, float())
            .prop_map(|(kind, eps)| Norm { kind, eps }.into())
            .boxed(),
        Just(MulMat.into()).boxed(),
        Just(Copy.into()).boxed(),
        Just(AllReduce.into()).boxed(),
        any::<u64>()
            .prop_map(|axis| AllGather { axis }.into())
            .boxed(),
        any::<u64>()
            .prop_map(|axis| SetRows::along(axis).into())
            .boxed(),
        any::<u64>().prop_map(|axis| Sum { axis }.into()).boxed(),
        any::<u64>().prop_map(|axis| Concat { axis }.into()).boxed(),
        any::<u64>().prop_map(|k| TopK { k }.into()).boxed(),
        any::<u64>().prop_map(|k| TopMask { k }.into()).boxed(),
        any::<[bool; 3]>()
            .prop_map(|[has_scores, has_members, has_extra]| {
                TopKMask {
                    has_scores,
                    has_members,
                    has_extra,
                }
                .into()
            })
            .boxed(),
        (1..=u32::MAX, proptest::sample::select(&BlockPart::ALL[..]))
            .prop_map(|(tokens, part)| {
                let kind = InputKind::Block(BlockInput { part, tokens });
                Input { kind }.into()
            })
            .boxed(),
        (
            any::<Vec<u64>>(),
            proptest::collection::vec(any_run(), 0..4),
            any::<u64>(),
        )
            .prop_map(|(factors, tables, end)| {
                NgramRows {
                    factors,
                    tables,
                    end,
                }
                .into()
            })
            .boxed(),
        proptest::option::of(any_run())
            .prop_map(|window| MulMatId { window }.into())
            .boxed(),
        proptest::option::of(any_run())
            .prop_map(|window| GetRows { window }.into())
            .boxed(),
        (
            float(),
            float(),
            float(),
            proptest::option::of((runs(), any::<u64>())),
        )
            .prop_map(|(scale, max_bias, softcap, heads)| {
                let heads = heads.map(|(heads, total)| HeadWindow { heads, total });
                FlashAttn {
                    scale,
                    max_bias,
                    softcap,
                    heads,
                    lse: false,
                }
                .into()
            })
            .boxed(),
        proptest::sample::select(SortOrder::ALL.to_vec())
            .prop_map(|order| ArgSort { order }.into())
            .boxed(),
        (any::<u64>(), any_dim())
            .prop_map(|(axis, start)| SetSlice { axis, start }.into())
            .boxed(),
        Just(SsmConv.into()).boxed(),
        Just(SsmScan.into()).boxed(),
        Just(GatedDeltaNet.into()).boxed(),
        Just(crate::op::Wkv.into()).boxed(),
        (any_rope_mode(), any::<u64>(), [float(), float(), float()])
            .prop_map(|(mode, n, [a, b, c])| {
                Rope {
                    mode,
                    n_dims: n,
                    n_ctx_orig: n,
                    freq_base: a,
                    freq_scale: b,
                    ext_factor: c,
                    attn_factor: a,
                    beta_fast: b,
                    beta_slow: c,
                }
                .into()
            })
            .boxed(),
        dims().prop_map(|dims| Reshape { dims }.into()).boxed(),
        dims().prop_map(|dims| Repeat { dims }.into()).boxed(),
        Just([0, 1, 2, 3])
            .prop_shuffle()
            .prop_map(|axes| Permute { axes }.into())
            .boxed(),
        (any::<u64>(), any_dim(), any_dim())
            .prop_map(|(axis, start, len)| Slice { axis, start, len }.into())
            .boxed(),
        any::<[u64; 3]>()
            .prop_map(|[axis, before, after]| {
                Pad {
                    axis,
                    before,
                    after,
                }
                .into()
            })
            .boxed(),
    ];
    proptest::strategy::Union::new(small)
}

type AnyResult = (String, TensorType, Place, Sharding);

type AnyInst = (Op, Vec<prop::sample::Index>, Vec<AnyResult>, Option<u32>);

fn any_inst() -> impl Strategy<Value = AnyInst> {
    let result = (any_name(), any_type(), any_place(), any_sharding());
    (
        any_op(),
        proptest::collection::vec(any::<prop::sample::Index>(), 0..4),
        proptest::collection::vec(result, 1..3),
        proptest::option::of(prop_oneof![0..3_u32, Just(u32::MAX)]),
    )
}

fn any_graph() -> impl Strategy<Value = Graph> {
    let insts = proptest::collection::vec(any_inst(), 1..8);
    (any_name(), any_name(), any_name(), insts).prop_map(|(name, device, class, insts)| {
        let mut g = Graph::new(name.clone());
        g.devices = ["a", &device, &name]
            .map(|n| DeviceData { name: n.to_owned() })
            .to_vec();
        g.groups = vec![GroupData {
            devices: vec![Device::new(2), Device::new(0)],
        }];
        let range = Interval { start: 3, len: 21 };
        g.classes = vec![
            ClassData {
                name: class,
                size: 24,
                ranges: vec![range, range],
            },
            ClassData {
                name: String::new(),
                size: u64::MAX,
                ranges: Vec::new(),
            },
        ];
        for (op, operands, results, layer) in insts {
            let n = g.values().len();
            let operands = operands.iter().filter(|_| n > 0);
            let operands = operands.map(|i| Value::new(i.index(n))).collect();
            let types = results.iter().map(|r| r.1.clone()).collect();
            let places: Vec<Place> = results.iter().map(|r| r.2).collect();
            let inst = g.push_at(op, operands, types, &places, layer);
            for (i, (name, _, _, sharding)) in results.into_iter().enumerate() {
                let value = g.inst(inst).results[i];
                let data = g.value_mut(value);
                data.name = name;
                data.sharding = sharding;
            }
        }
        let last = Value::new(g.values().len() - 1);
        g.outputs = vec![
            Output::Named(name, last),
            Output::State {
                state: Value::new(0),
                value: last,
            },
        ];
        g
    })
}

proptest! {
    #[test]
    fn printed_graphs_parse_to_themselves(graph in any_graph()) {
        let printed = print(&graph);
        let parsed = parse(&printed.text);
        let parsed = parsed.map_err(|e| TestCaseError::fail(format!("{e:?}\n{}", printed.text)))?;
        prop_assert_eq!(&parsed.graph, &graph, "{}", printed.text);
        prop_assert_eq!(parsed.spans, printed.spans);
    }

    #[test]
    fn arbitrary_texts_do_not_panic(text in any::<String>(), word in "[ -~\n]{0,200}") {
        check_hostile(text.as_bytes());
        check_hostile(format!("tpir 1\n{word}\n{text}").as_bytes());
    }
}
