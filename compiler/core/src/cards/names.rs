//! Lookup of cards by the names that people use.
//!
//! Case, blanks, dashes and leading words such as `NVIDIA`, `GeForce` or `RTX` are ignored: `rtx3090ti`, `3090 Ti` and
//! `NVIDIA GeForce RTX 3090 Ti` are one card, `3090` is another. A name without form factor or memory size means the
//! most common card, if the table has an entry for the name. Otherwise tpc lists the choices.

use super::{Card, Table};

/// The result of a lookup.
#[derive(Clone, Debug, PartialEq)]
pub enum CardMatch<'a> {
    /// A card.
    Card(&'a Card),
    /// The most common card of a shared name.
    Meant {
        /// The card.
        card: &'a Card,
        /// Other cards with this name.
        others: Vec<&'a str>,
    },
    /// Several equally common cards.
    Several(Vec<&'a str>),
    /// No card. Contains the most similar names, best first.
    Unknown(Vec<&'a str>),
}

/// Words for the vendor or series before a name.
const LEADING: [&str; 15] = [
    "nvidia", "amd", "intel", "apple", "ati", "geforce", "quadro", "tesla", "radeon", "instinct",
    "graphics", "rtx", "gtx", "gpu", "rx",
];

/// Splits a name into lower-case words at characters other than letters, digits and `+`. Normalises memory sizes and
/// form factors.
fn words(name: &str) -> Vec<String> {
    let lower = name.to_lowercase();
    let parts = lower.split(|c: char| !c.is_alphanumeric() && c != '+');
    let mut out: Vec<String> = Vec::new();
    for part in parts.filter(|p| !p.is_empty()) {
        let unit = matches!(part, "g" | "gb" | "gib");
        match out.last_mut() {
            // `24 GB` is one word.
            Some(last) if unit && last.bytes().all(|b| b.is_ascii_digit()) => last.push_str("gb"),
            _ => out.push(word(part)),
        }
    }
    out
}

/// Normalises a word: `24g` and `24gib` to `24gb`, `sxm2` and `sxm5` to `sxm`.
fn word(part: &str) -> String {
    if let "sxm2" | "sxm3" | "sxm4" | "sxm5" = part {
        return "sxm".to_owned();
    }
    let digits = part.trim_end_matches(|c: char| c.is_alphabetic());
    let number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if number && matches!(&part[digits.len()..], "g" | "gb" | "gib") {
        return format!("{digits}gb");
    }
    part.to_owned()
}

fn without_leading(mut words: Vec<String>) -> Vec<String> {
    while words.len() > 1 && LEADING.contains(&words[0].as_str()) {
        words.remove(0);
    }
    // `rtx3090` is one word.
    if let Some(first) = words.first_mut() {
        while let Some(rest) = LEADING
            .iter()
            .filter_map(|l| first.strip_prefix(l))
            .find(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        {
            *first = rest.to_owned();
        }
    }
    words
}

fn squeeze(name: &str) -> String {
    let lower = name.to_lowercase();
    lower
        .chars()
        .filter(|c| c.is_alphanumeric() || *c == '+')
        .collect()
}

fn whole(name: &str) -> String {
    join(&words(name))
}

fn key(name: &str) -> String {
    join(&without_leading(words(name)))
}

fn join(words: &[String]) -> String {
    let text = words.concat();
    let stem = text.strip_suffix('g').or_else(|| text.strip_suffix("gib"));
    match stem.filter(|s| s.ends_with(|c: char| c.is_ascii_digit())) {
        Some(stem) => format!("{stem}gb"),
        None => text,
    }
}

/// Shortens a card name for device names: removes leading words and blanks.
pub fn short_name(name: &str) -> String {
    let parts = name.split(|c: char| !c.is_alphanumeric() && c != '+');
    let mut parts: Vec<&str> = parts.filter(|p| !p.is_empty()).collect();
    while parts.len() > 1
        && LEADING.contains(&parts[0].to_lowercase().as_str())
        && parts[1].starts_with(|c: char| c.is_ascii_digit() || "ABLTVWM".contains(c))
    {
        parts.remove(0);
    }
    parts.join("-")
}

fn names(card: &Card) -> impl Iterator<Item = &str> {
    [card.name.as_str()]
        .into_iter()
        .chain(card.aliases.iter().map(String::as_str))
}

/// Finds a card by name, in `own` before the table.
pub fn find<'a>(name: &str, own: &'a [Card], table: &'a Table) -> CardMatch<'a> {
    // Longer names match no card, and comparing them would take unbounded time.
    if name.len() > 80 {
        return CardMatch::Unknown(Vec::new());
    }
    let all = || own.iter().chain(&table.cards);
    let shared = table.several.iter().any(|n| key(n) == key(name));
    let ways = [squeeze as fn(&str) -> String, whole, key];
    for compared in &ways[..if shared { 2 } else { 3 }] {
        let wanted = compared(name);
        // The file's own cards take precedence.
        if let Some(card) = all().find(|c| names(c).any(|n| compared(n) == wanted)) {
            return CardMatch::Card(card);
        }
    }
    let wanted = without_leading(words(name));
    let meant = table.meant.iter().find(|(n, _)| key(n) == join(&wanted));
    let candidates: Vec<&Card> = all().filter(|c| has_words(c, &wanted)).collect();
    let others = |card: &Card| {
        let others = candidates.iter().filter(|c| c.name != card.name);
        others.map(|c| c.name.as_str()).collect()
    };
    if let Some((_, meant)) = meant
        && let Some(card) = table.cards.iter().find(|c| c.name == *meant)
    {
        let others = others(card);
        return CardMatch::Meant { card, others };
    }
    let exact = candidates.iter().find(|c| is_with_memory(c, &wanted));
    match (exact, candidates.as_slice()) {
        (Some(card), _) | (None, [card]) => CardMatch::Card(card),
        (None, []) => {
            // No card of this name has this memory, so ignore the memory.
            let model = wanted.iter().filter(|w| !w.ends_with("gb"));
            let model: Vec<String> = model.cloned().collect();
            CardMatch::Unknown(nearest(&join(&model), own, table))
        }
        (None, several) => CardMatch::Several(several.iter().map(|c| c.name.as_str()).collect()),
    }
}

fn is_with_memory(card: &Card, wanted: &[String]) -> bool {
    let memory = card.nominal_gib.map(|g| format!("{g}gb"));
    let rest: Vec<String> = wanted
        .iter()
        .filter(|w| memory.as_ref() != Some(w))
        .cloned()
        .collect();
    rest.len() < wanted.len() && names(card).any(|n| key(n) == join(&rest))
}

/// True if the card's name, aliases and nominal memory contain all these words, including a model number.
fn has_words(card: &Card, wanted: &[String]) -> bool {
    let model = |w: &String| w.bytes().any(|b| b.is_ascii_digit()) && !w.ends_with("gb");
    if !wanted.iter().any(model) {
        return false;
    }
    let memory = card.nominal_gib.map(|g| format!("{g}gb"));
    names(card).any(|n| {
        let have = words(n);
        wanted
            .iter()
            .all(|w| have.contains(w) || memory.as_ref() == Some(w))
    })
}

fn nearest<'a>(wanted: &str, own: &'a [Card], table: &'a Table) -> Vec<&'a str> {
    let edits = |n: &str| strsim::osa_distance(wanted, &key(n));
    let cards = own.iter().chain(&table.cards);
    let distance = |c: &Card| names(c).map(edits).min().unwrap_or(usize::MAX);
    let mut near: Vec<(usize, &str)> = cards.map(|c| (distance(c), c.name.as_str())).collect();
    near.extend(
        table
            .meant
            .iter()
            .map(|(n, card)| (edits(n), card.as_str())),
    );
    near.sort();
    let least = near.first().map_or(0, |(edits, _)| *edits);
    let mut out: Vec<&str> = Vec::new();
    for (edits, name) in near {
        if edits <= (1 + wanted.len() / 4).min(least) && !out.contains(&name) {
            out.push(name);
        }
    }
    out.truncate(3);
    out
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::*;

    fn found(name: &str) -> CardMatch<'static> {
        find(name, &[], table())
    }

    #[test]
    fn every_card_is_found_by_its_names() {
        for c in &table().cards {
            for n in names(c) {
                for spelt in [
                    n.to_owned(),
                    n.to_lowercase(),
                    n.replace(' ', "-"),
                    n.replace(' ', ""),
                ] {
                    assert_eq!(found(&spelt), CardMatch::Card(c), "{spelt}");
                }
            }
            let short = short_name(&c.name);
            assert!(!short.contains(' '), "{short}");
            match found(&short) {
                CardMatch::Card(f) => assert_eq!(f.name, c.name, "{short}"),
                other => panic!("{short}: {other:?}"),
            }
        }
    }

    #[test]
    fn spellings() {
        for (name, expected) in [
            ("3090", "RTX 3090"),
            ("rtx3090", "RTX 3090"),
            ("RTX-3090", "RTX 3090"),
            ("NVIDIA GeForce RTX 3090", "RTX 3090"),
            ("GeForce 3090", "RTX 3090"),
            ("3090 24GB", "RTX 3090"),
            ("3090 24 GB", "RTX 3090"),
            ("3090ti", "RTX 3090 Ti"),
            ("3090 Ti", "RTX 3090 Ti"),
            ("RTX 3090TI", "RTX 3090 Ti"),
            ("4070 ti super", "RTX 4070 Ti SUPER"),
            ("4070TiSuper", "RTX 4070 Ti SUPER"),
            ("1080ti", "GTX 1080 Ti"),
            ("H100-SXM", "H100 SXM"),
            ("H100 SXM5", "H100 SXM"),
            ("h100sxm", "H100 SXM"),
            ("NVIDIA H100 80GB HBM3", "H100 SXM"),
            ("NVIDIA H100 PCIe", "H100 PCIe"),
            ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"),
            ("A100 80GB SXM", "A100 SXM 80GB"),
            ("NVIDIA A100 80GB PCIe", "A100 PCIe 80GB"),
            ("Tesla V100-SXM2-32GB", "V100 SXM2 32GB"),
            ("Tesla T4", "T4"),
            ("Tesla P40", "P40"),
            ("NVIDIA RTX A6000", "RTX A6000"),
            ("A6000", "RTX A6000"),
            ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"),
            ("6000 Ada", "RTX 6000 Ada"),
            ("Quadro RTX 5000", "Quadro RTX 5000"),
            (
                "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
                "RTX PRO 6000",
            ),
            ("DGX Spark", "GB10 (DGX Spark)"),
            ("NVIDIA GB10", "GB10 (DGX Spark)"),
            ("3060", "RTX 3060 12G"),
            ("3080 12GB", "RTX 3080 12G"),
            ("4060 Ti 8GB", "RTX 4060 Ti 8G"),
            ("7900xtx", "RX 7900 XTX"),
            ("AMD Radeon RX 7900 XTX", "RX 7900 XTX"),
            ("7900 XT", "RX 7900 XT"),
            ("AMD Instinct MI300X", "MI300X"),
            ("W7900", "Radeon PRO W7900"),
            ("Intel Arc B580", "Arc B580"),
            ("b580", "Arc B580"),
            ("Strix Halo", "Ryzen AI Max+ 395"),
            ("AMD Radeon RX 580", "RX 580"),
            ("RX 580 8GB", "RX 580"),
            ("6900 XT", "RX 6900 XT"),
            ("RX 6800", "RX 6800"),
            ("MI50", "MI50"),
            ("MI50 16GB", "MI50 16GB"),
            ("AMD Instinct MI100", "MI100"),
            ("Tesla M40 24GB", "M40"),
            ("Tesla P4", "P4"),
            ("NVIDIA CMP 170HX", "CMP 170HX"),
            ("2080 Ti 22GB", "RTX 2080 Ti 22G"),
            ("2080 Ti", "RTX 2080 Ti"),
            ("4090 48GB", "RTX 4090 48G"),
            ("4090D", "RTX 4090 D"),
            ("RTX 4090 Laptop GPU", "RTX 4090 Laptop"),
            ("RTX PRO 4500", "RTX PRO 4500 Blackwell"),
            ("RTX PRO 6000 Server", "RTX PRO 6000 Server"),
            ("Arc Pro B70", "Arc Pro B70"),
            ("Apple M3 Ultra 256GB", "M3 Ultra 256GB"),
            ("M4 Max 64GB", "M4 Max 64GB"),
        ] {
            match found(name) {
                CardMatch::Card(c) => assert_eq!(c.name, expected, "{name}"),
                other => panic!("{name}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_name_that_several_cards_share_is_the_one_most_often_meant() {
        for (name, expected) in &table().meant {
            match found(name) {
                CardMatch::Meant { card, others } => {
                    assert_eq!(card.name, *expected, "{name}");
                    assert!(
                        !others.is_empty() && !others.contains(&card.name.as_str()),
                        "{name}: {others:?}"
                    );
                }
                other => panic!("{name}: {other:?}"),
            }
        }
        assert!(matches!(found("h100"), CardMatch::Meant { card, .. } if card.name == "H100 SXM"));
        assert!(
            matches!(found("NVIDIA H200"), CardMatch::Meant { card, .. } if card.name == "H200 SXM")
        );
    }

    #[test]
    fn a_name_that_nobody_has_most_often_lists_the_choices() {
        for name in ["RTX 6000", "6000", "RTX 5000"] {
            match found(name) {
                CardMatch::Several(names) => assert!(names.len() > 1, "{name}: {names:?}"),
                other => panic!("{name}: {other:?}"),
            }
        }
    }

    #[test]
    fn strangers_have_the_nearest_names_or_none() {
        for (name, expected) in [
            ("3900", Some("RTX 3090")),
            ("RTX 4900", Some("RTX 4090")),
            ("H1000", Some("H100 SXM")),
            ("3090 12GB", Some("RTX 3090")),
            ("potato", None),
            ("", None),
            ("ti", None),
            ("24GB", None),
            ("gpu", None),
            ("🦀", None),
        ] {
            match found(name) {
                CardMatch::Unknown(near) => match expected {
                    Some(e) => assert!(near.contains(&e), "{name}: {near:?}"),
                    None => assert!(near.len() <= 3, "{name}: {near:?}"),
                },
                other => panic!("{name}: {other:?}"),
            }
        }
        assert_eq!(
            found(&"3090".repeat(100_000)),
            CardMatch::Unknown(Vec::new())
        );
    }
}
