use schemars::JsonSchema;
use serde::Serialize;
use tpc_passes::machine::{Link, MemoryKind};

use super::columns::{Align, Columns};
use crate::cards::{Card, Fabric, MemorySource, RESERVE, between_cards};
use crate::format::{bytes, printable, wrapped};

/// A card: memory in bytes, bandwidths in bytes per second, arithmetic in operations per second.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CardReport<'a> {
    /// The name.
    pub name: &'a str,
    /// Alternative names.
    pub aliases: &'a [String],
    /// The vendor.
    pub vendor: Option<&'static str>,
    /// The architecture.
    pub arch: Option<&'a str>,
    /// The CUDA compute capability.
    pub compute_capability: Option<&'a str>,
    /// Bytes that the driver gives to a program.
    pub memory_bytes: u64,
    /// The source of the memory size.
    pub memory_source: String,
    /// Bytes left free by default.
    pub reserve_bytes: u64,
    /// Memory bandwidth.
    pub bandwidth: f64,
    /// The kind of memory.
    #[schemars(extend("enum" = ["hbm", "gddr", "shared"]))]
    pub memory_kind: Option<&'static str>,
    /// Operations per second that plans assume.
    pub flops: f64,
    /// Operations per second of dense fp16 products.
    pub fp16: Option<f64>,
    /// Operations per second of dense 8-bit products.
    pub int8: Option<f64>,
    /// Streaming multiprocessors, or compute units.
    pub units: Option<u32>,
    /// Boost clock in hertz.
    pub clock: Option<f64>,
    /// PCI Express generation.
    pub pcie_gen: u32,
    /// PCI Express lanes.
    pub pcie_lanes: u32,
    /// True if the driver copies directly between cards over PCI Express.
    pub peer: bool,
    /// NVLink or a similar link.
    pub fabric: Option<FabricReport>,
    /// The assumed link between two such cards.
    pub link: Link,
    /// The source of the figures.
    pub source: &'a str,
    /// Further remarks.
    pub note: Option<&'a str>,
}

/// Links other than PCI Express.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct FabricReport {
    /// The kind of link.
    #[schemars(extend("enum" = ["switch", "mesh", "bridge"]))]
    pub kind: &'static str,
    /// Bytes per second in both directions of all links together.
    pub bandwidth: f64,
    /// Number of joined devices.
    pub devices: usize,
}

impl From<Fabric> for FabricReport {
    fn from(f: Fabric) -> FabricReport {
        FabricReport {
            kind: match f {
                Fabric::Switch { .. } => "switch",
                Fabric::Mesh { .. } => "mesh",
                Fabric::Bridge { .. } => "bridge",
            },
            bandwidth: f.bandwidth(),
            devices: f.devices(),
        }
    }
}

fn between(card: &Card) -> Link {
    between_cards((card, 0), (card, 1), None)
}

impl<'a> From<&'a Card> for CardReport<'a> {
    fn from(c: &'a Card) -> CardReport<'a> {
        CardReport {
            name: &c.name,
            aliases: &c.aliases,
            vendor: c.vendor.map(super::super::cards::Vendor::name),
            arch: c.arch.as_deref(),
            compute_capability: c.capability.as_deref(),
            memory_bytes: c.memory as u64,
            memory_source: memory_source(c),
            reserve_bytes: RESERVE as u64,
            bandwidth: c.bandwidth,
            memory_kind: c.processor.map(|p| memory_kind(p.memory)),
            flops: c.flops,
            fp16: c.fp16,
            int8: c.int8(),
            units: c.processor.map(|p| p.units),
            clock: c.processor.map(|p| p.clock),
            pcie_gen: c.pcie.r#gen,
            pcie_lanes: c.pcie.lanes,
            peer: c.peer,
            fabric: c.fabric.map(FabricReport::from),
            link: between(c),
            source: &c.source,
            note: c.note.as_deref(),
        }
    }
}

const fn memory_kind(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::Hbm => "hbm",
        MemoryKind::Gddr => "gddr",
        MemoryKind::Shared => "shared",
    }
}

fn memory_source(card: &Card) -> String {
    match &card.memory_source {
        MemorySource::Driver(source) => format!("reported by the driver: {source}"),
        MemorySource::Tool => "estimated: nvidia-smi's figure less 450 MiB".to_owned(),
        MemorySource::Nominal => "estimated: the nominal size less the drivers' share".to_owned(),
        MemorySource::Stated => "stated".to_owned(),
    }
}

fn rate(bytes: f64) -> String {
    match bytes {
        b if b >= 1e12 => format!("{:.2} TB/s", b / 1e12),
        b if b >= 1e11 => format!("{:.0} GB/s", b / 1e9),
        b => format!("{:.1} GB/s", b / 1e9),
    }
}

fn tera(ops: Option<f64>) -> String {
    match ops.map(|x| x / 1e12) {
        None => "–".to_owned(),
        Some(x) if x < 100.0 => format!("{x:.1}"),
        Some(x) => format!("{x:.0}"),
    }
}

/// Formats cards as a table for a terminal of `width` columns.
pub fn render_cards<'a>(cards: impl IntoIterator<Item = &'a Card>, width: u16) -> String {
    use Align::{Left, Right};
    let mut t = Columns::new(&[
        ("card", Left),
        ("GiB", Right),
        ("GB/s", Right),
        ("fp16", Right),
        ("int8", Right),
        ("PCIe", Right),
        ("two are linked by", Left),
    ]);
    for c in cards {
        let link = between(c);
        let bridge = matches!(c.fabric, Some(Fabric::Bridge { .. }));
        let giga = |x: f64| match x / 1e9 {
            x if x >= 100.0 => format!("{x:.0}"),
            x => format!("{x:.1}"),
        };
        t.row(vec![
            printable(&c.name),
            format!("{:.1}", c.memory / RESERVE),
            giga(c.bandwidth),
            tera(c.fp16.or(Some(c.flops))),
            tera(c.int8()),
            format!("{}.0 x{}", c.pcie.r#gen, c.pcie.lanes),
            format!(
                "{} {}{}",
                link.kind.name(),
                giga(link.bandwidth),
                if bridge { " *" } else { "" }
            ),
        ]);
    }
    t.render(usize::from(width))
}

/// Formats all facts of a card in lines of at most `width` columns.
pub fn render_card(c: &Card, width: u16) -> String {
    let mut facts = figures(c);
    facts.extend(links(c));
    facts.push(("figures", c.source.clone()));
    facts.extend(c.note.clone().map(|note| ("note", note)));
    let mut out = format!("{}\n\n", printable(&c.name));
    for (name, fact) in facts {
        let line = format!("  {name:<12}  {}", printable(&fact));
        out.push_str(&wrapped(&line, usize::from(width), 16));
    }
    out
}

fn figures(c: &Card) -> Vec<(&'static str, String)> {
    let mut facts: Vec<(&str, String)> = Vec::new();
    if !c.aliases.is_empty() {
        facts.push(("also called", c.aliases.join(", ")));
    }
    let arch = [
        c.vendor.map(super::super::cards::Vendor::name),
        c.arch.as_deref(),
    ];
    let mut arch = arch.into_iter().flatten().collect::<Vec<_>>().join(" ");
    if let Some(cc) = &c.capability {
        arch = format!("{arch}, compute capability {cc}");
    }
    if !arch.is_empty() {
        facts.push(("architecture", arch));
    }
    let nominal = c.nominal_gib.map(|g| format!(" of {g} GiB"));
    facts.push((
        "memory",
        format!(
            "{}{} ({})",
            bytes(c.memory as u64),
            nominal.unwrap_or_default(),
            memory_source(c)
        ),
    ));
    facts.push((
        "reserve",
        format!("{} by default (--reserve)", bytes(RESERVE as u64)),
    ));
    let kind = c.processor.map_or("", |p| memory_kind(p.memory));
    facts.push((
        "bandwidth",
        format!("{} {kind}", rate(c.bandwidth)).trim().to_owned(),
    ));
    let mut arithmetic = format!("{} TFLOP/s in plans", tera(Some(c.flops)));
    if let Some(fp16) = c.fp16 {
        arithmetic = format!("{arithmetic}; fp16 {} dense", tera(Some(fp16)));
    }
    if let Some(int8) = c.int8() {
        arithmetic = format!("{arithmetic}; int8 {} TOP/s", tera(Some(int8)));
    }
    facts.push(("arithmetic", arithmetic));
    if let Some(p) = c.processor {
        facts.push((
            "processor",
            format!("{} units at {:.0} MHz", p.units, p.clock / 1e6),
        ));
    }
    facts
}

fn links(c: &Card) -> Vec<(&'static str, String)> {
    let mut facts: Vec<(&str, String)> = Vec::new();
    let peer = match c.peer {
        true => "from card to card",
        false => "through the host's memory: the driver refuses copies from card to card",
    };
    let pcie = rate(c.pcie.bandwidth());
    facts.push((
        "PCIe",
        format!(
            "{}.0 x{}, {pcie} in copies, {peer}",
            c.pcie.r#gen, c.pcie.lanes
        ),
    ));
    if let Some(f) = c.fabric.map(FabricReport::from) {
        let on_demand = match f.kind {
            "bridge" => "; used only with --link nvlink",
            _ => "",
        };
        let both = rate(f.bandwidth);
        facts.push((
            "NVLink",
            format!(
                "{}, {both} both ways, {} devices{on_demand}",
                f.kind, f.devices
            ),
        ));
    }
    let link = between(c);
    facts.push((
        "two of them",
        format!(
            "{}, {} each way, {} µs",
            link.kind.name(),
            rate(link.bandwidth),
            link.latency_us
        ),
    ));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cards::table;

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        assert!(
            !render_cards(&table().cards, 80).contains('…'),
            "80 columns suffice"
        );
        for width in [60, 80, 100] {
            let mut all = render_cards(&table().cards, width);
            for card in &table().cards {
                all.push_str(&render_card(card, width));
            }
            for line in all.lines() {
                assert!(
                    line.chars().count() <= usize::from(width),
                    "{width}: {line}"
                );
            }
        }
    }

    #[test]
    fn a_card_tells_all_that_is_known() {
        let card = |name: &str| {
            table()
                .cards
                .iter()
                .find(|c| c.name == name)
                .expect("a card")
        };
        let text = render_card(card("RTX 3090"), 200);
        for fact in [
            "23.6 GiB of 24 GiB (reported by the driver: llama-server --list-devices",
            "936 GB/s gddr",
            "71.0 TFLOP/s in plans; fp16 142 dense; int8 284 TOP/s",
            "82 units at 1695 MHz",
            "4.0 x16, 25.2 GB/s in copies, through the host's memory",
            "bridge, 112 GB/s both ways, 2 devices; used only with --link nvlink",
            "two of them   pcie, 12.6 GB/s each way, 25 µs",
            "the vendor's specification",
        ] {
            assert!(text.contains(fact), "{fact}: {text}");
        }
    }
}
