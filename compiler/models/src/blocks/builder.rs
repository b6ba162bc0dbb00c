//! The graph builder: names instructions, infers their types, loads each weight once.

use std::collections::BTreeMap;

use tpc_gguf::TensorName;
use tpc_ir::op::{
    Binary, BinaryKind, Hadamard, InferredTypes, Input, InputKind, MulMat, Permute, Reshape, Scale,
    Slice, State, Unary, UnaryKind, Weight,
};
use tpc_ir::{DType, Dim, Graph, Op, Output, Place, RANK, Symbol, TensorType, Value};

use super::kept_stream::KeptStream;
use crate::description::Presence;
use crate::error::ArchError;
use crate::hparams::LayerHParams;
use crate::size::Size;
use crate::source::{ExpectedTensor, Form, Request, TensorRole, TensorSource};

#[derive(Clone)]
pub(crate) struct SourceTensor {
    name: String,
    ne: [u64; 4],
    dtype: DType,
}

#[derive(Clone, Copy)]
enum Owner {
    Layer,
    Model,
}

impl Owner {
    fn new(tensor: &str) -> Owner {
        match TensorName::parse(tensor).block() {
            Some(_) => Owner::Layer,
            None => Owner::Model,
        }
    }
}

/// A graph under construction. All values are on the host; the planner places them.
pub(crate) struct Builder<'a> {
    graph: Graph,
    tokens: Dim,
    source: &'a mut dyn TensorSource,
    layer: Option<u32>,
    names: Option<u32>,
    answers: BTreeMap<String, Option<SourceTensor>>,
    weights: BTreeMap<String, Value>,
    inputs: Vec<(InputKind, Value)>,
    hadamards: BTreeMap<u64, Value>,
    caches: BTreeMap<u32, [Value; 2]>,
    selection: Option<Value>,
    first_values: Option<Value>,
    kept: Vec<KeptStream>,
    layer_inputs: Vec<Value>,
    adapters: Option<Value>,
    states: Vec<Output>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(name: &str, tokens: Dim, source: &'a mut dyn TensorSource) -> Builder<'a> {
        Builder {
            graph: Graph::new(name),
            tokens,
            source,
            layer: None,
            names: None,
            answers: BTreeMap::new(),
            weights: BTreeMap::new(),
            inputs: Vec::new(),
            hadamards: BTreeMap::new(),
            caches: BTreeMap::new(),
            selection: None,
            first_values: None,
            kept: Vec::new(),
            layer_inputs: Vec::new(),
            adapters: None,
            states: Vec::new(),
        }
    }

    /// Assigns the following instructions and tensor names to a layer, or to the model if `layer` is `None`.
    pub(crate) fn enter(&mut self, layer: Option<&LayerHParams>) {
        self.layer = layer.map(|l| l.index);
        self.names = layer.map(|l| l.block);
    }

    /// Runs `build` with the model's tensor names instead of the layer's.
    pub(crate) fn with_model_tensors<T>(&mut self, build: impl FnOnce(&mut Self) -> T) -> T {
        let names = self.names.take();
        let result = build(self);
        self.names = names;
        result
    }

    pub(crate) fn output(&mut self, name: impl Into<String>, value: Value) {
        let output = Output::Named(name.into(), value);
        self.graph.outputs.push(output);
    }

    /// Returns the graph, with its outputs and updated states.
    pub(crate) fn finish(mut self) -> Graph {
        self.graph.outputs.append(&mut self.states);
        self.graph
    }

    pub(crate) fn n_tokens(&self) -> Dim {
        self.tokens.clone()
    }

    /// Returns a tensor's name: `blk.3.attn_q.weight` in layer 3, `output.weight` outside layers.
    pub(crate) fn tensor_name(&self, tensor: &str, part: &str) -> String {
        match self.names {
            Some(il) => format!("blk.{il}.{tensor}.{part}"),
            None => format!("{tensor}.{part}"),
        }
    }

    /// Returns a tensor's name without `weight` or `bias`: `blk.3.ssm_a`.
    pub(crate) fn bare_name(&self, tensor: &str) -> String {
        match self.names {
            Some(il) => format!("blk.{il}.{tensor}"),
            None => tensor.to_owned(),
        }
    }

    /// Marks a tensor as known but unused.
    pub(crate) fn ignore(&mut self, name: &str) {
        self.source.ignore(name);
    }

    pub(crate) fn columns(&self, name: &str) -> Option<u64> {
        self.source.columns(name)
    }

    /// True if blocks should request this tensor, which belongs to `form`.
    pub(crate) fn offers(&self, name: &str, form: Form) -> bool {
        self.source.offers(name, form)
    }

    /// Requests a tensor without loading it; `None` if the source lacks it.
    pub(crate) fn find(
        &mut self,
        name: &str,
        sizes: &[Size],
        role: TensorRole,
        presence: Presence,
    ) -> Result<Option<SourceTensor>, ArchError> {
        if presence == Presence::Absent {
            return Ok(None);
        }
        if let Some(known) = self.answers.get(name) {
            return Ok(known.clone());
        }
        let mut ne = [1; 4];
        for (n, size) in ne.iter_mut().zip(sizes) {
            *n = size.n;
        }
        let tensor = ExpectedTensor {
            name: name.to_owned(),
            ne,
            role,
            presence,
        };
        let dtype = self.source.find(Request { tensor, sizes })?;
        let found = dtype.map(|dtype| SourceTensor {
            name: name.to_owned(),
            ne,
            dtype,
        });
        self.answers.insert(name.to_owned(), found.clone());
        Ok(found)
    }

    pub(crate) fn load(&mut self, tensor: &SourceTensor) -> Value {
        if let Some(&value) = self.weights.get(&tensor.name) {
            return value;
        }
        let op = Weight {
            tensor: tensor.name.clone(),
            parts: None,
        };
        let ty = TensorType::new(tensor.dtype, tensor.ne.map(Dim::constant));
        let value = self.leaf_of(Owner::new(&tensor.name), op, ty, &tensor.name);
        self.weights.insert(tensor.name.clone(), value);
        value
    }

    pub(crate) fn optional(
        &mut self,
        name: &str,
        sizes: &[Size],
        role: TensorRole,
        presence: Presence,
    ) -> Result<Option<Value>, ArchError> {
        let found = self.find(name, sizes, role, presence)?;
        Ok(found.map(|found| self.load(&found)))
    }

    pub(crate) fn require(
        &mut self,
        name: &str,
        sizes: &[Size],
        role: TensorRole,
    ) -> Result<Value, ArchError> {
        let found = self
            .find(name, sizes, role, Presence::Required)?
            .expect("invariant: a source has a required tensor, or fails");
        Ok(self.load(&found))
    }

    /// Returns an input. Equal kinds share one value.
    pub(crate) fn input(&mut self, kind: InputKind) -> Value {
        if let Some(&(_, value)) = self.inputs.iter().find(|(k, _)| *k == kind) {
            return value;
        }
        let n_tokens = || self.n_tokens();
        let (name, dtype, dims) = match &kind {
            InputKind::Tokens => ("inp_tokens", DType::I32, [n_tokens(), Dim::ONE]),
            InputKind::NextTokens(draft) => {
                let ty = TensorType::new(DType::I32, [n_tokens()]);
                let name = format!("inp_next_tokens_{draft}");
                return self.new_input(kind, ty, &name);
            }
            InputKind::Positions => ("inp_pos", DType::I32, [n_tokens(), Dim::ONE]),
            InputKind::PositionsMrope => {
                let four = Dim::constant(4).checked_mul(&n_tokens());
                let n = four.expect("invariant: four times a symbol does not overflow");
                ("inp_pos", DType::I32, [n, Dim::ONE])
            }
            InputKind::CacheRows => ("cache_rows", DType::I64, [n_tokens(), Dim::ONE]),
            InputKind::CacheRowsSwa => ("cache_rows_swa", DType::I64, [n_tokens(), Dim::ONE]),
            InputKind::Mask => ("mask", DType::F32, [Symbol::NKv.into(), n_tokens()]),
            InputKind::MaskSwa => ("mask_swa", DType::F32, [Symbol::NKvSwa.into(), n_tokens()]),
            InputKind::MaskBatch => ("mask_batch", DType::F32, [n_tokens(), n_tokens()]),
            InputKind::MaskBatchNear(_) => {
                ("mask_batch_near", DType::F32, [n_tokens(), n_tokens()])
            }
            InputKind::OutputRows => ("out_ids", DType::I32, [Symbol::NOutputs.into(), Dim::ONE]),
            InputKind::StateCells => ("state_cells", DType::I32, [Symbol::NSeqs.into(), Dim::ONE]),
            InputKind::StateKept => ("state_kept", DType::F32, [Dim::ONE, Symbol::NSeqs.into()]),
            InputKind::Temperature(_) => {
                let ty = TensorType::new(DType::F32, [Dim::ONE, Dim::ONE, self.n_tokens()]);
                return self.new_input(kind, ty, "temperature");
            }
            InputKind::Block(input) => {
                let name = input.part.name();
                let ty = input.ty(&self.tokens);
                let ty = ty.expect("invariant: a batch has one or two symbols");
                return self.new_input(kind, ty, name);
            }
            InputKind::Other(name) => (name.as_str(), DType::F32, [n_tokens(), Dim::ONE]),
        };
        let name = name.to_owned();
        self.new_input(kind, TensorType::new(dtype, dims), &name)
    }

    fn new_input(&mut self, kind: InputKind, ty: TensorType, name: &str) -> Value {
        let op = Input { kind: kind.clone() };
        let value = self.leaf_of(Owner::Model, op, ty, name);
        self.inputs.push((kind, value));
        value
    }

    /// Returns the Walsh–Hadamard matrix of order `n`. Equal orders share one value.
    pub(crate) fn hadamard(&mut self, n: u64) -> Value {
        if let Some(&value) = self.hadamards.get(&n) {
            return value;
        }
        let ty = TensorType::new(DType::F32, [n, n].map(Dim::constant));
        let name = format!("hadamard_{n}");
        let value = self.leaf_of(Owner::Model, Hadamard { n }, ty, &name);
        self.hadamards.insert(n, value);
        value
    }

    pub(crate) fn dims(&self, value: Value) -> &[Dim; RANK] {
        &self.graph.value(value).ty.dims
    }

    /// Records a layer's cached keys and values for layers that share them.
    pub(crate) fn note_caches(&mut self, layer: u32, caches: [Value; 2]) {
        self.caches.insert(layer, caches);
    }

    /// Returns the cached keys and values that `layer` shares.
    pub(crate) fn caches_of(&self, layer: &LayerHParams) -> [Value; 2] {
        let caches = layer.kv_from.and_then(|from| self.caches.get(&from));
        *caches.expect("invariant: layers share caches of earlier layers that have their own")
    }

    /// Records the mask of an indexer's cells for layers without an indexer.
    pub(crate) fn note_selection(&mut self, mask: Value) {
        self.selection = Some(mask);
    }

    pub(crate) fn selection(&self) -> Option<Value> {
        self.selection
    }

    /// Records the first layer's values for later layers.
    pub(crate) fn note_first_values(&mut self, values: Value) {
        self.first_values = Some(values);
    }

    pub(crate) fn first_values(&self) -> Option<Value> {
        self.first_values
    }

    /// Records a residual stream for later layers.
    pub(crate) fn keep(&mut self, kept: KeptStream) {
        self.kept.push(kept);
    }

    pub(crate) fn kept_streams(&self) -> &[KeptStream] {
        &self.kept
    }

    /// Records the tokens' adapters.
    pub(crate) fn note_adapters(&mut self, ids: Value) {
        self.adapters = Some(ids);
    }

    pub(crate) fn adapters(&self) -> Option<Value> {
        self.adapters
    }

    /// Records the next layer's input.
    pub(crate) fn note_input(&mut self, x: Value) {
        self.layer_inputs.push(x);
    }

    /// Returns the recorded input of a layer.
    pub(crate) fn input_of(&self, layer: u32) -> Value {
        let input = self.layer_inputs.get(layer as usize);
        *input.expect("invariant: a layer mixes inputs of layers up to itself")
    }

    pub(crate) fn state(&mut self, name: &str, ty: TensorType) -> Value {
        let op = State::named(name);
        self.leaf_of(Owner::Layer, op, ty, name)
    }

    pub(crate) fn update(&mut self, state: Value, value: Value) {
        self.states.push(Output::State { state, value });
    }

    fn leaf_of(&mut self, owner: Owner, op: impl Into<Op>, ty: TensorType, name: &str) -> Value {
        let layer = match owner {
            Owner::Layer => self.layer,
            Owner::Model => None,
        };
        let inst = self
            .graph
            .push(op, Vec::new(), vec![ty], Place::Host, layer);
        let value = self.graph.inst(inst).results[0];
        self.graph.value_mut(value).name = name.to_owned();
        value
    }

    /// Appends an instruction with one result. Its name is `name` and the layer's number.
    pub(crate) fn push(
        &mut self,
        op: impl Into<Op>,
        operands: Vec<Value>,
        name: &str,
    ) -> Result<Value, ArchError> {
        let [value] = self.push_named(op.into(), operands, [name])?;
        Ok(value)
    }

    pub(crate) fn push_pair(
        &mut self,
        op: impl Into<Op>,
        operands: Vec<Value>,
        names: [&str; 2],
    ) -> Result<[Value; 2], ArchError> {
        self.push_named(op.into(), operands, names)
    }

    fn push_named<const N: usize>(
        &mut self,
        op: Op,
        operands: Vec<Value>,
        names: [&str; N],
    ) -> Result<[Value; N], ArchError> {
        let types: Vec<&TensorType> = operands.iter().map(|&v| &self.graph.value(v).ty).collect();
        let inferred = op.infer(&types).map_err(|source| ArchError::Inconsistent {
            model: self.graph.name.clone(),
            op: op.name(),
            operands: types.iter().map(|&t| t.clone()).collect(),
            source: Box::new(source),
        })?;
        let types = match inferred {
            InferredTypes::Types(types) => types,
            InferredTypes::Declared => Vec::new(),
        };
        let inst = self
            .graph
            .push(op, operands, types, Place::Host, self.layer);
        let results = &self.graph.inst(inst).results;
        let values: [Value; N] = std::array::from_fn(|i| results[i]);
        for (value, name) in values.into_iter().zip(names) {
            self.graph.value_mut(value).name = match self.layer {
                Some(il) => format!("{name}-{il}"),
                None => name.to_owned(),
            };
        }
        Ok(values)
    }

    pub(crate) fn mul_mat(&mut self, w: Value, x: Value, name: &str) -> Result<Value, ArchError> {
        self.push(MulMat, vec![w, x], name)
    }

    pub(crate) fn add(&mut self, a: Value, b: Value, name: &str) -> Result<Value, ArchError> {
        let kind = BinaryKind::Add;
        self.push(Binary { kind }, vec![a, b], name)
    }

    pub(crate) fn mul(&mut self, a: Value, b: Value, name: &str) -> Result<Value, ArchError> {
        let kind = BinaryKind::Mul;
        self.push(Binary { kind }, vec![a, b], name)
    }

    pub(crate) fn unary(
        &mut self,
        kinds: &[UnaryKind],
        mut x: Value,
        name: &str,
    ) -> Result<Value, ArchError> {
        for &kind in kinds {
            x = self.push(Unary { kind }, vec![x], name)?;
        }
        Ok(x)
    }

    pub(crate) fn scale(&mut self, x: Value, scale: f32, name: &str) -> Result<Value, ArchError> {
        self.push(Scale { scale, bias: 0.0 }, vec![x], name)
    }

    /// Appends `scale · x + bias`.
    pub(crate) fn line(
        &mut self,
        x: Value,
        scale: f32,
        bias: f32,
        name: &str,
    ) -> Result<Value, ArchError> {
        self.push(Scale { scale, bias }, vec![x], name)
    }

    pub(crate) fn reshape<const K: usize>(
        &mut self,
        x: Value,
        dims: [Dim; K],
        name: &str,
    ) -> Result<Value, ArchError> {
        let dims = TensorType::new(DType::F32, dims).dims;
        self.push(Reshape { dims }, vec![x], name)
    }

    pub(crate) fn swap_heads(&mut self, x: Value, name: &str) -> Result<Value, ArchError> {
        let axes = [0, 2, 1, 3];
        self.push(Permute { axes }, vec![x], name)
    }

    pub(crate) fn slice(
        &mut self,
        x: Value,
        axis: u64,
        start: u64,
        len: Dim,
        name: &str,
    ) -> Result<Value, ArchError> {
        let start = Dim::constant(start);
        self.push(Slice { axis, start, len }, vec![x], name)
    }

    /// Appends `w · x`. `w: [rows, columns]` is the tensor's matrix.
    pub(crate) fn project(
        &mut self,
        tensor: &str,
        x: Value,
        sizes: [Size; 2],
        name: &str,
    ) -> Result<Value, ArchError> {
        let (absent, role) = (Presence::Absent, TensorRole::Matrix);
        self.linear(tensor, x, sizes, absent, role, name)
    }

    /// Appends `w · x + bias`. `w: [rows, columns]` is the tensor's matrix.
    pub(crate) fn linear(
        &mut self,
        tensor: &str,
        x: Value,
        [rows, columns]: [Size; 2],
        bias: Presence,
        role: TensorRole,
        name: &str,
    ) -> Result<Value, ArchError> {
        let w = self.tensor_name(tensor, "weight");
        let w = self.require(&w, &[rows, columns], role)?;
        let y = self.mul_mat(w, x, name)?;
        self.add_bias(tensor, y, columns, bias, name)
    }

    pub(crate) fn add_bias(
        &mut self,
        tensor: &str,
        y: Value,
        size: Size,
        bias: Presence,
        name: &str,
    ) -> Result<Value, ArchError> {
        let full_name = self.tensor_name(tensor, "bias");
        match self.optional(&full_name, &[size], TensorRole::Bias, bias)? {
            Some(bias) => self.add(y, bias, name),
            None => Ok(y),
        }
    }
}
