use tpc_passes::machine::{CardClass, MemoryKind};

use super::{Card, Vendor};

impl Card {
    /// Returns the card's class.
    pub fn class(&self) -> CardClass {
        let memory = self.processor.map(|p| p.memory);
        let class = match (self.vendor, &self.capability, &self.arch) {
            (Some(Vendor::Nvidia), Some(capability), _) => nvidia(capability, memory),
            (Some(Vendor::Amd), _, Some(arch)) => amd(arch, memory),
            (Some(Vendor::Intel), _, Some(arch)) => intel(arch),
            _ => CardClass::Unknown,
        };
        match class {
            CardClass::Unknown => class_of_name(&self.name),
            known => known,
        }
    }
}

fn nvidia(capability: &str, memory: Option<MemoryKind>) -> CardClass {
    if memory == Some(MemoryKind::Shared) {
        return CardClass::UnifiedNvidia;
    }
    let hbm = memory == Some(MemoryKind::Hbm);
    match capability.split('.').next().and_then(|n| n.parse().ok()) {
        Some(0..=5) => CardClass::OldNvidia,
        Some(6) if capability == "6.0" => CardClass::PascalHbm,
        Some(6) => CardClass::Pascal,
        Some(7) if capability == "7.5" => CardClass::Turing,
        Some(7) => CardClass::Volta,
        Some(8) if capability == "8.9" => CardClass::Ada,
        Some(8) if hbm => CardClass::AmpereHbm,
        Some(8) => CardClass::AmpereGddr,
        Some(9) => CardClass::Hopper,
        Some(10..=13) if hbm => CardClass::BlackwellHbm,
        Some(10..=13) => CardClass::BlackwellGddr,
        _ => CardClass::Unknown,
    }
}

fn amd(arch: &str, memory: Option<MemoryKind>) -> CardClass {
    if memory == Some(MemoryKind::Shared) {
        return CardClass::UnifiedAmd;
    }
    match arch {
        "gfx900" | "gfx902" | "gfx904" | "gfx906" | "gfx909" | "gfx90c" => CardClass::Vega,
        _ if arch.starts_with("gfx90")
            || arch.starts_with("gfx94")
            || arch.starts_with("gfx95") =>
        {
            CardClass::Cdna
        }
        _ if arch.starts_with("gfx101") => CardClass::Rdna1,
        _ if arch.starts_with("gfx103") => CardClass::Rdna2,
        _ if arch.starts_with("gfx11") => CardClass::Rdna3,
        _ if arch.starts_with("gfx12") => CardClass::Rdna4,
        _ if ["gfx6", "gfx7", "gfx8"].iter().any(|g| arch.starts_with(g)) => CardClass::Polaris,
        _ => CardClass::Unknown,
    }
}

fn intel(arch: &str) -> CardClass {
    match arch {
        "Xe" => CardClass::Alchemist,
        "Xe2" => CardClass::Battlemage,
        _ => CardClass::Unknown,
    }
}

/// First words of names per class, in lower case without vendor, spaces and dashes. The longest match wins.
const STARTS: &[(&str, CardClass)] = &[
    ("gtx7", CardClass::OldNvidia),
    ("gtx9", CardClass::OldNvidia),
    ("teslam", CardClass::OldNvidia),
    ("m40", CardClass::OldNvidia),
    ("m60", CardClass::OldNvidia),
    ("teslak", CardClass::OldNvidia),
    ("gtx10", CardClass::Pascal),
    ("p4", CardClass::Pascal),
    ("p6", CardClass::Pascal),
    ("p102", CardClass::Pascal),
    ("p104", CardClass::Pascal),
    ("p106", CardClass::Pascal),
    ("quadrop", CardClass::Pascal),
    ("p100", CardClass::PascalHbm),
    ("v100", CardClass::Volta),
    ("titanv", CardClass::Volta),
    ("cmp100", CardClass::Volta),
    ("rtx20", CardClass::Turing),
    ("gtx16", CardClass::Turing),
    ("quadrortx", CardClass::Turing),
    ("titanrtx", CardClass::Turing),
    ("t4", CardClass::Turing),
    ("t10", CardClass::Turing),
    ("rtx30", CardClass::AmpereGddr),
    ("rtxa", CardClass::AmpereGddr),
    ("a10", CardClass::AmpereGddr),
    ("a40", CardClass::AmpereGddr),
    ("a100", CardClass::AmpereHbm),
    ("a30", CardClass::AmpereHbm),
    ("a800", CardClass::AmpereHbm),
    ("cmp170", CardClass::AmpereHbm),
    ("rtx40", CardClass::Ada),
    ("l4", CardClass::Ada),
    ("l20", CardClass::Ada),
    ("h100", CardClass::Hopper),
    ("h200", CardClass::Hopper),
    ("h800", CardClass::Hopper),
    ("h20", CardClass::Hopper),
    ("gh200", CardClass::Hopper),
    ("rtx50", CardClass::BlackwellGddr),
    ("rtxpro", CardClass::BlackwellGddr),
    ("b200", CardClass::BlackwellHbm),
    ("b300", CardClass::BlackwellHbm),
    ("gb200", CardClass::BlackwellHbm),
    ("gb300", CardClass::BlackwellHbm),
    ("gb10", CardClass::UnifiedNvidia),
    ("dgxspark", CardClass::UnifiedNvidia),
    ("rx4", CardClass::Polaris),
    ("rx5", CardClass::Polaris),
    ("r9", CardClass::Polaris),
    ("r7", CardClass::Polaris),
    ("wx7100", CardClass::Polaris),
    ("rxvega", CardClass::Vega),
    ("vega", CardClass::Vega),
    ("mi25", CardClass::Vega),
    ("mi250", CardClass::Cdna),
    ("mi50", CardClass::Vega),
    ("mi60", CardClass::Vega),
    ("vii", CardClass::Vega),
    ("provii", CardClass::Vega),
    ("mi100", CardClass::Cdna),
    ("mi2", CardClass::Cdna),
    ("mi3", CardClass::Cdna),
    ("rx53", CardClass::Rdna1),
    ("rx5500", CardClass::Rdna1),
    ("rx56", CardClass::Rdna1),
    ("rx5700", CardClass::Rdna1),
    ("rx6", CardClass::Rdna2),
    ("prow6", CardClass::Rdna2),
    ("rx7", CardClass::Rdna3),
    ("prow7", CardClass::Rdna3),
    ("rx9", CardClass::Rdna4),
    ("aipro", CardClass::Rdna4),
    ("r9700", CardClass::Rdna4),
    ("strix", CardClass::UnifiedAmd),
    ("ryzen", CardClass::UnifiedAmd),
    ("arca", CardClass::Alchemist),
    ("arcproa", CardClass::Alchemist),
    ("arcb", CardClass::Battlemage),
    ("arcprob", CardClass::Battlemage),
    ("m1", CardClass::Apple),
    ("m2", CardClass::Apple),
    ("m3", CardClass::Apple),
    ("m4", CardClass::Apple),
    ("m5", CardClass::Apple),
    ("apple", CardClass::Apple),
];

/// Returns the class for a name, if the architecture is unknown.
pub fn class_of_name(name: &str) -> CardClass {
    let squeezed: String = name
        .to_lowercase()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|w| {
            ![
                "nvidia", "geforce", "amd", "radeon", "instinct", "tesla", "intel",
            ]
            .contains(w)
        })
        .collect();
    // `RTX 5000 Ada` is older than the RTX 50 series.
    if squeezed.contains("ada") {
        return CardClass::Ada;
    }
    let fits = STARTS
        .iter()
        .filter(|(start, _)| squeezed.starts_with(start));
    let longest = fits.max_by_key(|(start, _)| start.len());
    longest.map_or(CardClass::Unknown, |(_, class)| *class)
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::*;

    #[test]
    fn every_card_has_a_class() {
        for card in &table().cards {
            assert_ne!(card.class(), CardClass::Unknown, "{}", card.name);
        }
    }

    #[test]
    fn names_agree_with_architectures() {
        for card in &table().cards {
            let by_name = class_of_name(&card.name);
            let agrees = by_name == CardClass::Unknown || by_name == card.class();
            assert!(agrees, "{}: {by_name:?}, {:?}", card.name, card.class());
        }
        assert_eq!(class_of_name("RX 580"), CardClass::Polaris);
        assert_eq!(class_of_name("Radeon RX 5700 XT"), CardClass::Rdna1);
        assert_eq!(class_of_name("my card"), CardClass::Unknown);
    }
}
