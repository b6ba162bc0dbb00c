use std::num::NonZero;

use super::*;

const LIMITS: Limits = Limits { tokens: 5, rows: 2 };

fn chunks(tokens: usize, context: usize) -> Vec<Window> {
    windows(("t", tokens), context, Form::Chunks, usize::MAX).unwrap()
}

#[test]
fn windows_are_llama_perplexitys() {
    let found = chunks(25, 8);
    let starts: Vec<usize> = found.iter().map(|w| w.start).collect();
    assert_eq!(starts, [0, 8, 16]);
    assert!(
        found
            .iter()
            .all(|w| w.first == 4 && w.scored() == 3 && w.marked)
    );
    let strided = |stride| {
        let form = Form::Strided(NonZero::new(stride).unwrap());
        windows(("t", 25), 8, form, usize::MAX)
    };
    let found = strided(3).unwrap();
    assert_eq!(found.len(), 6);
    assert!(
        found
            .iter()
            .all(|w| w.first == 4 && w.scored() == 3 && !w.marked)
    );
    assert!(found.iter().all(|w| w.start + w.len <= 25));
    assert!(strided(8).is_err(), "a stride as long as the window");
    assert_eq!(windows(("t", 25), 8, Form::Chunks, 2).unwrap().len(), 2);
    for (tokens, context) in [(15, 8), (0, 8), (9, 2), (9, 0), (usize::MAX, usize::MAX)] {
        let refused = windows(("t", tokens), context, Form::Chunks, usize::MAX);
        assert_eq!(refused.unwrap_err().diagnostics[0].code.id, "TPC0429");
    }
}

#[test]
fn batches_hold_each_token_once_and_within_limits() {
    let text: Vec<u32> = (100..116).collect();
    let window = chunks(16, 8)[1];
    let cut = batches(&text, &window, Some(1), LIMITS);
    let tokens: Vec<u32> = cut.iter().flat_map(|b| b.batch.tokens.clone()).collect();
    assert_eq!(tokens, [1, 109, 110, 111, 112, 113, 114]);
    let positions: Vec<u32> = cut.iter().flat_map(|b| b.batch.positions.clone()).collect();
    assert_eq!(positions, [0, 1, 2, 3, 4, 5, 6]);
    let targets: Vec<u32> = cut.iter().flat_map(|b| b.targets.clone()).collect();
    assert_eq!(targets, [113, 114, 115]);
    for b in &cut {
        assert!(b.batch.tokens.len() <= 5 && b.targets.len() <= 2);
        assert_eq!(b.batch.output_rows.len(), b.targets.len());
    }
    let unmarked = Window {
        marked: false,
        ..window
    };
    assert_eq!(
        batches(&text, &unmarked, Some(1), LIMITS)[0].batch.tokens[0],
        108
    );
}

/// Returns logits of `rows` rows.
fn logits(rows: usize, n_vocab: usize, seed: usize) -> Vec<f32> {
    let each = (0..rows * n_vocab).map(|i| ((i * 37 + seed * 11) % 101) as f32 / 9.0);
    each.collect()
}

fn rows(logits: &[f32], n_vocab: usize, threads: usize) -> Rows<'_> {
    Rows {
        logits,
        n_vocab,
        threads,
    }
}

#[test]
fn likelihoods_do_not_depend_on_threads() {
    let all = logits(7, 13, 1);
    let targets = [0, 12, 3, 4, 5, 6, 7];
    let one = rows(&all, 13, 1).nlls(&targets).unwrap();
    for threads in [2, 3, 7, 50] {
        assert_eq!(rows(&all, 13, threads).nlls(&targets).unwrap(), one);
    }
    for (i, (&target, nll)) in targets.iter().zip(&one).enumerate() {
        let row: Vec<f64> = all[i * 13..][..13].iter().map(|&x| f64::from(x)).collect();
        let sum: f64 = row.iter().map(|x| x.exp()).sum();
        assert!((sum.ln() - row[target as usize] - nll).abs() < 1e-5);
    }
    assert!(rows(&[], 13, 4).nlls(&[]).unwrap().is_empty());
    let wrong = [0.0, f32::NAN];
    assert!(rows(&wrong, 2, 1).nlls(&[1]).is_err());
    assert!(rows(&[f32::INFINITY, 0.0], 2, 1).nlls(&[1]).is_err());
}

#[test]
fn estimates_have_the_error_of_a_mean() {
    let mut e = Estimate::default();
    [1.0, 2.0, 4.0].iter().for_each(|&x| e.add(x));
    let mean = 7.0 / 3.0;
    let variance: f64 = 21.0 / 3.0 - mean * mean;
    assert!((e.perplexity() - f64::exp(mean)).abs() < 1e-12);
    assert!((e.deviation() - (variance / 2.0).sqrt()).abs() < 1e-12);
    let mut one = Estimate::default();
    one.add(3.0);
    assert_eq!((one.deviation(), one.count()), (0.0, 1));
}

#[test]
fn bases_are_read_as_written() {
    for n_vocab in [12, 13] {
        let header = BaseHeader {
            context: 8,
            n_vocab,
            tokens: (0..16).map(|i| i % 12).collect(),
        };
        let all = logits(6, n_vocab, 2);
        let mut bytes = Vec::new();
        let mut writer = BaseWriter::new(&mut bytes, &header).unwrap();
        writer.write(&rows(&all, n_vocab, 2)).unwrap();
        writer.finish().unwrap();
        let size = bytes.len() as u64;
        let mut reader = BaseReader::new(bytes.as_slice(), "b", size).unwrap();
        assert_eq!(reader.header, header);
        reader.read(6).unwrap();
        let targets = [0, 1, 2, 3, 4, 5];
        let mut stored = Divergence::default();
        let found = rows(&all, n_vocab, 2);
        stored.add(&found, |i| reader.row(i), &targets).unwrap();
        let nlls = found.nlls(&targets).unwrap();
        for (t, nll) in stored.tokens.iter().zip(nlls) {
            assert!(t.kld.abs() < 1e-4 && t.same_top, "{t:?}");
            assert!((t.base_nll - nll).abs() < 1e-3, "{t:?} {nll}");
        }
        assert!(reader.read(1).is_err(), "the file has ended");
        for cut in [0, 7, 19, 30, bytes.len() - 1] {
            let cut = &bytes[..cut];
            let refused = BaseReader::new(cut, "b", cut.len() as u64).err().unwrap();
            assert_eq!(refused.diagnostics[0].code.id, "TPC0436");
        }
    }
}

#[test]
fn statistics_of_equal_predictions_are_zero() {
    let all = logits(40, 13, 3);
    let targets: Vec<u32> = (0..40).map(|i| i % 13).collect();
    let found = rows(&all, 13, 1);
    let mut same = Divergence::default();
    let exact = |i: usize| BaseRow::Exact(&all[i * 13..][..13]);
    same.add(&found, exact, &targets).unwrap();
    let s = Statistics::of(&same.tokens);
    assert!(s.kld.value.abs() < 1e-6 && s.same_top.value == 1.0 && s.ratio.value == 1.0);
    assert!((s.correlation - 1.0).abs() < 1e-9 && s.difference.value == 0.0);
    let other = logits(40, 13, 4);
    let mut unlike = Divergence::default();
    unlike.add(&rows(&other, 13, 1), exact, &targets).unwrap();
    let s = Statistics::of(&unlike.tokens);
    // Computed in f64 from the definition.
    let kld: f64 = (0..40)
        .map(|i| {
            let log = |l: &[f32], v: usize| {
                let row: Vec<f64> = l[i * 13..][..13].iter().map(|&x| f64::from(x)).collect();
                row[v] - row.iter().map(|x| x.exp()).sum::<f64>().ln()
            };
            (0..13)
                .map(|v| log(&all, v).exp() * (log(&all, v) - log(&other, v)))
                .sum::<f64>()
        })
        .sum();
    assert!(
        (s.kld.value / (kld / 40.0) - 1.0).abs() < 1e-4,
        "{s:?} {kld}"
    );
    assert!(s.kld.error > 0.0 && s.same_top.value < 1.0);
}

#[test]
fn percentiles_are_between_neighbours() {
    let sorted = [0.0, 1.0, 2.0, 4.0];
    assert_eq!(percentile(&sorted, 0.5), 1.5);
    assert_eq!(
        [percentile(&sorted, 0.0), percentile(&sorted, 1.0)],
        [0.0, 4.0]
    );
    assert_eq!(percentile(&[], 0.5), 0.0);
}
