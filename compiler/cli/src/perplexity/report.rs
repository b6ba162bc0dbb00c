//! Statistics of a divergence, in llama-perplexity's form and as JSON.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use tpc_diag::FormatVersion;
use tpc_engine::perplexity::{self, Mean, Statistics, percentile};

/// A mean and its standard error.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Mean")]
pub(super) struct Value {
    /// The mean.
    #[schemars(with = "Option<f64>")]
    value: f64,
    /// The standard error.
    #[schemars(with = "Option<f64>")]
    error: f64,
}

impl From<Mean> for Value {
    fn from(m: Mean) -> Value {
        Value {
            value: m.value,
            error: m.error,
        }
    }
}

/// The divergence from a saved base.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "BaseDivergence")]
pub(crate) struct FromBase {
    /// Format version.
    pub(super) tpc: FormatVersion,
    #[serde(flatten)]
    pub(super) divergence: Divergence,
}

/// The divergence of a setting from the base.
#[derive(Serialize, JsonSchema)]
pub(super) struct Divergence {
    /// The model, or the options of a setting.
    setting: String,
    /// The number of scored tokens.
    scored: usize,
    /// The perplexity.
    perplexity: Value,
    /// The base's perplexity.
    base_perplexity: Value,
    /// The correlation of both log-perplexities over tokens.
    #[schemars(with = "Option<f64>")]
    correlation: f64,
    /// ln(perplexity / base).
    log_ratio: Value,
    /// perplexity / base.
    ratio: Value,
    /// perplexity − base.
    difference: Value,
    /// The Kullback–Leibler divergence from the base.
    kld: Value,
    /// The largest divergence of a token.
    #[schemars(with = "Option<f32>")]
    kld_max: f32,
    /// Percentiles of the divergence: pairs of a fraction and a value.
    #[schemars(with = "Vec<(f32, Option<f32>)>")]
    kld_percentiles: Vec<(f32, f32)>,
    /// The change of the probability of the text's token.
    p_diff: Value,
    /// The root mean square of this change.
    p_diff_rms: Value,
    /// Percentiles of this change: pairs of a fraction and a value.
    #[schemars(with = "Vec<(f32, Option<f32>)>")]
    p_diff_percentiles: Vec<(f32, f32)>,
    /// The fraction of tokens with the same most likely token.
    same_top: Value,
}

/// The fractions of the percentiles, in the order of llama-perplexity's lists.
const KLD: [f32; 9] = [0.999, 0.99, 0.95, 0.9, 0.5, 0.1, 0.05, 0.01, 0.001];
const P_DIFF: [f32; 11] = [
    0.999, 0.99, 0.95, 0.9, 0.75, 0.5, 0.25, 0.1, 0.05, 0.01, 0.001,
];

struct Sorted {
    klds: Vec<f32>,
    p_diffs: Vec<f32>,
}

impl Sorted {
    fn of(divergence: &perplexity::Divergence) -> Sorted {
        let tokens = &divergence.tokens;
        let mut klds: Vec<f32> = tokens.iter().map(|t| t.kld as f32).collect();
        let mut p_diffs: Vec<f32> = tokens.iter().map(|t| t.p_diff).collect();
        klds.sort_by(f32::total_cmp);
        p_diffs.sort_by(f32::total_cmp);
        Sorted { klds, p_diffs }
    }
}

fn percentiles(sorted: &[f32], fractions: &[f32]) -> Vec<(f32, f32)> {
    let each = fractions.iter().map(|&f| (f, percentile(sorted, f)));
    each.collect()
}

impl Divergence {
    pub(super) fn of(setting: &str, divergence: &perplexity::Divergence) -> Divergence {
        let (s, sorted) = (Statistics::of(&divergence.tokens), Sorted::of(divergence));
        Divergence {
            setting: setting.to_owned(),
            scored: s.count,
            perplexity: s.perplexity.into(),
            base_perplexity: s.base.into(),
            correlation: s.correlation,
            log_ratio: s.log_ratio.into(),
            ratio: s.ratio.into(),
            difference: s.difference.into(),
            kld: s.kld.into(),
            kld_max: percentile(&sorted.klds, 1.0),
            kld_percentiles: percentiles(&sorted.klds, &KLD),
            p_diff: s.p_diff.into(),
            p_diff_rms: s.p_diff_rms.into(),
            p_diff_percentiles: percentiles(&sorted.p_diffs, &P_DIFF),
            same_top: s.same_top.into(),
        }
    }
}

/// Formats the statistics as llama-perplexity does.
pub(super) fn text(divergence: &perplexity::Divergence) -> String {
    let (s, sorted) = (Statistics::of(&divergence.tokens), Sorted::of(divergence));
    let mut out = "====== Perplexity statistics ======\n".to_owned();
    let mean = |out: &mut String, name: &str, m: Mean| {
        let _ = writeln!(out, "{name:<30}: {:10.6} ± {:10.6}", m.value, m.error);
    };
    mean(&mut out, "Mean PPL(Q)", s.perplexity);
    mean(&mut out, "Mean PPL(base)", s.base);
    let name = "Cor(ln(PPL(Q)), ln(PPL(base)))";
    let _ = writeln!(out, "{name}: {:6.2}%", 100.0 * s.correlation);
    mean(&mut out, "Mean ln(PPL(Q)/PPL(base))", s.log_ratio);
    mean(&mut out, "Mean PPL(Q)/PPL(base)", s.ratio);
    mean(&mut out, "Mean PPL(Q)-PPL(base)", s.difference);
    out += "\n====== KL divergence statistics ======\n";
    let kld = s.kld;
    let _ = writeln!(out, "Mean    KLD: {:10.6} ± {:10.6}", kld.value, kld.error);
    listed(&mut out, ("KLD", ""), &sorted.klds, &KLD, |x, unit| {
        format!("{x:10.6}{unit}")
    });
    out += "\n====== Token probability statistics ======\n";
    let percent = |m: Mean| format!("{:6.3} ± {:5.3} %", 100.0 * m.value, 100.0 * m.error);
    let _ = writeln!(out, "Mean    Δp: {}", percent(s.p_diff));
    listed(
        &mut out,
        ("Δp", "%"),
        &sorted.p_diffs,
        &P_DIFF,
        |x, unit| format!("{:6.3}{unit}", 100.0 * x),
    );
    let _ = writeln!(out, "RMS Δp    : {}", percent(s.p_diff_rms));
    let _ = writeln!(out, "Same top p: {}", percent(s.same_top));
    out
}

/// Lists maximum, percentiles and minimum.
fn listed(
    out: &mut String,
    (name, unit): (&str, &str),
    sorted: &[f32],
    fractions: &[f32],
    shown: impl Fn(f32, &str) -> String,
) {
    let mut line = |label: &str, x: f32| {
        let _ = writeln!(out, "{label:<7} {name}: {}", shown(x, unit));
    };
    line("Maximum", percentile(sorted, 1.0));
    for &fraction in fractions {
        let label = match fraction {
            0.5 => "Median".to_owned(),
            fraction => format!("{:4.1}%", 100.0 * fraction),
        };
        line(&label, percentile(sorted, fraction));
    }
    line("Minimum", percentile(sorted, 0.0));
}
