use super::measured::{Measurement, Test};

/// Parses a test such as `pp512` or `tg128 @ d4096`.
pub(super) fn test(name: &str) -> Option<(Test, u64)> {
    let (test, depth) = match name.split_once('@') {
        Some((test, depth)) => (test.trim(), depth.trim().strip_prefix('d')?.parse().ok()?),
        None => (name.trim(), 0),
    };
    let test = match (test.strip_prefix("pp"), test.strip_prefix("tg")) {
        (Some(n), _) => Test::Prompt(n.parse().ok()?),
        (_, Some(n)) => Test::Generation(n.parse().ok()?),
        _ => return None,
    };
    Some((test, depth))
}

pub(super) const BOTH: &str = "the row measures prompt and generation together";

/// Parses shares such as `3/1` or `3,1`; `None` if all are zero or the text has another form.
pub(super) fn shares(text: &str) -> Option<Vec<f64>> {
    let parts = text
        .split(['/', ',', ';'])
        .map(|p| p.trim().parse::<f64>().ok());
    let parts: Option<Vec<f64>> = parts.collect();
    let all = parts.filter(|p| p.len() <= 64 && p.iter().all(|x| x.is_finite() && *x >= 0.0))?;
    all.iter().any(|x| *x > 0.0).then_some(all)
}

pub(super) fn field(row: &mut Measurement, name: &str, value: &str) {
    let value = value.trim();
    let number = || value.parse::<u64>().ok();
    match name {
        "model_n_params" => row.params = value.parse().ok(),
        "ngl" | "n_gpu_layers" => row.gpu_layers = number(),
        "n_cpu_moe" | "ncmoe" => row.host_experts = number().filter(|n| *n > 0),
        "sm" | "split_mode" => row.split_mode = Some(value.to_owned()).filter(|v| !v.is_empty()),
        "ts" | "tensor_split" => row.shares = shares(value),
        "n_ubatch" => row.ubatch = number().filter(|n| *n > 0),
        "type_k" => row.cache_types[0] = Some(value.to_owned()),
        "type_v" => row.cache_types[1] = Some(value.to_owned()),
        "dev" | "devices" if !value.is_empty() && value != "auto" => {
            row.devices = Some(value.split(['/', ';', ',']).count());
        }
        _ => {}
    }
}
