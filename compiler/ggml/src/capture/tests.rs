mod attacks;
mod forms;
mod lost;
mod mutants;

use std::fmt::Write;
use tpc_ir::random::SplitMix64;

use tpc_ir::{Op, Output, Symbol};

use super::{CODES, CapturedGraph, read, read_fixed, read_sized, records};
use crate::op::OpKind;

/// Writes captures line by line. Tensors are packed unless they are views.
#[derive(Default)]
struct Writer {
    text: String,
    next: usize,
    params: Vec<u32>,
}

struct View {
    of: usize,
    nb: [u64; 4],
    offs: u64,
}

impl Writer {
    fn line(
        &mut self,
        op: &str,
        dtype: &str,
        ne: [u64; 4],
        src: &[i64],
        flags: u64,
        view: Option<&View>,
    ) -> usize {
        let size = match dtype {
            "i64" => 8,
            "f16" => 2,
            _ => 4,
        };
        let mut nb = [size; 4];
        for i in 1..4 {
            nb[i] = nb[i - 1] * ne[i - 1];
        }
        let (at, nb, offs) = view.map_or((-1, nb, 0), |v| (v.of as i64, v.nb, v.offs));
        let id = self.next;
        self.next += 1;
        let params = std::mem::take(&mut self.params);
        let _ = writeln!(
            self.text,
            "{{\"id\":{id},\"name\":\"t{id}\",\"op\":\"{op}\",\"type\":\"{dtype}\",\"ne\":{ne:?},\"nb\":{nb:?},\
             \"params\":{params:?},\"src\":{src:?},\"view\":{at},\"view_offs\":{offs},\"flags\":{flags}}}"
        );
        id
    }

    fn leaf(&mut self, dtype: &str, ne: [u64; 4]) -> usize {
        self.line("NONE", dtype, ne, &[], 0, None)
    }

    fn input(&mut self, dtype: &str, ne: [u64; 4]) -> usize {
        self.line("NONE", dtype, ne, &[], 1, None)
    }

    fn op(&mut self, op: &str, ne: [u64; 4], src: &[usize]) -> usize {
        let src: Vec<i64> = src.iter().map(|&s| s as i64).collect();
        self.line(op, "f32", ne, &src, 16, None)
    }

    fn view(&mut self, op: &str, ne: [u64; 4], src: &[usize], view: &View) -> usize {
        let src: Vec<i64> = src.iter().map(|&s| s as i64).collect();
        self.line(op, "f32", ne, &src, 16, Some(view))
    }
}

fn captured(w: &Writer) -> CapturedGraph {
    read(&w.text, "test").unwrap_or_else(|e| panic!("{e}\n{}", w.text))
}

fn names(c: &CapturedGraph) -> Vec<&'static str> {
    c.graph.insts().map(|(_, d)| d.op.name()).collect()
}

/// Returns a capture with a state of 4 rows of 6 elements. An input replaces row `at`; then the whole state is read.
fn written_row(at: u64) -> Writer {
    let mut w = Writer::default();
    let state = w.leaf("f32", [6, 4, 1, 1]);
    let row = w.input("f32", [6, 1, 1, 1]);
    let of = View {
        of: state,
        nb: [4, 24, 24, 24],
        offs: 24 * at,
    };
    // Made before the write and read after it.
    let all = View {
        of: state,
        nb: [4, 24, 96, 96],
        offs: 0,
    };
    let before = w.view("VIEW", [6, 4, 1, 1], &[state], &all);
    let to = w.view("VIEW", [6, 1, 1, 1], &[state], &of);
    w.view("CPY", [6, 1, 1, 1], &[row, to], &of);
    w.op("SQR", [6, 4, 1, 1], &[before]);
    w
}

#[test]
fn a_view_made_before_a_write_sees_it() {
    let c = captured(&written_row(2));
    let set = c
        .graph
        .insts()
        .find(|(_, d)| matches!(d.op, Op::SetSlice(_)));
    let (_, set) = set.expect("the row is set");
    let (_, sqr) = c
        .graph
        .insts()
        .find(|(_, d)| d.op.name() == "sqr")
        .expect("it is read");
    assert_eq!(sqr.operands, set.results, "{}", c.graph);
    let update = c.graph.outputs.iter().find_map(|o| match o {
        Output::State { value, .. } => Some(*value),
        Output::Named(..) => None,
    });
    assert_eq!(update, Some(set.results[0]));
}

#[test]
fn lines_are_known() {
    let c = captured(&written_row(1));
    let (sqr, _) = c
        .graph
        .insts()
        .find(|(_, d)| d.op.name() == "sqr")
        .expect("there");
    assert_eq!(c.lines[sqr.index()], 6);
    assert_eq!(c.lines.len(), c.graph.insts().len());
}

#[test]
fn unknown_ops_are_opaque_and_noted() {
    let mut w = Writer::default();
    let x = w.input("f32", [6, 4, 1, 1]);
    let y = w.op("WIND_BACK", [6, 2, 1, 1], &[x]);
    w.op("SILU", [6, 2, 1, 1], &[y]);
    let c = captured(&w);
    assert_eq!(names(&c), ["input", "opaque", "silu"]);
    let codes: Vec<&str> = c.notes.iter().map(|n| n.code.id).collect();
    assert_eq!(codes, ["TPC0194", "TPC0193"]);
    assert_eq!(c.notes[0].severity, tpc_diag::Severity::Warning);
}

#[test]
fn ops_without_a_rule_are_opaque_and_noted() {
    let mut w = Writer::default();
    let x = w.input("f32", [6, 4, 1, 1]);
    w.op("RWKV_WKV6", [6, 2, 1, 1], &[x; 6]);
    let c = captured(&w);
    assert_eq!(names(&c), ["input", "opaque"]);
    assert_eq!(c.notes[0].code, "TPC0190");
    assert!(c.notes[0].message.contains("line 2: RWKV_WKV6 of \"t1\""));
}

#[test]
fn any_op_of_ggml_with_any_operands_is_planned_around() {
    for name in OpKind::ALL.iter().filter(|&&op| op != OpKind::None) {
        for n in 0..8 {
            let mut w = Writer::default();
            let x = w.input("f32", [6, 4, 1, 1]);
            let wide = w.leaf("f32", [6, 8, 1, 1]);
            let y = w.op("MUL_MAT", [8, 4, 1, 1], &[wide, x]);
            w.params = vec![3; n];
            let z = w.op(name.name(), [8, 4, 1, 1], &vec![y; n]);
            w.op("SILU", [8, 4, 1, 1], &[z]);
            // Only records with too few operands are refused.
            match read(&w.text, "test") {
                Ok(_) => assert!(n >= name.facts().least_sources),
                Err(e) => {
                    assert_eq!(e.code(), "TPC0188", "{e}");
                    assert!(n < name.facts().least_sources);
                }
            }
        }
    }
}

#[test]
fn unknown_forms_are_opaque_and_noted() {
    let mut w = Writer::default();
    let x = w.input("f32", [6, 4, 1, 1]);
    let y = w.input("f32", [4, 4, 1, 1]);
    w.op("ADD", [6, 4, 1, 1], &[x, y]);
    let c = captured(&w);
    assert_eq!(names(&c), ["input", "input", "opaque"]);
    assert_eq!(c.notes[0].code, "TPC0191");
}

#[test]
fn overlapping_views_are_opaque_and_noted() {
    let mut w = Writer::default();
    let x = w.input("f32", [8, 1, 1, 1]);
    let overlap = View {
        of: x,
        nb: [4, 4, 16, 16],
        offs: 0,
    };
    let v = w.view("VIEW", [4, 4, 1, 1], &[x], &overlap);
    w.op("SILU", [4, 4, 1, 1], &[v]);
    let c = captured(&w);
    assert_eq!(names(&c), ["input", "opaque", "silu"]);
    assert_eq!(c.notes[0].code, "TPC0192");
}

/// Returns a capture with attention of `n` tokens in four heads to a cache of 64 cells. `input` writes the inputs.
fn masked_attention(n: u64, scale: f32, input: fn(&mut Writer, &str, [u64; 4]) -> usize) -> Writer {
    let mut w = Writer::default();
    let embd = w.leaf("f32", [32, 40, 1, 1]);
    let tokens = input(&mut w, "i32", [n, 1, 1, 1]);
    let x = w.op("GET_ROWS", [32, n, 1, 1], &[embd, tokens]);
    let cache = w.leaf("f32", [32, 64, 1, 1]);
    let rows = input(&mut w, "i64", [n, 1, 1, 1]);
    let whole = View {
        of: cache,
        nb: [4, 128, 8192, 8192],
        offs: 0,
    };
    w.view("SET_ROWS", [32, 64, 1, 1], &[x, rows, cache], &whole);
    let heads = |of| View {
        of,
        nb: [4, 128, 32, 8192],
        offs: 0,
    };
    let k = w.view("PERMUTE", [8, 64, 4, 1], &[cache], &heads(cache));
    let q = w.view("PERMUTE", [8, n, 4, 1], &[x], &heads(x));
    let mask = input(&mut w, "f32", [64, n, 1, 1]);
    w.params = vec![scale.to_bits()];
    w.op("FLASH_ATTN_EXT", [8, 4, n, 1], &[q, k, k, mask]);
    w
}

#[test]
fn the_sizes_of_a_graph_are_those_of_a_batch_or_it_is_another_graph() {
    let fixed = |n, scale| {
        let records = records(&masked_attention(n, scale, Writer::input).text).expect("records");
        read_fixed(&records, "test").expect("a graph")
    };
    let any = records(&masked_attention(8, 1.0, Writer::input).text).expect("records");
    let any = read_sized(&any, "test").expect("a graph");
    assert!(!any.batch.is_empty());
    for n in [1, 3, 8, 64] {
        let sizes = any.sizes_of(&fixed(n, 1.0)).expect("the same");
        assert_eq!(sizes.get(Symbol::NTokens), n);
        assert_eq!(sizes.get(Symbol::NCtx), 64);
    }
    assert_eq!(any.sizes_of(&fixed(8, 0.5)), None);
    let other = captured(&written_row(2));
    assert_eq!(any.sizes_of(&other), None);
}

#[test]
fn a_masked_attention_gets_symbols() {
    let c = captured(&masked_attention(8, 1.0, Writer::leaf));
    assert!(c.notes.is_empty(), "{:?}", c.notes);
    let ty = |name: &str| {
        let (_, v) = c
            .graph
            .values()
            .rfind(|(_, v)| v.name == name)
            .expect("there");
        v.ty.to_string()
    };
    // The capture marks no inputs.
    assert_eq!(ty("t1"), "i32[n_tokens]");
    assert_eq!(ty("t3"), "f32[32, n_ctx]");
    assert_eq!(ty("t8"), "f32[n_ctx, n_tokens]");
    assert_eq!(ty("t7"), "f32[8, n_tokens, 4]");
    assert_eq!(ty("t9"), "f32[8, 4, n_tokens]");
    assert_eq!(c.graph.outputs.len(), 2);
}

#[test]
fn every_defect_has_its_code() {
    let leaf = r#"{"id":0,"name":"a","op":"NONE","type":"f32","ne":[4,1,1,1],"nb":[4,16,16,16],"params":[],"src":[],"view":-1,"view_offs":0,"flags":1}"#;
    let op = r#"{"id":1,"name":"b","op":"SQR","type":"f32","ne":[4,1,1,1],"nb":[4,16,16,16],"params":[],"src":[0],"view":-1,"view_offs":0,"flags":0}"#;
    let good = format!("{leaf}\n\n{op}\n");
    read(&good, "good").expect("a capture");
    for (from, to, code, line) in [
        ("\"id\":1", "\"id\":one", "TPC0180", Some(3)),
        (
            "\"params\":[],\"src\":[0]",
            "\"params\":[99999999999],\"src\":[0]",
            "TPC0180",
            Some(3),
        ),
        ("\"type\":\"f32\"", "\"type\":\"float\"", "TPC0181", Some(1)),
        ("\"ne\":[4,1,1,1]", "\"ne\":[-4,1,1,1]", "TPC0182", Some(1)),
        (
            "\"ne\":[4,1,1,1]",
            "\"ne\":[4,0,1000000000,1000000000]",
            "TPC0182",
            Some(1),
        ),
        ("\"type\":\"f32\"", "\"type\":\"q8_0\"", "TPC0182", Some(1)),
        ("\"src\":[0]", "\"src\":[7]", "TPC0183", Some(3)),
        ("\"src\":[0]", "\"src\":[1]", "TPC0183", Some(3)),
        ("\"id\":1", "\"id\":0", "TPC0183", Some(3)),
        ("\"id\":1", "\"id\":-1", "TPC0183", Some(3)),
        ("\"src\":[0]", "\"src\":[-2]", "TPC0183", Some(3)),
        ("\"src\":[0]", "\"src\":[-7]", "TPC0183", Some(3)),
        ("\"src\":[0]", "\"src\":[]", "TPC0188", Some(3)),
        ("\"src\":[0]", "\"src\":[-1]", "TPC0188", Some(3)),
        (
            "\"view\":-1,\"view_offs\":0",
            "\"view\":-1,\"view_offs\":4",
            "TPC0184",
            Some(1),
        ),
        (
            "\"src\":[0],\"view\":-1,\"view_offs\":0",
            "\"src\":[0],\"view\":0,\"view_offs\":4",
            "TPC0184",
            Some(3),
        ),
        (
            "\"nb\":[4,16,16,16]",
            "\"nb\":[4,32,16,16]",
            "TPC0185",
            Some(1),
        ),
        ("\"op\":\"SQR\"", "\"op\":\"NONE\"", "TPC0186", None),
    ] {
        let bad = good.replacen(from, to, 1);
        let e = read(&bad, "bad").expect_err(&bad);
        assert_eq!((e.code().id, e.line()), (code, line), "{e}\n{bad}");
        assert!(!e.help().is_empty());
        assert!(CODES.iter().any(|c| **c == *code));
    }
    assert_eq!(read("", "empty").expect_err("nothing").code(), "TPC0186");
}

#[test]
fn no_text_makes_it_panic() {
    let mut random = SplitMix64::new(1);
    let mut random = |n: usize| random.below(n);
    let words = [
        "0",
        "1",
        "-1",
        "8",
        "7",
        "4096",
        "18446744073709551615",
        "\"f16\"",
        "\"q4_0\"",
        "\"i32\"",
        "\"CPY\"",
        "\"SET_ROWS\"",
        "\"VIEW\"",
        "\"MUL_MAT\"",
        "\"CONCAT\"",
        "\"SSM_SCAN\"",
        "\"FLASH_ATTN_EXT\"",
        "\"ROPE\"",
        "\"GET_ROWS\"",
        "\"SCALE\"",
        "[]",
        "[0,1,2]",
    ];
    let base = written_row(1).text;
    for _ in 0..3000 {
        let mut text = base.clone();
        for _ in 0..=random(3) {
            // Replace a number or word between two delimiters.
            let starts: Vec<usize> = text
                .char_indices()
                .filter(|(_, c)| matches!(c, ':' | ',' | '['))
                .map(|(i, _)| i + 1)
                .collect();
            let start = starts[random(starts.len())];
            let end = text[start..]
                .find([',', ']', '}'])
                .map_or(text.len(), |e| start + e);
            text.replace_range(start..end, words[random(words.len())]);
        }
        let _ = read(&text, "hostile");
    }
}

fn opaque_ops(text: &str) -> Vec<Op> {
    let captured = read(text, "opaque").expect("it reads");
    let ops = captured.graph.insts().map(|(_, i)| i.op.clone());
    ops.filter(|op| matches!(op, Op::Opaque(_))).collect()
}

#[test]
fn ops_without_a_rule_keep_their_parameters() {
    let mut w = Writer::default();
    let x = w.input("f32", [64, 8, 1, 1]) as i64;
    w.params = vec![1];
    let a = w.line("FOO", "f32", [64, 8, 1, 1], &[x], 0, None) as i64;
    w.params = vec![2];
    let b = w.line("FOO", "f32", [64, 8, 1, 1], &[x], 0, None) as i64;
    w.line("SUB", "f32", [64, 8, 1, 1], &[a, b], 0, None);
    let ops = opaque_ops(&w.text);
    assert_eq!(ops.len(), 2);
    assert_ne!(ops[0], ops[1], "x - x is not what the capture says");
}

#[test]
fn views_without_a_rule_keep_their_offsets() {
    let mut w = Writer::default();
    let x = w.input("f32", [64, 8, 1, 1]);
    let w0 = w.leaf("f32", [64, 64, 1, 1]) as i64;
    let h = w.line("MUL_MAT", "f32", [64, 8, 1, 1], &[w0, x as i64], 0, None);
    let mut half = |offs: u64| {
        let view = View {
            of: h,
            nb: [4, 8, 64, 512],
            offs,
        };
        let v = w.line("VIEW", "f32", [32, 8, 1, 1], &[h as i64], 0, Some(&view));
        w.line("CONT", "f32", [32, 8, 1, 1], &[v as i64], 0, None) as i64
    };
    let (a, b) = (half(0), half(64));
    w.line("SUB", "f32", [32, 8, 1, 1], &[a, b], 0, None);
    let ops = opaque_ops(&w.text);
    assert_eq!(ops.len(), 2);
    assert_ne!(ops[0], ops[1], "overlapping views at other offsets");
}

fn wrong(src: &str) -> String {
    let leaf = r#"{"id":0,"name":"a","op":"NONE","type":"f32","ne":[4,1,1,1],"nb":[4,16,16,16],"params":[],"src":[],"view":-1,"view_offs":0,"flags":1}"#;
    let op = |id: i64, op: &str, src: &str| {
        format!(
            r#"{{"id":{id},"name":"b","op":"{op}","type":"f32","ne":[4,1,1,1],"nb":[4,16,16,16],"params":[],"src":{src},"view":-1,"view_offs":0,"flags":0}}"#
        )
    };
    let (bad, good) = (op(1, "ADD", src), op(2, "SQR", "[0]"));
    let text = format!("{leaf}\n{bad}\n{good}\n");
    read(&text, "bad").expect_err(src).to_string()
}

#[test]
fn a_reference_that_makes_no_sense_is_told_with_its_place() {
    assert_eq!(
        wrong("[0,2]"),
        "line 2: b: src[1] 2: defined later, in line 3"
    );
    assert_eq!(wrong("[9,0]"), "line 2: b: src[0] 9: undefined id");
    assert_eq!(wrong("[0,-3]"), "line 2: b: src[1] -3: invalid id");
    for itself in ["[0,1]", "[0,-2]"] {
        let told = wrong(itself);
        assert!(told.contains("the record itself; only src[1]"), "{told}");
    }
    assert_eq!(wrong("[0]"), "line 2: b: ADD has 1 of 2 required sources");
}

#[test]
fn a_conversion_is_a_copy_to_itself() {
    // As in `ggml_cast`, the second source is the result.
    for itself in [-2, 1] {
        let mut w = Writer::default();
        let x = w.input("f32", [8, 4, 1, 1]) as i64;
        let half = w.line("CPY", "f16", [8, 4, 1, 1], &[x, itself], 0, None) as i64;
        let same = w.line("CPY", "f32", [8, 4, 1, 1], &[x, -2], 0, None) as i64;
        w.line("SILU", "f32", [8, 4, 1, 1], &[same], 0, None);
        w.line("SILU", "f16", [8, 4, 1, 1], &[half], 0, None);
        let c = captured(&w);
        let casts: Vec<_> = c
            .graph
            .insts()
            .filter(|(_, d)| d.op.name() == "cast")
            // The 16-bit result at the end is also rounded.
            .filter(|(_, d)| c.graph.def_op(d.operands[0]).is_leaf())
            .collect();
        let [(_, cast)] = casts.as_slice() else {
            panic!("one conversion, the other is a copy: {}", c.graph)
        };
        assert_eq!(cast.operands.len(), 1, "its source is not lost");
        assert_eq!(c.graph.value(cast.results[0]).ty.dtype, tpc_ir::DType::F16);
        let of_copies = c.notes.iter().find(|n| n.message.contains("CPY"));
        assert!(of_copies.is_none(), "{of_copies:?}");
    }
}

#[test]
fn a_tensor_that_looks_into_itself_owns_its_memory() {
    let w = written_row(0);
    let (first, rest) = w.text.split_once('\n').expect("lines");
    let text = first.replace("\"view\":-1", "\"view\":0") + "\n" + rest;
    let c = read(&text, "itself").expect("it reads");
    assert_eq!(
        c.graph.to_string(),
        captured(&w).graph.to_string().replace("test", "itself")
    );
}

#[test]
fn a_view_of_another_tensor_than_its_source_is_refused() {
    let mut w = Writer::default();
    let x = w.input("f32", [8, 1, 1, 1]);
    let y = w.input("f32", [8, 1, 1, 1]);
    let all = View {
        of: x,
        nb: [4, 16, 32, 32],
        offs: 0,
    };
    let v = w.view("RESHAPE", [4, 2, 1, 1], &[y], &all);
    w.op("SQR", [4, 2, 1, 1], &[v]);
    let e = read(&w.text, "two").expect_err("x or y?");
    assert_eq!((e.code().id, e.line()), ("TPC0183", Some(3)), "{e}");
}

#[test]
fn results_in_place_are_results() {
    let mut w = Writer::default();
    let x = w.input("f32", [8, 4, 1, 1]);
    let y = w.op("SQR", [8, 4, 1, 1], &[x]);
    let all = View {
        of: y,
        nb: [4, 32, 128, 128],
        offs: 0,
    };
    w.params = vec![2.0_f32.to_bits()];
    w.view("SCALE", [8, 4, 1, 1], &[y], &all);
    let c = captured(&w);
    let Some(Output::Named(name, v)) = c.graph.outputs.first() else {
        panic!("no result: {}", c.graph)
    };
    assert_eq!((name.as_str(), c.graph.def_op(*v).name()), ("t2", "scale"));
    assert_eq!(c.graph.outputs.len(), 1, "{}", c.graph);
}

#[test]
fn views_of_other_types_are_other_views() {
    let mut w = Writer::default();
    let x = w.input("f32", [8, 4, 1, 1]);
    let view = || View {
        of: x,
        nb: [4, 32, 128, 128],
        offs: 0,
    };
    let src = [x as i64];
    let a = w.line("VIEW", "f32", [8, 4, 1, 1], &src, 0, Some(&view()));
    let b = w.line("VIEW", "i32", [8, 4, 1, 1], &src, 0, Some(&view()));
    w.op("SQR", [8, 4, 1, 1], &[a]);
    w.line("CONT", "i32", [8, 4, 1, 1], &[b as i64], 0, None);
    let c = captured(&w);
    assert_eq!(c.notes[0].code, "TPC0192", "{}", c.graph);
}

#[test]
fn a_parameter_that_the_op_does_not_have_is_kept() {
    for (op, sources) in [("ADD", 2), ("SILU", 1), ("LIGHTNING_INDEXER", 4)] {
        let ops: Vec<Op> = [5, 6]
            .into_iter()
            .flat_map(|word| {
                let mut w = Writer::default();
                let x = w.input("f32", [8, 8, 1, 1]);
                w.params = vec![0, 0, 0, word];
                w.op(op, [8, 8, 1, 1], &vec![x; sources]);
                opaque_ops(&w.text)
            })
            .collect();
        assert!(ops.len() == 2 && ops[0] != ops[1], "{op}");
    }
}

#[test]
fn every_op_keeps_its_words_or_says_which_it_has() {
    for &kind in OpKind::ALL.iter().filter(|&&k| k != OpKind::None) {
        let op = crate::op::GgmlOp::parse(kind.name(), &[]);
        let keeps_all = op.word_use(40) == crate::op::WordUse::Read;
        let mut w = Writer::default();
        let x = w.input("f32", [8, 8, 1, 1]);
        w.params = vec![0; 40];
        w.params.push(7);
        let sources = kind.facts().least_sources;
        w.op(kind.name(), [8, 8, 1, 1], &vec![x; sources]);
        // A view without memory is not a view.
        let lost = opaque_ops(&w.text).iter().all(|op| match op {
            Op::Opaque(op) => op.params.last() != Some(&7),
            _ => true,
        });
        assert!(!lost, "{kind} (keeps all: {keeps_all})");
    }
}

#[test]
fn an_input_that_selects_more_rows_than_there_are_tokens_selects_no_outputs() {
    let mut w = Writer::default();
    let embd = w.leaf("f32", [32, 40, 1, 1]);
    let tokens = w.leaf("i32", [8, 1, 1, 1]);
    let x = w.op("GET_ROWS", [32, 8, 1, 1], &[embd, tokens]);
    let index = w.input("i32", [24, 1, 1, 1]);
    let rows = w.op("GET_ROWS", [32, 24, 1, 1], &[x, index]);
    let last = View {
        of: rows,
        nb: [4, 128, 1536, 1536],
        offs: 12 * 128,
    };
    let half = w.view("VIEW", [32, 12, 1, 1], &[rows], &last);
    w.op("SQR", [32, 12, 1, 1], &[half]);
    let c = captured(&w);
    assert!(!c.graph.to_string().contains("n_outputs"), "{}", c.graph);
    assert!(c.graph.to_string().contains("n_tokens"), "{}", c.graph);
}

#[test]
fn a_slice_that_one_token_does_not_have_makes_no_symbol() {
    // A batch of one token does not have the 4 outputs of the view.
    let mut w = Writer::default();
    let embd = w.leaf("f32", [32, 40, 1, 1]);
    let tokens = w.leaf("i32", [8, 1, 1, 1]);
    let x = w.op("GET_ROWS", [32, 8, 1, 1], &[embd, tokens]);
    let last = View {
        of: x,
        nb: [4, 128, 512, 512],
        offs: 4 * 128,
    };
    let half = w.view("VIEW", [32, 4, 1, 1], &[x], &last);
    w.op("SQR", [32, 4, 1, 1], &[half]);
    let c = captured(&w);
    assert!(!c.graph.to_string().contains("n_tokens"), "{}", c.graph);
    assert_eq!(c.notes.last().map(|n| n.code.id), Some("TPC0193"));
}
