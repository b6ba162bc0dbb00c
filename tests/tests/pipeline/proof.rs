//! The rules of the proof. Each has a witness: a graph and correct programs that are not proved without the rule.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tpc_core::golden::distance;
use tpc_ir::stage::Stage;
use tpc_ir::{Graph, Op, Symbol, Verified, text};
use tpc_passes::prove::{prove, prove_without, rules};

use super::captures::{divided_experts, random_weights, run_at_random};
use super::support::verified;

/// The maximum NMSE if only the order of sums differs.
const EXACT: f64 = 1e-24;

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/data/proof"))
}

fn read<S: Stage>(rule: &str, kind: &str) -> Verified<S> {
    let path = folder().join(format!("{rule}.{kind}.tpir"));
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let parsed = text::parse(&text).unwrap_or_else(|e| panic!("{}: {}", path.display(), e[0]));
    verified(parsed.graph)
}

#[test]
fn every_rule_is_needed_by_its_witness() {
    for (rule, _) in rules() {
        let (model, programs) = (read(rule, "model"), read(rule, "programs"));
        prove(&model, &programs).unwrap_or_else(|r| panic!("{rule}: {r}"));
        let without = prove_without(&model, &programs, Some(rule));
        assert!(
            without.is_err(),
            "the witness of {rule} is proved without it"
        );
        let weights = random_weights(&model);
        let batch = [(Symbol::NTokens, 8), (Symbol::NOutputs, 8)];
        let rows = fewest_rows(&model);
        let whole = run_at_random(&model, &weights, &batch, rows);
        let whole = whole.unwrap_or_else(|e| panic!("{rule}: {e}"));
        let parts = run_at_random(&programs, &weights, &batch, rows);
        let parts = parts.unwrap_or_else(|e| panic!("{rule}: {e}"));
        for (name, expected) in &whole {
            let d = distance(expected.iter().copied(), parts[name].iter().copied());
            assert!(d.nmse <= EXACT, "{rule}: {name}: NMSE {:e}", d.nmse);
        }
    }
}

fn fewest_rows(graph: &Graph) -> usize {
    let counted = graph.insts().filter_map(|(_, data)| {
        let (operand, axis) = match data.op {
            Op::GetRows(_) | Op::SetRows(_) => (0, 1),
            Op::MulMatId(_) => (0, 2),
            Op::AddId(_) => (1, 1),
            _ => return None,
        };
        graph.value(data.operands[operand]).ty.dims[axis].as_const()
    });
    counted.min().unwrap_or(8) as usize
}

#[test]
fn every_rule_has_a_witness() {
    let mut files = BTreeSet::new();
    for (name, _) in rules() {
        files.extend(["model", "programs"].map(|kind| format!("{name}.{kind}.tpir")));
    }
    let entries = fs::read_dir(folder()).unwrap_or_else(|e| panic!("{e}"));
    let found: BTreeSet<String> = entries
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .collect();
    assert_eq!(found, files);
}

/// A partial value without an all-reduce, in a graph without layers.
#[test]
fn a_sum_that_is_never_done_is_refuted() {
    let programs = "tpir 1
graph \"sum\"
device dev0 \"cpu:0\"

v0 \"in0\": f32[8, n_tokens] @host = input {name = \"in0\"}
v1: f32[4, n_tokens] @host = slice v0 {axis = 0, start = 0, len = 4}
v2: f32[4, n_tokens] @dev0 = copy v1
v3 \"w0\": f32[4, 4] @dev0 = weight {tensor = \"w0\", parts = [[0:4], [0:4], [0:1], [0:1]]}
v4: f32[4, n_tokens] @dev0 = mul_mat v3, v2
v5: f32[4, n_tokens] @host = copy v4

output \"out0\" = v5
";
    let programs = text::parse(programs)
        .unwrap_or_else(|e| panic!("{}", e[0]))
        .graph;
    let programs = verified(programs);
    let refutation = prove(&read("padded-contraction", "model"), &programs);
    assert!(refutation.is_err(), "{refutation:?}");
}

/// A device without a share of two contractions would divide zero by zero, and spoil the sum.
#[test]
fn nothing_is_divided_by_nothing() {
    let model = "tpir 1
graph \"div\"

v0 \"x\": f32[8, n_tokens] @host = input {name = \"x\"}
v1 \"w\": f32[8, 4] @host = weight {tensor = \"w\"}
v2 \"a\": f32[4, n_tokens] @host = mul_mat v1, v0
v3 \"u\": f32[8, 4] @host = weight {tensor = \"u\"}
v4 \"y\": f32[4, n_tokens] @host = mul_mat v3, v0
v5 \"d\": f32[4, n_tokens] @host = div v2, v4

output \"out\" = v5
";
    // The second device divides by its own zeros, or by the sum of all devices.
    let programs = |divisor: &str| {
        format!(
            "tpir 1
graph \"div\"
device dev0 \"cpu:0\"
device dev1 \"cpu:1\"

v0 \"x\": f32[8, n_tokens] @host = input {{name = \"x\"}}
v1 \"x\": f32[8, n_tokens] @dev0 = copy v0
v2 \"x\": f32[0, n_tokens] @host = slice v0 {{axis = 0, start = 0, len = 0}}
v3 \"x\": f32[0, n_tokens] @dev1 = copy v2
v4 \"w\": f32[8, 4] @dev0 = weight {{tensor = \"w\"}}
v5 \"w\": f32[0, 4] @dev1 = weight {{tensor = \"w\", parts = [[], [0:4], [0:1], [0:1]]}}
v6 \"a\": f32[4, n_tokens] @dev0 = mul_mat v4, v1
v7 \"a\": f32[4, n_tokens] @dev1 = mul_mat v5, v3
v8 \"u\": f32[8, 4] @dev0 = weight {{tensor = \"u\"}}
v9 \"u\": f32[0, 4] @dev1 = weight {{tensor = \"u\", parts = [[], [0:4], [0:1], [0:1]]}}
v10 \"y\": f32[4, n_tokens] @dev0 = mul_mat v8, v1
v11 \"y\": f32[4, n_tokens] @dev1 = mul_mat v9, v3
v17 \"y\": f32[4, n_tokens] @dev0, v18 \"y\": f32[4, n_tokens] @dev1 = all_reduce v10, v11
v12 \"d\": f32[4, n_tokens] @dev0 = div v6, v17
v13 \"d\": f32[4, n_tokens] @dev1 = div v7, {divisor}
v14 \"d\": f32[4, n_tokens] @dev0, v15 \"d\": f32[4, n_tokens] @dev1 = all_reduce v12, v13
v16 \"d\": f32[4, n_tokens] @host = copy v14

output \"out\" = v16
"
        )
    };
    let parse = |text: &str| {
        text::parse(text)
            .unwrap_or_else(|e| panic!("{}", e[0]))
            .graph
    };
    let model = verified(parse(model));
    let prove = |divisor: &str| prove(&model, &verified(parse(&programs(divisor))));
    prove("v18").unwrap_or_else(|r| panic!("{r}"));
    let refutation = prove("v11").expect_err("zero is divided by zero");
    assert_eq!(
        (refutation.op.as_str(), refutation.value.as_str()),
        ("div", "d")
    );
}

/// Models that select from 8 rows or experts, by the op that selects: the lines of the model, of the first device and
/// of the second device. The second device holds an empty share of a contraction, so it uses zeros for `ROWS` rows.
const SELECTIONS: [(&str, &str, &str, &str, &str); 3] = [
    (
        "get_rows",
        "i32[n_tokens]",
        "v2 \"w\": f32[8, 4] @host = weight {tensor = \"w\"}
v3 \"y\": f32[8, 8] @host = weight {tensor = \"y\"}
v4 \"t\": f32[4, 8] @host = mul_mat v2, v3
v7 \"out\": f32[4, n_tokens] @host = get_rows v4, v0",
        "v12 \"w\": f32[8, 4] @dev0 = weight {tensor = \"w\"}
v13 \"y\": f32[8, 8] @dev0 = weight {tensor = \"y\"}
v14 \"t\": f32[4, 8] @dev0 = mul_mat v12, v13
v17 \"out\": f32[4, n_tokens] @dev0 = get_rows v14, v8",
        "v22 \"w\": f32[0, 4] @dev1 = weight {tensor = \"w\", parts = [[], [0:4], [0:1], [0:1]]}
v23 \"y\": f32[0, ROWS] @dev1 = weight {tensor = \"y\", parts = [[], [0:ROWS], [0:1], [0:1]]}
v24 \"t\": f32[4, ROWS] @dev1 = mul_mat v22, v23
v27 \"out\": f32[4, n_tokens] @dev1 = get_rows v24, v9",
    ),
    (
        "mul_mat_id",
        "i32[2, n_tokens]",
        "v2 \"e\": f32[8, 4, 8] @host = weight {tensor = \"e\"}
v7 \"out\": f32[4, 2, n_tokens] @host = mul_mat_id v2, v1, v0",
        "v12 \"e\": f32[8, 4, 8] @dev0 = weight {tensor = \"e\"}
v17 \"out\": f32[4, 2, n_tokens] @dev0 = mul_mat_id v12, v10, v8",
        "v22 \"e\": f32[0, 4, ROWS] @dev1 = weight {tensor = \"e\", parts = [[], [0:4], [0:ROWS], [0:1]]}
v27 \"out\": f32[4, 2, n_tokens] @dev1 = mul_mat_id v22, v11, v9",
    ),
    (
        "add_id",
        "i32[2, n_tokens]",
        "v2 \"u\": f32[8, 4] @host = weight {tensor = \"u\"}
v3 \"y\": f32[8, 8] @host = weight {tensor = \"y\"}
v4 \"x\": f32[4, 2, n_tokens] @host = mul_mat v2, v1
v5 \"t\": f32[4, 8] @host = mul_mat v2, v3
v7 \"out\": f32[4, 2, n_tokens] @host = add_id v4, v5, v0",
        "v12 \"u\": f32[8, 4] @dev0 = weight {tensor = \"u\"}
v13 \"y\": f32[8, 8] @dev0 = weight {tensor = \"y\"}
v14 \"x\": f32[4, 2, n_tokens] @dev0 = mul_mat v12, v10
v15 \"t\": f32[4, 8] @dev0 = mul_mat v12, v13
v17 \"out\": f32[4, 2, n_tokens] @dev0 = add_id v14, v15, v8",
        "v22 \"u\": f32[0, 4] @dev1 = weight {tensor = \"u\", parts = [[], [0:4], [0:1], [0:1]]}
v23 \"y\": f32[0, ROWS] @dev1 = weight {tensor = \"y\", parts = [[], [0:ROWS], [0:1], [0:1]]}
v24 \"x\": f32[4, 2, n_tokens] @dev1 = mul_mat v22, v11
v25 \"t\": f32[4, ROWS] @dev1 = mul_mat v22, v23
v27 \"out\": f32[4, 2, n_tokens] @dev1 = add_id v24, v25, v9",
    ),
];

/// Zeros may replace a table only if they have as many rows as the model's table. A table without rows equals zero, as
/// all values without elements do, but reading its rows is out of bounds.
#[test]
fn nothing_is_selected_of_nothing() {
    let parse = |text: &str| {
        let parsed = text::parse(text).unwrap_or_else(|e| panic!("{}\n{text}", e[0]));
        parsed.graph
    };
    for (op, ids, model, first, second) in SELECTIONS {
        let result = model.rsplit_once("f32[").map_or("", |(_, t)| t);
        let result = format!("f32[{}]", result.split_once(']').map_or("", |(t, _)| t));
        let inputs = format!(
            "v0 \"ids\": {ids} @host = input {{name = \"ids\"}}
v1 \"z\": f32[8, 2, n_tokens] @host = input {{name = \"z\"}}
"
        );
        let model = format!("tpir 1\ngraph \"g\"\n\n{inputs}{model}\n\noutput \"out\" = v7\n");
        // The proof does not treat a bias of zeros as leaving zeros unchanged, because a bias belongs to its experts.
        for (rows, is_proved) in [("8", op != "add_id"), ("7", false), ("0", false)] {
            let second = second.replace("[0:ROWS]", if rows == "0" { "[]" } else { "[0:ROWS]" });
            let programs = format!(
                "tpir 1\ngraph \"g\"\ndevice dev0 \"cpu:0\"\ndevice dev1 \"cpu:1\"\n\n{inputs}\
                 v8 \"ids\": {ids} @dev0 = copy v0
v9 \"ids\": {ids} @dev1 = copy v0
v10 \"z\": f32[8, 2, n_tokens] @dev0 = copy v1
v28 \"z\": f32[0, 2, n_tokens] @host = slice v1 {{axis = 0, start = 0, len = 0}}
v11 \"z\": f32[0, 2, n_tokens] @dev1 = copy v28
{first}\n{}
v18 \"out\": {result} @dev0, v19 \"out\": {result} @dev1 = all_reduce v17, v27
v20 \"out\": {result} @host = copy v18

output \"out\" = v20\n",
                second.replace("ROWS", rows)
            );
            let programs = Verified::unchecked(parse(&programs));
            let proof = prove(&verified(parse(&model)), &programs);
            assert_eq!(proof.is_ok(), is_proved, "{op} of {rows}: {proof:?}");
        }
    }
}

/// The planner does not divide these models by experts.
#[test]
fn experts_divided_by_number_are_proved() {
    for path in tpc_tests::captures() {
        for devices in [2, 3] {
            if let Some((model, programs)) = divided_experts(&path, devices) {
                prove(&model, &programs).unwrap_or_else(|r| panic!("{}: {r}", path.display()));
            }
        }
    }
}
