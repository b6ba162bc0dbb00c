//! The catalogue of violations, for `tpc explain`.

use crate::CodeDoc;

const fn code(code: &'static str, title: &'static str, doc: &'static str) -> CodeDoc {
    CodeDoc { code, title, doc }
}

/// Every invariant of the list in [the module](super), in the order of the codes.
pub const CODES: &[CodeDoc] = &[
    code(
        "TPC0220",
        "dangling handle",
        "An operand, a place, a group, a sharding or an output refers to an entity that the graph does not have. Text \
         cannot say this; a pass that mixes handles of two graphs can. Example: an operand `v900` in a graph of 800 \
         values. Cure: translate handles when copying instructions from graph to graph.",
    ),
    code(
        "TPC0221",
        "value used before it is defined",
        "Instructions run in their order, so an operand must come from an earlier one. Text cannot say this; a pass \
         that reorders can. Example: an instruction that reads its own result. Cure: append definitions before uses.",
    ),
    code(
        "TPC0222",
        "result and definition disagree",
        "Each value names the instruction that defines it and its position among the results, and passes follow this \
         reference both ways. Example: a value copied from another graph together with its `def`. Cure: define values \
         through `Graph::push` and leave `def` alone.",
    ),
    code(
        "TPC0223",
        "no output",
        "A graph without outputs computes nothing that anyone sees, so every pass could empty it. Example: a graph \
         that ends with its last instruction. Cure: add `output \"logits\" = v9`.",
    ),
    code(
        "TPC0224",
        "two outputs of one name",
        "Callers find outputs by name. Example: two lines `output \"logits\" = …`. Cure: rename or remove one.",
    ),
    code(
        "TPC0225",
        "output updates what is no state",
        "`output state v3 = v8` says what a state becomes, so `v3` must be the value of a `state` instruction: the \
         state as the batch finds it. Example: the copy of a state on another place on the left of `=`. Cure: name \
         the value that `state` defines.",
    ),
    code(
        "TPC0226",
        "state updated twice",
        "A state becomes one value; with two, the result would depend on the order of the outputs. Example: two lines \
         `output state v3 = …`. Cure: apply the second update to the result of the first, and output the last.",
    ),
    code(
        "TPC0227",
        "update does not fit its state",
        "The next batch reads the new content as the state, so its type, place and sharding must be the state's. \
         Example: a cache split over the devices that is updated with a whole value. Cure: shard, convert or move the \
         new content first.",
    ),
    code(
        "TPC0228",
        "two states of one name",
        "States are kept from batch to batch under their names, per place; two of one name would share their content. \
         Example: the caches of two layers both called `cache_k`. Cure: number the names.",
    ),
    code(
        "TPC0229",
        "bad group",
        "A group is a list of different devices; the position in it is the rank. Without devices nothing holds its \
         values, and with a device twice one device would have two ranks. Example: `group tp0 = [dev0, dev0]`. Cure: \
         list every device once.",
    ),
    code(
        "TPC0230",
        "range outside its class",
        "The ranges of a class say which of its indices each rank holds: they end within its size, and those that are \
         not empty begin in the order of the ranks, so that each index has one owner, the lowest rank. Example: \
         `size 8 ranges [0:4, 4:8]`, where `4:8` means eight indices. Cure: give start and length, ascending.",
    ),
    code(
        "TPC0231",
        "index on no device",
        "An index of a class that no device holds would be lost: weights would not be loaded and results not computed. \
         Example: `size 8 ranges [0:3, 4:4]` lacks index 3. Cure: extend one of the ranges.",
    ),
    code(
        "TPC0232",
        "ranges and devices differ in number",
        "A class that splits a value of a group says for every rank what it holds. Example: a class with two ranges \
         on a group of four devices. Cure: give one range per device; an idle device has the empty range `0:0`.",
    ),
    code(
        "TPC0233",
        "leaf of another size than its class",
        "The size of a split leaf is the size of its class, divided by the divisor of the reference. Text cannot \
         say otherwise; a pass that builds trees can. Example: a leaf of 7 indices split by a class of 8. Cure: \
         take the size from the class.",
    ),
    code(
        "TPC0234",
        "axis tree not in normal form",
        "Trees are compared for equality, so each split has one spelling: nested products and sums are flattened, \
         neighbouring whole leaves merged, factors 1 and empty segments left out, and whole axes not named. Example: \
         `split(0: 2*4*c0)`, whose normal form is `8*c0`. Cure: build shardings with `Sharding::split`.",
    ),
    code(
        "TPC0235",
        "op without text form",
        "An op and what its text form parses to must be equal, so that no graph changes by being printed and read. \
         Example: an `eps` that is NaN, or a `swiglu` with a `limit`, which only `swiglu_oai` has. Cure: leave \
         unused parameters zero.",
    ),
    code(
        "TPC0236",
        "operands do not fit",
        "An op states which types it accepts; the message names the sizes or the elements that disagree. Example: \
         `mul_mat` of rows of 4096 and 2048 elements. Cure: correct the operands or the attributes.",
    ),
    code(
        "TPC0237",
        "result type is not what the op gives",
        "The types of results follow from those of the operands, in number and in every size. Example: the sum of \
         two f32 values declared as f16. Cure: declare the type in the message.",
    ),
    code(
        "TPC0238",
        "leaf with several results",
        "A weight, an input and a state define one value each. Example: `v0: …, v1: … = weight {…}`. Cure: write \
         an instruction per value.",
    ),
    code(
        "TPC0239",
        "rows are not whole blocks",
        "Quantised elements are stored in blocks along axis 0, and a row begins with a block. Example: `q4_k[300, 8]`, \
         where blocks have 256 elements. Cure: cut at blocks only (a sharding's `granule` widens ranges to blocks), \
         or decode the tensor first.",
    ),
    code(
        "TPC0240",
        "bad parts",
        "The parts of a weight or a state say, for each of the four axes, which ranges of the model's tensor a device \
         stores, one after another. They ascend without overlap, consist of whole blocks and have as many indices as \
         the axis. Example: `parts = [[0:256], [0:8]]`, which lacks two axes. Cure: let lowering make them.",
    ),
    code(
        "TPC0241",
        "input of another type than its kind",
        "The kind of an input prescribes its type, by which the runtime fills it. Example: `f32[n_tokens]` with \
         `{kind = tokens}`, which is `i32[n_tokens]`. Cure: declare that type, or make it an input by name.",
    ),
    code(
        "TPC0242",
        "sum of integers or of blocks",
        "`all_reduce` and `reduce_scatter` add elements, which must be plain real numbers: integers are indices here, \
         and sums of quantised blocks do not exist. Example: `all_reduce` of token ids. Cure: reduce f32 values.",
    ),
    code(
        "TPC0243",
        "quantised operand of an op that cannot read it",
        "Quantised elements are read by the ops that decode blocks (`mul_mat`, `mul_mat_id`, `get_rows`, `flash_attn`, \
         `set_rows` into a cache), and by those that move whole blocks. Example: `rms_norm` of a q8_0 weight, or a \
         slice of q4_k rows that begins at element 100. Cure: decode with `get_rows`, or store the tensor in f16.",
    ),
    code(
        "TPC0244",
        "operands at two places",
        "An op runs at one place and reads its operands there; transfers are explicit, so that their cost is seen. \
         Example: `add` of a value on the host and one on `dev0`. Cure: `copy` one of them.",
    ),
    code(
        "TPC0245",
        "result at another place than the operands",
        "An op leaves its results where it runs. Only `copy` moves values. Example: `relu` of a value on `dev0` with a \
         result on `dev1`. Cure: declare the result there and copy it.",
    ),
    code(
        "TPC0246",
        "bad participants of a collective",
        "A collective takes one value of a group, or one value on each of several different devices. Example: \
         `all_reduce` of two values on `dev0`, or of one on the host. Cure: give one operand per device.",
    ),
    code(
        "TPC0247",
        "collective's results are misplaced",
        "Each participant of a collective gets its result: result `i` is where operand `i` is. Example: operands on \
         `dev0` and `dev1`, results on `dev1` and `dev0`. Cure: declare the results in the order of the operands.",
    ),
    code(
        "TPC0248",
        "input on a device",
        "Callers hand inputs to the host; from there they are copied, so that the transfer is seen. Example: \
         `v0: i32[n_tokens] @dev0 = input {kind = tokens}`. Cure: declare it `@host` and add a `copy`.",
    ),
    code(
        "TPC0249",
        "sharding on a single place",
        "Shardings divide values among the devices of a group. The host and a single device hold whole values, with \
         nothing pending. Example: `v1: f32[8] @dev0 partial`. Cure: remove the sharding, or put the value on a group.",
    ),
    code(
        "TPC0250",
        "class references and sizes of a sharding",
        "A split leaf names a declared class, or a quotient of one by a divisor of its size; the factors of a \
         tree multiply and add up to the axis's size; a class has a range for every device of the group. Example: \
         `split(0: c0*64)` on an axis of 100. Cure: name a declared class, and factors that multiply to the size.",
    ),
    code(
        "TPC0251",
        "split and pending at once",
        "A value is either split over the devices or a sum over them that is still to be done. With both, no \
         device would know which parts to add. Example: `@tp0 split(0: c0) partial`. Cure: reduce before \
         splitting.",
    ),
    code(
        "TPC0252",
        "split twice",
        "Two classes split one term of a value: each device would hold the crossing of two ranges, and nobody the \
         rest. Example: `split(0: c0, 1: c1)`. Cure: split one factor of each term.",
    ),
    code(
        "TPC0253",
        "blocks covered where they cannot be",
        "Only a weight that is split on axis 0 can store whole blocks around the ends of its range, and only \
         blocks of its type. Example: `split(0: c0 granule 256)` on an activation. Cure: remove `granule`, or write \
         the block length of the weight's type.",
    ),
    code(
        "TPC0254",
        "a device holds parts of blocks",
        "A quantised tensor is stored in blocks along axis 0, which cannot be cut. Example: a `q4_k` weight with \
         ranges of 128. Cure: end ranges at blocks, or let the weight cover them with `granule`.",
    ),
    code(
        "TPC0255",
        "an op's rule does not hold",
        "The equations of the op's sharding rule relate the factors of its operands and results. Here the two \
         sides of one are split differently. Example: `add` of a value split by heads and one split by another \
         class. Cure: split operands and results by the same factors.",
    ),
    code(
        "TPC0256",
        "a factor must be whole",
        "The op mixes all indices of the factor, so every device needs all of them. Example: `soft_max` over a \
         split axis, `rope` on parts of a head. Cure: gather the operand first, or split another factor.",
    ),
    code(
        "TPC0257",
        "a norm over a split axis",
        "Each device sees only its part of the row, so the statistic would be wrong. Example: `rms_norm` of a \
         value with `split(0: c0)`. Cure: use `norm_stats`, `all_reduce` and `norm_apply`.",
    ),
    code(
        "TPC0258",
        "no single range",
        "What an index counts along must be one range of one factor on each device, and a contraction over \
         several segments must be split in all of them or in none. Example: `get_rows` from a table whose rows \
         are `c0 + 16`. Cure: split the whole of an indexed axis, and all segments of a contraction.",
    ),
    code(
        "TPC0259",
        "wrong pending state of a result",
        "What a result is (whole, a pending sum, disjoint rows) follows from the operands and the split factors. \
         Here the graph says something else. Example: `mul_mat` contracted over a split factor, with a result \
         that is not `partial`. Cure: state what the op makes.",
    ),
    code(
        "TPC0260",
        "an op cannot take a pending sum",
        "The op is not linear in the operand, or another operand is split, so the sum must be done first. \
         Example: `silu` of a partial value. Cure: add an `all_reduce` before it.",
    ),
    code(
        "TPC0261",
        "a transfer of the wrong thing",
        "Copies move whole and split values; `all_reduce` and `reduce_scatter` take pending sums, and nothing \
         else. Example: `all_reduce` of a mirrored value, which would count every device. Cure: reduce pending \
         sums, and only those, before they move.",
    ),
    code(
        "TPC0262",
        "a leaf with a pending sum",
        "Weights, inputs and states are whole or split; nothing made them a sum. Example: `weight … partial`. \
         Cure: remove `partial`.",
    ),
];
