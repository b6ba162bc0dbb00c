use std::collections::HashMap;

use super::chars::CharSet;
use super::parts::{Division, Part};
use super::rules::RuleId;

/// Returns the characters that may follow each lexeme, given the characters that begin each.
pub(super) fn follow(division: &Division, first: &[CharSet]) -> Vec<CharSet> {
    let mut sets = Sets {
        first,
        rule_first: HashMap::new(),
        rule_follow: HashMap::new(),
        follow: vec![CharSet::default(); first.len()],
        changed: true,
    };
    while sets.changed {
        sets.changed = false;
        for (&rule, part) in both_ways(division) {
            let (set, nullable) = sets.begin(part);
            let known = sets.rule_first.entry(rule).or_default();
            sets.changed |= known.0.add(&set) | (nullable && !known.1);
            known.1 |= nullable;
        }
    }
    sets.changed = true;
    while sets.changed {
        sets.changed = false;
        for (rule, part) in both_ways(division) {
            let after = sets.rule_follow.get(rule).cloned().unwrap_or_default();
            sets.spread(part, &after);
        }
    }
    sets.follow
}

/// Returns the rules in order and back, so that few rounds reach the fixed point.
fn both_ways(division: &Division) -> impl Iterator<Item = (&RuleId, &Part)> {
    let order = division.order.iter();
    let order = order.clone().chain(order.rev());
    order.filter_map(|rule| division.parts.get_key_value(rule))
}

struct Sets<'a> {
    /// The characters that begin each lexeme.
    first: &'a [CharSet],
    /// The characters that begin each rule, and true if the rule may be empty.
    rule_first: HashMap<RuleId, (CharSet, bool)>,
    rule_follow: HashMap<RuleId, CharSet>,
    follow: Vec<CharSet>,
    changed: bool,
}

impl Sets<'_> {
    /// Returns the characters that begin a part, and true if the part may be empty.
    fn begin(&self, part: &Part) -> (CharSet, bool) {
        match part {
            Part::Empty => (CharSet::default(), true),
            Part::Lexeme(index) => (self.first[*index].clone(), false),
            Part::Rule(rule) => self.rule_first.get(rule).cloned().unwrap_or_default(),
            Part::Seq(items) => {
                let mut out = CharSet::default();
                for item in items {
                    let (set, nullable) = self.begin(item);
                    out.add(&set);
                    if !nullable {
                        return (out, false);
                    }
                }
                (out, true)
            }
            Part::Alt(items) => {
                let (mut out, mut any) = (CharSet::default(), false);
                for item in items {
                    let (set, nullable) = self.begin(item);
                    out.add(&set);
                    any |= nullable;
                }
                (out, any)
            }
            Part::Repeat { item, min, .. } => {
                let (set, nullable) = self.begin(item);
                (set, nullable || *min == 0)
            }
        }
    }

    /// Records that the characters of `after` may follow a part.
    fn spread(&mut self, part: &Part, after: &CharSet) {
        match part {
            Part::Empty => {}
            Part::Lexeme(index) => self.changed |= self.follow[*index].add(after),
            Part::Rule(rule) => {
                self.changed |= self.rule_follow.entry(*rule).or_default().add(after);
            }
            Part::Seq(items) => {
                let mut after = after.clone();
                for item in items.iter().rev() {
                    self.spread(item, &after);
                    let (mut set, nullable) = self.begin(item);
                    if nullable {
                        set.add(&after);
                    }
                    after = set;
                }
            }
            Part::Alt(items) => items.iter().for_each(|item| self.spread(item, after)),
            Part::Repeat { item, max, .. } => {
                let mut after = after.clone();
                if *max != Some(1) {
                    after.add(&self.begin(item).0);
                }
                self.spread(item, &after);
            }
        }
    }
}
