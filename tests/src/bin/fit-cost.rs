//! Fits the constants of the cost model to published speeds; prints errors and constants.
//!
//! `cargo run --release -p tpc-tests --bin fit-cost` prints the errors of the checked-in constants. Options:
//!
//! - `--fit` fits and prints the constants first.
//! - `--bands` also estimates each row with constants fitted on other sources, and writes
//!   `tests/data/speeds/held-out.json` and `compiler/core/src/calibration/bands.ron`.
//! - `--rows` prints every row.

use std::collections::BTreeMap;

use tpc_core::calibration::BandTable;
use tpc_core::placement::SplitMode;
use tpc_passes::machine::{CardClass, Engine, EngineProfile, ErrorBand};
use tpc_tests::speeds::cross::{self, HeldOut};
use tpc_tests::speeds::fit::{CONSTANTS, Profiles};
use tpc_tests::speeds::{Case, Phase, cases, pairs, quantile, rows};

const PHASES: [(Phase, &str); 2] = [(Phase::Decode, "decode"), (Phase::Prompt, "prompt")];

fn main() {
    let asked = |option: &str| std::env::args().any(|a| a == option);
    let (rows, left) = rows::read();
    let mut reasons: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (id, why) in &left {
        reasons.entry(format!("{why:?}")).or_default().push(*id);
    }
    println!("{} rows, {} left out:", rows.len() + left.len(), left.len());
    for (why, ids) in &reasons {
        println!("  {why} ({}): {ids:?}", ids.len());
    }
    let cases = cases(rows);
    let all: Vec<&Case> = cases.iter().collect();
    let mut profiles = Profiles::checked_in();
    if asked("--fit") {
        profiles = Profiles::start().fitted(&all, &mut |loss| eprintln!("{loss:.5}"));
    }
    let held = match asked("--bands") {
        true => bands(&cases),
        false => cross::read(),
    };
    summary("with these constants", &|phases| {
        profiles.errors(&all, phases)
    });
    summary("other sources", &|phases| {
        let here = held.iter().filter(|h| phases.contains(&h.phase));
        here.map(|h| h.error).collect()
    });
    covered(&cases, &held);
    classes(&profiles, &all);
    println!("\nAll rows by card and model, where the median is beyond 0.2:");
    by(&profiles, &all, |c| Some(c.row.cards[0].name.clone()), 0.2);
    by(&profiles, &all, |c| Some(c.row.model.clone()), 0.2);
    ranking(&profiles, &cases);
    if asked("--rows") {
        each_row(&profiles, &all);
    }
    if asked("--fit") {
        let errors = Engine::ALL.map(|e| band(&cases, &held, e));
        table(&profiles, &errors);
        println!("\n// tests/src/speeds/fit.rs");
        profiles
            .others
            .lines()
            .iter()
            .for_each(|l| println!("// {l}"));
    }
}

/// Estimates each row with constants fitted on other sources. Writes errors and bands.
fn bands(cases: &[Case]) -> Vec<HeldOut> {
    let held = cross::held_out(cases, Profiles::start(), &mut |fold| {
        eprintln!("fold {fold} is done");
    });
    cross::write(&held);
    let table = BandTable::new(&cross::seen(cases, &held));
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../compiler/core/src/calibration/bands.ron"
    );
    std::fs::write(path, table.to_ron()).unwrap_or_else(|e| panic!("{path}: {e}"));
    held
}

fn covered(cases: &[Case], held: &[HeldOut]) {
    let seen = cross::seen(cases, held);
    for (what, wanted) in [("calibrated", true), ("not calibrated", false)] {
        let (inside, all) = cross::coverage(&seen, |_, calibrated| calibrated == wanted);
        println!("{what}: {inside} of {all} rows inside the bands of other sources");
    }
}

fn summary(name: &str, errors: &dyn Fn(&[Phase]) -> Vec<f64>) {
    let state = |what: &str, errors: &[f64]| {
        println!(
            "{name:20} {what:7} n {:3}  median {:.3}  90 % {:.3}",
            errors.len(),
            quantile(errors, 0.5),
            quantile(errors, 0.9)
        );
    };
    for (phase, what) in PHASES {
        state(what, &errors(&[phase]));
    }
    state("both", &errors(&PHASES.map(|(p, _)| p)));
}

/// Groups errors by a key of the cases; keeps keys with a median above `least`.
fn by(profiles: &Profiles, part: &[&Case], key: impl Fn(&Case) -> Option<String>, least: f64) {
    let mut groups: BTreeMap<String, Vec<&Case>> = BTreeMap::new();
    for c in part {
        if let Some(k) = key(c) {
            groups.entry(k).or_default().push(c);
        }
    }
    for (k, group) in groups {
        for (phase, what) in PHASES {
            let mut errors = profiles.errors(&group, &[phase]);
            let (median, high) = (quantile(&errors, 0.5), quantile(&errors, 0.9));
            if errors.is_empty() || median < least {
                continue;
            }
            errors.sort_by(f64::total_cmp);
            let bias = errors[errors.len() / 2];
            println!(
                "  {k:34} {what} n {:3}  median {median:.2}  90 % {high:.2}  bias {bias:+.2}",
                errors.len()
            );
        }
    }
}

fn mode(c: &Case) -> &'static str {
    match (c.uses_host(), c.row.mode) {
        (true, _) => "host",
        (false, SplitMode::Layer) => "layer",
        (false, SplitMode::Tensor) => "tensor",
        _ => "alone",
    }
}

fn classes(profiles: &Profiles, part: &[&Case]) {
    println!("\nBy engine and way, and by class of card:");
    let way = |c: &Case| format!("{} {}", c.row.engine.name(), mode(c));
    by(profiles, part, |c| Some(way(c)), 0.0);
    let arch = |c: &Case| {
        let p = c.row.cards[0].processor?;
        Some(format!("{:?} {}", p.memory, c.row.cards[0].arch.clone()?))
    };
    by(profiles, part, arch, 0.0);
}

/// Returns an engine's median decoding error by split mode, on rows of held-out sources. With fewer than five rows,
/// returns twice the median over all engines and modes.
fn band(cases: &[Case], held: &[HeldOut], engine: Engine) -> ErrorBand {
    let decoding = |h: &&HeldOut| h.phase == Phase::Decode;
    let errors: BTreeMap<u64, f64> = held
        .iter()
        .filter(decoding)
        .map(|h| (h.id, h.error))
        .collect();
    let of = |way: &str| {
        let here = cases
            .iter()
            .filter(|c| c.row.engine == engine && mode(c) == way);
        let here: Vec<f64> = here
            .filter_map(|c| errors.get(&c.row.id).copied())
            .collect();
        match here.len() {
            0..5 => 2.0 * quantile(&errors.values().copied().collect::<Vec<_>>(), 0.5),
            _ => quantile(&here, 0.5),
        }
    };
    ErrorBand {
        alone: of("alone"),
        layer: of("layer"),
        tensor: of("tensor"),
        host: of("host"),
    }
}

fn ranking(profiles: &Profiles, cases: &[Case]) {
    let (mut right, mut counted) = (0, 0);
    println!("\nLayer against tensor, measured and estimated:");
    for [a, b] in pairs(cases) {
        for (phase, what) in PHASES {
            let (Some(x), Some(y)) = (a.measured(phase), b.measured(phase)) else {
                continue;
            };
            let estimated = |c: &Case| c.estimated(phase, &profiles.of_row(&c.row));
            let (p, q) = (estimated(a), estimated(b));
            let clear = (x / y).ln().abs() > 1.1_f64.ln();
            counted += u32::from(clear);
            right += u32::from(clear && (x > y) == (p > q));
            println!(
                "  {:3}/{:3} {what} {:24} {}×{} depth {:5}: {x:.0}/{y:.0} estimated {p:.0}/{q:.0}{}",
                a.row.id,
                b.row.id,
                a.row.model,
                a.row.cards.len(),
                a.row.cards[0].name,
                a.row.decode_depth,
                if (x > y) == (p > q) { "" } else { "  WRONG" }
            );
        }
    }
    println!("  {right} of {counted} that differ by more than 10 % are ranked as measured");
}

fn each_row(profiles: &Profiles, all: &[&Case]) {
    for (phase, what) in PHASES {
        let mut each: Vec<(f64, &Case)> = Vec::new();
        for c in all {
            let error = c.error(phase, &profiles.of_row(&c.row));
            each.extend(error.map(|e| (e, *c)));
        }
        each.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
        for (e, c) in each {
            println!(
                "{e:+.2} {what} {} {} {} {}×{} {} depth {} tokens {} measured {:.1}",
                c.row.id,
                c.row.engine.name(),
                c.row.model,
                c.row.cards.len(),
                c.row.cards[0].name,
                mode(c),
                c.row.decode_depth,
                c.row.tokens,
                c.measured(phase).unwrap_or(0.0)
            );
        }
    }
}

fn short(x: f64) -> String {
    let digits = (2 - x.abs().log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{x:.digits$}");
    if text.contains('.') {
        text
    } else {
        text + ".0"
    }
}

fn table(profiles: &Profiles, bands: &[ErrorBand; 3]) {
    let error = |b: &ErrorBand| {
        format!(
            "    error: ErrorBand {{\n        alone: {},\n        layer: {},\n        tensor: {},\n        host: {},\n    }},",
            short(b.alone),
            short(b.layer),
            short(b.tensor),
            short(b.host)
        )
    };
    let value = |name: &str, mut p: EngineProfile| {
        let c = CONSTANTS
            .iter()
            .find(|c| c.name == name)
            .expect("a constant");
        format!("    {name}: {},", short(*(c.of)(&mut p)))
    };
    println!("\n// passes/src/machine/fitted.rs");
    println!("/// llama.cpp.\npub(super) const LLAMA_CPP: EngineProfile = EngineProfile {{");
    let llama = profiles.of(Engine::LlamaCpp);
    for c in CONSTANTS {
        println!("{}", value(c.name, llama));
    }
    println!("    score_bytes: 0.0,");
    println!("    classes: ClassFactors::new(&[");
    for class in CardClass::ALL {
        let f = llama.classes.of(class);
        if (f.reads, f.products) != (1.0, 1.0) {
            let (reads, products) = (short(f.reads), short(f.products));
            println!("        (CardClass::{class:?}, {reads}, {products}),");
        }
    }
    println!("    ]),");
    println!("{}\n}};\n", error(&bands[Engine::LlamaCpp as usize]));
    println!("/// ik_llama.cpp.\npub(super) const IK_LLAMA_CPP: EngineProfile = EngineProfile {{");
    let ik = profiles.of(Engine::IkLlamaCpp);
    for name in [
        "product_us",
        "attention_us",
        "recurrent_us",
        "shared_recurrent_us",
        "light_us",
        "matrix_share",
        "attention_share",
        "expert_share",
        "unpack_cycles",
        "reduction_latencies",
        "link_share",
    ] {
        println!("{}", value(name, ik));
    }
    println!(
        "{}\n    ..LLAMA_CPP\n}};",
        error(&bands[Engine::IkLlamaCpp as usize])
    );
}
