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
