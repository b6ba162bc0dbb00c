//! The codes of violated invariants, TPC0220 to TPC0269.

crate::codes! {
    pub(super) static;

    DANGLING = error(
        "TPC0220",
        "dangling handle",
        "A pass mixed handles of two graphs.",
    )
    .example("an operand `v900` in a graph of 800 values.")
    .cure("translate handles when you copy instructions.");

    USED_BEFORE_DEFINED = error(
        "TPC0221",
        "value used before its definition",
        "A pass reordered instructions.",
    )
    .example("an instruction that reads its own result.")
    .cure("append definitions before uses.");

    BACK_REFERENCE = error(
        "TPC0222",
        "result and definition disagree",
        "A value's defining instruction and result position must agree.",
    )
    .example("a value copied from another graph together with its `def`.")
    .cure("define values through `Graph::push`, and leave `def` alone.");

    NO_OUTPUTS = error(
        "TPC0223",
        "graph without outputs",
        "Without outputs, every pass could empty the graph.",
    )
    .example("a graph that ends with its last instruction.")
    .cure("add `output \"logits\" = v9`.");

    OUTPUT_NAME = error(
        "TPC0224",
        "two outputs of the same name",
        "Callers find outputs by name.",
    )
    .example("two lines `output \"logits\" = …`.")
    .cure("rename or remove one.");

    NOT_A_STATE = error(
        "TPC0225",
        "output updates a value that is not a state",
        "`output state v3 = v8` needs a `state` instruction that defines `v3`.",
    )
    .example("a copy of the state on another device, left of `=`.")
    .cure("name the value that `state` defines.");

    UPDATED_TWICE = error(
        "TPC0226",
        "state updated twice",
        "The result would depend on the order of outputs.",
    )
    .example("two lines `output state v3 = …`.")
    .cure("apply the second update to the first one's result.");

    STATE_CHANGES = error(
        "TPC0227",
        "update does not fit its state",
        "The new content of a state, such as a KV cache, must have the state's element type, place and split.",
    )
    .example("a split cache that is updated with a whole value.")
    .cure("convert, move or split the new content before the update.");

    STATE_NAME = error(
        "TPC0228",
        "two states of the same name",
        "Name and place identify a state, so these two would share their content.",
    )
    .example("two layers' caches called `cache_k`.")
    .cure("number the names.");

    EMPTY_GROUP = error(
        "TPC0229",
        "empty group or repeated device",
        "A group has at least one device, and each device once.",
    )
    .example("`group tp0 = [dev0, dev0]`.")
    .cure("list every device once.");

    CLASS_RANGE = error(
        "TPC0230",
        "range outside its class",
        "Ranges end within the class, and non-empty ranges begin in rank order, so the lowest rank owns an index.",
    )
    .example("`size 8 ranges [0:4, 4:8]`; `4:8` means eight indices.")
    .cure("give start and length, ascending.");

    CLASS_GAP = error(
        "TPC0231",
        "class index that no device stores",
        "Weights of this index would not be loaded.",
    )
    .example("`size 8 ranges [0:3, 4:4]` lacks index 3.")
    .cure("extend one of the ranges.");

    CLASS_RANKS = error(
        "TPC0232",
        "ranges and devices differ in count",
        "A class on a group needs one range per rank.",
    )
    .example("a class with two ranges on a group of four devices.")
    .cure("give one range per device; an idle device has `0:0`.");

    LEAF_SIZE = error(
        "TPC0233",
        "leaf size differs from its class",
        "A split leaf has its class's size, divided by the divisor.",
    )
    .example("a leaf of 7 indices split by a class of 8.")
    .cure("take the size from the class.");

    UNSPLIT = error(
        "TPC0234",
        "axis tree not in normal form",
        "Trees are flattened, neighbouring whole leaves merged, factors of 1 and empty segments removed, and whole \
         axes unnamed.",
    )
    .example("`split(0: 2*4*c0)`, whose normal form is `8*c0`.")
    .cure("build shardings with `Sharding::split`.");

    OP_TEXT = error(
        "TPC0235",
        "op without text form",
        "Printing and reading an op must not change it.",
    )
    .example("an `eps` of NaN, or a `swiglu` with a `limit`, which only `swiglu_oai` has.")
    .cure("leave unused parameters zero.");

    OPERANDS = error(
        "TPC0236",
        "op does not accept its operands",
        "The operands' sizes or element types conflict.",
    )
    .example("`mul_mat` of rows of 4096 and 2048 elements.")
    .cure("correct the operands or the attributes.");

    RESULT_COUNT = error(
        "TPC0237",
        "result type differs from the inferred one",
        "Operands determine the number and types of results.",
    )
    .example("the sum of two f32 values declared as f16.")
    .cure("declare the type in the message.");

    LEAF_RESULTS = error(
        "TPC0238",
        "leaf with several results",
        "A weight, input or state defines one value.",
    )
    .example("`v0: …, v1: … = weight {…}`.")
    .cure("write one instruction per value.");

    PARTIAL_BLOCK = error(
        "TPC0239",
        "rows are not whole blocks",
        "Rows begin with a block. Only one run of a weight's rows may end inside a long block, at multiples of 32 \
         elements.",
    )
    .example("`q4_k[300, 8]`; q4_k has blocks of 256.")
    .cure("cut at blocks (`granule` widens ranges), or decode the tensor first.");

    PARTS = error(
        "TPC0240",
        "malformed parts",
        "Parts are ranges per axis. They ascend without overlap, consist of whole blocks (or one run of 32-element \
         pieces), and fill the axis.",
    )
    .example("`parts = [[0:256], [0:8]]`, which lacks two axes.")
    .cure("delete the `parts` of the graph file, and let `tpc dump --stage programs` write them.");

    INPUT_TYPE = error(
        "TPC0241",
        "input type does not match its kind",
        "The runtime fills an input by its kind, which prescribes the type.",
    )
    .example("`f32[n_tokens]` with `{kind = tokens}`, which is `i32[n_tokens]`.")
    .cure("declare the prescribed type, or use an input by name.");

    SUMMED = error(
        "TPC0242",
        "integers or quantised blocks cannot be summed",
        "`all_reduce` and `reduce_scatter` cannot add indices or quantised blocks.",
    )
    .example("`all_reduce` of token ids.")
    .cure("convert the values to f32 first, or remove the collective.");

    BLOCKS = error(
        "TPC0243",
        "op cannot read a quantised operand",
        "Only `mul_mat`, `mul_mat_id`, `get_rows`, `flash_attn`, `set_rows` and moves of whole blocks accept \
         quantised elements; only products accept rows that end inside blocks.",
    )
    .example("`rms_norm` of a q8_0 weight, or a slice of q4_k rows from element 100.")
    .cure("decode with `get_rows`, or store the tensor in f16.");

    TWO_PLACES = error(
        "TPC0244",
        "operands at different places",
        "An op reads operands at its own place; transfers are explicit.",
    )
    .example("`add` of a value on the host and one on `dev0`.")
    .cure("`copy` one of them.");

    RESULT_PLACE = error(
        "TPC0245",
        "result and operands at different places",
        "Only `copy` moves values between places.",
    )
    .example("`relu` of a value on `dev0` with a result on `dev1`.")
    .cure("declare the result at the operands' place, and copy it.");

    PARTICIPANT = error(
        "TPC0246",
        "wrong participants of a collective",
        "A collective takes one value of a group, or one value on each of several devices.",
    )
    .example("`all_reduce` of two values on `dev0`, or of one on the host.")
    .cure("give one operand per device.");

    PARTICIPANT_RESULT = error(
        "TPC0247",
        "misplaced result of a collective",
        "Result `i` of a collective is at the place of operand `i`.",
    )
    .example("operands on `dev0` and `dev1`, results on `dev1` and `dev0`.")
    .cure("declare the results in the order of the operands.");

    INPUT_PLACE = error(
        "TPC0248",
        "input on a device",
        "Callers pass inputs to the host, and a copy shows the transfer.",
    )
    .example("`v0: i32[n_tokens] @dev0 = input {kind = tokens}`.")
    .cure("declare the input `@host` and add a `copy`.");

    SHARDED_ALONE = error(
        "TPC0249",
        "sharding on a single place",
        "Only groups have shardings; single places store whole, reduced values.",
    )
    .example("`v1: f32[8] @dev0 partial`.")
    .cure("remove the sharding, or put the value on a group.");

    SHARDING_TREE = error(
        "TPC0250",
        "sharding does not fit its axis",
        "Leaves name a declared class, or a class divided by a number. Factors multiply to the axis size. The class \
         has one range per device.",
    )
    .example("`split(0: c0*64)` on an axis of 100.")
    .cure("use a declared class, and factors that make up the size.");

    SHARDING_SPLIT_AND_UNREDUCED = error(
        "TPC0251",
        "value both split and unreduced",
        "No device could tell which parts to add.",
    )
    .example("`@tp0 split(0: c0) partial`.")
    .cure("reduce the value before the split.");

    SHARDING_SPLIT_TWICE = error(
        "TPC0252",
        "value split twice",
        "Two classes split one term, so parts outside both ranges would be lost.",
    )
    .example("`split(0: c0, 1: c1)`.")
    .cure("split one factor of each term.");

    SHARDING_GRANULE = error(
        "TPC0253",
        "storage granule does not fit",
        "Only a weight split on axis 0 has a granule: its block, or a multiple of 32 that divides the block.",
    )
    .example("`split(0: c0 granule 256)` on an activation.")
    .cure("remove `granule`, or write the block length, or 32 for longer blocks.");

    SHARDING_BLOCKS = error(
        "TPC0254",
        "device with parts of blocks",
        "Ranges may end inside blocks only with a storage granule, as one run per device.",
    )
    .example("a `q4_k` weight with ranges of 128.")
    .cure("end ranges at blocks, or give the weight a `granule`.");

    SHARDING_EQUATION = error(
        "TPC0255",
        "operands and results are split differently",
        "The op's sharding rule needs equal splits of these factors.",
    )
    .example("`add` of a value split by heads and one split by another class.")
    .cure("split operands and results by the same factors.");

    SHARDING_WHOLE = error(
        "TPC0256",
        "factor must be whole",
        "The op mixes all indices of the factor.",
    )
    .example("`soft_max` over a split axis, or `rope` on parts of a head.")
    .cure("gather the operand first, or split another factor.");

    SHARDING_NORM = error(
        "TPC0257",
        "norm over a split axis",
        "Each device's statistic would cover only its part of the row.",
    )
    .example("`rms_norm` of a value with `split(0: c0)`.")
    .cure("use `norm_stats`, `all_reduce` and `norm_apply`.");

    SHARDING_ONE_RANGE = error(
        "TPC0258",
        "axis is not one range per device",
        "An indexed axis must be one range per device. A contraction is split in all segments or not at all.",
    )
    .example("`get_rows` from a table whose rows are `c0 + 16`.")
    .cure("split an indexed axis as a whole, and all segments of a contraction.");

    SHARDING_UNREDUCED_RESULT = error(
        "TPC0259",
        "result is wrongly reduced or unreduced",
        "The operands make the result reduced, `partial` or `owner_masked`; the graph declares another.",
    )
    .example("`mul_mat` contracted over a split factor, with a result that is not `partial`.")
    .cure("declare the result as in the message.");

    SHARDING_UNREDUCED_OPERAND = error(
        "TPC0260",
        "op does not accept an unreduced operand",
        "The op is not linear in the operand, or another operand is split.",
    )
    .example("`silu` of a `partial` value.")
    .cure("add an `all_reduce` before the op.");

    SHARDING_TRANSFER = error(
        "TPC0261",
        "transfer of the wrong kind of value",
        "Copies and gathers move reduced values; `all_reduce` and `reduce_scatter` take unreduced ones. Gathers take \
         ranges of the op's axis, and scatters make them.",
    )
    .example("`all_reduce` of a mirrored value, which would be added once per device.")
    .cure("reduce unreduced values, and only them.");

    SHARDING_LEAF = error(
        "TPC0262",
        "weights, inputs and states cannot be partial",
        "A partial value is one term of a sum over devices. Weights, inputs and states are whole or split.",
    )
    .example("`weight … partial`.")
    .cure("remove `partial`.");

    STAGE = error(
        "TPC0263",
        "graph of another stage",
        "A pass did not run. Model graphs are on the host, placed graphs have no shardings, and programs have no \
         device groups.",
    )
    .example("a sharded graph given to the interpreter.")
    .cure("run the pass that leads to the stage.");

    LAYER = error(
        "TPC0264",
        "layer number too large",
        "Layers are numbered from 0 to 65535.",
    )
    .example("an instruction of layer 4294967295.")
    .cure("number the layers from 0.");

    TOO_LARGE = error(
        "TPC0265",
        "too many elements",
        "The limit is 2^64 − 1 elements, or 2^63 − 1 per product of symbols.",
    )
    .example("`f32[4294967296, 4294967296]`.")
    .cure("correct the sizes.");

    WEIGHT_SIZE = error(
        "TPC0266",
        "weight of variable size",
        "The sizes of tensors in files are numbers.",
    )
    .example("`f32[8, n_tokens] @dev0 = weight {tensor = \"a\"}`.")
    .cure("declare the sizes in the file.");
}
