//! Compares the cost model with published speeds: constants, errors on held-out sources, and bands.

use tpc_core::calibration::{BandTable, band_table};
use tpc_core::placement::SplitMode;
use tpc_tests::Sweep;
use tpc_tests::speeds::cross;
use tpc_tests::speeds::fit::Profiles;
use tpc_tests::speeds::{Case, Phase, cases, pairs, quantile, rows};

/// Returns the cases; a sample has every third row.
fn all() -> Vec<Case> {
    let (rows, left) = rows::read();
    assert!(left.len() < rows.len() / 4, "{} rows left out", left.len());
    let step = Sweep::asked().pick(3, 1);
    cases(rows.into_iter().step_by(step).collect())
}

fn check(what: &str, errors: &[f64], median: f64, high: f64) {
    assert!(errors.len() > 30, "{what}: {} errors", errors.len());
    let found = [quantile(errors, 0.5), quantile(errors, 0.9)];
    assert!(
        found[0] <= median && found[1] <= high,
        "{what}: median and 90 % of |ln(estimated/measured)| are {found:?}"
    );
}

#[test]
fn speeds_are_as_published() {
    let cases = all();
    let cases: Vec<&Case> = cases.iter().collect();
    let profiles = Profiles::checked_in();
    let of = |phases: &[Phase]| profiles.errors(&cases, phases);
    check("decoding", &of(&[Phase::Decode]), 0.10, 0.28);
    check("prompts", &of(&[Phase::Prompt]), 0.22, 0.65);
}

#[test]
fn speeds_of_other_sources_are_as_published() {
    let held = cross::read();
    let of = |phase: Phase| -> Vec<f64> {
        let here = held.iter().filter(|h| h.phase == phase);
        here.map(|h| h.error).collect()
    };
    check("decoding", &of(Phase::Decode), 0.12, 0.40);
    check("prompts", &of(Phase::Prompt), 0.40, 1.1);
}

#[test]
fn shared_tensors_are_estimated_within_a_quarter() {
    let (rows, _) = rows::read();
    let shared = rows
        .into_iter()
        .filter(|r| r.mode == SplitMode::Tensor && r.decode.is_some());
    let cases = cases(shared.collect());
    let profiles = Profiles::checked_in();
    let mut sizes = Vec::new();
    for c in &cases {
        let profile = profiles.of_row(&c.row);
        let measured = c.measured(Phase::Decode).expect("it was measured");
        let off = (c.estimated(Phase::Decode, &profile) / measured - 1.0).abs();
        assert!(off <= 0.25, "row {}: {off:.2} off", c.row.id);
        sizes.push(off);
    }
    assert!(sizes.len() >= 30, "{} rows", sizes.len());
    assert!(quantile(&sizes, 0.5) <= 0.12, "{sizes:?}");
}

#[test]
fn bands_hold_for_other_sources() {
    let (rows, _) = rows::read();
    let cases = cases(rows);
    let seen = cross::seen(&cases, &cross::read());
    for calibrated in [true, false] {
        let (inside, all) = cross::coverage(&seen, |_, c| c == calibrated);
        assert!(all >= 10, "{all} rows");
        assert!(
            inside * 100 >= all * 85,
            "calibrated: {calibrated}: {inside} of {all} are inside"
        );
    }
    assert_eq!(
        BandTable::new(&seen).to_ron(),
        band_table().to_ron(),
        "the table of bands is another: run fit-cost --bands"
    );
}

#[test]
fn layer_and_tensor_are_ranked_as_measured() {
    let (rows, _) = rows::read();
    let several = rows.into_iter().filter(|r| r.cards.len() == 2);
    let cases = cases(several.collect());
    let profiles = Profiles::checked_in();
    let (mut right, mut wrong) = (0, Vec::new());
    for [a, b] in pairs(&cases) {
        for phase in [Phase::Decode, Phase::Prompt] {
            let (Some(x), Some(y)) = (a.measured(phase), b.measured(phase)) else {
                continue;
            };
            if (x / y).ln().abs() <= 1.1_f64.ln() {
                continue;
            }
            let estimated = |c: &Case| c.estimated(phase, &profiles.of_row(&c.row));
            if (estimated(a) > estimated(b)) == (x > y) {
                right += 1;
            } else {
                wrong.push((a.row.id, b.row.id, phase));
            }
        }
    }
    assert!(
        right >= 6 && wrong.len() * 9 <= right,
        "{right} right, wrong: {wrong:?}"
    );
}
