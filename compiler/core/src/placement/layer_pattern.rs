//! Patterns of `-ot` that name layers by number: `blk\.(0
//! 1
//! 2)\.ffn_…`, `blk\.[0-9]+\.`, `blk\.([4-9]
//! 1[0-9])\.`.

use std::collections::BTreeSet;

use super::Override;

/// A pattern in three parts: text before the layer numbers, the numbers, and the text after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerPattern {
    before: String,
    after: String,
    layers: BTreeSet<u64>,
    /// True if consecutive numbers are written as `[4-9]`.
    runs: bool,
}

/// Ways to write the dot after `blk` and after the number.
const DOTS: [&str; 3] = [r"\.", "[.]", "."];

const MAX_LAYERS: u64 = 1024;

impl LayerPattern {
    /// Parses a pattern for a model of `n_block` layers with these tensors. Returns `None` if the pattern names layers
    /// in another form.
    pub fn parse<'n>(
        of: &Override,
        n_block: u64,
        names: impl Iterator<Item = &'n str>,
    ) -> Option<LayerPattern> {
        let at = of.pattern.find("blk")? + "blk".len();
        let (before, rest) = split_at_dot(&of.pattern, at)?;
        let end = end_of_numbers(rest)?;
        let (numbers, after) = rest.split_at(end);
        let is_whole = |text: &str| closes(text) && !text.contains("blk");
        if numbers.is_empty() || !is_whole(&before[..at - "blk".len()]) || !is_whole(after) {
            return None;
        }
        let number = fancy_regex::Regex::new(&format!("^(?:{numbers})$")).ok()?;
        let named = |l: &u64| number.is_match(&l.to_string()).unwrap_or(false);
        let out = LayerPattern {
            before: before.to_owned(),
            after: after.to_owned(),
            layers: (0..n_block.min(MAX_LAYERS)).filter(named).collect(),
            runs: numbers.contains('['),
        };
        // The pattern must match only tensors of these layers.
        let agrees = |name: &str| {
            let layer = layer_of(name);
            !of.matches(name).unwrap_or(true) || layer.is_some_and(|l| out.layers.contains(&l))
        };
        let mut names = names;
        names.all(agrees).then_some(out)
    }

    /// Returns the layers that the pattern names.
    pub fn layers(&self) -> &BTreeSet<u64> {
        &self.layers
    }

    /// Returns the pattern for `layers`; `None` if `layers` is empty.
    pub fn with(&self, layers: &BTreeSet<u64>) -> Option<String> {
        let numbers = match self.runs {
            true => runs(layers),
            false => layers.iter().map(u64::to_string).collect(),
        };
        let numbers = match numbers.as_slice() {
            [] => return None,
            [one] if one.bytes().all(|b| b.is_ascii_digit()) => one.clone(),
            several => format!("({})", several.join("|")),
        };
        Some(format!("{}{numbers}{}", self.before, self.after))
    }
}

/// Parses the layer of a tensor name: 7 in `blk.7.ffn_up.weight`.
pub fn layer_of(name: &str) -> Option<u64> {
    let rest = name.strip_prefix("blk.")?;
    rest.split('.').next()?.parse().ok()
}

fn split_at_dot(pattern: &str, at: usize) -> Option<(&str, &str)> {
    let rest = pattern.get(at..)?;
    let dot = DOTS.iter().find(|dot| rest.starts_with(**dot))?;
    Some(pattern.split_at(at + dot.len()))
}

/// Finds the dot after the leading numbers, outside groups.
fn end_of_numbers(text: &str) -> Option<usize> {
    let is_dot = |rest: &str| DOTS.iter().any(|dot| rest.starts_with(dot));
    end_of_part(text, is_dot).filter(|end| *end < text.len())
}

/// True if all groups in a part are closed, and alternatives occur only inside groups.
fn closes(text: &str) -> bool {
    end_of_part(text, |_| false).is_some()
}

/// Finds the first position outside groups at which `is_end` is true for the rest, or else the length. Returns `None`
/// for unbalanced groups or alternatives outside groups before this position.
fn end_of_part(text: &str, is_end: impl Fn(&str) -> bool) -> Option<usize> {
    let (mut depth, mut in_class, mut escaped) = (0_i32, false, false);
    for (i, c) in text.char_indices() {
        if depth == 0 && !in_class && !escaped && is_end(&text[i..]) {
            return Some(i);
        }
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ']' => in_class = false,
            _ if in_class => {}
            '[' => in_class = true,
            '(' => depth += 1,
            ')' => depth -= 1,
            '|' if depth == 0 => return None,
            _ => {}
        }
        if depth < 0 {
            return None;
        }
    }
    (depth == 0).then_some(text.len())
}

/// Formats numbers as alternatives, with runs within a ten as character classes: `[4-9]`, `1[0-9]`.
fn runs(numbers: &BTreeSet<u64>) -> Vec<String> {
    let all: Vec<u64> = numbers.iter().copied().collect();
    let follows = |a: &u64, b: &u64| *b == *a + 1 && a / 10 == b / 10;
    let mut out = Vec::new();
    for run in all.chunk_by(follows) {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            continue;
        };
        let tens = match first / 10 {
            0 => String::new(),
            tens => tens.to_string(),
        };
        match run.len() {
            1 => out.push(first.to_string()),
            2 => out.extend(run.iter().map(u64::to_string)),
            _ => out.push(format!("{tens}[{}-{}]", first % 10, last % 10)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::{parse_devices, parse_overrides};
    use super::*;

    fn read(pattern: &str) -> Option<(Vec<u64>, Option<String>)> {
        let devices = parse_devices("2").expect("a count");
        let given = [format!("{pattern}=CPU")];
        let of = parse_overrides(&given, &devices).expect("an override");
        let tensors = ["ffn_up_exps", "ffn_down_exps", "attn_q", "ffn_norm"];
        let names: Vec<String> = (0..24)
            .flat_map(|l| tensors.map(|t| format!("blk.{l}.{t}.weight")))
            .chain(["output.weight".to_owned()])
            .collect();
        let found = LayerPattern::parse(&of[0], 24, names.iter().map(String::as_str))?;
        let mut fewer = found.layers().clone();
        fewer.pop_last();
        let layers = found.layers().iter().copied().collect();
        Some((layers, found.with(&fewer)))
    }

    #[test]
    fn layers_are_read_in_their_usual_forms() {
        for (pattern, layers, fewer) in [
            (
                r"blk\.(0|1|2)\.ffn_(gate|up|down)_exps\.weight",
                0..3,
                Some(r"blk\.(0|1)\.ffn_(gate|up|down)_exps\.weight"),
            ),
            (
                r"blk\.([4-9]|1[0-9])\.ffn_.*_exps",
                4..20,
                Some(r"blk\.([4-9]|1[0-8])\.ffn_.*_exps"),
            ),
            (
                r"blk\.[0-9]+\.attn",
                0..24,
                Some(r"blk\.([0-9]|1[0-9]|2[0-2])\.attn"),
            ),
            (r"blk\.(?:20|21)\.", 20..22, Some(r"blk\.20\.")),
            (
                r"^blk[.](1[0-2])[.]ffn",
                10..13,
                Some(r"^blk[.](10|11)[.]ffn"),
            ),
            (r"blk.(5|6).ffn", 5..7, Some(r"blk.5.ffn")),
            (r"blk\.7\.", 7..8, None),
        ] {
            let found = read(pattern);
            let expected = Some((layers.collect(), fewer.map(str::to_owned)));
            assert_eq!(found, expected, "{pattern}");
        }
        let digits = read(r"blk\.\d+\.ffn_up_exps").expect("all layers");
        assert_eq!(digits.0.len(), 24);
    }

    #[test]
    fn other_patterns_are_left_alone() {
        for pattern in [
            r"\.ffn_.*_exps\.weight",
            "exps",
            r"blk\.1\.ffn|blk\.2\.ffn",
            r"(blk\.1\.ffn|output)",
            r"blk\.1",
            r"blk\.(1|2",
            r"blk\..*\.ffn",
        ] {
            let is_regex = fancy_regex::Regex::new(pattern).is_ok();
            assert!(!is_regex || read(pattern).is_none(), "{pattern}");
        }
    }
}
