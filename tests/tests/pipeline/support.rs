use std::path::Path;

use tpc_core::golden::Golden;
use tpc_core::pipeline::{CompiledModel, compile};
use tpc_core::placement::{Placement, parse_devices};
use tpc_diag::Diagnostic;
use tpc_gguf::GgufFile;
use tpc_ir::stage::{Executable, Stage};
use tpc_ir::{DType, Graph, Verified, stage};
use tpc_passes::plan::PlanRequest;
use tpc_passes::rewrite::{Limits, Machine, RULES, RewrittenGraph, rewrite};
use tpc_runtime::{Batch, ExecError, Session, SessionConfig, WeightData, WeightSource};

pub(crate) struct FileWeights<'a>(pub(crate) &'a GgufFile);

impl WeightSource for FileWeights<'_> {
    fn weight(&self, tensor: &str) -> Result<WeightData<'_>, ExecError> {
        let info = self
            .0
            .header()
            .tensor(tensor)
            .expect("the graph names tensors of the file");
        let bytes = self.0.tensor_data(info).expect("the file has data");
        Ok(WeightData {
            dtype: info.dtype,
            ne: info.ne,
            bytes,
        })
    }
}

/// Returns a placement on `devices` devices, with f32 caches.
pub(crate) fn placement(devices: usize) -> Placement {
    Placement {
        cache_type_k: DType::F32,
        cache_type_v: DType::F32,
        ..Placement::on(parse_devices(&devices.to_string()).expect("a count"))
    }
}

/// Opens and plans a model; `None` for unsupported architectures.
pub(crate) fn plan(path: &Path, placement: &Placement) -> Option<(GgufFile, CompiledModel)> {
    let file = GgufFile::open(path).unwrap_or_else(|e| panic!("{e}"));
    match compiled(&file, placement) {
        Ok(compiled) => Some((file, compiled)),
        Err(d) if d[0].code == "TPC0150" => None,
        Err(d) => panic!("{}: {} {}", path.display(), d[0].code, d[0]),
    }
}

pub(crate) fn compiled(
    file: &GgufFile,
    placement: &Placement,
) -> Result<CompiledModel, Vec<Diagnostic>> {
    let compiled = compile(file, placement)?;
    if let Err(r) = &compiled.proof {
        panic!(
            "{} with {placement:?}: not proved: {r}",
            compiled.model.summary.name
        );
    }
    Ok(compiled)
}

pub(crate) fn run<S: Executable>(
    graph: &Verified<S>,
    file: &GgufFile,
    compiled: &CompiledModel,
    tokens: &[u32],
) -> Vec<f64> {
    let mut config = SessionConfig::new(tokens.len());
    if let Some(window) = compiled.model.summary.window {
        config = config.with_window(window, tokens.len());
    }
    let mut session =
        Session::new(graph, &FileWeights(file), config).unwrap_or_else(|e| panic!("{e}"));
    let out = session
        .decode(&Batch::sequence(tokens, 0, 0))
        .unwrap_or_else(|e| panic!("{e}"));
    out.reals().expect("logits are real").to_vec()
}

pub(crate) fn golden(path: &Path) -> Golden {
    let path = path.with_extension("f32.logits");
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Golden::parse(&path.display().to_string(), &bytes).unwrap_or_else(|e| panic!("{e}"))
}

pub(crate) fn verified<S: Stage>(graph: Graph) -> Verified<S> {
    Verified::new(graph).unwrap_or_else(|v| panic!("{v}\n{}", v.graph))
}

pub(crate) fn rewritten(
    sharded: &Verified<stage::Sharded>,
    request: &PlanRequest,
) -> RewrittenGraph {
    let machine = Machine {
        topology: &request.topology,
        workload: &request.workload,
    };
    rewrite(sharded, machine, Limits::default(), RULES)
}

pub(crate) fn round_trip(graph: &Graph) {
    let text = graph.to_string();
    let parsed = tpc_ir::text::parse(&text).unwrap_or_else(|e| panic!("{}\n{text}", e[0]));
    assert!(
        parsed.graph == *graph,
        "parsing what was printed gives another graph"
    );
    assert_eq!(parsed.graph.to_string(), text);
}

pub(super) fn proved(
    model: &Verified<stage::Model>,
    programs: &Verified<stage::Programs>,
) -> Result<(), String> {
    let proof = tpc_passes::prove::prove(model, programs);
    proof.map(drop).map_err(|r| format!("not proved: {r}"))
}
