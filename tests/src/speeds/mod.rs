//! Compares published speeds with the cost model: rows, estimates, and the fit of constants.

pub mod cross;
pub mod fit;
pub mod rows;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use rows::Row;
use tpc_core::pipeline::{Origin, Outline, ways};
use tpc_core::placement::SplitMode;
use tpc_gguf::GgufFile;
use tpc_ir::DType;
use tpc_passes::machine::{EngineProfile, Topology};
use tpc_passes::plan::Bill;
use tpc_synth::{Model, Spec};

/// Bytes per attention score without flash attention: two writes and two reads in f32.
const SCORE_BYTES: f64 = 16.0;

/// A measured phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Decoding.
    Decode,
    /// The prompt.
    Prompt,
}

/// A row with its estimated costs.
#[derive(Debug)]
pub struct Case {
    /// The row.
    pub row: Row,
    decode: Rc<Bill>,
    prompt: Rc<Bill>,
}

impl Case {
    /// Returns the machine.
    pub fn topology(&self) -> &Topology {
        &self.row.placement.topology
    }

    /// Returns a phase's bill.
    pub fn bill(&self, phase: Phase) -> &Bill {
        match phase {
            Phase::Decode => &self.decode,
            Phase::Prompt => &self.prompt,
        }
    }

    /// Returns the measured tokens per second.
    pub fn measured(&self, phase: Phase) -> Option<f64> {
        match phase {
            Phase::Decode => self.row.decode,
            Phase::Prompt => self.row.prompt,
        }
    }

    /// Returns the estimated tokens per second.
    pub fn estimated(&self, phase: Phase, profile: &EngineProfile) -> f64 {
        let profile = &EngineProfile {
            score_bytes: if self.row.unfused { SCORE_BYTES } else { 0.0 },
            ..*profile
        };
        match phase {
            Phase::Decode => 1e6 / self.decode.times(self.topology(), profile).parts().total(),
            Phase::Prompt => {
                let times = self.prompt.times(self.topology(), profile);
                self.row.tokens as f64 * 1e6 / times.batch_us(self.row.batches, profile)
            }
        }
    }

    /// Computes ln(estimated / measured).
    pub fn error(&self, phase: Phase, profile: &EngineProfile) -> Option<f64> {
        Some((self.estimated(phase, profile) / self.measured(phase)?).ln())
    }

    /// True if the host computes products.
    pub fn uses_host(&self) -> bool {
        self.decode.uses_host()
    }
}

/// Returns the header of a specification. Its file is deleted once it is mapped.
///
/// # Panics
/// Panics if the specification is invalid or the file cannot be written.
pub fn header(spec: &str) -> GgufFile {
    // Tests run concurrently, so each file needs its own number.
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let quantise = |_: DType, _: &[f32], _: &mut Vec<u8>| Ok(());
    let spec = Spec::parse(spec).unwrap_or_else(|e| panic!("{spec}: {e}"));
    let model = Model::new(spec, &quantise).unwrap_or_else(|e| panic!("{e}"));
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("tpc-speeds-{}-{next}.gguf", std::process::id());
    let path = std::env::temp_dir().join(name);
    let file = std::fs::File::create(&path).expect("a temporary file");
    model.write(file).unwrap_or_else(|e| panic!("{e}"));
    let file = GgufFile::open(&path).unwrap_or_else(|e| panic!("{e}"));
    let _ = std::fs::remove_file(&path);
    file
}

/// Plans the rows. Rows that differ only in depth or card share a plan.
///
/// # Panics
/// Panics if a row cannot be planned.
pub fn cases(rows: Vec<Row>) -> Vec<Case> {
    let mut outlines: HashMap<String, Rc<Outline>> = HashMap::new();
    let mut bills: HashMap<String, Rc<Bill>> = HashMap::new();
    let mut out = Vec::new();
    for row in rows {
        let p = &row.placement;
        let alike = row.cards.iter().all(|c| c.name == row.cards[0].name);
        let bandwidths: Vec<f64> = row.cards.iter().map(|c| c.bandwidth).collect();
        let key = format!(
            "{} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {} {:?}",
            row.spec,
            row.cards.len(),
            row.mode,
            p.ctx_size,
            p.ubatch_size,
            p.cache_type_k,
            p.overrides,
            p.host_experts,
            p.n_gpu_layers,
            if alike { 0 } else { row.cards.len() },
            (
                &p.tensor_split,
                (!alike).then_some(bandwidths),
                (row.cards.len() > 1).then_some(p.topology.link),
                p.topology.host_link,
            ),
        );
        let outline = outlines.entry(key.clone()).or_insert_with(|| {
            let file = header(&row.spec);
            let prepared = Origin::File(&file).prepare(p).expect("a model");
            let way = ways(p).remove(0);
            Rc::new(prepared.outline(p, &way).expect("a plan"))
        });
        let outline = Rc::clone(outline);
        let mut bill = |tokens: u64, cells: u64| {
            let key = format!("{key} {tokens} {cells}");
            let bill = bills.entry(key);
            let bill = bill.or_insert_with(|| Rc::new(outline.bill_of_batch(tokens, cells)));
            Rc::clone(bill)
        };
        let decode = bill(1, row.decode_depth + 1);
        let prompt = bill(row.tokens, row.prompt_depth + row.tokens);
        out.push(Case {
            row,
            decode,
            prompt,
        });
    }
    out
}

/// Returns pairs of rows that differ only in the split mode: layers, and shared tensors.
pub fn pairs(cases: &[Case]) -> Vec<[&Case; 2]> {
    let same = |a: &Row, b: &Row| {
        let names = |r: &Row| r.cards.iter().map(|c| c.name.clone()).collect::<Vec<_>>();
        a.engine == b.engine
            && a.spec == b.spec
            && names(a) == names(b)
            && a.decode_depth == b.decode_depth
            && a.prompt_depth == b.prompt_depth
            && a.tokens == b.tokens
    };
    let of = |mode| cases.iter().filter(move |c| c.row.mode == mode);
    let mut out = Vec::new();
    for a in of(SplitMode::Layer) {
        out.extend(
            of(SplitMode::Tensor)
                .filter(|b| same(&a.row, &b.row))
                .map(|b| [a, b]),
        );
    }
    out
}

/// Returns a quantile of the absolute errors; 0 for an empty list.
pub fn quantile(errors: &[f64], q: f64) -> f64 {
    let mut all: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
    all.sort_by(f64::total_cmp);
    let at = (q * (all.len().max(1) - 1) as f64).round() as usize;
    all.get(at).copied().unwrap_or(0.0)
}
