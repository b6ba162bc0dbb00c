//! The division of a grammar into lexemes.
//!
//! llguidance splits an answer into lexemes, and takes the longest lexeme that may come next. GBNF lacks lexemes: every
//! split of an answer is valid. tpc therefore chooses lexemes for which the longest match misses no answer.
//!
//! 1. The largest parts without a recursive rule are lexemes.
//! 2. A lexeme B conflicts with a lexeme A if a text of B begins with a text of A and a character that may follow A.
//! 3. tpc divides B into smaller lexemes and repeats step 2. Single characters have no conflicts.

use std::collections::{HashMap, HashSet};

use super::automaton::Automaton;
use super::follow::follow;
use super::parts::{Division, Lexeme, Part};
use super::regex::regex;
use super::rules::{Expr, ExprId, Extent, Rules};

/// The maximum size of a lexeme, in characters and sets.
const LARGEST: u64 = 2_000;

/// The maximum nesting of a lexeme.
const DEEPEST: u64 = 60;

/// The maximum number of steps to compare lexemes. If they run out, all lexemes are single characters.
const WORK: u64 = 3_000_000;

/// Divides a grammar into lexemes.
pub(super) fn divide(rules: &Rules) -> Division {
    let extents = rules.extents();
    let mut divided = HashSet::new();
    let mut work = WORK;
    loop {
        let division = Divider::run(rules, &extents, Some(&divided));
        match conflicts(rules, &division, &mut work) {
            None => return Divider::run(rules, &extents, None),
            Some(wrong) if wrong.is_empty() => return division,
            Some(wrong) => divided.extend(wrong),
        }
    }
}

/// Returns the expressions to divide; `None` if the work is too much.
fn conflicts(rules: &Rules, division: &Division, work: &mut u64) -> Option<HashSet<ExprId>> {
    let mut automata = Vec::with_capacity(division.lexemes.len());
    for lexeme in &division.lexemes {
        let automaton = Automaton::new(rules, &lexeme.items);
        *work = work.saturating_sub(automaton.len() as u64);
        if *work == 0 {
            return None;
        }
        automata.push(automaton);
    }
    let first: Vec<_> = automata.iter().map(Automaton::first).collect();
    let follow = follow(division, &first);
    let mut out = HashSet::new();
    for (lexeme, other) in division.lexemes.iter().zip(&automata) {
        let mut others = automata.iter().zip(&follow);
        let extended = others.any(|(one, follow)| one.is_extended_by(other, follow, work));
        if *work == 0 {
            return None;
        }
        if extended {
            out.extend(&lexeme.origins);
        }
    }
    Some(out)
}

struct Divider<'r> {
    rules: &'r Rules,
    extents: &'r [Option<Extent>],
    /// The expressions that are not lexemes; `None` if only single characters are.
    divided: Option<&'r HashSet<ExprId>>,
    /// The lexemes by regular expression.
    known: HashMap<String, usize>,
    out: Division,
}

impl<'r> Divider<'r> {
    fn run(
        rules: &'r Rules,
        extents: &'r [Option<Extent>],
        divided: Option<&'r HashSet<ExprId>>,
    ) -> Division {
        let mut divider = Divider {
            rules,
            extents,
            divided,
            known: HashMap::new(),
            out: Division::default(),
        };
        let mut open = vec![rules.root];
        let mut seen = HashSet::from([rules.root]);
        while let Some(rule) = open.pop() {
            let part = divider.part(rules.bodies[rule]);
            part.for_rules(&mut |used| {
                if seen.insert(used) {
                    open.push(used);
                }
            });
            divider.out.order.push(rule);
            divider.out.parts.insert(rule, part);
        }
        divider.out
    }

    /// Returns the extent of an expression that may be a lexeme.
    fn whole(&self, id: ExprId) -> Option<Extent> {
        let single = matches!(self.rules.exprs[id], Expr::Class(_));
        let whole = self.divided.is_some_and(|divided| !divided.contains(&id));
        let small = |e: &Extent| e.size <= LARGEST && e.depth <= DEEPEST;
        self.extents[id].filter(small).filter(|_| single || whole)
    }

    fn part(&mut self, id: ExprId) -> Part {
        if let Some(extent) = self.whole(id) {
            return self.lexeme(vec![id], id, extent.nullable);
        }
        match &self.rules.exprs[id] {
            Expr::Class(_) => self.lexeme(vec![id], id, false),
            Expr::Rule(rule) => Part::Rule(*rule),
            Expr::Seq(items) => self.sequence(id, items),
            Expr::Alt(items) => Part::Alt(items.iter().map(|&item| self.part(item)).collect()),
            Expr::Repeat { item, min, max } => Part::Repeat {
                item: Box::new(self.part(*item)),
                min: *min,
                max: *max,
            },
        }
    }

    /// Divides a sequence. Neighbours that may be lexemes become one lexeme, unless the sequence is divided.
    fn sequence(&mut self, id: ExprId, items: &[ExprId]) -> Part {
        let joined = self.divided.is_some_and(|divided| !divided.contains(&id));
        let mut out = Vec::new();
        let (mut run, mut size, mut nullable) = (Vec::new(), 0, true);
        for &item in items {
            let extent = self
                .whole(item)
                .filter(|e| joined && size + e.size <= LARGEST);
            if let Some(extent) = extent {
                run.push(item);
                size += extent.size;
                nullable &= extent.nullable;
                continue;
            }
            if !run.is_empty() {
                out.push(self.lexeme(std::mem::take(&mut run), id, nullable));
            }
            (size, nullable) = (0, true);
            out.push(self.part(item));
        }
        if !run.is_empty() {
            out.push(self.lexeme(run, id, nullable));
        }
        Part::Seq(out)
    }

    /// Returns the lexeme of these expressions. Equal lexemes are one.
    fn lexeme(&mut self, items: Vec<ExprId>, origin: ExprId, nullable: bool) -> Part {
        let regex = regex(self.rules, &items);
        if regex.is_empty() {
            return Part::Empty;
        }
        let n = self.out.lexemes.len();
        let index = *self.known.entry(regex.clone()).or_insert(n);
        if index == n {
            self.out.lexemes.push(Lexeme {
                regex,
                items,
                origins: Vec::new(),
                nullable,
            });
        }
        self.out.lexemes[index].origins.push(origin);
        match nullable {
            false => Part::Lexeme(index),
            true => Part::Repeat {
                item: Box::new(Part::Lexeme(index)),
                min: 0,
                max: Some(1),
            },
        }
    }
}
