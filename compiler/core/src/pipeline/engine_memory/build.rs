use tpc_ir::op::{InputKind, NormKind};
use tpc_ir::{Bindings, DType, Graph, Inst, InstData, Op, RANK, Symbol, TensorType, Value};

use super::tensor::{Id, Kind, Layout, Tensor, Tensors, bytes_of};

/// The token embedding's table. The engine keeps the table on the host, even if the output uses the same table.
pub(super) const EMBEDDING: &str = "token_embd.weight";

pub(super) struct Settings<'a> {
    pub(super) graph: &'a Graph,
    pub(super) batch: Bindings,
    pub(super) flash_attention: bool,
    pub(super) copies_caches: bool,
    /// True if batches may hold embeddings in addition to tokens.
    pub(super) mixes_batches: bool,
    /// Number of states of earlier tokens that a recurrence keeps in addition to the last state.
    pub(super) snapshots: u64,
    /// The widest V cache row, in elements.
    pub(super) value_width: u64,
    pub(super) place: &'a dyn Fn(Value) -> Option<usize>,
    pub(super) output: usize,
}

struct Builder<'a> {
    settings: &'a Settings<'a>,
    out: Tensors,
    ids: Vec<Option<Id>>,
    has_embedding: bool,
}

/// Builds the engine's graph of these instructions. The program reads the results `outputs`.
pub(super) fn build(settings: &Settings<'_>, order: &[Inst], outputs: &[Value]) -> Tensors {
    let mut b = Builder {
        settings,
        out: Tensors::default(),
        ids: vec![None; settings.graph.values().len()],
        has_embedding: false,
    };
    for &inst in order {
        let data = settings.graph.inst(inst);
        if !data.op.is_leaf() {
            b.instruction(data);
        }
    }
    for &v in outputs {
        let id = b.id(v);
        let root = b.out.root(id);
        b.out.all[root].is_output = true;
    }
    b.out
}

impl Builder<'_> {
    fn layout(&self, ty: &TensorType) -> Layout {
        let dims = [0, 1, 2, 3].map(|a| ty.dims[a].eval(&self.settings.batch).unwrap_or(u64::MAX));
        (ty.dtype, dims)
    }

    fn type_of(&self, v: Value) -> &TensorType {
        &self.settings.graph.value(v).ty
    }

    /// Returns the tensor of a value. Creates leaves at their first use. Values of another graph become inputs.
    fn id(&mut self, v: Value) -> Id {
        if let Some(id) = self.ids[v.index()] {
            return id;
        }
        let op = self.settings.graph.def_op(v);
        let mut layout = self.layout(self.type_of(v));
        let mut bytes = bytes_of(layout);
        let kind = match op {
            Op::Weight(_) | Op::State(_) | Op::Hadamard(_) => Kind::Stored,
            Op::Input(input) => {
                (layout, bytes) = self.input(&input.kind, layout);
                Kind::Input
            }
            _ => Kind::Input,
        };
        let mut tensor = Tensor::new(kind, layout, bytes);
        if op.is_stored() {
            tensor.place = (self.settings.place)(v);
            tensor.is_weight = matches!(op, Op::Weight(_));
        }
        let id = self.out.add(tensor);
        self.ids[v.index()] = Some(id);
        id
    }

    fn input(&self, kind: &InputKind, layout: Layout) -> (Layout, u64) {
        let fused = self.settings.flash_attention;
        let bytes = bytes_of(layout);
        match kind {
            InputKind::Mask
            | InputKind::MaskSwa
            | InputKind::MaskBatch
            | InputKind::MaskBatchNear(_) => {
                let dtype = if fused { DType::F16 } else { DType::F32 };
                let layout = (dtype, layout.1);
                (layout, bytes_of(layout))
            }
            // Indices of key and value rows. Without fused attention, values have one index per element.
            InputKind::CacheRows | InputKind::CacheRowsSwa => {
                let values = if fused { 1 } else { self.settings.value_width };
                (layout, bytes.saturating_mul(values.saturating_add(1)))
            }
            InputKind::StateKept => (layout, 0),
            _ => (layout, bytes),
        }
    }

    fn instruction(&mut self, data: &InstData) {
        if self.is_cleared_state(data) {
            return;
        }
        let sources: Vec<Id> = data.operands.iter().map(|&v| self.id(v)).collect();
        match &data.op {
            Op::Reshape(_) | Op::Permute(_) | Op::Slice(_) => self.view(data, sources[0]),
            Op::SetRows(_) | Op::SetSlice(_) => self.write(data, &sources),
            Op::GetRows(_) => self.rows(data, &sources),
            Op::TopK(_) => self.top(data, sources),
            Op::FlashAttn(_) if !self.settings.flash_attention => self.scores(data, &sources),
            op => {
                let sources = match op {
                    Op::MulMat(_) => self.own_output(data, sources),
                    _ => sources,
                };
                self.op(kind(op), data, sources);
            }
        }
    }

    /// Returns the sources of a product. A product with the embedding's table is the output, which reads a copy.
    fn own_output(&mut self, data: &InstData, mut sources: Vec<Id>) -> Vec<Id> {
        let table = self.settings.graph.def_op(data.operands[0]);
        if matches!(table, Op::Weight(w) if w.tensor == EMBEDDING) {
            let mut table = self.out.all[sources[0]].clone();
            table.place = Some(self.settings.output);
            sources[0] = self.out.add(table);
        }
        sources
    }

    /// True if the op clears a state for new sequences. The engine clears states in place, so the result is the other
    /// operand.
    fn is_cleared_state(&mut self, data: &InstData) -> bool {
        let graph = self.settings.graph;
        let is_kept =
            |&v: &Value| matches!(graph.def_op(v), Op::Input(i) if i.kind == InputKind::StateKept);
        if !matches!(data.op, Op::Binary(_)) || !data.operands.iter().any(is_kept) {
            return false;
        }
        let other = data.operands.iter().copied().find(|v| !is_kept(v));
        if let Some(other) = other {
            let id = self.id(other);
            self.ids[data.results[0].index()] = Some(id);
        }
        other.is_some()
    }

    /// Adds an op with its own memory. Further results are views of the first result.
    fn op(&mut self, kind: Kind, data: &InstData, sources: Vec<Id>) -> Id {
        let first = self.layout(self.type_of(data.results[0]));
        let mut bytes = bytes_of(first);
        let others: Vec<Layout> = data.results[1..]
            .iter()
            .map(|&v| self.layout(self.type_of(v)))
            .collect();
        for &other in &others {
            let states = self.settings.snapshots.saturating_add(1);
            bytes = bytes.saturating_add(bytes_of(other).saturating_mul(states));
        }
        if let (Op::FlashAttn(_), true) = (&data.op, self.settings.copies_caches) {
            bytes = bytes.saturating_add(self.copied_caches(data));
        }
        let id = self.push(kind, first, bytes, data, sources);
        if others.is_empty() {
            self.ids[data.results[0].index()] = Some(id);
            return id;
        }
        for (&v, layout) in data.results.iter().zip([first].into_iter().chain(others)) {
            let view = self.push_view(id, id, layout, true);
            self.ids[v.index()] = Some(view);
        }
        id
    }

    fn push(
        &mut self,
        kind: Kind,
        layout: Layout,
        bytes: u64,
        data: &InstData,
        sources: Vec<Id>,
    ) -> Id {
        let mut tensor = Tensor::new(kind, layout, bytes);
        let is_weight = |id: &Id| self.out.all[*id].is_weight;
        let named = !matches!(data.op, Op::Rope(_) | Op::FlashAttn(_));
        tensor.weight = sources.iter().copied().find(|s| named && is_weight(s));
        tensor.rows = match data.op {
            Op::MulMat(_) => layout.1[1],
            Op::MulMatId(_) => layout.1[2],
            _ => tensor.rows,
        };
        tensor.sources = sources;
        self.out.push(tensor)
    }

    fn push_view(&mut self, source: Id, root: Id, layout: Layout, contiguous: bool) -> Id {
        let mut tensor = Tensor::new(Kind::View, layout, 0);
        tensor.contiguous = contiguous;
        tensor.sources = vec![source];
        tensor.root = Some(root);
        if self.out.all[root].is_stored() {
            tensor.place = self.out.all[root].place;
            return self.out.add(tensor);
        }
        self.out.push(tensor)
    }

    fn view(&mut self, data: &InstData, source: Id) {
        let layout = self.layout(self.type_of(data.results[0]));
        let of = &self.out.all[source];
        let contiguous = match &data.op {
            // Elements that are not contiguous must be copied.
            Op::Reshape(_) if !of.contiguous => {
                self.op(Kind::Plain, data, vec![source]);
                return;
            }
            Op::Permute(p) => {
                let long = (0..RANK).filter(|&a| of.layout.1[a] > 1);
                of.contiguous && long.map(|a| p.axes[a]).is_sorted()
            }
            Op::Slice(s) => {
                let behind = usize::try_from(s.axis).map_or(RANK, |a| a + 1).min(RANK);
                of.contiguous && layout.1[behind..].iter().all(|&n| n == 1)
            }
            _ => true,
        };
        let root = self.out.root(source);
        let id = self.push_view(source, root, layout, contiguous);
        self.ids[data.results[0].index()] = Some(id);
    }

    fn write(&mut self, data: &InstData, sources: &[Id]) {
        let layout = self.layout(self.type_of(data.results[0]));
        let root = self.out.root(sources[0]);
        let mut tensor = Tensor::new(Kind::Write, layout, 0);
        tensor.contiguous = self.out.all[sources[0]].contiguous;
        tensor.root = Some(root);
        let stored = self.out.all[root].is_stored();
        tensor.sources = sources[usize::from(stored)..].to_vec();
        let id = self.out.push(tensor);
        self.ids[data.results[0].index()] = Some(id);
    }

    /// Adds a lookup of table rows. For the token embedding, the engine also reserves memory for embeddings that a
    /// program passes instead of tokens.
    fn rows(&mut self, data: &InstData, sources: &[Id]) {
        let table = data.operands[0];
        let is_embedding =
            matches!(self.settings.graph.def_op(table), Op::Weight(w) if w.tensor == EMBEDDING);
        let id = self.op(Kind::Rows, data, sources.to_vec());
        if !is_embedding || std::mem::replace(&mut self.has_embedding, true) {
            return;
        }
        let layout = self.out.all[id].layout;
        let input = |bytes| Tensor::new(Kind::Input, layout, bytes);
        let bytes = bytes_of(layout);
        let given = self.out.add(input(bytes));
        self.out.unread.push(given);
        if !self.settings.mixes_batches {
            return;
        }
        let rows = self.push(Kind::Rows, layout, bytes, data, vec![sources[0]]);
        let given = self.out.add(input(bytes));
        let mut copy = Tensor::new(Kind::Plain, layout, bytes);
        copy.sources = vec![given];
        let copy = self.out.push(copy);
        let slots = self.settings.batch.get(Symbol::NTokens).saturating_mul(8);
        let slots = self.out.add(input(slots));
        let mut write = Tensor::new(Kind::Write, layout, 0);
        write.sources = vec![rows, slots, copy];
        write.root = Some(copy);
        self.out.push(write);
    }

    /// Adds a full sort and a view of the first elements.
    fn top(&mut self, data: &InstData, sources: Vec<Id>) {
        let all = (DType::I32, self.out.all[sources[0]].layout.1);
        let sorted = self.push(Kind::Plain, all, bytes_of(all), data, sources);
        let layout = self.layout(self.type_of(data.results[0]));
        let id = self.push_view(sorted, sorted, layout, false);
        self.ids[data.results[0].index()] = Some(id);
    }

    /// Adds unfused attention: scores of all heads, softmax, weighted values.
    fn scores(&mut self, data: &InstData, sources: &[Id]) {
        let out = self.layout(self.type_of(data.results[0]));
        let [width, heads, tokens, _] = out.1;
        let cells = self.out.all[sources[1]].layout.1[1];
        let plain = |kind, layout: Layout, sources: Vec<Id>| {
            let mut tensor = Tensor::new(kind, layout, bytes_of(layout));
            tensor.sources = sources;
            tensor
        };
        let all = (DType::F32, [cells, tokens, heads, 1]);
        let scores = plain(Kind::Plain, all, vec![sources[1], sources[0]]);
        let scores = self.out.push(scores);
        let mut read = vec![scores];
        read.extend(&sources[3..]);
        let weights = plain(Kind::InPlace, all, read);
        let weights = self.out.push(weights);
        let by_head = (DType::F32, [width, tokens, heads, 1]);
        let sums = plain(Kind::Plain, by_head, vec![sources[2], weights]);
        let sums = self.out.push(sums);
        let turned = self.push_view(sums, sums, out, false);
        let id = self.out.push(plain(Kind::Plain, out, vec![turned]));
        self.ids[data.results[0].index()] = Some(id);
    }

    /// Computes the bytes of f16 copies of quantised caches that attention reads.
    fn copied_caches(&self, data: &InstData) -> u64 {
        let caches = data.operands[1..3].iter().map(|&v| self.type_of(v));
        let quantised = caches.filter(|ty| ty.dtype.is_quantised());
        let bytes = quantised.map(|ty| bytes_of((DType::F16, self.layout(ty).1)));
        bytes.fold(0, u64::saturating_add)
    }
}

fn kind(op: &Op) -> Kind {
    match op {
        Op::Norm(n) if n.kind == NormKind::Rms => Kind::InPlace,
        Op::Unary(_)
        | Op::Xielu(_)
        | Op::Binary(_)
        | Op::Scale(_)
        | Op::Clamp(_)
        | Op::SoftMax(_)
        | Op::Rope(_)
        | Op::AddId(_)
        | Op::Fill(_) => Kind::InPlace,
        _ => Kind::Plain,
    }
}
