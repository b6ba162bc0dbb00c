use std::fmt::Write as _;
use std::time::Duration;

use super::measure::Measured;

/// Longer names of kernels, with many template arguments, end with an ellipsis.
const LONGEST: usize = 60;

fn short(name: &str) -> String {
    if name.chars().count() <= LONGEST {
        return name.to_owned();
    }
    let kept: String = name.chars().take(LONGEST - 1).collect();
    format!("{kept}…")
}

/// Lists the time per kernel and repetition on the first device, slowest first, and the rate at which kernels of cards
/// read weights. The rest of the total is host time:
/// inputs, masks, logits.
pub(super) fn report(m: &Measured) -> String {
    let n = m.times.len().max(1) as f64;
    let whole: Duration = m.times.iter().sum();
    let mut kernels: Vec<_> = m.profile.iter().collect();
    kernels.sort_by(|a, b| b.time.cmp(&a.time).then(a.kernel.cmp(&b.kernel)));
    let names = kernels.iter().map(|k| short(&k.kernel));
    let width = names.map(|n| n.chars().count()).max().unwrap_or(0);
    let width = width.max("between launches".len());
    let mut out = format!(
        "\n{}: {:.2} ms per run\n{:width$}  {:>8}  {:>10}  {:>7}  {:>6}\n",
        m.name(),
        whole.as_secs_f64() * 1e3 / n,
        "kernel",
        "calls",
        "ms",
        "share",
        "GB/s"
    );
    let mut line = |name: &str, calls: String, time: f64, weight_bytes: u64| {
        let share = 100.0 * time / whole.as_secs_f64().max(1e-12);
        let ms = time * 1e3 / n;
        let rate = match weight_bytes {
            0 => String::new(),
            bytes => format!("  {:>6.0}", bytes as f64 / time.max(1e-12) / 1e9),
        };
        let _ = writeln!(
            out,
            "{name:width$}  {calls:>8}  {ms:>10.3}  {share:>5.1} %{rate}"
        );
    };
    let mut sum = 0.0;
    for k in kernels {
        let time = k.time.as_secs_f64();
        sum += time;
        let calls = format!("{:.0}", k.calls as f64 / n);
        line(&short(&k.kernel), calls, time, k.weight_bytes);
    }
    line(
        "between launches",
        String::new(),
        (whole.as_secs_f64() - sum).max(0.0),
        0,
    );
    out
}
