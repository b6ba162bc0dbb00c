use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tpc_core::golden::Golden;
use tpc_core::pipeline::{CompiledModel, compile};
use tpc_core::placement::{Placement, SplitMode, parse_devices};
use tpc_cpu::{CpuExecutor, CpuOptions, CpuTarget};
use tpc_gguf::GgufFile;
use tpc_ir::DType;
use tpc_ir::program::{BatchShape, Company, Program, Target, verify};
use tpc_passes::assemble;
use tpc_runtime::quant::quantise;
use tpc_runtime::{Batch, ExecError, Executor, Session, SessionConfig, WeightData, WeightSource};
use tpc_synth::{Model, Spec};

pub(crate) struct FileWeights<'a>(pub(crate) &'a GgufFile);

impl WeightSource for FileWeights<'_> {
    fn weight(&self, tensor: &str) -> Result<WeightData<'_>, ExecError> {
        let info = self.0.header().tensor(tensor);
        let info = info.expect("the graph names tensors of the file");
        let bytes = self.0.tensor_data(info).expect("the file has data");
        Ok(WeightData {
            dtype: info.dtype,
            ne: info.ne,
            bytes,
        })
    }
}

/// Returns the properties of the CPU's results if products of at most `two_terms` weights have two terms.
pub(crate) fn company(two_terms: u64) -> Company {
    Company {
        two_term_weights: two_terms,
        ..CpuTarget.company()
    }
}

pub(crate) fn placement(devices: usize, cache: DType) -> Placement {
    Placement {
        cache_type_k: cache,
        cache_type_v: cache,
        ..Placement::on(parse_devices(&devices.to_string()).expect("a count"))
    }
}

pub(crate) const WAYS: [&str; 21] = [
    "",
    "-sm layer",
    "-sm auto",
    "-ngl 0",
    "-ngl 1",
    "-ngl 2",
    "-nkvo",
    "--cache-split cells",
    "-cmoe",
    "-ncmoe 1",
    "-ts 3,1,2,1",
    "-ts 1,0,2",
    "-nkvo -sm layer",
    "-nkvo -ncmoe 1 -ngl 2",
    r"-ot blk\.0\.attn.*=CPU",
    r"-ot blk\.1\..*=CPU",
    r"-ot .*ffn_down.*=CPU",
    "-ot output.*=CPU",
    "-ot token_embd=mirrored",
    r"-ot blk\.\d*[02468]\..*ffn=CPU",
    r"-ot blk\.(?!0\.).*attn_(q|k)=CPU",
];

/// Returns a placement on CPU devices. Cuts or repeats the list of shares for the number of devices.
pub(crate) fn placed(devices: usize, way: &str) -> Placement {
    let mut words = vec!["--devices".to_owned(), vec!["cpu"; devices].join(",")];
    let mut way: Vec<String> = way.split_whitespace().map(str::to_owned).collect();
    if way.first().is_some_and(|w| w == "-ts") {
        let shares: Vec<&str> = way[1].split(',').collect();
        let shares: Vec<&str> = shares.iter().copied().cycle().take(devices).collect();
        way[1] = shares.join(",");
    }
    words.extend(way);
    tpc::placement(&words, DType::F16, SplitMode::Tensor)
        .unwrap_or_else(|d| panic!("{words:?}: {}", d[0]))
}

pub(crate) fn plan(path: &Path, placement: &Placement) -> (GgufFile, CompiledModel) {
    let file = GgufFile::open(path).unwrap_or_else(|e| panic!("{e}"));
    let compiled = compile(&file, placement)
        .unwrap_or_else(|d| panic!("{}: {} {}", path.display(), d[0].code, d[0]));
    (file, compiled)
}

pub(crate) struct Assembled {
    pub(crate) file: GgufFile,
    pub(crate) config: SessionConfig,
    pub(crate) program: Arc<Program>,
    pub(crate) tokens: Vec<u32>,
}

impl Assembled {
    /// Returns the verified program for one token and for all tokens; `None` if the placement has no plan. Uses the
    /// target's weight storage.
    pub(crate) fn new(
        path: &Path,
        placement: &Placement,
        tokens: &[u32],
        target: &'static dyn Target,
    ) -> Option<Assembled> {
        let file = GgufFile::open(path).unwrap_or_else(|e| panic!("{e}"));
        let placement = Placement {
            storage: target,
            ..placement.clone()
        };
        let compiled = compile(&file, &placement).ok()?;
        let config = config(&compiled, tokens.len());
        let shapes = [shape(&config, 1), shape(&config, tokens.len())];
        let program = assemble(&compiled.programs, &shapes, target).expect("it is small");
        let name = path.display();
        verify(&program).unwrap_or_else(|e| panic!("{name}: {}: {}", e[0].code, e[0]));
        Some(Assembled {
            file,
            config,
            program: Arc::new(program),
            tokens: tokens.to_vec(),
        })
    }
}

pub(crate) fn config(compiled: &CompiledModel, n: usize) -> SessionConfig {
    let config = SessionConfig::new(n);
    match compiled.model.summary.window {
        Some(window) => config.with_window(window, n),
        None => config,
    }
    .in_units(compiled.programs.cell_unit)
}

pub(crate) fn shape(config: &SessionConfig, tokens: usize) -> BatchShape {
    config.batch_shape(tokens, tokens)
}

pub(crate) fn cpu_session(
    (file, compiled): &(GgufFile, CompiledModel),
    config: SessionConfig,
    [least, most]: [usize; 2],
    options: CpuOptions,
) -> Session<CpuExecutor> {
    let config = config.in_units(compiled.programs.cell_unit);
    let shapes = [shape(&config, least), shape(&config, most)];
    let program = assemble(&compiled.programs, &shapes, &CpuTarget).expect("it is small");
    let executor = CpuExecutor::new(Arc::new(program), &FileWeights(file), options);
    let session = executor.and_then(|e| Session::with_executor(Box::new(e), config));
    session.unwrap_or_else(|e| panic!("{}: {e}", compiled.model.graph.name))
}

pub(crate) fn whole<E: Executor>(session: &mut Session<E>, tokens: &[u32]) -> Vec<f64> {
    behind(session, tokens, 0)
}

pub(crate) fn behind<E: Executor>(
    session: &mut Session<E>,
    tokens: &[u32],
    position: usize,
) -> Vec<f64> {
    let out = session.decode(&Batch::sequence(tokens, position as u32, 0));
    let out = out.unwrap_or_else(|e| panic!("{e}"));
    out.reals().expect("logits are real").to_vec()
}

pub(crate) fn one_by_one<E: Executor>(
    session: &mut Session<E>,
    tokens: &[u32],
    position: usize,
) -> Vec<f64> {
    let each = tokens.chunks(1).zip(position..);
    each.flat_map(|(token, at)| behind(session, token, at))
        .collect()
}

pub(crate) fn golden(path: &Path) -> Golden {
    let path = path.with_extension("f32.logits");
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Golden::parse(&path.display().to_string(), &bytes).unwrap_or_else(|e| panic!("{e}"))
}

pub(crate) fn name(path: &Path) -> String {
    let stem = path.file_stem().expect("a file name");
    stem.to_string_lossy().into_owned()
}

pub(crate) struct Written(pub(crate) PathBuf);

impl Written {
    pub(crate) fn new(spec: &str) -> Written {
        Written::of(spec).unwrap_or_else(|| panic!("{spec} cannot be written"))
    }

    /// Writes the model of a specification; `None` if it is invalid.
    pub(crate) fn of(spec: &str) -> Option<Written> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("tpc-written-{}-{number}.gguf", std::process::id());
        let written = Written(std::env::temp_dir().join(name));
        let quantise = |dtype: DType, values: &[f32], out: &mut Vec<u8>| {
            quantise(dtype, values, out).map_err(|e| e.to_string())
        };
        let model = Model::new(Spec::parse(spec).ok()?, &quantise).ok()?;
        let file = std::fs::File::create(&written.0).expect("a temporary file");
        model.write(file).ok()?;
        Some(written)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
