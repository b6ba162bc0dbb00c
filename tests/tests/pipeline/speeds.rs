//! The cost model against published speeds: the constants that are checked in, on the half of the rows that they were not
//! fitted on.

use tpc_tests::Sweep;
use tpc_tests::speeds::fit::Profiles;
use tpc_tests::speeds::{Case, Phase, cases, is_fitted_on, pairs, quantile, rows};

/// The cases of a half; of every third row in a sample.
fn half(fitted_on: bool) -> Vec<Case> {
    let (rows, left) = rows::read();
    assert!(left.len() < rows.len() / 4, "{} rows left out", left.len());
    let step = Sweep::asked().pick(3, 1);
    let here = rows.into_iter().filter(|r| is_fitted_on(r) == fitted_on);
    cases(here.step_by(step).collect())
}

#[test]
fn held_out_speeds_are_as_published() {
    let cases = half(false);
    let cases: Vec<&Case> = cases.iter().collect();
    let profiles = Profiles::checked_in();
    let check = |phases: &[Phase], median: f64, high: f64| {
        let errors = profiles.errors(&cases, phases);
        assert!(errors.len() > 30, "{phases:?}: {} errors", errors.len());
        let found = [quantile(&errors, 0.5), quantile(&errors, 0.9)];
        assert!(
            found[0] <= median && found[1] <= high,
            "{phases:?}: median and 90 % of |ln(estimated/measured)| are {found:?}"
        );
    };
    check(&[Phase::Decode], 0.10, 0.30);
    check(&[Phase::Prompt], 0.26, 0.68);
    check(&[Phase::Decode, Phase::Prompt], 0.13, 0.50);
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
    // The aim is nine of ten.
    assert!(
        right >= 6 && wrong.len() * 9 <= right,
        "{right} right, wrong: {wrong:?}"
    );
}
