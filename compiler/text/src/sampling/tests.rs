use super::*;

fn sampler(settings: Settings, n: usize) -> Sampler {
    Sampler::new(settings, n).unwrap()
}

fn plain() -> Settings {
    Settings {
        temperature: 1.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        ..Settings::default()
    }
}

fn shares(settings: Settings, logits: &[f32]) -> Vec<f64> {
    let mut s = sampler(settings, logits.len());
    let mut counts = vec![0u32; logits.len()];
    for _ in 0..4000 {
        counts[s.sample(logits).unwrap() as usize] += 1;
    }
    counts.iter().map(|&c| f64::from(c) / 4000.0).collect()
}

fn logs(p: &[f32]) -> Vec<f32> {
    p.iter().map(|p| p.ln()).collect()
}

#[track_caller]
fn near(found: &[f64], expected: &[f64]) {
    let close = found
        .iter()
        .zip(expected)
        .all(|(a, b)| (a - b).abs() < 0.03 && (*b > 0.0 || *a == 0.0));
    assert!(close, "{found:?}, expected {expected:?}");
}

#[test]
fn greedy_takes_the_first_of_the_likeliest() {
    let mut s = sampler(Settings::greedy(), 4);
    assert_eq!(s.sample(&[1.0, 3.0, 3.0, -1.0]).unwrap(), 1);
    assert_eq!(
        s.sample(&[f32::NEG_INFINITY, -1e30, f32::NEG_INFINITY, -1e31])
            .unwrap(),
        1
    );
}

#[test]
fn draws_follow_the_probabilities() {
    let logits = logs(&[0.5, 0.3, 0.15, 0.05]);
    near(&shares(plain(), &logits), &[0.5, 0.3, 0.15, 0.05]);
    let hot = Settings {
        temperature: 2.0,
        ..plain()
    };
    let roots: Vec<f64> = [0.5f64, 0.3, 0.15, 0.05].iter().map(|p| p.sqrt()).collect();
    let sum: f64 = roots.iter().sum();
    near(
        &shares(hot, &logits),
        &roots.iter().map(|r| r / sum).collect::<Vec<_>>(),
    );
    let cold = Settings {
        temperature: 1e-30,
        ..plain()
    };
    near(&shares(cold, &logits), &[1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn each_limit_keeps_the_likeliest() {
    let logits = logs(&[0.05, 0.3, 0.15, 0.5]);
    let of = |s: Settings| shares(s, &logits);
    near(
        &of(Settings {
            top_k: 2,
            ..plain()
        }),
        &[0.0, 0.375, 0.0, 0.625],
    );
    near(
        &of(Settings {
            top_k: 1,
            ..plain()
        }),
        &[0.0, 0.0, 0.0, 1.0],
    );
    near(
        &of(Settings {
            top_p: 0.79,
            ..plain()
        }),
        &[0.0, 0.375, 0.0, 0.625],
    );
    near(
        &of(Settings {
            top_p: 0.81,
            ..plain()
        }),
        &[0.0, 0.316, 0.158, 0.526],
    );
    near(
        &of(Settings {
            top_p: 0.0,
            ..plain()
        }),
        &[0.0, 0.0, 0.0, 1.0],
    );
    near(
        &of(Settings {
            min_p: 0.4,
            ..plain()
        }),
        &[0.0, 0.375, 0.0, 0.625],
    );
    near(
        &of(Settings {
            min_p: 1.0,
            ..plain()
        }),
        &[0.0, 0.0, 0.0, 1.0],
    );
}

#[test]
fn top_p_of_a_large_vocabulary_is_that_of_a_sort() {
    let mut random = Random::new(3, 1);
    let logits: Vec<f32> = (0..5000).map(|_| (random.unit() * 4.0) as f32).collect();
    for p in [0.01, 0.1, 0.5, 0.9, 0.999] {
        let mut s = sampler(
            Settings {
                top_p: p,
                ..plain()
            },
            logits.len(),
        );
        s.collect(&logits).unwrap();
        let mut all = s.candidates.clone();
        s.top_p();
        all.sort_by(Candidate::order);
        let total: f64 = all.iter().map(|c| f64::from(c.logit).exp()).sum();
        let mut sum = 0.0;
        let n = all.iter().position(|c| {
            sum += f64::from(c.logit).exp();
            sum >= f64::from(p) * total
        });
        let n = n.unwrap() + 1;
        let ids = |c: &[Candidate]| c.iter().map(|c| c.id).collect::<Vec<_>>();
        assert_eq!(ids(&s.candidates), ids(&all[..n]), "{p}");
    }
}

#[test]
fn penalties_look_at_the_window() {
    let settings = Settings {
        repetition: 2.0,
        frequency: 0.25,
        presence: 0.5,
        window: 3,
        ..Settings::greedy()
    };
    let mut s = sampler(settings, 4);
    let logits = [4.0, 3.0, -1.0, 2.0];
    let penalised = |s: &mut Sampler| {
        s.collect(&logits).unwrap();
        s.candidates.iter().map(|c| c.logit).collect::<Vec<_>>()
    };
    [3, 0, 0, 2].into_iter().for_each(|id| s.accept(id));
    assert_eq!(
        penalised(&mut s),
        [4.0 / 2.0 - 0.5 - 0.5, 3.0, -2.0 - 0.25 - 0.5, 2.0]
    );
    assert_eq!(s.sample(&logits).unwrap(), 1);
    s.accept(1);
    assert_eq!(
        penalised(&mut s),
        [4.0 / 2.0 - 0.25 - 0.5, 1.5 - 0.75, -2.75, 2.0]
    );
    // A token outside the vocabulary still counts in the window.
    s.accept(1000);
    s.reset();
    assert_eq!(penalised(&mut s), logits);
}

#[test]
fn equal_seeds_choose_alike() {
    let logits: Vec<f32> = (0..200).map(|i| (i % 17) as f32 / 4.0).collect();
    let run = |seed| {
        let mut s = sampler(
            Settings {
                seed,
                ..Settings::default()
            },
            200,
        );
        (0..50)
            .map(|_| s.sample(&logits).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
    // The choices are stable across versions.
    assert_eq!(run(7)[..6], FIRST_OF_SEED_7);
    let mut s = sampler(
        Settings {
            seed: 7,
            ..Settings::default()
        },
        200,
    );
    let first = s.sample(&logits).unwrap();
    s.sample(&logits).unwrap();
    s.reset();
    assert_eq!(s.sample(&logits).unwrap(), first);
}

const FIRST_OF_SEED_7: [u32; 6] = [185, 118, 152, 83, 33, 116];

#[test]
fn logits_that_say_nothing_are_errors() {
    let all = f32::NEG_INFINITY;
    for settings in [Settings::greedy(), Settings::default()] {
        let mut s = sampler(settings, 3);
        for logits in [
            &[][..],
            &[all, all],
            &[1.0, f32::NAN, 2.0],
            &[1.0, f32::INFINITY],
        ] {
            assert_eq!(s.sample(logits).unwrap_err().code.id, "TPC0571");
        }
        // More logits than tokens, as in padded vocabularies.
        assert!(s.sample(&[0.0; 10]).is_ok());
        assert!(
            s.sample(&[f32::MIN, f32::MAX, f32::MIN])
                .is_ok_and(|id| id == 1)
        );
    }
}

#[test]
fn settings_out_of_range_are_errors() {
    let d = Settings::default;
    let wrong = [
        Settings {
            temperature: -1.0,
            ..d()
        },
        Settings {
            temperature: f32::NAN,
            ..d()
        },
        Settings {
            temperature: f32::INFINITY,
            ..d()
        },
        Settings { top_p: 1.5, ..d() },
        Settings { min_p: -0.1, ..d() },
        Settings {
            repetition: 0.0,
            ..d()
        },
        Settings {
            frequency: f32::NAN,
            ..d()
        },
        Settings {
            presence: f32::NEG_INFINITY,
            ..d()
        },
    ];
    for settings in wrong {
        assert_eq!(Sampler::new(settings, 1).unwrap_err().code.id, "TPC0570");
    }
}

#[test]
fn the_largest_logits_give_the_token_of_all_logits() {
    let random = |seed: u64| {
        let mut random = Random::new(seed, 1);
        move || random.unit() as f32
    };
    let settings = [
        Settings::greedy(),
        Settings::default(),
        Settings {
            top_k: 1,
            ..Settings::default()
        },
        Settings {
            top_k: 7,
            top_p: 1.0,
            min_p: 0.0,
            temperature: 2.0,
            ..Settings::default()
        },
    ];
    for (i, of) in settings.into_iter().enumerate() {
        let mut next = random(i as u64);
        let (mut all, mut best) = (sampler(of.clone(), 300), sampler(of, 300));
        let wanted = best.wanted().unwrap();
        for step in 0..50 {
            // Few different logits, so that many are equal.
            let logit = |x: f32| match (step % 3, x) {
                (0, _) => 8.0 * x,
                (1, _) => (4.0 * x).floor() - 2.0,
                _ if x < 0.9 => f32::NEG_INFINITY,
                _ => -x,
            };
            let logits: Vec<f32> = (0..300).map(|_| logit(next())).collect();
            let mut largest: Vec<(u32, f32)> = (0..).zip(logits.iter().copied()).collect();
            largest.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            // More logits than wanted make no difference.
            largest.truncate(wanted + step % 2 * 5);
            largest.reverse();
            let token = all.sample(&logits).unwrap();
            assert_eq!(best.sample_best(&largest).unwrap(), token, "{i}, {step}");
            all.accept(token);
            best.accept(token);
        }
    }
}

#[test]
fn samplers_with_penalties_want_all_logits() {
    let with = |change: &dyn Fn(&mut Settings)| {
        let mut settings = Settings::default();
        change(&mut settings);
        sampler(settings, 3).wanted()
    };
    assert_eq!(with(&|_| {}), Some(40));
    assert_eq!(with(&|s| s.temperature = 0.0), Some(1));
    assert_eq!(with(&|s| s.top_k = 0), None);
    assert_eq!(with(&|s| s.repetition = 1.1), None);
    assert_eq!(with(&|s| s.frequency = 0.1), None);
    assert_eq!(with(&|s| s.presence = -0.1), None);
    let mut s = sampler(Settings::greedy(), 3);
    for best in [&[][..], &[(1, f32::NAN)], &[(0, f32::NEG_INFINITY)]] {
        assert_eq!(s.sample_best(best).unwrap_err().code.id, "TPC0571");
    }
}

fn biased(bias: &[(u32, f32)], mut settings: Settings) -> Settings {
    settings.bias = bias.to_vec();
    settings
}

#[test]
fn biases_change_logits_before_all_else() {
    let logits = [1.0, 3.0, 2.0, f32::NEG_INFINITY];
    let greedy = |bias: &[(u32, f32)]| {
        let mut s = sampler(biased(bias, Settings::greedy()), 4);
        s.sample(&logits).unwrap()
    };
    assert_eq!(greedy(&[]), 1);
    assert_eq!(greedy(&[(1, f32::NEG_INFINITY)]), 2);
    assert_eq!(greedy(&[(2, 0.5), (0, 2.5)]), 0);
    // Entries of one token add up, and equal logits choose the smaller id.
    assert_eq!(greedy(&[(2, 0.5), (2, 0.5)]), 1);
    assert_eq!(greedy(&[(2, 0.5), (2, 0.75)]), 2);
    // The model rules out token 3, so a bias does not bring it back.
    assert_eq!(greedy(&[(3, f32::MAX)]), 1);
    // Large biases do not overflow, and a ban holds against them.
    assert_eq!(greedy(&[(0, f32::MAX), (0, f32::MAX)]), 0);
    assert_eq!(greedy(&[(0, f32::MAX), (0, f32::NEG_INFINITY)]), 1);
    let top_k = Settings {
        top_k: 2,
        ..plain()
    };
    let even = biased(&[(1, f32::NEG_INFINITY)], top_k);
    let logits = logs(&[0.4, 0.5, 0.1, 1e-9]);
    near(&shares(even, &logits), &[0.8, 0.0, 0.2, 0.0]);
}

#[test]
fn biases_that_say_nothing_are_errors() {
    for bias in [(0, f32::NAN), (0, f32::INFINITY), (4, 0.0)] {
        let settings = biased(&[bias], Settings::greedy());
        assert_eq!(Sampler::new(settings, 4).unwrap_err().code.id, "TPC0570");
    }
    let all: Vec<_> = (0..3).map(|id| (id, f32::NEG_INFINITY)).collect();
    for settings in [Settings::greedy(), Settings::default()] {
        let mut s = sampler(biased(&all, settings), 3);
        assert_eq!(s.sample(&[0.0; 3]).unwrap_err().code.id, "TPC0595");
        // A padding token without a bias remains.
        assert_eq!(s.sample(&[0.0; 4]).unwrap(), 3);
        assert_eq!(s.sample(&[]).unwrap_err().code.id, "TPC0571");
    }
}

/// Allows only ids of the same parity as the number of tokens so far, below `len`.
#[derive(Debug)]
struct Alternating {
    tokens: std::sync::Arc<std::sync::Mutex<Vec<u32>>>,
    len: u32,
}

impl Constraint for Alternating {
    fn mask(&mut self, allowed: &mut TokenMask) -> Result<(), Diagnostic> {
        let n = self.tokens.lock().unwrap().len() as u32;
        let words = (0..self.len.div_ceil(32)).map(|word| {
            let ids =
                (0..32).filter(|bit| word * 32 + bit < self.len && (bit + n).is_multiple_of(2));
            ids.fold(0, |bits, bit| bits | 1 << bit)
        });
        allowed.intersect(&words.collect::<Vec<u32>>());
        Ok(())
    }

    fn accept(&mut self, id: u32) -> Result<(), Diagnostic> {
        self.tokens.lock().unwrap().push(id);
        Ok(())
    }
}

#[test]
fn constraints_come_first_and_learn_each_choice() {
    for settings in [Settings::greedy(), Settings::default()] {
        let tokens = std::sync::Arc::default();
        let mut s = sampler(settings.clone(), 100);
        let wanted = s.wanted();
        s.constrain(Some(Box::new(Alternating {
            tokens: std::sync::Arc::clone(&tokens),
            len: 90,
        })));
        assert_eq!(s.wanted(), None);
        // Prompt tokens reach the penalties only.
        s.accept(7);
        assert!(tokens.lock().unwrap().is_empty());
        let logits: Vec<f32> = (0..100u8).map(f32::from).collect();
        let chosen: Vec<u32> = (0..10).map(|_| s.sample(&logits).unwrap()).collect();
        assert_eq!(*tokens.lock().unwrap(), chosen);
        for (i, &id) in (0..).zip(&chosen) {
            assert!(id < 90 && id % 2 == i % 2, "{chosen:?}");
        }
        if settings.temperature == 0.0 {
            assert_eq!(chosen[..3], [88, 89, 88]);
        }
        s.constrain(None);
        assert_eq!(s.wanted(), wanted);
    }
}

#[test]
fn constraints_without_a_token_are_errors() {
    let none = || Alternating {
        tokens: std::sync::Arc::default(),
        len: 0,
    };
    for settings in [Settings::greedy(), Settings::default()] {
        let mut s = sampler(settings, 3);
        s.constrain(Some(Box::new(none())));
        assert_eq!(s.sample(&[1.0, 2.0, 3.0]).unwrap_err().code.id, "TPC0595");
        assert_eq!(
            s.sample(&[f32::NEG_INFINITY; 3]).unwrap_err().code.id,
            "TPC0571"
        );
        s.reset();
        assert!(s.sample(&[1.0, 2.0, 3.0]).is_ok());
    }
}

#[test]
fn masks_hold_their_bits() {
    for len in [0usize, 1, 31, 32, 33, 64, 100] {
        let mut mask = TokenMask::all(len);
        assert_eq!((mask.len(), mask.count()), (len, len));
        assert!(!mask.allows(len as u32) && !mask.allows(u32::MAX));
        mask.intersect(&[u32::MAX - 2]);
        assert!((0..len as u32).all(|id| mask.allows(id) == (id != 1 && id < 32)));
        mask.ban(0);
        mask.ban(u32::MAX);
        assert!(!mask.allows(0));
        mask.allow_all(40);
        assert_eq!(mask, TokenMask::all(40));
    }
}

#[test]
fn records_are_the_models_own_probabilities() {
    let logits = logs(&[0.05, 0.3, 0.15, 0.5]);
    let settings = biased(
        &[(1, 1.5), (3, f32::NEG_INFINITY)],
        Settings {
            temperature: 2.0,
            repetition: 3.0,
            ..Settings::default()
        },
    );
    let mut s = sampler(settings, 4);
    s.accept(0);
    assert_eq!(s.take_record(), None);
    s.record(Some(2));
    assert_eq!(s.wanted(), None);
    let id = s.sample(&logits).unwrap();
    let record = s.take_record().unwrap();
    assert_eq!(record.id, id);
    let close = |a: f32, p: f32| (a - p.ln()).abs() < 1e-6;
    assert!(
        close(record.logprob, [0.05, 0.3, 0.15, 0.5][id as usize]),
        "{record:?}"
    );
    assert!(
        record.top[0].0 == 3 && close(record.top[0].1, 0.5),
        "{record:?}"
    );
    assert!(
        record.top[1].0 == 1 && close(record.top[1].1, 0.3),
        "{record:?}"
    );
    assert_eq!((record.top.len(), s.take_record()), (2, None));
    s.record(None);
    s.sample(&logits).unwrap();
    assert_eq!(s.take_record(), None);
}

#[test]
fn records_of_ties_short_vocabularies_and_extremes() {
    let mut s = sampler(Settings::greedy(), 5);
    let mut of = |top: usize, logits: &[f32]| {
        s.record(Some(top));
        s.sample(logits).unwrap();
        s.take_record().unwrap()
    };
    // Equal logits come in the order of their ids.
    let quarter = 0.25f32.ln();
    let record = of(3, &[1.0, f32::NEG_INFINITY, 1.0, 1.0, 1.0]);
    assert_eq!((record.id, record.logprob), (0, quarter));
    assert_eq!(record.top, [(0, quarter), (2, quarter), (3, quarter)]);
    // A longer list than the vocabulary holds all tokens of a positive probability.
    assert_eq!(of(20, &[1.0, f32::NEG_INFINITY, 1.0]).top.len(), 2);
    assert_eq!(of(usize::MAX, &[1.0]).top, [(0, 0.0)]);
    assert_eq!(of(0, &[1.0, 2.0]).top, []);
    let record = of(2, &[f32::MAX, f32::MIN]);
    assert_eq!(record.top, [(0, 0.0), (1, f32::MIN)]);
}

#[test]
fn records_do_not_change_the_choices() {
    let mut next = Random::new(5, 1);
    let settings = || Settings {
        seed: 3,
        ..Settings::default()
    };
    let (mut with, mut without) = (sampler(settings(), 300), sampler(settings(), 300));
    with.record(Some(5));
    for _ in 0..50 {
        let logits: Vec<f32> = (0..300).map(|_| 8.0 * next.unit() as f32).collect();
        assert_eq!(
            with.sample(&logits).unwrap(),
            without.sample(&logits).unwrap()
        );
    }
}
