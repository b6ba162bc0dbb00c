//! Element types that only `ik_llama.cpp` supports.

use std::collections::BTreeSet;

use tpc_diag::{Diagnostic, codes};
use tpc_gguf::Header;
use tpc_ir::{DType, Graph, Op};

/// Tensors with types of `ik_llama.cpp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignTypes {
    /// Name of the first tensor.
    pub first: String,
    /// The type of `first`.
    pub first_type: DType,
    /// Number of tensors.
    pub count: usize,
    /// Types of the tensors.
    pub types: BTreeSet<DType>,
}

impl ForeignTypes {
    fn of<'a>(tensors: impl Iterator<Item = (&'a str, DType)>) -> Option<ForeignTypes> {
        let mut found = tensors.filter(|(_, dtype)| dtype.is_ik());
        let (first, first_type) = found.next()?;
        let mut out = ForeignTypes {
            first: first.to_owned(),
            first_type,
            count: 1,
            types: BTreeSet::from([first_type]),
        };
        for (_, dtype) in found {
            out.count += 1;
            out.types.insert(dtype);
        }
        Some(out)
    }

    /// Collects the weights with these types; `None` without such tensors.
    pub fn of_graph(graph: &Graph) -> Option<ForeignTypes> {
        ForeignTypes::of(graph.insts().filter_map(|(_, data)| match &data.op {
            Op::Weight(w) => {
                let value = data.results.first()?;
                Some((w.tensor.as_str(), graph.value(*value).ty.dtype))
            }
            _ => None,
        }))
    }

    /// Collects the tensors with these types; `None` without such tensors.
    pub fn of_file(header: &Header) -> Option<ForeignTypes> {
        let tensors = header.tensors().iter();
        ForeignTypes::of(tensors.map(|t| (t.name.as_str(), t.dtype)))
    }

    /// Joins the type names: `iq3_k, iq4_k`.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.types.iter().map(|t| t.name()).collect();
        names.join(", ")
    }

    /// Formats the number of tensors: `1 tensor`, `56 tensors`.
    pub fn tensors(&self) -> String {
        match self.count {
            1 => "1 tensor".to_owned(),
            n => format!("{n} tensors"),
        }
    }

    /// Returns the diagnostic that refuses the file.
    pub fn refusal(&self) -> Diagnostic {
        let ForeignTypes {
            first,
            first_type,
            count,
            ..
        } = self;
        let others = match count - 1 {
            0 => String::new(),
            1 => "; 1 other tensor has a type of ik_llama.cpp, too".to_owned(),
            n => format!("; {n} other tensors have types of ik_llama.cpp, too"),
        };
        let message = format!(
            "tpc does not run {first}: its type {first_type} is a type of ik_llama.cpp{others}"
        );
        Diagnostic::new(&codes::FOREIGN_TYPE, first.as_str(), message).help(
            "`tpc plan --engine ik_llama.cpp` prints the command for ik_llama.cpp; for tpc, use a file of another \
             type, such as q4_k",
        )
    }
}
