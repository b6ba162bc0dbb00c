//! Chooses splits: an exact search over the assignments of each distinct problem.

use tpc_ir::{Budget, Group, Inst, Resource};

use super::choice::Choice;
use super::layer_group::LayerGroup;
use super::options::{SplitOption, clash};
use super::price::{Price, Pricer};
use super::problem::{OptionTable, Problem};
use super::search::{assignments, search};

const GLOBAL_LIMIT: usize = 256;

type Solution = (Price, Vec<SplitOption>);

/// The cheapest assignment of global factors, with each problem's solution.
struct BestAssignment {
    total: f64,
    global: Vec<SplitOption>,
    solutions: Vec<Solution>,
}

/// Chooses the options for the layer groups of one device group.
///
/// If the budget is exhausted, returns the best assignment found so far.
pub fn choose(
    pricer: &Pricer<'_>,
    group: Group,
    layer_groups: &[LayerGroup],
    budget: &Budget,
) -> Choice {
    let table = OptionTable::new(pricer, group, layer_groups);
    let problems = table.problems();
    let mut choice = Choice::none();
    choice.distinct = problems.len();
    if let Some(best) = find_cheapest(pricer, &table.global, &problems, &mut choice, budget) {
        price(pricer, &table.global, &problems, &best, &mut choice);
        take(&problems, best, &mut choice);
    }
    choice
}

/// Finds the cheapest assignment of all factors, and counts priced assignments in `choice`.
///
/// Splitting a global factor, such as the residual width, needs several times more collectives than other splits.
/// Global factors are therefore chosen by the uncapped price of collectives.
fn find_cheapest(
    pricer: &Pricer<'_>,
    global: &[SplitOption],
    problems: &[Problem],
    choice: &mut Choice,
    budget: &Budget,
) -> Option<BestAssignment> {
    let all: Vec<usize> = (0..global.len()).collect();
    let conflict = |a: usize, b: usize| clash(pricer.facts.analysis, &global[a], &global[b]);
    let (sets, complete) = assignments(&all, GLOBAL_LIMIT, &conflict);
    choice.optimal &= complete;
    let mut best: Option<BestAssignment> = None;
    for set in sets {
        let has_all = (0..global.len()).all(|i| !global[i].required || set.contains(&i));
        if !has_all {
            continue;
        }
        let given: Vec<&SplitOption> = set.iter().map(|&i| &global[i]).collect();
        if best.is_some() && budget.remaining(Resource::Trials) == 0 {
            choice.optimal = false;
            break;
        }
        let Some((total, solutions)) = solve(pricer, &given, problems, choice, budget) else {
            continue;
        };
        let cheaper = |b: &BestAssignment| total < b.total * (1.0 - 1e-9);
        if total.is_finite() && best.as_ref().is_none_or(cheaper) {
            best = Some(BestAssignment {
                total,
                global: given.into_iter().cloned().collect(),
                solutions,
            });
        }
    }
    best
}

/// Solves all problems with the `given` global options. Returns `None` if a problem has no solution.
fn solve(
    pricer: &Pricer<'_>,
    given: &[&SplitOption],
    problems: &[Problem],
    choice: &mut Choice,
    budget: &Budget,
) -> Option<(f64, Vec<Solution>)> {
    let mut total = 0.0;
    let mut solutions = Vec::new();
    for p in problems {
        let compatible = |o: &&SplitOption| {
            let clashes = |g: &&SplitOption| clash(pricer.facts.analysis, o, g);
            !given.iter().any(clashes)
        };
        let (required, options): (Vec<&SplitOption>, Vec<&SplitOption>) =
            (p.options.iter().filter(compatible)).partition(|o| o.required);
        let fits = |o: &&SplitOption| {
            let clashes = |r: &&SplitOption| clash(pricer.facts.analysis, o, r);
            !required.iter().any(clashes)
        };
        let options: Vec<&SplitOption> = options.into_iter().filter(fits).collect();
        let fixed: Vec<&SplitOption> = given.iter().chain(&required).copied().collect();
        let found = search(pricer, &p.whole, &fixed, &options, budget)?;
        choice.priced += found.priced;
        choice.optimal &= found.optimal;
        total += found.price.uncapped * p.count() as f64;
        let assignment = required.into_iter().chain(found.assignment);
        solutions.push((found.price, assignment.cloned().collect()));
    }
    Some((total, solutions))
}

fn price(
    pricer: &Pricer<'_>,
    global: &[SplitOption],
    problems: &[Problem],
    best: &BestAssignment,
    choice: &mut Choice,
) {
    for (p, (price, _)) in problems.iter().zip(&best.solutions) {
        let count = p.count() as f64;
        choice.cost += count * price.objective;
        choice.lower_bound += count
            * if choice.optimal {
                price.objective
            } else {
                let all: Vec<&SplitOption> = global.iter().chain(&p.options).collect();
                pricer.lower_bound(&p.whole, &all).min(price.objective)
            };
    }
}

/// Adds the options to `choice`: global options first, then the others in program order. This order numbers the
/// classes.
fn take(problems: &[Problem], best: BestAssignment, choice: &mut Choice) {
    best.global.into_iter().for_each(|o| choice.push(o));
    let mut options: Vec<(Inst, SplitOption)> = Vec::new();
    for (p, (_, assignment)) in problems.iter().zip(&best.solutions) {
        for g in std::iter::once(&p.whole).chain(&p.alike) {
            let own = assignment.iter().map(|o| (g.insts[0], p.rename(o, g)));
            options.extend(own);
        }
    }
    options.sort_by_key(|(i, _)| *i);
    options.into_iter().for_each(|(_, o)| choice.push(o));
}
