//! Recurrent states: results do not depend on the division into batches or on other sequences.

use tpc_core::golden::distance;
use tpc_core::pipeline::CompiledModel;
use tpc_gguf::GgufFile;
use tpc_ir::Op;
use tpc_ir::op::InputKind;
use tpc_runtime::{Batch, ExecError, ReferenceSession, Session, SessionConfig};
use tpc_tests::goldens;

use super::support::{FileWeights, golden, placement, plan};

/// The maximum NMSE between single tokens and one batch.
const AGAINST_ONE_BATCH: f64 = 1e-10;

struct Model {
    name: String,
    file: GgufFile,
    compiled: CompiledModel,
    tokens: Vec<u32>,
}

fn models(devices: usize) -> Vec<Model> {
    let recurrent = |op: &Op| matches!(op, Op::Input(input) if input.kind == InputKind::StateCells);
    let mut out = Vec::new();
    for path in goldens() {
        let Some((file, compiled)) = plan(&path, &placement(devices)) else {
            continue;
        };
        if compiled.programs.insts().any(|(_, i)| recurrent(&i.op)) {
            out.push(Model {
                name: compiled.model.graph.name.clone(),
                tokens: golden(&path).tokens,
                file,
                compiled,
            });
        }
    }
    assert!(out.len() >= 2, "the repository has some");
    out
}

impl Model {
    fn session(&self, sequences: usize) -> ReferenceSession<'_> {
        // Leave cells for another sequence.
        let cells = self.tokens.len() * (sequences + 1);
        let mut config = SessionConfig::new(cells).with_sequences(sequences);
        if let Some(window) = self.compiled.model.summary.window {
            config = config.with_window(window, cells);
        }
        Session::new(&self.compiled.programs, &FileWeights(&self.file), config)
            .unwrap_or_else(|e| panic!("{}: {e}", self.name))
    }

    fn decode(&self, session: &mut ReferenceSession<'_>, batch: &Batch) -> Vec<f64> {
        let out = session.decode(batch);
        let out = out.unwrap_or_else(|e| panic!("{}: {e}", self.name));
        out.reals().expect("logits are real").to_vec()
    }

    fn at_once(&self) -> Vec<f64> {
        self.decode(&mut self.session(1), &Batch::sequence(&self.tokens, 0, 0))
    }

    fn compare(&self, what: &str, want: &[f64], got: Vec<f64>) {
        assert_eq!(want.len(), got.len());
        let d = distance(want.iter().copied(), got);
        let name = &self.name;
        assert!(
            d.nmse <= AGAINST_ONE_BATCH,
            "{name}: {what}: NMSE {:e}",
            d.nmse
        );
    }
}

/// Returns a batch of the tokens in `range` of two alternating sequences, the second in reverse.
fn in_turns(tokens: &[u32], range: std::ops::Range<usize>) -> Batch {
    let mut batch = Batch::default();
    for i in range {
        for (seq, token) in [(4, tokens[i]), (9, tokens[tokens.len() - 1 - i])] {
            batch.output_rows.push(batch.tokens.len() as u32);
            batch.tokens.push(token);
            batch.positions.push(i as u32);
            batch.seq_ids.push(seq);
        }
    }
    batch
}

fn every_second(logits: &[f64], first: usize, n_vocab: usize) -> Vec<f64> {
    let rows = logits.chunks(n_vocab).skip(first).step_by(2);
    rows.flatten().copied().collect()
}

#[test]
fn batches_may_be_cut_anywhere() {
    for devices in [1, 3] {
        for model in models(devices) {
            let whole = model.at_once();
            for sizes in [&[1][..], &[2, 1, 7]] {
                let mut session = model.session(1);
                let (mut got, mut at) = (Vec::new(), 0);
                for n in sizes.iter().cycle() {
                    let end = (at + n).min(model.tokens.len());
                    let batch = Batch::sequence(&model.tokens[at..end], at as u32, 0);
                    got.extend(model.decode(&mut session, &batch));
                    at = end;
                    if at == model.tokens.len() {
                        break;
                    }
                }
                let what = format!("{devices} devices, batches of {sizes:?}");
                model.compare(&what, &whole, got);
            }
        }
    }
}

#[test]
fn sequences_in_turns_are_as_if_alone() {
    for devices in [1, 2] {
        for model in models(devices) {
            let n_vocab = model.compiled.model.summary.n_vocab as usize;
            let forwards = model.at_once();
            let mut backwards = model.tokens.clone();
            backwards.reverse();
            let batch = Batch::sequence(&backwards, 0, 0);
            let backwards = model.decode(&mut model.session(1), &batch);
            let mut session = model.session(2);
            let mut got = Vec::new();
            for range in [0..1, 1..4, 4..model.tokens.len()] {
                let batch = in_turns(&model.tokens, range);
                got.extend(model.decode(&mut session, &batch));
            }
            let what = |seq: &str| format!("{devices} devices, the {seq} sequence");
            model.compare(&what("first"), &forwards, every_second(&got, 0, n_vocab));
            model.compare(&what("second"), &backwards, every_second(&got, 1, n_vocab));
        }
    }
}

#[test]
fn sequences_of_unequal_length_share_a_batch() {
    for model in models(1) {
        let n_vocab = model.compiled.model.summary.n_vocab as usize;
        let whole = model.at_once();
        let (long, short) = (model.tokens.len(), 5);
        let mut batch = Batch::sequence(&model.tokens[..short], 0, 1);
        let rest = Batch::sequence(&model.tokens, 0, 2);
        batch.tokens.extend(rest.tokens);
        batch.positions.extend(rest.positions);
        batch.seq_ids.extend(rest.seq_ids);
        // The last token of each sequence, the longer sequence first.
        batch.output_rows = vec![(short + long - 1) as u32, (short - 1) as u32];
        let got = model.decode(&mut model.session(2), &batch);
        let row = |i: usize| &whole[i * n_vocab..][..n_vocab];
        let want = [row(long - 1), row(short - 1)].concat();
        model.compare("unequal lengths", &want, got);
    }
}

#[test]
fn a_cell_is_clean_for_the_next_sequence() {
    for model in models(1) {
        let whole = model.at_once();
        let mut session = model.session(1);
        let first = Batch::sequence(&model.tokens[..7], 0, 3);
        model.decode(&mut session, &first);
        let second = Batch::sequence(&model.tokens, 0, 5);
        let code =
            |e: Result<_, ExecError>| e.map(|_: tpc_runtime::Tensor| ()).map_err(|e| e.code().id);
        assert_eq!(
            code(session.decode(&second)),
            Err("TPC0520"),
            "{}",
            model.name
        );
        let rest = Batch::sequence(&model.tokens[7..], 7, 3);
        let got = model.decode(&mut session, &rest);
        model.compare("after a failure", &whole[whole.len() - got.len()..], got);
        session.remove_sequence(3);
        let got = model.decode(&mut session, &second);
        model.compare("after another sequence", &whole, got);
    }
}
