//! Replays a launch from a dump: this launch alone, on any driver.

use sha2::{Digest, Sha256};
use tpc_ir::{DType, RANK};
use tpc_runtime::quant::{can_dequantise, dequantise};

use crate::driver::{
    Args, Device, Driver, DriverError, Endpoint, GraphSpec, KernelNode, Memory, Work,
};
use crate::dump::{DumpMemory, LaunchDump, Role, TensorRecord, hex};

/// The bytes of a view: an address, four 32-bit sizes, and four 64-bit strides.
const VIEW: usize = 8 + RANK * 4 + RANK * 8;
/// The bytes of the fault record: a flag, the launch, the index and the bound.
const FAULT: usize = 24;
/// The bytes that one call writes or reads.
const PIECE: usize = 16 << 20;

/// The result of a replay that ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// The first index out of range, with its bound.
    pub fault: Option<(i64, u64)>,
    /// The results of the launch.
    pub results: Vec<ReplayedResult>,
}

/// A summary of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayedResult {
    /// The number of the tensor in the dump.
    pub tensor: usize,
    /// The SHA-256 of the bytes from the first element to the last.
    pub sha256: String,
    /// The range of the numbers; `None` for types without single elements, or if all are NaN.
    pub range: Option<(f64, f64)>,
    /// The number of NaN elements.
    pub nan: u64,
}

/// Returns the bytes of memory that a replay needs.
pub fn needed_bytes(dump: &LaunchDump) -> u64 {
    let regions = dump.header.regions.iter().map(|r| r.bytes);
    regions.fold(0, u64::saturating_add)
}

/// Runs the launch on device 0.
///
/// # Errors
///
/// Returns the driver's error: the kernel does not compile, memory is exhausted, or the launch fails.
pub fn replay(dump: &LaunchDump, driver: &mut impl Driver) -> Result<Replayed, DriverError> {
    let device = Device(0);
    let (needed, free) = (needed_bytes(dump), driver.free_memory(device)?);
    if needed > free {
        return Err(DriverError::OutOfMemory {
            place: device.to_string(),
            needed,
            free,
        });
    }
    let kernel = &dump.header.kernel;
    let module = driver.load(device, &dump.module())?;
    let function = driver.function(module, &kernel.entry)?;
    let regions = regions(dump, driver)?;
    let views = dump.header.tensors.iter();
    let views: Vec<u8> = views.flat_map(|t| view(t, &regions)).collect();
    let params = dump.params();
    let constants = [&views[..], &params, &[0; FAULT]];
    let mut at = Vec::new();
    for bytes in constants {
        let memory = driver.allocate(device, bytes.len().max(1) as u64)?;
        driver.write(start(memory), bytes)?;
        at.push(memory);
    }
    let args = at.iter().fold(Args::new(), |args, m| args.u64(m.address));
    let args = args.u32(dump.header.launch.number);
    // The reader has checked the numbers of the operands.
    let address = |operand: usize| address(&dump.header.tensors[operand], &regions);
    let weights = kernel.weights.iter();
    let weights: Vec<u8> = weights.flat_map(|w| w.bytes(address(w.operand))).collect();
    let node = KernelNode {
        function,
        grid: kernel.grid,
        block: [kernel.threads, 1, 1],
        shared_bytes: kernel.shared_bytes,
        args: match weights.is_empty() {
            true => args,
            false => args.bytes(&weights),
        },
    };
    let mut spec = GraphSpec::default();
    spec.push(dump.header.launch.to_string(), Work::Kernel(node), &[]);
    let graph = driver.instantiate(spec)?;
    driver.launch(graph)?;
    driver.synchronize()?;
    let mut record = [0; FAULT];
    driver.read(start(at[2]), &mut record)?;
    let mut results = Vec::new();
    for (i, tensor) in dump.header.tensors.iter().enumerate() {
        if let (Role::Result, Some(region)) = (tensor.role, tensor.region) {
            let mut from = start(regions[region as usize]);
            from.address += tensor.offset;
            results.push(summary((i, tensor), from, driver)?);
        }
    }
    Ok(Replayed {
        fault: index_fault(&record),
        results,
    })
}

fn start(memory: Memory) -> Endpoint {
    Endpoint {
        side: memory.side,
        address: memory.address,
    }
}

fn index_fault(record: &[u8; FAULT]) -> Option<(i64, u64)> {
    let (words, _) = record.as_chunks::<8>();
    let [head, index, bound] = [0, 1, 2].map(|i| u64::from_ne_bytes(words[i]));
    (head as u32 != 0).then_some((index.cast_signed(), bound))
}

/// Allocates the regions, and writes their saved bytes and zeros.
fn regions(dump: &LaunchDump, driver: &mut impl Driver) -> Result<Vec<Memory>, DriverError> {
    let mut out = Vec::new();
    for (i, region) in dump.header.regions.iter().enumerate() {
        let bytes = region.bytes.max(1);
        let memory = match region.memory {
            DumpMemory::Host => driver.allocate_host(bytes)?,
            DumpMemory::Device | DumpMemory::Peer => driver.allocate(Device(0), bytes)?,
        };
        let mut to = start(memory);
        for piece in dump.saved(i).chunks(PIECE) {
            driver.write(to, piece)?;
            to.address += piece.len() as u64;
        }
        let mut left = region.bytes - region.saved;
        let zeros = vec![0; left.min(PIECE as u64) as usize];
        while left > 0 {
            let n = left.min(PIECE as u64);
            driver.write(to, &zeros[..n as usize])?;
            to.address += n;
            left -= n;
        }
        out.push(memory);
    }
    Ok(out)
}

fn address(tensor: &TensorRecord, regions: &[Memory]) -> u64 {
    let region = tensor.region.map(|r| regions[r as usize].address);
    region.map_or(0, |address| address + tensor.offset)
}

fn view(tensor: &TensorRecord, regions: &[Memory]) -> Vec<u8> {
    let address = address(tensor, regions);
    let mut out = Vec::with_capacity(VIEW);
    out.extend(address.to_ne_bytes());
    // The reader has checked that the sizes have 32 bits.
    out.extend(tensor.dims.iter().flat_map(|n| (*n as u32).to_ne_bytes()));
    out.extend(tensor.strides.iter().flat_map(|b| b.to_ne_bytes()));
    out
}

fn summary(
    (number, tensor): (usize, &TensorRecord),
    from: Endpoint,
    driver: &mut impl Driver,
) -> Result<ReplayedResult, DriverError> {
    let mut out = ReplayedResult {
        tensor: number,
        sha256: String::new(),
        range: None,
        nan: 0,
    };
    let mut hash = Sha256::new();
    let dtype = DType::from_name(&tensor.dtype).filter(|_| is_dense(tensor));
    let block = dtype.map_or(1, DType::block_bytes).max(1);
    let piece = PIECE as u64 / block * block;
    let mut at = 0;
    while at < tensor.bytes {
        let n = (tensor.bytes - at).min(piece);
        let mut bytes = vec![0; n as usize];
        let address = from.address + at;
        driver.read(Endpoint { address, ..from }, &mut bytes)?;
        hash.update(&bytes);
        if let Some(dtype) = dtype {
            numbers(dtype, &bytes, &mut |x| out.add(x));
        }
        at += n;
    }
    out.sha256 = hex(&hash.finalize());
    Ok(out)
}

impl ReplayedResult {
    fn add(&mut self, x: f64) {
        if x.is_nan() {
            self.nan += 1;
            return;
        }
        let (low, high) = self.range.unwrap_or((x, x));
        self.range = Some((low.min(x), high.max(x)));
    }
}

/// True if the bytes of a tensor are its elements without gaps, as in a file.
fn is_dense(tensor: &TensorRecord) -> bool {
    let bytes = DType::from_name(&tensor.dtype).and_then(|dtype| dtype.tensor_bytes(&tensor.dims));
    tensor.storage == "file" && bytes == Some(tensor.bytes)
}

/// Calls `add` with each element of whole blocks.
fn numbers(dtype: DType, bytes: &[u8], add: &mut dyn FnMut(f64)) {
    if !can_dequantise(dtype) {
        return;
    }
    let elements = bytes.len() as u64 / dtype.block_bytes().max(1) * dtype.block_len();
    let mut out = vec![0.0; elements as usize];
    if dequantise(dtype, bytes, &mut out).is_ok() {
        out.iter().for_each(|x| add(f64::from(*x)));
    }
}
