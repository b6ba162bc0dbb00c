//! Collectives per layer: exactly the number that the algebra needs.

use tpc_core::placement::{CacheSplit, SplitMode};
use tpc_ir::Op;
use tpc_tests::goldens;

use crate::support::{placement, plan};

/// Layers without the usual two all-reduces (token mixer, feed-forward): the numbers of all-reduces of sums and of norm
/// statistics.
///
/// Some layers need the usual two in another form. Experts and a shared expert need one together, and so do a recurrent
/// mixer and attention (`falcon-h1`). Layers of a hybrid (`granitehybrid`, `lfm2`, `qwen35`, `qwen3next`) have one
/// mixer each. A norm after a mixer (`gemma2`, `gemma3`, `glm4`, `olmo2`, `exaone4`) needs its sum at once, which adds
/// no all-reduce.
const OTHERS: &[(&str, usize, usize)] = &[
    // Parallel attention and feed-forward share a sum.
    ("cohere2-", 1, 0),
    ("command-r-", 1, 0),
    ("falcon-dense", 1, 0),
    ("phi2-", 1, 0),
    // One mixer or feed-forward per layer.
    ("mamba2-", 1, 0),
    ("nemotron_h_moe-", 1, 0),
    // Norms over all heads of queries and keys; one all-reduce for the statistics of both.
    ("minimax-m2-", 2, 1),
    ("olmo2-", 2, 1),
    ("olmoe-", 2, 1),
    // In these small models, the latent vector is split: its width is contracted, and normalised over.
    ("deepseek2-", 3, 1),
    ("mistral4-", 3, 1),
];

#[test]
fn layers_have_no_more_collectives_than_they_need() {
    for path in goldens() {
        let name = path.file_stem().expect("a file name").to_string_lossy();
        let mut placement = placement(2);
        placement.split_mode = SplitMode::Tensor;
        placement.cache_split = CacheSplit::Heads;
        let Some((_, compiled)) = plan(&path, &placement) else {
            continue;
        };
        // The last layer's second sum may follow the selection of output rows, so count the first layer.
        let graph = &compiled.sharded;
        let mut found = (0, 0);
        for (_, data) in graph.insts().filter(|(_, d)| d.layer == Some(0)) {
            match &data.op {
                Op::AllReduce(_) => {
                    let rows = graph.value(data.operands[0]).ty.dims[0].as_const();
                    if rows.is_some_and(|n| n <= 4) {
                        found.1 += 1;
                    } else {
                        found.0 += 1;
                    }
                }
                op => assert!(!op.is_collective(), "{name}: {}", op.name()),
            }
        }
        let other = OTHERS.iter().find(|(n, ..)| name.starts_with(n));
        let expected = other.map_or((2, 0), |&(_, sums, norms)| (sums, norms));
        assert_eq!(found, expected, "{name}: sums and statistics of layer 0");
        let (before, after) = (compiled.rewriting.before(), compiled.rewriting.after());
        assert!(after.collectives() <= before.collectives(), "{name}");
        assert!(after.copies <= before.copies, "{name}");
        assert!(compiled.rewriting.is_saturated(), "{name}");
    }
}
