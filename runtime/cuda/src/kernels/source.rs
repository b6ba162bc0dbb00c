//! CUDA source of modules: template families and instances.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt::Write;

use tpc_ir::DType;
use tpc_runtime::quant::grid;

const ELEMENTS: &str = include_str!("elements.cuh");
const BLOCKS: &str = include_str!("blocks.cuh");
const GRIDS: &str = include_str!("grids.cuh");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arguments {
    Views,
    Params,
    /// Views, parameters, and the record for indices out of range.
    Faults,
    /// Views, parameters, and this number of weights. The template waits for earlier kernels.
    Weights(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

/// A template with arguments: the source of a kernel. The name identifies the kernel.
#[derive(Clone, Debug)]
pub struct Instance {
    family: Family,
    name: String,
    dtypes: Vec<DType>,
    arguments: Arguments,
    prefetch: Prefetch,
    /// The threads per block, and the blocks per multiprocessor for which registers must suffice.
    launch_bounds: Option<(u32, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prefetch {
    None,
    /// A second template with the same arguments prefetches the first weights.
    Weights,
}

impl PartialEq for Instance {
    fn eq(&self, other: &Instance) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Instance {}

impl PartialOrd for Instance {
    fn partial_cmp(&self, other: &Instance) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Instance {
    fn cmp(&self, other: &Instance) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Instance {
    pub(super) fn new(
        family: Family,
        template: &str,
        types: &[DType],
        arguments: Arguments,
    ) -> Instance {
        let types_named: Vec<&str> = types.iter().map(|t| tag(*t)).collect();
        Instance {
            family,
            name: match types {
                [] => template.to_owned(),
                _ => format!("{template}<{}>", types_named.join(", ")),
            },
            dtypes: types.to_vec(),
            arguments,
            prefetch: Prefetch::None,
            launch_bounds: None,
        }
    }

    /// Prefetches weights before the preceding kernels end.
    pub(super) fn with_weight_prefetch(self) -> Instance {
        Instance {
            prefetch: Prefetch::Weights,
            ..self
        }
    }

    /// Limits registers so that `blocks` blocks of `threads` threads fit on a multiprocessor. Instances with the same
    /// name must have the same bounds.
    pub(super) fn with_launch_bounds(mut self, threads: u32, blocks: u32) -> Instance {
        self.launch_bounds = Some((threads, blocks));
        self
    }

    pub(super) fn with(mut self, argument: impl std::fmt::Display) -> Instance {
        let open = match self.name.pop() {
            Some('>') => format!("{}, {argument}>", self.name),
            last => format!("{}{}<{argument}>", self.name, last.unwrap_or_default()),
        };
        self.name = open;
        self
    }

    pub(super) fn restored(
        family: Family,
        name: &str,
        dtypes: Vec<DType>,
        arguments: Arguments,
    ) -> Instance {
        Instance {
            dtypes,
            ..Instance::new(family, name, &[], arguments)
        }
    }

    pub(super) fn dtypes(&self) -> &[DType] {
        &self.dtypes
    }

    pub(super) fn arguments(&self) -> Arguments {
        self.arguments
    }

    pub(super) fn prefetches(&self) -> bool {
        self.prefetch == Prefetch::Weights
    }

    pub(super) fn launch_bounds(&self) -> Option<(u32, u32)> {
        self.launch_bounds
    }

    /// True if the kernel reports indices out of range.
    pub fn reports_faults(&self) -> bool {
        self.arguments == Arguments::Faults
    }

    fn key(&self) -> (&'static str, &str) {
        (self.family.name, &self.name)
    }

    /// Returns the template with its arguments.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name of the module that contains the kernel.
    pub fn module(&self) -> &'static str {
        self.family.name
    }

    /// Returns the kernel name: template and arguments in identifier characters.
    pub fn entry(&self) -> String {
        let words = self
            .name
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let words: Vec<&str> = words.filter(|w| !w.is_empty()).collect();
        match words.as_slice() {
            // The template itself has the plain name.
            [only] => format!("{only}_plain"),
            words => words.join("_"),
        }
    }

    /// Returns a module with only this kernel.
    pub fn single_kernel_source(&self) -> Source {
        module(self.family, &[self])
    }

    fn kernel(&self) -> String {
        let given = match self.arguments {
            Arguments::Views => "views",
            Arguments::Params => "views, params",
            Arguments::Faults => "views, params, fault, launch",
            Arguments::Weights(_) => "views, params, weights",
        };
        let (weights, wait) = match self.arguments {
            Arguments::Weights(n) => (format!(", const PlaneWeights<{n}> weights"), ""),
            _ => (String::new(), "    wait_dependencies();\n"),
        };
        let prefetch = match (self.prefetch, self.name.split_once('<')) {
            (Prefetch::Weights, Some((template, rest))) => {
                format!("    if (STARTS_EARLY) {template}_prefetch<{rest}(views, params);\n")
            }
            _ => String::new(),
        };
        let kernel = match self.launch_bounds {
            Some((threads, blocks)) => format!("KERNEL_AT_ONCE({threads}, {blocks}, "),
            None => "KERNEL(".to_owned(),
        };
        // The kernel waits (`wait_dependencies`) before it accesses data of other kernels. The next kernel does the
        // same and may therefore start immediately.
        format!(
            "{kernel}{}, const View* views, const u8* params, Fault* fault, u32 launch{weights}) {{\n    \
             launch_dependents();\n{prefetch}{wait}    {}({given});\n}}\n",
            self.entry(),
            self.name
        )
    }
}

/// The source of a module, without the [prelude](super::PRELUDE).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The module name, which is the family name.
    pub name: &'static str,
    /// The templates and kernels.
    pub text: String,
    instances: Vec<Instance>,
}

impl Source {
    /// Returns the name of each kernel, with a module of only this kernel.
    pub fn kernels(&self) -> impl Iterator<Item = (String, Source)> {
        self.instances
            .iter()
            .map(|i| (i.entry(), i.single_kernel_source()))
    }
}

/// Returns one module per family, in the order of names.
pub fn modules(instances: &BTreeSet<Instance>) -> Vec<Source> {
    let all: Vec<&Instance> = instances.iter().collect();
    let alike = |a: &&Instance, b: &&Instance| a.family == b.family;
    let of = |group: &[&Instance]| module(group[0].family, group);
    all.chunk_by(alike).map(of).collect()
}

fn module(family: Family, instances: &[&Instance]) -> Source {
    let dtypes = instances.iter().flat_map(|i| i.dtypes.iter().copied());
    let mut source = tables(&dtypes.collect::<Vec<_>>());
    let own = format!("{}.cu", family.name);
    for (name, part) in [
        ("elements.cuh", ELEMENTS),
        ("blocks.cuh", BLOCKS),
        ("grids.cuh", GRIDS),
        (own.as_str(), family.text),
    ] {
        source.push_str(&format!("#line 1 \"{name}\"\n{part}\n"));
    }
    source.push_str("#line 1 \"instances\"\n");
    for instance in instances {
        source.push_str(&instance.kernel());
    }
    Source {
        name: family.name,
        text: source,
        instances: instances.iter().copied().cloned().collect(),
    }
}

fn tables(dtypes: &[DType]) -> String {
    let mut grids: Vec<(&str, &[u16])> = dtypes.iter().filter_map(|t| grid(*t)).collect();
    grids.sort_by_key(|(name, _)| *name);
    grids.dedup_by_key(|(name, _)| *name);
    let mut out = String::new();
    for (name, rows) in grids {
        let _ = write!(
            out,
            "#define NEEDS_{name}\nCONSTANT u16 {name}[{}] = {{",
            rows.len()
        );
        for (i, row) in rows.iter().enumerate() {
            let _ = write!(out, "{}{row},", if i % 16 == 0 { "\n" } else { "" });
        }
        out.push_str("\n};\n");
    }
    out
}

pub(super) const fn tag(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "F32",
        DType::F16 => "F16",
        DType::Bf16 => "Bf16",
        DType::F8E4M3 => "F8E4M3",
        DType::F64 => "F64",
        DType::I8 => "I8",
        DType::I16 => "I16",
        DType::I32 => "I32",
        DType::I64 => "I64",
        DType::Q4_0 => "Q4_0",
        DType::Q4_1 => "Q4_1",
        DType::Q5_0 => "Q5_0",
        DType::Q5_1 => "Q5_1",
        DType::Q8_0 => "Q8_0",
        DType::Q8_1 => "Q8_1",
        DType::Q2K => "Q2K",
        DType::Q3K => "Q3K",
        DType::Q4K => "Q4K",
        DType::Q5K => "Q5K",
        DType::Q6K => "Q6K",
        DType::Q8K => "Q8K",
        DType::Iq1S => "Iq1S",
        DType::Iq1M => "Iq1M",
        DType::Iq2Xxs => "Iq2Xxs",
        DType::Iq2Xs => "Iq2Xs",
        DType::Iq2S => "Iq2S",
        DType::Iq3Xxs => "Iq3Xxs",
        DType::Iq3S => "Iq3S",
        DType::Iq4Nl => "Iq4Nl",
        DType::Iq4Xs => "Iq4Xs",
        DType::Mxfp4 => "Mxfp4",
        DType::Nvfp4 => "Nvfp4",
        DType::Tq1_0 => "Tq1_0",
        DType::Tq2_0 => "Tq2_0",
        DType::Q1_0 => "Q1_0",
        DType::Q2_0 => "Q2_0",
        // The planner has already refused types of ik_llama.cpp.
        _ => "Foreign",
    }
}
