//! Numbers for values: equal numbers mean values that are equal in both graphs, whatever the inputs contain.

use std::collections::BTreeMap;

use tpc_ggml::capture::{Layout, Record};
use tpc_ggml::op::{OpKind, WordUse};
use tpc_ir::{DType, RANK};

/// The number of a value.
pub(super) type Class = u32;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    /// A leaf, by the number of its pair.
    Leaf(usize),
    /// Memory that no op has written, by its side and record.
    Unwritten(usize, usize),
    View(Class, DType, Layout),
    Op {
        name: String,
        words: Vec<i32>,
        dtype: DType,
        ne: [u64; RANK],
        reads: Vec<Option<Class>>,
    },
    Write {
        old: Class,
        dtype: DType,
        layout: Layout,
        new: Class,
    },
}

/// The numbers of two graphs.
#[derive(Clone, Debug, Default)]
pub(super) struct Classes(BTreeMap<Form, Class>);

impl Classes {
    fn of(&mut self, form: Form) -> Class {
        let next = Class::try_from(self.0.len()).unwrap_or(Class::MAX);
        *self.0.entry(form).or_insert(next)
    }
}

/// A value that an op reads: a layout of the content of some memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// The record that the op names.
    pub(super) record: usize,
    /// The content of the whole memory.
    pub(super) memory: Class,
    /// The value.
    pub(super) value: Class,
}

/// The numbers of one graph's records.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbered {
    /// The value of each record when it is reached.
    pub(super) value: Vec<Class>,
    /// The content of the memory of each record's owner before the record.
    pub(super) before: Vec<Option<Class>>,
    /// The content of the memory of each record's owner after the record.
    pub(super) memory: Vec<Class>,
    /// The operands of each record by position; `None` if absent, or if the op only writes there.
    pub(super) reads: Vec<Vec<Option<Reading>>>,
}

/// Returns the words of `op_params` that change the result, without trailing zeros.
pub(super) fn effective_words(t: &Record) -> Vec<i32> {
    let read = |(i, &word): (usize, &i32)| match t.op.word_use(i) {
        WordUse::Ignored(_) => 0,
        WordUse::Read | WordUse::Unknown => word,
    };
    let mut words: Vec<i32> = t.words.iter().enumerate().map(read).collect();
    while words.last() == Some(&0) {
        words.pop();
    }
    words
}

/// True if the op writes its operand at `position` without reading it.
pub(super) fn only_writes(t: &Record, position: usize) -> bool {
    t.is(OpKind::Cpy) && position == 1
}

/// Numbers the records of one side. `leaves` has the number of each leaf's pair.
pub(super) fn number(
    classes: &mut Classes,
    side: usize,
    records: &[Record],
    leaves: &BTreeMap<usize, usize>,
) -> Numbered {
    let mut out = Numbered::default();
    let mut memory: BTreeMap<usize, Class> = BTreeMap::new();
    for (i, t) in records.iter().enumerate() {
        let content = memory.get(&t.root).copied();
        out.before.push(content);
        if t.is_leaf() && !t.is_view {
            let form = match leaves.get(&i) {
                Some(&pair) => Form::Leaf(pair),
                None => Form::Unwritten(side, i),
            };
            let class = classes.of(form);
            memory.insert(i, class);
            out.value.push(class);
            out.memory.push(class);
            out.reads.push(Vec::new());
            continue;
        }
        let reads: Vec<Option<Reading>> = (t.src.iter().enumerate())
            .map(|(position, source)| {
                let s = (*source).filter(|_| !only_writes(t, position))?;
                let root = records[s].root;
                let held = memory.get(&root).copied();
                let held = held.unwrap_or_else(|| classes.of(Form::Unwritten(side, root)));
                Some(Reading {
                    record: s,
                    memory: held,
                    value: view(classes, records, s, held),
                })
            })
            .collect();
        if t.is_pure_view() || t.is_leaf() {
            let held = content.unwrap_or_else(|| classes.of(Form::Unwritten(side, t.root)));
            out.value.push(view(classes, records, i, held));
            out.memory.push(held);
            out.reads.push(reads);
            continue;
        }
        let made = classes.of(Form::Op {
            name: t.op.name().to_owned(),
            words: effective_words(t),
            dtype: t.dtype,
            ne: t.ne(),
            reads: reads.iter().map(|r| r.map(|r| r.value)).collect(),
        });
        let after = match t.is_view {
            false => made,
            true => {
                let old = content.unwrap_or_else(|| classes.of(Form::Unwritten(side, t.root)));
                classes.of(Form::Write {
                    old,
                    dtype: t.dtype,
                    layout: t.layout,
                    new: made,
                })
            }
        };
        memory.insert(t.root, after);
        out.value.push(made);
        out.memory.push(after);
        out.reads.push(reads);
    }
    out
}

fn view(classes: &mut Classes, records: &[Record], record: usize, memory: Class) -> Class {
    let t = &records[record];
    let owner = &records[t.root];
    if t.layout == owner.layout && t.dtype == owner.dtype {
        return memory;
    }
    classes.of(Form::View(memory, t.dtype, t.layout))
}
