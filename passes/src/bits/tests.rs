use tpc_ir::text;

use super::*;

const EXACT: Company = Company {
    subtrees: true,
    two_term_weights: 0,
    widths: u64::MAX,
    neighbours: true,
};

/// Parses programs of two devices. Each multiplies a part of 128 elements, applies `op`, and runs `sum`.
fn programs(parts: [[u64; 2]; 2], op: &str, sum: &str) -> Graph {
    let mut text = "tpir 1\ngraph \"g\"\ndevice dev0 \"a\"\ndevice dev1 \"b\"\n".to_owned();
    text += "v0 \"x\": f32[128, n_tokens] @host = input {name = \"x\"}\n";
    let mut n = 1;
    for (d, [start, end]) in parts.iter().enumerate() {
        let len = end - start;
        let op = op.replace('#', &(n + 3).to_string());
        let at = format!("@dev{d}");
        text += &format!(
            "v{n}: f32[{len}, n_tokens] @host = slice v0 {{axis = 0, start = {start}, len = {len}}}\n\
             v{}: f32[{len}, n_tokens] {at} = copy v{n}\n\
             v{}: f32[{len}, 8] {at} = weight {{tensor = \"w\", parts = [[{start}:{len}], [0:8], [0:1], [0:1]]}}\n\
             v{}: f32[8, n_tokens] {at} = mul_mat v{}, v{}\n\
             v{}: f32[8, n_tokens] {at} = {op}\n",
            n + 1,
            n + 2,
            n + 3,
            n + 2,
            n + 1,
            n + 4,
        );
        n += 5;
    }
    text += sum;
    let parsed = text::parse(&text).unwrap_or_else(|e| panic!("{}\n{text}", e[0]));
    parsed.graph
}

const SUM: &str = "v11: f32[8, n_tokens] @dev0, v12: f32[8, n_tokens] @dev1 = all_reduce v5, v10\n\
                   v13: f32[8, n_tokens] @host = copy v11\noutput \"y\" = v13\n";
const SWAPPED: &str = "v11: f32[8, n_tokens] @dev1, v12: f32[8, n_tokens] @dev0 = all_reduce v10, v5\n\
     v13: f32[8, n_tokens] @host = copy v12\noutput \"y\" = v13\n";
const COPIED: &str = "v11: f32[8, n_tokens] @dev0 = copy v10\n\
                      v12: f32[8, n_tokens] @dev0 = add v5, v11\n\
                      v13: f32[8, n_tokens] @host = copy v12\noutput \"y\" = v13\n";
const VIEW: &str = "reshape v# {dims = [8, n_tokens]}";

fn causes(parts: [[u64; 2]; 2], op: &str, sum: &str, company: Company) -> Vec<DifferenceCause> {
    let found = find_differences(&programs(parts, op, sum), company);
    found.into_iter().map(|d| d.cause).collect()
}

#[test]
fn subtrees_in_order_are_exact_and_every_other_order_is_named() {
    use DifferenceCause::{DeferredSum, ProductOrder, UnequalShares};
    let halves = [[0, 64], [64, 128]];
    let sums = |parts, op, sum| causes(parts, op, sum, EXACT);
    assert_eq!(sums(halves, VIEW, SUM), []);
    assert_eq!(sums(halves, VIEW, SWAPPED), [UnequalShares]);
    assert_eq!(sums([[0, 32], [32, 128]], VIEW, SUM), [UnequalShares]);
    assert_eq!(sums([[64, 128], [0, 64]], VIEW, SUM), [UnequalShares]);
    assert_eq!(sums(halves, "silu v#", SUM), [DeferredSum]);
    // Both devices' programs add by themselves.
    assert_eq!(sums(halves, VIEW, COPIED), [DeferredSum]);
    let other = Company {
        subtrees: false,
        ..EXACT
    };
    assert_eq!(causes(halves, VIEW, SUM, other), [ProductOrder]);
}
