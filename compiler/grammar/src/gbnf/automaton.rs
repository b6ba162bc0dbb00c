//! Automata of lexemes.

use std::collections::HashSet;

use super::chars::CharSet;
use super::rules::{Expr, ExprId, Rules};

/// A nondeterministic automaton over characters (Thompson 1968). State 0 is the start, state 1 accepts.
#[derive(Debug)]
pub(super) struct Automaton {
    /// The transitions of each state.
    steps: Vec<Vec<(CharSet, usize)>>,
    /// The transitions of each state without a character.
    jumps: Vec<Vec<usize>>,
}

impl Automaton {
    /// Creates the automaton of expressions that follow each other and reach no recursive rule.
    pub(super) fn new(rules: &Rules, items: &[ExprId]) -> Automaton {
        let mut out = Automaton {
            steps: vec![Vec::new(), Vec::new()],
            jumps: vec![Vec::new(), Vec::new()],
        };
        let end = out.sequence(rules, items, 0);
        out.jumps[end].push(1);
        out
    }

    /// Returns the number of states.
    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    fn state(&mut self) -> usize {
        self.steps.push(Vec::new());
        self.jumps.push(Vec::new());
        self.steps.len() - 1
    }

    fn step(&mut self, from: usize, set: CharSet) -> usize {
        let to = self.state();
        self.steps[from].push((set, to));
        to
    }

    fn sequence(&mut self, rules: &Rules, items: &[ExprId], from: usize) -> usize {
        items
            .iter()
            .fold(from, |from, &item| self.add(rules, item, from))
    }

    /// Adds an expression that starts in the state `from`; returns the state at its end.
    fn add(&mut self, rules: &Rules, id: ExprId, from: usize) -> usize {
        match &rules.exprs[id] {
            Expr::Class(set) => self.step(from, set.clone()),
            Expr::Rule(rule) => self.add(rules, rules.bodies[*rule], from),
            Expr::Seq(items) => self.sequence(rules, items, from),
            Expr::Alt(items) => {
                let end = self.state();
                for &item in items {
                    let begin = self.state();
                    self.jumps[from].push(begin);
                    let last = self.add(rules, item, begin);
                    self.jumps[last].push(end);
                }
                end
            }
            Expr::Repeat { item, min, max } => {
                let mut at = (0..*min).fold(from, |at, _| self.add(rules, *item, at));
                let end = self.state();
                match max {
                    Some(max) => {
                        for _ in *min..*max {
                            self.jumps[at].push(end);
                            at = self.add(rules, *item, at);
                        }
                        self.jumps[at].push(end);
                    }
                    None => {
                        let begin = self.state();
                        self.jumps[at].push(begin);
                        self.jumps[begin].push(end);
                        let last = self.add(rules, *item, begin);
                        self.jumps[last].push(begin);
                    }
                }
                end
            }
        }
    }

    /// Returns the characters that begin a text.
    pub(super) fn first(&self) -> CharSet {
        let (mut out, mut seen, mut open) = (CharSet::default(), HashSet::from([0]), vec![0]);
        while let Some(state) = open.pop() {
            for (set, _) in &self.steps[state] {
                out.add(set);
            }
            open.extend(self.jumps[state].iter().filter(|&&s| seen.insert(s)));
        }
        out
    }

    /// True if a text of `self`, followed by a character of `follow`, begins a text of `other`. Subtracts its
    /// steps from `work`; returns true if `work` reaches 0.
    pub(super) fn is_extended_by(
        &self,
        other: &Automaton,
        follow: &CharSet,
        work: &mut u64,
    ) -> bool {
        let start = (0, 0, false);
        let (mut seen, mut open) = (HashSet::from([start]), vec![start]);
        while let Some((a, b, moved)) = open.pop() {
            let steps = self.steps[a].len() * other.steps[b].len() + 1;
            *work = work.saturating_sub(steps as u64);
            if *work == 0 {
                return true;
            }
            if moved && a == 1 && other.steps[b].iter().any(|(set, _)| set.meets(follow)) {
                return true;
            }
            let mut next: Vec<(usize, usize, bool)> = Vec::new();
            next.extend(self.jumps[a].iter().map(|&a| (a, b, moved)));
            next.extend(other.jumps[b].iter().map(|&b| (a, b, moved)));
            for (mine, to) in &self.steps[a] {
                let both = other.steps[b]
                    .iter()
                    .filter(|(theirs, _)| theirs.meets(mine));
                next.extend(both.map(|&(_, b)| (*to, b, true)));
            }
            open.extend(next.into_iter().filter(|&pair| seen.insert(pair)));
        }
        false
    }
}
