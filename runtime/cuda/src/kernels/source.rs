//! The sources of modules: a family of kernels, and the instance that a launch needs.

use std::fmt::Write;
use std::sync::Arc;

use tpc_ir::DType;
use tpc_runtime::quant::grid;

const ELEMENTS: &str = include_str!("elements.cuh");
const BLOCKS: &str = include_str!("blocks.cuh");
const GRIDS: &str = include_str!("grids.cuh");

/// The name of the kernel of a module.
pub const ENTRY: &str = "entry";

/// What a template is given besides the views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    Views,
    /// Its parameters, too.
    Params,
    /// And where it tells of indices out of range.
    Faults,
}

/// A template with its arguments.
#[derive(Clone, Debug)]
pub(super) struct Instance<'a> {
    family: &'static str,
    template: &'a str,
    arguments: Vec<String>,
    dtypes: Vec<DType>,
    needs: Needs,
}

impl<'a> Instance<'a> {
    pub(super) fn new(
        family: &'static str,
        template: &'a str,
        types: &[DType],
        needs: Needs,
    ) -> Instance<'a> {
        Instance {
            family,
            template,
            arguments: types.iter().map(|t| tag(*t).to_owned()).collect(),
            dtypes: types.to_vec(),
            needs,
        }
    }

    /// With a further argument behind the types.
    pub(super) fn with(mut self, argument: impl Into<String>) -> Instance<'a> {
        self.arguments.push(argument.into());
        self
    }

    /// The template with its arguments.
    pub(super) fn name(&self) -> String {
        match self.arguments.as_slice() {
            [] => self.template.to_owned(),
            arguments => format!("{}<{}>", self.template, arguments.join(", ")),
        }
    }

    /// The source of a module that holds it.
    pub(super) fn source(&self) -> Arc<str> {
        let mut source = tables(&self.dtypes);
        for part in [ELEMENTS, BLOCKS, GRIDS, self.family] {
            source.push_str(part);
            source.push('\n');
        }
        let given = match self.needs {
            Needs::Views => "views",
            Needs::Params => "views, params",
            Needs::Faults => "views, params, fault, launch",
        };
        let template = self.name();
        source.push_str(&format!(
            "KERNEL({ENTRY}, const View* views, const u8* params, Fault* fault, u32 launch) {{\n    {template}({given});\n}}\n"
        ));
        source.into()
    }
}

/// The tables that formats among these need.
fn tables(dtypes: &[DType]) -> String {
    let mut grids: Vec<(&str, &[u16])> = dtypes.iter().filter_map(|t| grid(*t)).collect();
    grids.sort_by_key(|(name, _)| *name);
    grids.dedup_by_key(|(name, _)| *name);
    let mut out = String::new();
    for (name, rows) in grids {
        // Writing to a string does not fail.
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

/// The name of an element type in kernels.
pub(super) const fn tag(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "F32",
        DType::F16 => "F16",
        DType::Bf16 => "Bf16",
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
    }
}
