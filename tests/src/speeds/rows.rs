//! Rows of published speeds, and the data to plan them.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use tpc_core::cards::{self, Card, Pcie};
use tpc_core::placement::{
    HostExperts, Placement, SplitMode, parse_cache_type, parse_devices, parse_overrides,
    parse_tensor_split,
};
use tpc_core::topology::TopologyFile;
use tpc_passes::machine::{Backend, DeviceProfile, Engine, LinkKind};

/// A row that can be planned.
#[derive(Clone, Debug)]
pub struct Row {
    /// The number in the data.
    pub id: u64,
    /// The publisher. A publisher's rows share a machine and mistakes.
    pub source: String,
    /// The engine.
    pub engine: Engine,
    /// The back end.
    pub back_end: Backend,
    /// The specification of the model's header.
    pub spec: String,
    /// The model's name.
    pub model: String,
    /// The cards.
    pub cards: Vec<&'static Card>,
    /// The split mode.
    pub mode: SplitMode,
    /// Average tokens in the cache while decoding.
    pub decode_depth: u64,
    /// Average tokens in the cache before a prompt batch.
    pub prompt_depth: u64,
    /// Tokens of a prompt batch.
    pub tokens: u64,
    /// The number of prompt batches in flight over the stages.
    pub batches: f64,
    /// True if the row does not use flash attention: stated in the row, or the engine is older than the default.
    pub unfused: bool,
    /// True for engines before 2025, which have slower kernels for quantised weights.
    pub old: bool,
    /// True for ik_llama.cpp before September 2025, which launched each op separately.
    pub early: bool,
    /// True if reductions copy between devices. llama.cpp has a reduction kernel since April 2026.
    pub copied: bool,
    /// Measured tokens per second of decoding.
    pub decode: Option<f64>,
    /// Measured prompt tokens per second.
    pub prompt: Option<f64>,
    /// The row's options.
    pub placement: Placement,
}

/// The reason for leaving out a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    /// The cards or their number are not stated.
    Card,
    /// The model's shape is not public, or tpc does not have the architecture.
    Model,
    /// The quantisation is not stated.
    Quantisation,
    /// Tensors are split by rows, or may be; tpc does not support this.
    RowSplit,
    /// Weights are on the host, but the row states neither the tensors nor the host's memory.
    Host,
}

struct Names {
    json: Json,
    /// Cards outside tpc's table, by name.
    own: BTreeMap<String, &'static Card>,
}

impl Names {
    fn spec(&self, model: &str) -> Option<&str> {
        let models = self.json["models"].as_array()?;
        let of = |m: &&Json| {
            let names = m["names"].as_array().into_iter().flatten();
            names.filter_map(Json::as_str).any(|n| model.starts_with(n))
        };
        models.iter().find(of)?["spec"].as_str()
    }

    fn card(&self, name: &str) -> Option<&'static Card> {
        if let Some(card) = self.own.get(name) {
            return Some(card);
        }
        let aliases = self.json["cards"].as_object()?;
        let alias = aliases.iter().find(|(a, _)| {
            a.as_str() == name || (a.starts_with("gfx") && name.starts_with(a.as_str()))
        });
        let name = alias.and_then(|(_, n)| n.as_str()).unwrap_or(name);
        cards::table().cards.iter().find(|c| c.name == name)
    }

    fn element_type(&self, spec: &str, quant: &str) -> Option<&str> {
        let named = self.json["types"][quant].as_str()?;
        Some(if spec.starts_with("gpt-oss") {
            "mxfp4_moe"
        } else {
            named
        })
    }

    fn host_gbs(&self, host: &str) -> Option<f64> {
        let hosts = self.json["hosts"].as_array()?;
        let says = |h: &&Json| h["says"].as_str().is_some_and(|s| host.contains(s));
        hosts.iter().find(says)?["gbs"].as_f64()
    }
}

/// Returns the rows that can be planned, and the reasons against the other rows, by number.
///
/// # Panics
/// Panics if a data file is missing or malformed.
pub fn read() -> (Vec<Row>, BTreeMap<u64, LeftOut>) {
    let json = |name: &str| -> Json {
        let path = crate::data().join("speeds").join(name);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path:?}: {e}"))
    };
    let names = names(json("names.json"));
    let (mut rows, mut left) = (Vec::new(), BTreeMap::new());
    for r in json("rows.json").as_array().into_iter().flatten() {
        match row(&names, r) {
            Ok(row) => rows.push(row),
            Err(why) => {
                left.insert(r["id"].as_u64().unwrap_or(0), why);
            }
        }
    }
    (rows, left)
}

/// Returns the names of models, cards, types and hosts, and the cards that the file describes.
fn names(json: Json) -> Names {
    let described = json["own_cards"].as_array().into_iter().flatten();
    let cards: Vec<&str> = described.filter_map(Json::as_str).collect();
    let text = format!(
        "Topology(cards: [{}], devices: [(card: \"RTX 3090\")])",
        cards.join(", ")
    );
    let file = TopologyFile::from_ron(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
    // Rows refer to cards by `'static` reference, so these few cards are leaked.
    let own = file.cards.into_iter().map(|c| {
        let card: &'static Card = Box::leak(Box::new(c));
        (card.name.clone(), card)
    });
    let own = own.collect();
    Names { json, own }
}

fn text<'a>(r: &'a Json, key: &str) -> &'a str {
    r[key].as_str().unwrap_or("")
}

fn number(r: &Json, key: &str) -> Option<u64> {
    r[key].as_u64().filter(|&n| n > 0)
}

fn row_cards(names: &Names, r: &Json) -> Option<Vec<&'static Card>> {
    if let Some(mix) = r["gpu_mix"].as_array() {
        return mix.iter().map(|n| names.card(n.as_str()?)).collect();
    }
    let card = names.card(r["gpu"].as_str()?)?;
    Some(vec![card; number(r, "gpu_count")? as usize])
}

fn row(names: &Names, r: &Json) -> Result<Row, LeftOut> {
    let cards = row_cards(names, r).ok_or(LeftOut::Card)?;
    let model = text(r, "model");
    let spec = names.spec(model).ok_or(LeftOut::Model)?;
    let element = names.element_type(spec, text(r, "quant"));
    let element = element.ok_or(LeftOut::Quantisation)?;
    let mode = match (cards.len(), text(r, "split_mode")) {
        (1, _) => SplitMode::None,
        (_, "layer") => SplitMode::Layer,
        (_, "tensor" | "graph") => SplitMode::Tensor,
        _ => return Err(LeftOut::RowSplit),
    };
    let depth = r["depth_tokens"].as_u64().unwrap_or(0);
    let prompt = number(r, "prompt_tokens").unwrap_or(512);
    let generated = number(r, "gen_tokens").unwrap_or(128);
    // Batches of up to 8 tokens belong to decoding. llama-sweep-bench measures one prompt batch per depth.
    let sweep = text(r, "method").contains("sweep-bench");
    let usual = if sweep { prompt } else { 512 };
    let ubatch = number(r, "ubatch").filter(|&n| n > 8).unwrap_or(usual);
    let tokens = prompt.min(ubatch);
    let batches = (prompt.min(2048) as f64 / tokens as f64).round().max(1.0);
    let engine = Engine::from_name(text(r, "engine")).ok_or(LeftOut::Model)?;
    let copied = match engine {
        Engine::LlamaCpp => {
            text(r, "source_date") < "2026-05" && !text(r, "note").contains("internal all-reduce")
        }
        _ => text(r, "note").contains("before the PR"),
    };
    let early = engine == Engine::IkLlamaCpp && text(r, "source_date") < "2025-09";
    let old = matches!(text(r, "source_date").get(..4), Some("2023" | "2024"));
    let mut placement = placement(names, r, &cards)?;
    placement.split_mode = mode;
    placement.engine = engine;
    placement.ubatch_size = ubatch;
    // Round up to a few cache sizes, so that rows can share plans. Only the cells of windows depend on the size.
    let cells = depth + prompt.max(generated) + 256;
    let sizes = [4096, 20_480, 81_920, 262_144];
    placement.ctx_size = Some(sizes.into_iter().find(|&n| n >= cells).unwrap_or(cells));
    Ok(Row {
        id: r["id"].as_u64().unwrap_or(0),
        source: text(r, "source").to_owned(),
        engine,
        back_end: Backend::from_name(text(r, "backend")).unwrap_or_default(),
        spec: format!("{spec},type={element},header=1"),
        model: model.to_owned(),
        cards,
        mode,
        decode_depth: depth + generated / 2,
        prompt_depth: depth + (prompt - tokens) / 2,
        tokens,
        batches,
        unfused: r["flash_attn"].as_bool().map_or(old, |on| !on),
        old,
        early,
        copied,
        decode: r["decode_tps"].as_f64(),
        prompt: r["prompt_tps"]
            .as_f64()
            .filter(|_| number(r, "prompt_tokens").is_some()),
        placement,
    })
}

/// Returns the narrowest slot in a row, for example x4 in `PCIe 4.0 x8, x4`.
fn slots(link: &str) -> Option<Pcie> {
    let r#gen = link.strip_prefix("PCIe ")?.get(..1)?.parse().ok()?;
    let widths = link.split([' ', ',']).filter_map(|w| w.strip_prefix('x'));
    let lanes = widths.filter_map(|w| w.parse().ok()).min()?;
    Some(Pcie { r#gen, lanes })
}

/// Returns the devices, their links, and the row's options.
fn placement(names: &Names, r: &Json, cards: &[&'static Card]) -> Result<Placement, LeftOut> {
    let n = cards.len();
    let mut out = Placement::on(parse_devices(&n.to_string()).expect("a count"));
    let t = &mut out.topology;
    t.devices = cards.iter().map(|c| c.profile(&c.name)).collect();
    // The measurement shows that the model fits, so the plan has no memory limit.
    t.devices.iter_mut().for_each(|d| d.memory = None);
    let peer = r["p2p"] == Json::Bool(true);
    let way = peer
        .then_some(LinkKind::PciePeer)
        .filter(|_| cards[0].fabric.is_none() || n == 2);
    let second = cards.get(1).copied().unwrap_or(cards[0]);
    t.link = cards::between_cards((cards[0], 0), (second, 1), way);
    if let Some(slot) = slots(text(r, "link")) {
        let usual = cards[0].pcie.bandwidth().min(second.pcie.bandwidth());
        t.link.bandwidth *= (slot.bandwidth() / usual).min(1.0);
    }
    t.host_link = cards::host_link(cards[0]);
    out.tensor_split = parse_tensor_split(text(r, "shares"), n).ok();
    let kv = text(r, "kv_type");
    let kv = if kv.is_empty() { "f16" } else { kv };
    out.cache_type_k = parse_cache_type("-ctk", kv)
        .or_else(|_| parse_cache_type("-ctk", "q5_1"))
        .expect("a type");
    out.cache_type_v = out.cache_type_k;
    let options: Vec<&str> = text(r, "offload")
        .split(' ')
        .filter(|s| !s.is_empty())
        .collect();
    if options.is_empty() {
        return Ok(out);
    }
    let gbs = names.host_gbs(text(r, "host")).ok_or(LeftOut::Host)?;
    out.topology.host = DeviceProfile::host(1e9 * gbs);
    let unquoted = |s: &str| s.trim_matches('"').to_owned();
    for pair in options.windows(2) {
        let value = pair[1];
        match pair[0] {
            "-ncmoe" | "--n-cpu-moe" => {
                out.host_experts = HostExperts::First(value.parse().map_err(|_| LeftOut::Host)?);
            }
            "-ngl" => out.n_gpu_layers = Some(value.parse().map_err(|_| LeftOut::Host)?),
            "-ts" => out.tensor_split = parse_tensor_split(value, n).ok(),
            "-ot" | "--override-tensor" => {
                let more = parse_overrides(&[unquoted(value)], &out.devices);
                out.overrides.extend(more.map_err(|_| LeftOut::Host)?);
            }
            "--fit-ctx" => return Err(LeftOut::Host),
            _ => {}
        }
    }
    Ok(out)
}
