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
