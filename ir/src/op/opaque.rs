use super::attrs::{Attr, AttrError, AttrReader, Attrs, require};
use super::resize::size_independent;
use super::rule::{Role, Rule, opd, res};
use super::types::{InferredTypes, TypeError, parameter};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::dims::Dim;
use crate::dtype::DType;
use crate::types::{RANK, TensorType};

/// An op of ggml without a rule: operands and result stay whole. Some executors run it by ggml's name.
///
/// Operands: any number, any type and shape; result: any type and shape, as declared. An op with a [`MemoryView`]
/// writes through it: operand 0 is the old content of the memory, and the result the new content. The op `view` reads
/// through it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Opaque {
    /// ggml's name, in lower case.
    pub name: String,
    /// The words of ggml's `op_params`.
    pub params: Vec<i32>,
    /// The position of each operand among ggml's sources; empty if operands and sources are the same.
    pub sources: Vec<u64>,
    /// The accessed elements of a memory.
    pub view: Option<MemoryView>,
}

/// Elements of a memory: bytes from `offset + Σ index·stride`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemoryView {
    /// The element type of the memory.
    pub memory: DType,
    /// The element type of the view.
    pub dtype: DType,
    /// The view's sizes.
    pub ne: [u64; RANK],
    /// Strides in bytes; along axis 0, between blocks.
    pub nb: [u64; RANK],
    /// Byte offset of the first element.
    pub offset: u64,
}

impl Opaque {
    /// Returns an op without parameters, sources or view.
    pub fn with_name(name: &str) -> Opaque {
        Opaque {
            name: name.to_owned(),
            params: Vec::new(),
            sources: Vec::new(),
            view: None,
        }
    }

    /// Returns the position of an operand among ggml's sources; without a list of sources, among the operands. If the
    /// op writes through a view, `operand` does not count operand 0, the memory.
    pub fn source(&self, operand: usize) -> usize {
        let given = self.sources.get(operand);
        given.map_or(operand, |&at| usize::try_from(at).unwrap_or(usize::MAX))
    }
}

fn sizes(all: &[u64]) -> Attr {
    Attr::List(all.iter().map(|&n| Attr::from(n)).collect())
}

fn integer(n: i32) -> Attr {
    match u64::try_from(n) {
        Ok(n) => Attr::from(n),
        Err(_) => Attr::Negative(n.into()),
    }
}

fn words(attr: Attr) -> Option<Vec<i32>> {
    let Attr::List(all) = attr else {
        return None;
    };
    let word = |a: Attr| match a {
        Attr::Dim(d) => i32::try_from(d.as_const()?).ok(),
        Attr::Negative(n) => i32::try_from(n).ok(),
        _ => None,
    };
    all.into_iter().map(word).collect()
}

fn constants(name: &'static str, attrs: &mut AttrReader) -> Result<Option<Vec<u64>>, AttrError> {
    let Some(all) = attrs.dims(name)? else {
        return Ok(None);
    };
    let constants: Option<Vec<u64>> = all.iter().map(Dim::as_const).collect();
    let expected = "a list of integers";
    constants
        .map(Some)
        .ok_or(AttrError::Kind { name, expected })
}

fn four(name: &'static str, attrs: &mut AttrReader) -> Result<[u64; RANK], AttrError> {
    let all = require(name, constants(name, attrs)?)?;
    let expected = "a list of four integers";
    all.try_into()
        .map_err(|_| AttrError::Kind { name, expected })
}

fn dtype(name: &'static str, attrs: &mut AttrReader) -> Result<Option<DType>, AttrError> {
    let Some(word) = attrs.word(name)? else {
        return Ok(None);
    };
    let expected = "an element type";
    let found = DType::from_name(&word);
    found.map(Some).ok_or(AttrError::Kind { name, expected })
}

impl OpDef for Opaque {
    const NAMES: &'static [&'static str] = &["opaque"];
    const CATEGORY: OpCategory = OpCategory::Heavy;

    fn attrs(&self) -> Attrs {
        let mut attrs = vec![("name", Attr::Str(self.name.clone()))];
        if !self.params.is_empty() {
            let all = self.params.iter().map(|&n| integer(n));
            attrs.push(("params", Attr::List(all.collect())));
        }
        if !self.sources.is_empty() {
            attrs.push(("sources", sizes(&self.sources)));
        }
        if let Some(view) = &self.view {
            let word = |t: DType| Attr::Word(t.name().to_owned());
            attrs.push(("memory", word(view.memory)));
            attrs.push(("elements", word(view.dtype)));
            attrs.push(("sizes", sizes(&view.ne)));
            attrs.push(("strides", sizes(&view.nb)));
            attrs.push(("offset", Attr::from(view.offset)));
        }
        attrs
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        let (name, expected) = ("params", "a list of 32-bit integers");
        let params = attrs.take(name).map(words);
        let params = params.map(|all| all.ok_or(AttrError::Kind { name, expected }));
        let view = match dtype("memory", attrs)? {
            Some(memory) => Some(MemoryView {
                memory,
                dtype: require("elements", dtype("elements", attrs)?)?,
                ne: four("sizes", attrs)?,
                nb: four("strides", attrs)?,
                offset: require("offset", attrs.int("offset")?)?,
            }),
            None => None,
        };
        Ok(Opaque {
            name: require("name", attrs.str("name")?)?,
            params: params.transpose()?.unwrap_or_default(),
            sources: constants("sources", attrs)?.unwrap_or_default(),
            view,
        })
    }

    fn infer(&self, _: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let ascending = self.sources.windows(2).all(|w| w[0] < w[1]);
        parameter("sources", "ascending", ascending)?;
        Ok(InferredTypes::Declared)
    }

    fn rule(&self, operands: &[&TensorType], _: &[&TensorType]) -> Rule {
        let mut rule = Rule::opaque();
        for axis in 0..RANK {
            rule = rule.role(Role::Whole, res(axis));
            for operand in 0..operands.len() {
                rule = rule.role(Role::Whole, opd(operand, axis));
            }
        }
        rule
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}
