//! Random choices as a proptest strategy: a failing graph shrinks to few and simple choices.

use proptest::prelude::*;
use proptest::strategy::{NewTree, ValueTree};
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use tpc_ir::random::SplitMix64;

use super::random::{Builder, Rng};

/// The maximum number of choices for a random graph and its splits.
const MOST: usize = 1024;

#[derive(Debug)]
struct Choices;

impl Strategy for Choices {
    type Tree = ChoicesTree;
    type Value = Vec<u64>;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Choices> {
        let seed = any::<u64>().new_tree(runner)?.current();
        let mut random = SplitMix64::new(seed);
        Ok(ChoicesTree {
            choices: (0..MOST).map(|_| random.next_u64()).collect(),
            before: None,
            cut: MOST / 2,
            at: 0,
        })
    }
}

/// Choices under shrinking: first the last choices are cut off, then each choice becomes 0.
struct ChoicesTree {
    choices: Vec<u64>,
    before: Option<Vec<u64>>,
    /// The number of choices that the next step cuts off.
    cut: usize,
    /// The next choice to set to 0.
    at: usize,
}

impl ValueTree for ChoicesTree {
    type Value = Vec<u64>;

    fn current(&self) -> Vec<u64> {
        self.choices.clone()
    }

    fn simplify(&mut self) -> bool {
        let before = self.choices.clone();
        while self.cut > self.choices.len() {
            self.cut /= 2;
        }
        if self.cut > 0 {
            self.choices.truncate(before.len() - self.cut);
        } else {
            let rest = self.choices.iter().skip(self.at);
            let Some(next) = rest.into_iter().position(|&c| c != 0) else {
                return false;
            };
            self.choices[self.at + next] = 0;
            self.at += next + 1;
        }
        self.before = Some(before);
        true
    }

    fn complicate(&mut self) -> bool {
        let Some(before) = self.before.take() else {
            return false;
        };
        self.choices = before;
        self.cut /= 2;
        true
    }
}

/// Runs a test on random graphs, equal in every run. A failure prints the simplest failing choices.
pub(crate) fn each_graph(cases: u64, test: impl Fn(Builder)) -> Result<(), String> {
    let config = ProptestConfig {
        cases: u32::try_from(cases).unwrap_or(u32::MAX),
        failure_persistence: None,
        max_shrink_iters: 2048,
        ..ProptestConfig::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let outcome = TestRunner::new_with_rng(config, rng).run(&Choices, |choices| {
        test(Builder::of(Rng::of(&choices)));
        Ok(())
    });
    outcome.map_err(|e| e.to_string())
}

#[test]
fn failures_shrink() {
    let fails = |choices: &[u64]| choices.iter().filter(|c| **c % 7 == 3).count() >= 2;
    let mut runner = TestRunner::deterministic();
    let mut tree = Choices.new_tree(&mut runner).expect("a tree");
    assert!(fails(&tree.current()));
    while tree.simplify() {
        if !fails(&tree.current()) {
            assert!(tree.complicate());
        }
    }
    let left = tree.current();
    assert!(fails(&left));
    assert_eq!(left.iter().filter(|c| **c != 0).count(), 2);
    assert_eq!(left.last().map(|c| c % 7), Some(3));
}
