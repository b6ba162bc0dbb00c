//! The rules of the proof. Each has a witness: a graph and right programs for it, which are not proved without the rule.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tpc_core::golden::distance;
use tpc_ir::stage::Stage;
use tpc_ir::{Graph, Op, Symbol, Verified, text};
use tpc_passes::prove::{prove, prove_without, rules};

use super::captures::{divided_experts, random_weights, run_at_random};
use super::support::verified;

/// The most that numbers may differ for another order of summation.
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
        // A proved witness must compute the model.
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

/// The smallest number of rows or experts that an index counts.
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
fn every_rule_has_a_witness_and_stands_in_the_book() {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/proof.md");
    let book = fs::read_to_string(&book).unwrap_or_else(|e| panic!("{e}"));
    let mut files = BTreeSet::new();
    for (name, equation) in rules() {
        assert!(
            book.contains(&format!("| `{name}` | {equation} |")),
            "docs/src/proof.md lacks rule {name}: {equation}"
        );
        files.extend(["model", "programs"].map(|kind| format!("{name}.{kind}.tpir")));
    }
    let entries = fs::read_dir(folder()).unwrap_or_else(|e| panic!("{e}"));
    let found: BTreeSet<String> = entries
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .collect();
    assert_eq!(found, files);
}

/// A sum that nobody does, in a graph without layers.
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

/// A device without a share of two contractions has zeros of both: it would divide zero by zero, and spoil the sum.
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
    // The divisor of the second device: its own zeros, or the sum of all.
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

/// Experts that are divided by number, as the planner divides none of these models.
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
