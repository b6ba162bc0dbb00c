//! `tpc synth`: writes models with random weights, and headers of any size.

use std::fs::File;
use std::path::PathBuf;

use tpc_ir::DType;
use tpc_runtime::quant;

use super::output::Failure;
use tpc_diag::Diagnostic;
use tpc_synth::{Model, Spec};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A preset such as `llama-tiny`, or sizes such as `llama:layers=4,embd=512,heads=8,kv_heads=2,ff=1024,type=q4_k`.
    ///
    /// Keys: layers drafts embd heads kv_heads head_dim ff experts experts_used vocab ctx window seed type biases tied
    /// fused header, and any metadata key of the architecture: `llama.rope.freq_base=500000.0`. `heads`, `kv_heads` and
    /// `ff` take one number, or one per layer: 4/2/4. `type` is a GGUF type, `mixed` (as Q4_K_M) or `mxfp4_moe`;
    /// `header=1` omits tensor data. A preset takes changes: `llama-8b:layers=4`. Other sizes are small.
    #[arg(value_name = "PRESET|SPEC")]
    spec: String,
    /// File to write.
    #[arg(short, long, value_name = "OUT.gguf")]
    output: PathBuf,
}

fn quantise(dtype: DType, values: &[f32], out: &mut Vec<u8>) -> Result<(), String> {
    quant::quantise(dtype, values, out).map_err(|e| e.to_string())
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let spec = Spec::parse(&args.spec).map_err(Failure::usage)?;
    let model = Model::new(spec, &quantise).map_err(Failure::usage)?;
    let path = args.output.display().to_string();
    let file = File::create(&args.output).map_err(|e| Failure::file(&args.output, &e))?;
    let named = |d: Diagnostic| Diagnostic {
        entity: path.into(),
        ..d
    };
    model.write(file).map_err(|d| Failure::usage(named(d)))
}
