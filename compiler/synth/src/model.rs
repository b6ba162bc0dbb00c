use std::io::{self, Write};

use tpc_ir::DType;

use super::element_types::element_type;
use super::metadata;
use super::spec::{Contents, Head, Optionals, Spec};
use super::weights::{self, Rng};
use tpc_diag::{Diagnostic, codes};
use tpc_gguf::{GgufError, GgufErrorKind, GgufWriter, Header, Metadata};
use tpc_models::{
    ArchError, Drafting, ExpectedTensor, GraphResult, LowerOptions, TensorRole, WeightForms,
};

/// A function that appends values as whole blocks of a type, or returns the reason for a failure.
pub type Quantise<'a> = dyn Fn(DType, &[f32], &mut Vec<u8>) -> Result<(), String> + 'a;

/// The maximum number of bytes of tensor data. Larger models take minutes and are probably mistakes.
pub const MAX_DATA_BYTES: u64 = 4 << 30;
/// The maximum for models whose rows repeat, which are written as fast as the disk allows.
pub const MAX_REPEATED_BYTES: u64 = 256 << 30;

/// A model built from a specification, ready to be written.
pub struct Model<'q> {
    spec: Spec,
    tensors: Vec<ExpectedTensor>,
    writer: GgufWriter,
    header: Header,
    quantise: &'q Quantise<'q>,
}

impl<'q> Model<'q> {
    /// Builds the model of a specification. `quantise` encodes the data.
    ///
    /// # Errors
    /// Returns TPC0408 if the sizes are invalid, the architecture lacks a choice, the data would exceed
    /// [`MAX_DATA_BYTES`], or `quantise` does not support a type.
    pub fn new(spec: Spec, quantise: &'q Quantise<'q>) -> Result<Model<'q>, Diagnostic> {
        let pairs = metadata::pairs(&spec);
        let metadata =
            Metadata::from_pairs(&spec.name, pairs.clone()).map_err(|e| bad_header(&e))?;
        let tensors = tensors(&spec, &metadata, spec.forms)?;
        check_choices(&spec, &metadata, &tensors)?;
        let mut writer = GgufWriter::new(&spec.name);
        for (key, value) in pairs {
            writer.meta(&key, value);
        }
        for t in &tensors {
            let axes = t.ne.iter().rposition(|&n| n != 1).map_or(1, |i| i + 1);
            let dtype = element_type(&spec, t);
            writer.tensor(&t.name, dtype, &t.ne[..axes]);
        }
        let header = writer.header().map_err(|e| bad_header(&e))?;
        let model = Model {
            spec,
            tensors,
            writer,
            header,
            quantise,
        };
        if model.spec.contents == Contents::Data {
            model.check_data()?;
        }
        Ok(model)
    }

    /// Returns the specification.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Returns the header of the file.
    pub fn header(&self) -> &Header {
        &self.header
    }

    fn check_data(&self) -> Result<(), Diagnostic> {
        let bytes = self.header.data_bytes();
        let (most, help) = match self.spec.rows {
            Some(_) => (
                MAX_REPEATED_BYTES,
                "give smaller sizes, or header=1 to write only the header",
            ),
            None => (
                MAX_DATA_BYTES,
                "give smaller sizes, rows=64 to repeat 64 random rows, or header=1 to write only the header",
            ),
        };
        if bytes > u128::from(most) {
            let message = format!("the tensor data would need {bytes} bytes; the limit is {most}");
            return Err(
                Diagnostic::new(&codes::UNKNOWN_PRESET, "specification", message).help(help),
            );
        }
        let types = self.header.tensors().iter().map(|t| t.dtype);
        let mut types: Vec<DType> = types.filter(|t| !t.is_integer()).collect();
        types.sort_unstable();
        types.dedup();
        for dtype in types {
            let block = vec![0.0; usize::try_from(dtype.block_len()).unwrap_or(1)];
            (self.quantise)(dtype, &block, &mut Vec::new()).map_err(|e| {
                Diagnostic::new(
                    &codes::UNKNOWN_PRESET,
                    "type",
                    format!("tpc cannot write {dtype}: {e}"),
                )
                .help("choose another type, or header=1 to write only the header")
            })?;
        }
        Ok(())
    }

    /// Writes the header, and the data unless the specification requests only the header.
    ///
    /// # Errors
    /// Returns TPC0402 if a write to `out` fails.
    pub fn write(&self, out: impl Write) -> Result<(), Diagnostic> {
        let mut out = io::BufWriter::new(out);
        let written = match self.spec.contents {
            Contents::Header => self.writer.write_header(&mut out),
            Contents::Data => self
                .writer
                .write(&mut out, |i, _, out| self.data(&self.tensors[i], out)),
        };
        written.map_err(|e| cannot_write(&e))?;
        out.flush().map_err(|e| write_error(e.to_string()))
    }

    fn data(&self, tensor: &ExpectedTensor, out: &mut dyn Write) -> io::Result<()> {
        let info = self.header.tensor(&tensor.name);
        let dtype = info.map_or(DType::F32, |t| t.dtype);
        let mut rng = Rng::new(self.spec.seed, &tensor.name);
        let width = usize::try_from(tensor.ne[0]).map_err(io::Error::other)?;
        let mut row = vec![0.0_f32; width];
        let mut bytes = Vec::new();
        let rows = tensor.ne[1..].iter().product::<u64>();
        let together = self.spec.rows.unwrap_or(1).min(rows);
        let mut written = 0;
        while written < rows {
            if written == 0 || self.spec.rows.is_none() {
                bytes.clear();
                for _ in 0..together {
                    weights::fill(tensor, &mut rng, &mut row);
                    self.encode(dtype, &row, &mut bytes)?;
                }
            }
            let count = together.min(rows - written);
            let part = bytes.len() / together.max(1) as usize * count as usize;
            out.write_all(&bytes[..part])?;
            written += count;
        }
        Ok(())
    }

    fn encode(&self, dtype: DType, row: &[f32], bytes: &mut Vec<u8>) -> io::Result<()> {
        match dtype {
            DType::I32 => bytes.extend(row.iter().flat_map(|&x| (x as i32).to_le_bytes())),
            _ => (self.quantise)(dtype, row, bytes).map_err(io::Error::other)?,
        }
        Ok(())
    }
}

fn tensors(
    spec: &Spec,
    metadata: &Metadata,
    forms: WeightForms,
) -> Result<Vec<ExpectedTensor>, Diagnostic> {
    let options = LowerOptions {
        cache_type_k: DType::F16,
        cache_type_v: DType::F16,
        ctx_size: 1,
        drafting: match spec.drafts {
            0 => Drafting::None,
            _ => Drafting::Mtp,
        },
        result: GraphResult::Own,
    };
    let keep = |t: &ExpectedTensor| match t.role {
        TensorRole::Output => spec.head == Head::Own,
        _ => spec.optionals == Optionals::With || is_required(spec.arch.name, &t.name),
    };
    let mut out = tpc_models::expected_tensors_in(metadata, &options, forms, keep)
        .map_err(|e| no_model(&e))?;
    for tensor in spec.arch.of_images {
        let more = of_images(&out, tensor);
        out.extend(more);
    }
    Ok(out)
}

/// Tensors that llama.cpp 0.8.0 requires, and tpc does not.
const REQUIRED: [(&str, &str); 15] = [
    ("falcon-h1", "ssm_conv1d.bias"),
    ("gemma4", "rope_freqs.weight"),
    ("granitehybrid", "ssm_conv1d.bias"),
    ("granitehybrid", "ssm_norm.weight"),
    ("mamba2", "ssm_conv1d.bias"),
    ("mamba2", "ssm_norm.weight"),
    ("nemotron_h", "ssm_conv1d.bias"),
    ("nemotron_h", "ssm_norm.weight"),
    ("nemotron_h_moe", "ssm_conv1d.bias"),
    ("nemotron_h_moe", "ssm_norm.weight"),
    ("plamo2", "attn_k_norm.weight"),
    ("plamo2", "attn_q_norm.weight"),
    ("starcoder2", "attn_output.bias"),
    ("starcoder2", "ffn_down.bias"),
    ("starcoder2", "ffn_up.bias"),
];

fn is_required(arch: &str, name: &str) -> bool {
    let own = REQUIRED.iter().filter(|(a, _)| *a == arch);
    let mut stems = own.map(|(_, stem)| *stem);
    stems.any(|stem| {
        name.strip_suffix(stem)
            .is_some_and(|head| head.is_empty() || head.ends_with('.'))
    })
}

/// Returns a layer tensor for images, such as `vis_up.weight`, of every layer. It has the sizes of the tensor for text.
fn of_images(tensors: &[ExpectedTensor], tensor: &str) -> Vec<ExpectedTensor> {
    let stem = tensor.trim_start_matches("vis_");
    let for_text = match stem.starts_with("attn_") {
        true => stem.to_owned(),
        false => format!("ffn_{stem}"),
    };
    let alike = |t: &ExpectedTensor| {
        let head = t.name.strip_suffix(&for_text)?;
        head.ends_with('.').then(|| ExpectedTensor {
            name: format!("{head}{tensor}"),
            ..t.clone()
        })
    };
    tensors.iter().filter_map(alike).collect()
}

fn check_choices(
    spec: &Spec,
    metadata: &Metadata,
    found: &[ExpectedTensor],
) -> Result<(), Diagnostic> {
    let arch = spec.arch.name;
    if spec.head == Head::Tied && found.iter().any(|t| t.role == TensorRole::Output) {
        let message = format!("tied=1, but {arch} always has an output matrix");
        return Err(Diagnostic::new(&codes::UNKNOWN_PRESET, "tied", message).help("remove it"));
    }
    let other = match spec.forms {
        WeightForms::Usual => return Ok(()),
        WeightForms::Fused => WeightForms::Separate,
        WeightForms::Separate => WeightForms::Fused,
    };
    if tensors(spec, metadata, other)? == found {
        let message = format!("fused does not apply: the weights of {arch} have only one form");
        return Err(Diagnostic::new(&codes::UNKNOWN_PRESET, "fused", message).help("remove it"));
    }
    Ok(())
}

fn no_model(e: &ArchError) -> Diagnostic {
    let message = format!("invalid sizes for this model: {e}");
    Diagnostic::new(&codes::UNKNOWN_PRESET, "specification", message).help("change the named size")
}

fn bad_header(e: &GgufError) -> Diagnostic {
    let message = format!("the sizes do not give a valid GGUF file: {e}");
    Diagnostic::new(&codes::UNKNOWN_PRESET, "specification", message).help("give smaller sizes")
}

fn write_error(reason: String) -> Diagnostic {
    Diagnostic::new(&codes::FILE_ACCESS, "output", reason)
        .help("check the free space and the permissions")
}

fn cannot_write(e: &GgufError) -> Diagnostic {
    let reason = match e.kind() {
        GgufErrorKind::Io { source, .. } => source.to_string(),
        _ => e.to_string(),
    };
    write_error(reason)
}
