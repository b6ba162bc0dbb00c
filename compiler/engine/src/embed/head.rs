//! The part of a model after pooling, which runs once per text: dense layers, or a classification head.

use tpc_diag::{Diagnostic, codes};
use tpc_gguf::GgufFile;
use tpc_models::Arch;
use tpc_models::description::ScoreForm;
use tpc_runtime::quant::dequantise;

use super::pooling::{self, Pooling};
use crate::error::Error;

/// Epsilon of the classification head's norm if the file does not have the key.
const EPSILON: f64 = 1e-5;

/// A matrix, `[columns, rows]`, and an optional bias per row.
pub(super) struct Linear {
    columns: usize,
    weights: Vec<f32>,
    bias: Option<Vec<f32>>,
}

#[derive(Clone, Copy)]
enum Function {
    Tanh,
    Gelu,
    Silu,
}

pub(super) struct Scorer {
    dense: Option<Linear>,
    function: Function,
    norm: Option<Vec<f32>>,
    epsilon: f64,
    output: Option<Linear>,
    probabilities: bool,
    of_mean: bool,
}

pub(super) enum Head {
    /// Matrices applied in turn.
    Dense(Vec<Linear>),
    Scorer(Box<Scorer>),
}

impl Head {
    pub(super) fn read(file: &GgufFile, arch: &Arch, pooling: Pooling) -> Result<Head, Error> {
        if pooling == Pooling::Rank {
            return scorer(file, arch).map(|s| Head::Scorer(Box::new(s)));
        }
        let dense = ["dense_2", "dense_3"].map(|tensor| linear(file, tensor));
        let mut out = Vec::new();
        for layer in dense {
            out.extend(layer?);
        }
        Ok(Head::Dense(out))
    }

    /// True for scores of the mean of all tokens.
    pub(super) fn of_mean(&self) -> bool {
        matches!(self, Head::Scorer(scorer) if scorer.of_mean)
    }

    pub(super) fn apply(&self, row: Vec<f64>) -> Vec<f64> {
        match self {
            Head::Dense(layers) => layers.iter().fold(row, |x, layer| layer.apply(&x)),
            Head::Scorer(scorer) => scorer.apply(row),
        }
    }
}

impl Linear {
    fn apply(&self, x: &[f64]) -> Vec<f64> {
        let rows = self.weights.chunks(self.columns.max(1)).enumerate();
        rows.map(|(i, row)| {
            let dot: f64 = row.iter().zip(x).map(|(&w, x)| f64::from(w) * x).sum();
            let bias = self.bias.as_ref().and_then(|bias| bias.get(i));
            dot + bias.map_or(0.0, |&b| f64::from(b))
        })
        .collect()
    }
}

impl Function {
    fn apply(self, x: f64) -> f64 {
        match self {
            Function::Tanh => x.tanh(),
            Function::Gelu => 0.5 * x * (1.0 + libm::erf(x / std::f64::consts::SQRT_2)),
            Function::Silu => x / (1.0 + (-x).exp()),
        }
    }
}

impl Scorer {
    fn apply(&self, mut x: Vec<f64>) -> Vec<f64> {
        if let Some(dense) = &self.dense {
            x = dense.apply(&x);
            x.iter_mut().for_each(|x| *x = self.function.apply(*x));
            if let Some(weight) = &self.norm {
                x = normed(&x, weight, self.epsilon);
            }
        }
        if let Some(output) = &self.output {
            x = output.apply(&x);
        }
        if self.probabilities {
            let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            x.iter_mut().for_each(|x| *x = (*x - most).exp());
            let sum: f64 = x.iter().sum();
            x.iter_mut().for_each(|x| *x /= sum);
        }
        x
    }
}

fn normed(x: &[f64], weight: &[f32], epsilon: f64) -> Vec<f64> {
    let n = x.len().max(1) as f64;
    let mean = x.iter().sum::<f64>() / n;
    let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    let scale = 1.0 / (variance + epsilon).sqrt();
    let both = x.iter().zip(weight);
    both.map(|(x, &w)| (x - mean) * scale * f64::from(w))
        .collect()
}

fn scorer(file: &GgufFile, arch: &Arch) -> Result<Scorer, Error> {
    let metadata = file.header().metadata();
    let unread = |e: tpc_gguf::GgufError| Error::usage(Diagnostic::from(e));
    let key = |name: &str| format!("{}.{name}", arch.name);
    let form = arch.head.scores;
    let dense = linear(file, "cls")?;
    let output = linear(file, "cls.output")?;
    if dense.is_none() && output.is_none() {
        let message = "the file lacks a classification head (cls.weight or cls.output.weight)";
        return Err(unfit(message.to_owned()));
    }
    let name = key("classifier.activation");
    let function = match metadata.get_str(&name).map_err(unread)? {
        Some("gelu") => Function::Gelu,
        Some("silu") => Function::Silu,
        Some("tanh") => Function::Tanh,
        Some(other) => {
            let other = tpc_diag::suggest::shorten(other);
            return Err(unfit(format!(
                "{name} is {other:?}: expected gelu, silu or tanh"
            )));
        }
        None if form == ScoreForm::GeluOfMean => Function::Gelu,
        None => Function::Tanh,
    };
    let of_mean = match pooling::read(metadata, &key("classifier.pooling_type"))? {
        Some(pooling) => pooling == Pooling::Mean,
        None => form == ScoreForm::GeluOfMean,
    };
    let epsilon = metadata.get_f32(&key("attention.layer_norm_epsilon"));
    Ok(Scorer {
        dense,
        function,
        norm: tensor(file, "cls.norm.weight")?.map(|(_, norm)| norm),
        epsilon: epsilon.map_err(unread)?.map_or(EPSILON, f64::from),
        output,
        probabilities: form == ScoreForm::Probabilities,
        of_mean,
    })
}

fn unfit(message: String) -> Error {
    let d = Diagnostic::new(&codes::COMMAND_LINE, "--pooling", message);
    Error::usage(d.help("give another pooling, such as --pooling mean"))
}

fn linear(file: &GgufFile, name: &str) -> Result<Option<Linear>, Error> {
    let Some((ne, weights)) = tensor(file, &format!("{name}.weight"))? else {
        return Ok(None);
    };
    Ok(Some(Linear {
        columns: usize::try_from(ne[0]).unwrap_or(usize::MAX),
        weights,
        bias: tensor(file, &format!("{name}.bias"))?.map(|(_, bias)| bias),
    }))
}

/// Sizes and elements of a tensor.
type Matrix = ([u64; 4], Vec<f32>);

/// Returns a tensor's shape and numbers.
fn tensor(file: &GgufFile, name: &str) -> Result<Option<Matrix>, Error> {
    let Some(info) = file.header().tensor(name) else {
        return Ok(None);
    };
    let n: u64 = info.ne.iter().product();
    let mut numbers = vec![0.0; usize::try_from(n).unwrap_or(0)];
    let bytes = file.tensor_data(info);
    let read = bytes.map(|bytes| dequantise(info.dtype, bytes, &mut numbers));
    match read {
        Some(Ok(())) => Ok(Some((info.ne, numbers))),
        Some(Err(e)) => Err(unfit(format!("tensor {name}: {e}"))),
        None => Err(unfit(format!("the data of tensor {name} is missing"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(weights: &[f32], bias: Option<&[f32]>) -> Linear {
        Linear {
            columns: 2,
            weights: weights.to_vec(),
            bias: bias.map(<[f32]>::to_vec),
        }
    }

    #[test]
    fn a_scorer_runs_its_parts_in_order() {
        let scorer = Scorer {
            dense: Some(linear(&[1.0, 0.0, 1.0, 1.0], Some(&[0.0, 1.0]))),
            function: Function::Tanh,
            norm: None,
            epsilon: EPSILON,
            output: Some(linear(&[2.0, 0.0, 0.0, 4.0], None)),
            probabilities: false,
            of_mean: false,
        };
        let found = scorer.apply(vec![0.5, -1.5]);
        assert_eq!(found, [2.0 * 0.5_f64.tanh(), 0.0]);
        let probable = Scorer {
            probabilities: true,
            dense: None,
            output: Some(linear(&[0.0, 0.0, 0.0, 0.0], None)),
            ..scorer
        };
        assert_eq!(probable.apply(vec![1.0, 2.0]), [0.5, 0.5]);
    }

    #[test]
    fn a_norm_has_mean_0_and_variance_1() {
        let found = normed(&[1.0, 3.0], &[1.0, 2.0], 0.0);
        assert_eq!(found, [-1.0, 2.0]);
    }

    #[test]
    fn functions_have_their_values_at_1() {
        let at = |f: Function| (f.apply(1.0) * 1e4).round();
        assert_eq!(at(Function::Tanh), 7616.0);
        assert_eq!(at(Function::Gelu), 8413.0);
        assert_eq!(at(Function::Silu), 7311.0);
    }
}
