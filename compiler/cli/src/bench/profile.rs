use std::fmt::Write as _;
use std::time::Duration;

use tpc_cpu::Ceilings;
use tpc_runtime::KernelTime;

use super::measure::Measured;
use super::subject::Subject;

/// Longer names of kernels, with many template arguments, end with an ellipsis.
const LONGEST: usize = 60;

fn short(name: &str) -> String {
    if name.chars().count() <= LONGEST {
        return name.to_owned();
    }
    let kept: String = name.chars().take(LONGEST - 1).collect();
    format!("{kept}…")
}

/// Lists the time per kernel and repetition on the first device, slowest first, with the rates at which kernels move bytes
/// and compute. The last column is the larger fraction of the machine's limits, if they are known; on cards, the predicted
/// microseconds of a launch. The rest of the total is host time: inputs, masks, logits.
pub(super) fn report(m: &Measured, limits: Option<Ceilings>, subject: &Subject) -> String {
    let n = m.times.len().max(1) as f64;
    let whole: Duration = m.times.iter().sum();
    let mut kernels: Vec<_> = m.profile.iter().collect();
    kernels.sort_by(|a, b| b.time.cmp(&a.time).then(a.kernel.cmp(&b.kernel)));
    let names = kernels.iter().map(|k| short(&k.kernel));
    let width = names.map(|n| n.chars().count()).max().unwrap_or(0);
    let width = width.max("between launches".len());
    let mut out = format!(
        "\n{}: {:.2} ms per run\n{:width$}  {:>8}  {:>10}  {:>7}  {:>6}  {:>6}  {}\n",
        m.name(),
        whole.as_secs_f64() * 1e3 / n,
        "kernel",
        "calls",
        "ms",
        "share",
        "GB/s",
        "Gop/s",
        match (&subject.predicted, limits) {
            (Some(p), _) => format!("µs each, predicted for {}", p.card),
            (None, Some(_)) => "limit".to_owned(),
            (None, None) => String::new(),
        }
    );
    let mut line = |name: &str, calls: String, time: f64, rates: &str| {
        let share = 100.0 * time / whole.as_secs_f64().max(1e-12);
        let ms = time * 1e3 / n;
        let line = format!("{name:width$}  {calls:>8}  {ms:>10.3}  {share:>5.1} %{rates}");
        let _ = writeln!(out, "{}", line.trim_end());
    };
    let mut sum = 0.0;
    for k in kernels {
        sum += k.time.as_secs_f64();
        let calls = format!("{:.0}", k.calls as f64 / n);
        line(
            &short(&k.kernel),
            calls,
            k.time.as_secs_f64(),
            &format!("{}{}", rates(k, limits), predicted(k, m, subject)),
        );
    }
    let rest = (whole.as_secs_f64() - sum).max(0.0);
    line("between launches", String::new(), rest, "");
    if let Some(limits) = limits {
        let _ = writeln!(
            out,
            "limits of this machine, measured: {:.1} GB/s read, {:.0} Gop/s of int8 products",
            limits.bytes / 1e9,
            limits.operations / 1e9
        );
    }
    out
}

/// Returns the measured and the predicted microseconds of a launch, if predictions exist.
fn predicted(k: &KernelTime, m: &Measured, subject: &Subject) -> String {
    let each = k.time.as_secs_f64() * 1e6 / k.calls.max(1) as f64;
    let predicted = subject.predicted_us(m.test, &k.kernel);
    predicted.map_or_else(String::new, |us| format!("{each:.1}, {us:.1}"))
}

/// Returns the columns of a kernel's rates, and the limit that it is nearest to.
fn rates(k: &KernelTime, limits: Option<Ceilings>) -> String {
    let seconds = k.time.as_secs_f64().max(1e-12);
    let [bytes, operations] = [k.bytes, k.operations].map(|n| n as f64 / seconds);
    let rate = |n: f64| match n {
        0.0 => String::new(),
        n => format!("{:.1}", n / 1e9),
    };
    let limit = limits.filter(|_| bytes > 0.0).map(|limits| {
        let (memory, arithmetic) = (bytes / limits.bytes, operations / limits.operations);
        match memory >= arithmetic {
            true => format!("memory {:.0} %", memory * 100.0),
            false => format!("arithmetic {:.0} %", arithmetic * 100.0),
        }
    });
    format!(
        "  {:>6}  {:>6}  {}",
        rate(bytes),
        rate(operations),
        limit.unwrap_or_default()
    )
}
