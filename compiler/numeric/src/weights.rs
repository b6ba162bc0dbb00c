use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use tpc_ir::{DType, Graph, Op, RANK, Value};
use tpc_runtime::quant::quantise;
use tpc_runtime::{ExecError, MemoryWeights};

use tpc_synth::Rng;

/// The number of random elements per type. Tensors are assembled from blocks of these elements.
const SAMPLES: u64 = 1 << 14;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Domain {
    /// The range from −1 to 1.
    Any,
    /// The range from −1 to 0, for decays. Positive decays would let the state grow.
    Negative,
    /// The range from 1 to 2, for divisors.
    Divisor,
}

/// Returns the domains of weights, except `Any`. A missing domain makes the model's outputs infinite or NaN, which
/// [`compare`](super::compare()) refuses.
fn domains(graph: &Graph) -> BTreeMap<Value, Domain> {
    let mut out = BTreeMap::new();
    for (_, data) in graph.insts() {
        let found = match data.op {
            Op::Rope(_) => data.operands.get(2).map(|&v| (v, Domain::Divisor)),
            Op::SsmScan(_) => data.operands.get(3).map(|&v| (v, Domain::Negative)),
            _ => None,
        };
        let Some((mut v, domain)) = found else {
            continue;
        };
        while graph.def_op(v).is_layout() {
            v = graph.inst(graph.value(v).def.0).operands[0];
        }
        out.insert(v, domain);
    }
    out
}

struct Blocks {
    bytes: Vec<u8>,
    each: usize,
}

fn unit(rng: &mut Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

fn blocks(dtype: DType, domain: Domain, scale: f64) -> Result<Blocks, ExecError> {
    let mut rng = Rng::new(1, &format!("{dtype} {domain:?}"));
    let n = SAMPLES / dtype.block_len() * dtype.block_len();
    let values: Vec<f32> = (0..n)
        .map(|_| {
            let x = unit(&mut rng);
            let x = match domain {
                Domain::Any => 2.0 * x - 1.0,
                Domain::Negative => -x,
                Domain::Divisor => 1.0 + x,
            };
            (x * scale) as f32
        })
        .collect();
    let mut bytes = Vec::new();
    if dtype.is_integer() {
        // Indices 0 and 1 are valid along every indexed axis.
        let each = usize::try_from(dtype.block_bytes()).unwrap_or(1);
        for x in &values {
            bytes.push(u8::from(*x > 0.0));
            bytes.extend(std::iter::repeat_n(0, each - 1));
        }
    } else {
        quantise(dtype, &values, &mut bytes)?;
    }
    let each = usize::try_from(dtype.block_bytes()).unwrap_or(1);
    Ok(Blocks { bytes, each })
}

/// Returns random data for every weight. The same graph always gets the same data.
pub(super) fn random(graph: &Graph) -> Result<MemoryWeights, ExecError> {
    let domains = domains(graph);
    let mut made: BTreeMap<(DType, Domain, u64), Blocks> = BTreeMap::new();
    let mut out = MemoryWeights::new();
    for (_, data) in graph.insts() {
        let Op::Weight(w) = &data.op else { continue };
        let v = data.results[0];
        let ty = &graph.value(v).ty;
        let ne: [u64; RANK] = ty.dims.each_ref().map(|d| d.as_const().unwrap_or(1));
        let domain = domains.get(&v).copied().unwrap_or(Domain::Any);
        // The scale makes a product with the matrix keep the magnitude of the input.
        let matrix = ne[1] > 1 && domain == Domain::Any;
        let width = if matrix { ne[0] } else { 3 };
        let key = (ty.dtype, domain, width);
        let Blocks { bytes, each } = match made.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                new.insert(blocks(ty.dtype, domain, (3.0 / width as f64).sqrt())?)
            }
        };
        let n: u64 = ne.iter().product::<u64>() / ty.dtype.block_len();
        let n = usize::try_from(n).map_err(|_| ExecError::Size {
            what: format!("of {}", w.tensor),
        })?;
        let mut rng = Rng::new(2, &w.tensor);
        let choices = bytes.len() / *each;
        let mut all = Vec::with_capacity(n * *each);
        for _ in 0..n {
            let at = (rng.next_u64() >> 32) as usize % choices * *each;
            all.extend_from_slice(&bytes[at..at + *each]);
        }
        out.insert(w.tensor.clone(), ty.dtype, ne, all);
    }
    Ok(out)
}
