//! `tpc devices`: the built-in cards and this machine's devices.

mod present;
mod probe;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::Serialize;

use crate::doctor::{Executor, JsonCheck, Machine};
use crate::output::{self, Failure};
use present::{Gpu, Present, present};
use tpc_core::cards::{Card, CardMatch, find, table};
use tpc_core::format::{bytes, wrapped};
use tpc_core::report::{CardReport, render_card, render_cards};
use tpc_diag::{Diagnostic, FormatVersion, codes, suggest};
use tpc_engine::doctor::Verdict;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Card to show in full, such as 3090 or H100-SXM [default: list all cards and this machine's devices].
    name: Vec<String>,
    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Measure this machine's devices: bandwidths, latencies and all-reduces.
    #[arg(long, conflicts_with = "name")]
    probe: bool,
    /// Cards to measure, such as `cuda:0,cuda:1` [default: all; emulated: two devices].
    #[arg(long, value_name = "SPEC", requires = "probe")]
    devices: Option<String>,
    /// Devices to measure.
    #[arg(long, value_enum, default_value = "cuda", requires = "probe")]
    executor: Executor,
}

/// The output of `tpc devices` as JSON.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Devices")]
pub(crate) struct Listing<'a> {
    /// Format version.
    tpc: FormatVersion,
    /// The built-in cards, or the cards with the given name.
    cards: Vec<CardReport<'a>>,
    /// Ambiguous names, with the card that tpc chooses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    meant: Vec<Meant<'a>>,
    /// This machine; absent if a card is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    here: Option<Present>,
    /// The measurements of `--probe`.
    #[serde(skip_serializing_if = "Option::is_none")]
    probe: Option<Vec<JsonCheck<'a>>>,
}

/// An ambiguous name.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AmbiguousName")]
struct Meant<'a> {
    /// The name.
    name: &'a str,
    /// The card that tpc chooses.
    card: &'a str,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let name = args.name.join(" ");
    let width = output::width();
    if !name.trim().is_empty() {
        let cards = named(&name)?;
        return match args.format {
            Format::Table => {
                let shown: Vec<String> = cards.iter().map(|c| render_card(c, width)).collect();
                output::result(&shown.join("\n"))
            }
            Format::Json => output::json(&Listing {
                tpc: FormatVersion,
                cards: cards.into_iter().map(CardReport::from).collect(),
                meant: Vec::new(),
                here: None,
                probe: None,
            }),
        };
    }
    let here = present();
    if args.probe {
        return probe(args, here);
    }
    match args.format {
        Format::Table => {
            let mut out = render_cards(&table().cards, width);
            out.push_str(&remarks(width));
            out.push('\n');
            out.push_str(&this_machine(&here, width));
            output::result(&out)
        }
        Format::Json => output::json(&listing(here)),
    }
}

/// Measures this machine's devices. Prints the measurements after the devices.
fn probe(args: &Args, here: Present) -> Result<(), Failure> {
    let machine = Machine::new(args.executor, args.devices.as_deref())?;
    let report = match args.format {
        Format::Table => {
            output::result(&format!("{}\n", this_machine(&here, output::width())))?;
            probe::measure(machine, output::Format::Text)?
        }
        Format::Json => {
            let report = probe::measure(machine, output::Format::Json)?;
            output::json(&Listing {
                probe: Some(report.checks.iter().map(JsonCheck::from).collect()),
                ..listing(here)
            })?;
            report
        }
    };
    match report.verdict() {
        Verdict::Works | Verdict::Warns => Ok(()),
        // The findings name the failures and their cures.
        Verdict::Fails => Err(Failure::findings(Vec::new())),
    }
}

/// Returns the known cards and this machine.
fn listing(here: Present) -> Listing<'static> {
    let known = table();
    let meant = known.meant.iter();
    Listing {
        tpc: FormatVersion,
        cards: known.cards.iter().map(CardReport::from).collect(),
        meant: meant.map(|(name, card)| Meant { name, card }).collect(),
        here: Some(here),
        probe: None,
    }
}

fn named(name: &str) -> Result<Vec<&'static Card>, Failure> {
    let known = table();
    let all = |names: &[&str]| {
        let cards = known.cards.iter();
        cards.filter(|c| names.contains(&c.name.as_str())).collect()
    };
    match find(name, &[], known) {
        CardMatch::Card(card) => Ok(vec![card]),
        CardMatch::Meant { card, others } => {
            let mut out: Vec<&Card> = vec![card];
            out.extend(all(&others) as Vec<&Card>);
            Ok(out)
        }
        CardMatch::Several(names) => Ok(all(&names)),
        CardMatch::Unknown(near) => {
            let message = format!("unknown card `{}`", suggest::shorten(name));
            let near = match near.as_slice() {
                [] => String::new(),
                near => format!("did you mean {}? ", near.join(" or ")),
            };
            let help = format!(
                "{near}`tpc devices` lists the cards; a topology file (--topology) describes others"
            );
            let d = Diagnostic::new(&codes::COMMAND_LINE, "devices", message).help(help);
            Err(Failure::usage(d))
        }
    }
}

/// The devices of this machine for plans.
pub(crate) enum Here {
    /// The value of `--devices` for the cards.
    Cards(String),
    /// The CPU, with the bytes of its memory if known.
    Cpu(Option<u64>),
}

/// Returns this machine's cards if tpc knows them, or else its CPU.
pub(crate) fn here() -> Here {
    let present = present();
    match present.devices {
        Some(devices) => Here::Cards(devices),
        None => Here::Cpu(present.cpu.memory_bytes),
    }
}

fn remarks(width: u16) -> String {
    let text = "* with an NVLink bridge: --link nvlink\n\
                fp16, int8: 10¹² dense operations per second; links: GB/s each way. GiB: the memory that the driver gives to a \
                program; plans reserve 1 GiB of it (--reserve). `tpc devices 3090` shows a card in full; `tpc plan MODEL --devices 2x3090` plans for two.";
    format!("\n{}", wrapped(text, usize::from(width), 2))
}

fn this_machine(here: &Present, width: u16) -> String {
    let mut out = "this machine\n".to_owned();
    let mut line = |text: String| {
        out.push_str(&wrapped(&format!("  {text}"), usize::from(width), 4));
    };
    for g in &here.gpus {
        line(gpu(g));
    }
    let cpu = &here.cpu;
    let mut words = vec![cpu.name.clone().unwrap_or_else(|| "CPU".to_owned())];
    words.extend(cpu.threads.map(|n| format!("{n} threads")));
    words.extend(cpu.memory_bytes.map(bytes));
    words.extend(cpu.available_bytes.map(|n| format!("{} free", bytes(n))));
    line(words.join(", "));
    for node in &here.nodes {
        let mut words = vec![format!("{}: {} cores", node.name, node.cores)];
        words.extend(node.memory_bytes.map(bytes));
        line(words.join(", "));
    }
    if !here.nodes.is_empty() {
        line("plan for all NUMA nodes: tpc plan MODEL --devices numa".to_owned());
    }
    for note in &here.notes {
        line(note.clone());
    }
    if let Some(devices) = &here.devices {
        line(format!(
            "plan for this machine: tpc plan MODEL --devices {devices}"
        ));
    }
    out
}

fn gpu(g: &Gpu) -> String {
    let mut words = vec![g.name.clone()];
    words.extend(g.memory_bytes.map(bytes));
    words.extend(g.free_bytes.map(|n| format!("{} free", bytes(n))));
    if let (Some(generation), Some(lanes)) = (g.pcie_gen, g.pcie_lanes) {
        words.push(format!("PCIe {generation}.0 x{lanes}"));
    }
    match g.card {
        Some(card) if card != g.name => words.push(format!("known as {card}")),
        Some(_) => {}
        None => words.push("not in the table".to_owned()),
    }
    words.join(", ")
}
