//! Decoding token by token equals one batch, with caches, windows and states.

use tpc_core::golden::distance;
use tpc_runtime::{Batch, Session, SessionConfig};
use tpc_tests::goldens;

use super::support::{FileWeights, golden, placement, plan, run};

/// The maximum NMSE if only the order of sums differs.
const AGAINST_BATCH: f64 = 1e-10;

/// Two sequences take turns on two devices, with one token per batch. Caches of window layers hold only the visible
/// cells. Each sequence must equal one batch on one device.
#[test]
fn two_sequences_token_by_token_equal_one_batch_of_each() {
    let mut wrapped = 0;
    for path in goldens() {
        let Some((file, whole)) = plan(&path, &placement(1)) else {
            continue;
        };
        let name = path.display();
        let (_, split) = plan(&path, &placement(2)).expect("it is lowered");
        let tokens = golden(&path).tokens;
        let reversed: Vec<u32> = tokens.iter().rev().copied().collect();
        let sequences = [tokens, reversed];
        let n = sequences[0].len();
        let mut config = SessionConfig::new(2 * n).with_sequences(2);
        if let Some(window) = split.model.summary.window {
            let cells = 2 * n.min(usize::try_from(window.tokens()).expect("small"));
            wrapped += usize::from(cells < 2 * n);
            config = config.with_window(window, cells);
        }
        let mut session = Session::new(&split.programs, &FileWeights(&file), config)
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut got = [Vec::new(), Vec::new()];
        for i in 0..n {
            let batch = Batch {
                tokens: sequences.each_ref().map(|s| s[i]).to_vec(),
                positions: vec![i as u32; 2],
                seq_ids: vec![0, 1],
                output_rows: vec![0, 1],
            };
            let logits = session
                .decode(&batch)
                .unwrap_or_else(|e| panic!("{name}: token {i}: {e}"));
            let logits = logits.reals().expect("logits are real");
            let (first, second) = logits.split_at(logits.len() / 2);
            got[0].extend_from_slice(first);
            got[1].extend_from_slice(second);
        }
        for (tokens, got) in sequences.iter().zip(got) {
            let want = run(&whole.model.graph, &file, &whole, tokens);
            let d = distance(want, got);
            assert!(d.nmse <= AGAINST_BATCH, "{name}: NMSE {:e}", d.nmse);
        }
    }
    assert!(wrapped > 0, "no golden model has a window that is passed");
}
