use std::time::{Duration, Instant};

use super::{ParsedProgram, Part, print};
use crate::entity::{Buffer, Launch, Value};
use crate::program::{Program, Step, StorageFormat, verify};
use crate::text::{MAX_ERRORS, ParseError};

const ROWS16: StorageFormat = StorageFormat::of_granules("rows16");

fn parse(text: &str) -> Result<ParsedProgram, Vec<ParseError>> {
    super::parse(text, &[ROWS16])
}

const SAMPLE: &str = r#"tpir 1
graph "two devices"
device dev0 "cpu:0"
device dev1 "cpu:1"

v0 "w": f32[4, 4] @dev0 = weight {tensor = "w"}
v1 "w": f32[4, 4] @dev1 = weight {tensor = "w"}
v2 "x": f32[4, n_tokens] @host = input {name = "x"}
v3: f32[4, n_tokens] @dev0 = copy v2
v4: f32[4, n_tokens] @dev1 = copy v2
v5: f32[4, n_tokens] @dev0 = mul_mat v0, v3
v6: f32[4, n_tokens] @dev1 = mul_mat v1, v4
v7: f32[4, n_tokens] @dev0, v8: f32[4, n_tokens] @dev1 = all_reduce v5, v6
v9: f32[2, n_tokens] @dev0 = slice v7 {axis = 0, start = 2, len = 2}
v10: f32[2, n_tokens] @dev0 = relu v9
v11: f32[2, n_tokens] @host = copy v10
output "y" = v11

shape {n_ctx = 8}
shape {n_tokens = 4, n_kv = 1, n_ctx = 8}
arena a9 @dev0 weights size 64
arena a1 @dev1 weights size 64
arena a2 @host work size 128
arena a3 @dev0 work size 256
arena a4 @dev1 work size 256
buffer b0 = a9 rows16 [0:64]
buffer b1 = a1 [0:64]
buffer b2 = a2 [0:16, 0:64]
buffer b3 = a3 [0:16, 0:64]
buffer b4 = a4 [0:16, 0:64]
buffer b5 = a3 [64:16, 64:64]
buffer b6 = a4 [64:16, 64:64]
buffer b7 = a3 [128:16, 128:64] ; the sum
buffer b8 = a4 [128:16, 128:64]
buffer b9 = a3 [192:8, 192:32]
buffer b10 = a2 [64:8, 64:32]
home v0 = b0
home v1 = b1
home v2 = b2
home v3 = b3
home v4 = b4 at 0
home v5 = b5
home v6 = b6 strides [4, 16, 16*n_tokens, 16*n_tokens]
home v7 = b7
home v8 = b8
home v9 = b7 at 8 strides [4, 16, 16*n_tokens, 16*n_tokens]
home v10 = b9
home v11 = b10
launch l0 "copy" @dev0 = transfer v3
launch l7 "copy" @dev1 = transfer v4
launch l2 "mul_mat" @dev0 = compute v5
launch l3 "mul_mat" @dev1 = compute v6
launch l4 "all_reduce" @dev0, @dev1 = transfer v8
launch l5 "relu" @dev0 = compute v10
launch l6 "copy" @host = transfer v11
phase 0
queue @host = [@dev0:4, l6]
queue @dev0 = [l0, l2, l4, l5]
queue @dev1 = [l7, l3, l4]
"#;

fn sample() -> ParsedProgram {
    parse(SAMPLE).unwrap_or_else(|e| panic!("{} at {:?}", e[0], e[0].span))
}

fn program(text: &str) -> Program {
    let parsed = parse(text).unwrap_or_else(|e| panic!("{} at {:?}", e[0], e[0].span));
    parsed.program().expect("the graph is valid")
}

fn errors(text: &str) -> Vec<ParseError> {
    parse(text).expect_err("the text has errors")
}

#[test]
fn the_sample_round_trips() {
    let parsed = sample();
    let program = parsed.clone().program().expect("a graph of programs");
    assert_eq!(verify(&program), Ok(()));
    let printed = print(&program);
    assert_eq!(program.to_string(), printed.text);
    let again = parse(&printed.text).expect("printed text");
    assert_eq!(again.spans, printed.spans);
    let again = again.program().expect("a graph of programs");
    assert_eq!(again, program);
    assert_eq!(print(&again), printed);
    let lines: Vec<&str> = printed.text.lines().collect();
    for line in [
        "arena a0 @dev0 weights size 64",
        "buffer b0 = a0 rows16 [0:64]",
        "home v6 = b6",
        "home v9 = b7 at 8 strides [4, 16, 16*n_tokens, 16*n_tokens]",
        "launch l4 \"all_reduce\" @dev0, @dev1 = transfer v7",
        "queue @host = [@dev0:4, l6]",
        "queue @dev1 = [l1, l3, l4]",
    ] {
        assert!(lines.contains(&line), "no {line} in\n{}", printed.text);
    }
    assert_eq!(program.buffers[0].format, ROWS16);
    assert_eq!(
        program.phases[0].queues[0].steps,
        [
            Step::Wait { queue: 1, steps: 4 },
            Step::Launch(Launch::new(6))
        ]
    );
}

#[test]
fn every_part_has_its_line() {
    let spans = sample().spans;
    let at = |part: Part| &SAMPLE[spans.get(part).expect("a span").range()];
    assert_eq!(at(Part::Shape(0)), "shape {n_ctx = 8}");
    assert_eq!(
        at(Part::Buffer(Buffer::new(7))),
        "buffer b7 = a3 [128:16, 128:64]"
    );
    assert_eq!(at(Part::Home(Value::new(4))), "home v4 = b4 at 0");
    assert_eq!(
        at(Part::Launch(Launch::new(1))),
        "launch l7 \"copy\" @dev1 = transfer v4"
    );
    assert_eq!(at(Part::Phase(0)), "phase 0");
    assert_eq!(at(Part::Queue(0, 2)), "queue @dev1 = [l7, l3, l4]");
    assert_eq!(spans.get(Part::Phase(1)), None);
}

#[test]
fn values_without_homes_have_no_line() {
    let text = SAMPLE.replace("home v10 = b9\n", "");
    let program = program(&text);
    assert_eq!(program.homes[10], None);
    assert!(verify(&program).is_err());
    let printed = print(&program);
    assert!(!printed.text.contains("home v10"));
    assert_eq!(
        parse(&printed.text).and_then(|p| p.program().map_err(|_| Vec::new())),
        Ok(program)
    );
}

#[test]
fn defects_are_reported_on_their_lines() {
    let check = |from: &str, to: &str, code: &str, at: &str| {
        assert!(SAMPLE.contains(from), "{from}");
        let text = SAMPLE.replacen(from, to, 1);
        let errors = errors(&text);
        let first = &errors[0];
        assert_eq!(
            (first.code().id, errors.len()),
            (code, 1),
            "{to}: {errors:?}"
        );
        assert_eq!(&text[first.span.range()], at, "{to}: {first}");
        assert!(!first.help().is_empty());
    };
    check(
        "shape {n_ctx = 8}",
        "shape {n_ctxs = 8}",
        "TPC0208",
        "n_ctxs",
    );
    check(
        "shape {n_ctx = 8}",
        "shape {n_ctx = 8, n_ctx = 9}",
        "TPC0208",
        "n_ctx",
    );
    check("weights size 64", "waits size 64", "TPC0205", "waits");
    check("buffer b1 = a1", "buffer b1 = a7", "TPC0209", "a7");
    check("buffer b1 = a1", "buffer b1 = a1 rows", "TPC0205", "rows");
    check(
        "[0:64]\nbuffer b2",
        "[1:18446744073709551615]\nbuffer b2",
        "TPC0215",
        "1:18446744073709551615",
    );
    check(
        "buffer b1 =",
        "buffer b0 = a9 [0:1]\nbuffer b1 =",
        "TPC0210",
        "b0",
    );
    check("home v1 = b1", "home v0 = b1", "TPC0210", "home v0 = b1");
    check("home v1 = b1", "home v99 = b1", "TPC0209", "v99");
    check(
        "home v1 = b1",
        "home v1 = b1 strides [4, 4, 4]",
        "TPC0218",
        "[4, 4, 4]",
    );
    check("= compute v5", "= cover v5", "TPC0205", "cover");
    check(
        "= compute v10",
        "= store 99999999999999999999",
        "TPC0204",
        "99999999999999999999",
    );
    check("phase 0", "phase 4294967296", "TPC0204", "4294967296");
    check("[@dev0:4, l6]", "[@dev0:4, l9]", "TPC0209", "l9");
    check("queue @dev0 = [l0, l2, l4, l5]", "", "TPC0209", "@dev0:4");
    let errors = errors(&SAMPLE.replacen("phase 0\n", "", 1));
    let codes: Vec<&str> = errors.iter().map(|e| e.code().id).collect();
    assert_eq!(codes, ["TPC0205"; 3]);
}

#[test]
fn a_graph_has_no_statements_of_programs() {
    let errors = crate::text::parse(SAMPLE).expect_err("it is a program");
    assert!(errors.iter().all(|e| e.code().id == "TPC0206"));
    assert_eq!(errors.len(), MAX_ERRORS);
}

#[test]
fn a_rejected_line_is_one_error() {
    let text = "tpir 1\ngraph \"g\"\nv0: f3[1] @host = input {name = \"x\"}\nhome v0 = b0\n\
                arena a0 @host wrong\nbuffer b0 = a0 [0:1]\nhome v0 = b0\nlaunch l0 \"k\" @host = compute v0\n\
                phase 0\nqueue @host = [l0]\n";
    let codes: Vec<&str> = errors(text).iter().map(|e| e.code().id).collect();
    assert_eq!(codes, ["TPC0207", "TPC0209", "TPC0205"]);
}

#[test]
fn damaged_texts_end_without_panic() {
    for at in 0..SAMPLE.len() {
        let _ = parse(&SAMPLE[..at]);
        for with in ["", "0", "@", "99999999999999999999", "v0", "]", "\n", "\""] {
            let text = format!("{}{with}{}", &SAMPLE[..at], &SAMPLE[at + 1..]);
            if let Ok(parsed) = parse(&text)
                && let Ok(program) = parsed.program()
            {
                let printed = print(&program);
                if verify(&program).is_ok() {
                    let again = parse(&printed.text).expect("it was printed");
                    assert_eq!(again.program().ok(), Some(program));
                }
            }
        }
    }
}

#[test]
fn long_texts_take_linear_time() {
    let time = |n: usize| {
        let mut text = String::from("tpir 1\ngraph \"g\"\n");
        for i in 0..n {
            text += &format!("v{i}: f32[1] @host = input {{name = \"x\"}}\n");
        }
        text += "arena a0 @host work size 1\nbuffer b0 = a0 [0:1]\n";
        for i in (0..n).rev() {
            text += &format!("home v{i} = b0\nlaunch l{i} \"k\" @host = compute v{i}\n");
        }
        text += "phase 0\nqueue @host = [";
        for i in 0..n {
            text += &format!("@host:{i}, l{i}, ");
        }
        text += "l0]\n";
        let start = Instant::now();
        let parsed = parse(&text).expect("it parses");
        assert_eq!(parsed.graph().values().len(), n);
        start.elapsed()
    };
    let _ = time(1000);
    let (small, large) = (time(2000), time(20_000));
    assert!(
        large < small * 60 + Duration::from_millis(500),
        "{small:?} {large:?}"
    );
}
