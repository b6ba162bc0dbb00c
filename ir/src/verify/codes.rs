//! The codes of violated invariants, TPC0220 to TPC0269, in the order of the list in [the module](super).

crate::codes! {
    pub(super) static;

    DANGLING = error(
        "TPC0220",
        "dangling handle",
        "An operand, a place, a group, a sharding or an output refers to an entity that the graph does not have. \
         Text cannot say this; a pass that mixes handles of two graphs can.",
    )
    .example("an operand `v900` in a graph of 800 values.")
    .cure("translate handles when copying instructions from graph to graph.");

    USED_BEFORE_DEFINED = error(
        "TPC0221",
        "value used before it is defined",
        "Instructions run in their order, so an operand must come from an earlier one. Text cannot say this; a \
         pass that reorders can.",
    )
    .example("an instruction that reads its own result.")
    .cure("append definitions before uses.");

    BACK_REFERENCE = error(
        "TPC0222",
        "result and definition disagree",
        "Each value names the instruction that defines it and its position among the results, and passes follow \
         this reference both ways.",
    )
    .example("a value copied from another graph together with its `def`.")
    .cure("define values through `Graph::push` and leave `def` alone.");

    NO_OUTPUTS = error(
        "TPC0223",
        "no output",
        "A graph without outputs has no observable result, so every pass could empty it.",
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
        "`output state v3 = v8` gives a state its new content, so `v3` must be the value of a `state` instruction: \
         the state as the batch finds it.",
    )
    .example("the copy of a state on another place on the left of `=`.")
    .cure("name the value that `state` defines.");

    UPDATED_TWICE = error(
        "TPC0226",
        "state updated twice",
        "A state has one new content; with two, the result would depend on the order of the outputs.",
    )
    .example("two lines `output state v3 = …`.")
    .cure("apply the second update to the result of the first, and output the last.");

    STATE_CHANGES = error(
        "TPC0227",
        "update does not fit its state",
        "The next batch reads the new content as the state, so its type, place and sharding must be the state's.",
    )
    .example("a cache split over the devices that is updated with a whole value.")
    .cure("shard, convert or move the new content first.");

    STATE_NAME = error(
        "TPC0228",
        "two states of the same name",
        "States are kept from batch to batch under their names, per place; two of the same name would share their \
         content.",
    )
    .example("the caches of two layers both called `cache_k`.")
    .cure("number the names.");

    EMPTY_GROUP = error(
        "TPC0229",
        "empty group or repeated device",
        "A group is a list of different devices; the position in it is the rank. Without devices no device holds \
         its values; a device listed twice would have two ranks.",
    )
    .example("`group tp0 = [dev0, dev0]`.")
    .cure("list every device once.");

    CLASS_RANGE = error(
        "TPC0230",
        "range outside its class",
        "The range of a rank is the indices of the class that it holds. Ranges end within the size of the class. \
         Those that are not empty begin in the order of the ranks, so that each index has a primary owner, the lowest \
         rank that holds it.",
    )
    .example("`size 8 ranges [0:4, 4:8]`, where `4:8` means eight indices.")
    .cure("give start and length, ascending.");

    CLASS_GAP = error(
        "TPC0231",
        "index on no device",
        "An index of a class that no device holds would be lost: weights would not be loaded and results not \
         computed.",
    )
    .example("`size 8 ranges [0:3, 4:4]` lacks index 3.")
    .cure("extend one of the ranges.");

    CLASS_RANKS = error(
        "TPC0232",
        "ranges and devices differ in count",
        "A class that splits a value of a group has a range for every rank of the group.",
    )
    .example("a class with two ranges on a group of four devices.")
    .cure("give one range per device; an idle device has the empty range `0:0`.");

    LEAF_SIZE = error(
        "TPC0233",
        "size of a leaf differs from its class",
        "The size of a split leaf is the size of its class, divided by the divisor of the reference. Text cannot \
         violate this; a pass that builds trees can.",
    )
    .example("a leaf of 7 indices split by a class of 8.")
    .cure("take the size from the class.");

    UNSPLIT = error(
        "TPC0234",
        "axis tree not in normal form",
        "Trees are compared for equality, so each split has one spelling: nested products and sums are \
         flattened, neighbouring whole leaves merged, factors 1 and empty segments left out, and whole axes not \
         named.",
    )
    .example("`split(0: 2*4*c0)`, whose normal form is `8*c0`.")
    .cure("build shardings with `Sharding::split`.");

    OP_TEXT = error(
        "TPC0235",
        "op without text form",
        "An op and what its text form parses to must be equal, so that no graph changes by being printed and \
         read.",
    )
    .example("an `eps` that is NaN, or a `swiglu` with a `limit`, which only `swiglu_oai` has.")
    .cure("leave unused parameters zero.");

    OPERANDS = error(
        "TPC0236",
        "an op does not accept its operands",
        "The operands have types that the op does not accept; the message names the sizes or the elements that disagree.",
    )
    .example("`mul_mat` of rows of 4096 and 2048 elements.")
    .cure("correct the operands or the attributes.");

    RESULT_COUNT = error(
        "TPC0237",
        "result type differs from the inferred one",
        "The types of results follow from those of the operands, in number and in every size.",
    )
    .example("the sum of two f32 values declared as f16.")
    .cure("declare the type in the message.");

    LEAF_RESULTS = error(
        "TPC0238",
        "leaf with several results",
        "A weight, an input and a state define one value each.",
    )
    .example("`v0: …, v1: … = weight {…}`.")
    .cure("write an instruction per value.");

    PARTIAL_BLOCK = error(
        "TPC0239",
        "rows are not whole blocks",
        "Quantised elements are stored in blocks along axis 0, and a row begins with a block. Only a part of a weight, one run \
         of its rows' elements, may be cut finer: at every 32 elements of a block of 128 or 256, as devices store it that \
         take blocks to pieces.",
    )
    .example("`q4_k[300, 8]`, where blocks have 256 elements.")
    .cure("cut at blocks only (a sharding's `granule` widens ranges to blocks), or decode the tensor first.");

    PARTS = error(
        "TPC0240",
        "malformed parts",
        "The parts of a weight or a state are, for each of the four axes, the ranges of the model's tensor that a \
         device stores, one after another. They ascend without overlap, consist of whole blocks (one run of a weight: \
         of 32 elements of a longer block) and have as many indices as the axis.",
    )
    .example("`parts = [[0:256], [0:8]]`, which lacks two axes.")
    .cure("let lowering make them.");

    INPUT_TYPE = error(
        "TPC0241",
        "type of an input differs from its kind",
        "The kind of an input prescribes its type, by which the runtime fills it.",
    )
    .example("`f32[n_tokens]` with `{kind = tokens}`, which is `i32[n_tokens]`.")
    .cure("declare that type, or make it an input by name.");

    SUMMED = error(
        "TPC0242",
        "sum of integers or of blocks",
        "`all_reduce` and `reduce_scatter` add elements, which must be plain real numbers: integers are indices \
         here, and sums of quantised blocks do not exist.",
    )
    .example("`all_reduce` of token ids.")
    .cure("reduce f32 values.");

    BLOCKS = error(
        "TPC0243",
        "quantised operand of an op that cannot read it",
        "Quantised elements are read by the ops that decode blocks (`mul_mat`, `mul_mat_id`, `get_rows`, \
         `flash_attn`, `set_rows` into a cache), and by those that move whole blocks. A part of a weight whose rows end \
         inside blocks is read by products only.",
    )
    .example("`rms_norm` of a q8_0 weight, or a slice of q4_k rows that begins at element 100.")
    .cure("decode with `get_rows`, or store the tensor in f16.");

    TWO_PLACES = error(
        "TPC0244",
        "operands at different places",
        "An op runs at one place and reads its operands there; transfers are explicit, so that their cost is \
         visible.",
    )
    .example("`add` of a value on the host and one on `dev0`.")
    .cure("`copy` one of them.");

    RESULT_PLACE = error(
        "TPC0245",
        "result at a different place than the operands",
        "An op leaves its results where it runs. Only `copy` moves values.",
    )
    .example("`relu` of a value on `dev0` with a result on `dev1`.")
    .cure("declare the result there and copy it.");

    PARTICIPANT = error(
        "TPC0246",
        "wrong participants of a collective",
        "A collective takes one value of a group, or one value on each of several different devices.",
    )
    .example("`all_reduce` of two values on `dev0`, or of one on the host.")
    .cure("give one operand per device.");

    PARTICIPANT_RESULT = error(
        "TPC0247",
        "collective's results are misplaced",
        "Each participant of a collective gets its result: result `i` is where operand `i` is.",
    )
    .example("operands on `dev0` and `dev1`, results on `dev1` and `dev0`.")
    .cure("declare the results in the order of the operands.");

    INPUT_PLACE = error(
        "TPC0248",
        "input on a device",
        "Callers hand inputs to the host; from there they are copied, so that the transfer is visible.",
    )
    .example("`v0: i32[n_tokens] @dev0 = input {kind = tokens}`.")
    .cure("declare it `@host` and add a `copy`.");

    SHARDED_ALONE = error(
        "TPC0249",
        "sharding on a single place",
        "Shardings divide values among the devices of a group. The host and a single device hold whole values, \
         and reduced ones.",
    )
    .example("`v1: f32[8] @dev0 partial`.")
    .cure("remove the sharding, or put the value on a group.");

    SHARDING_TREE = error(
        "TPC0250",
        "a sharding does not fit its axis",
        "A split leaf names a declared class, or a quotient of one by a divisor of its size. The factors of a tree make up \
         the size of the axis. The class has a range for every device of the group.",
    )
    .example("`split(0: c0*64)` on an axis of 100.")
    .cure("name a declared class, and factors that make up the size.");

    SHARDING_SPLIT_AND_UNREDUCED = error(
        "TPC0251",
        "split and unreduced at once",
        "A value is either split over the devices, or a sum over them that is not reduced yet. With both, no device would \
         know which parts to add.",
    )
    .example("`@tp0 split(0: c0) partial`.")
    .cure("reduce the value before it is split.");

    SHARDING_SPLIT_TWICE = error(
        "TPC0252",
        "split twice",
        "Two classes split one term of a value: each device would hold the crossing of two ranges, and no device the rest.",
    )
    .example("`split(0: c0, 1: c1)`.")
    .cure("split one factor of each term.");

    SHARDING_GRANULE = error(
        "TPC0253",
        "storage granule that does not fit",
        "A storage granule widens the range of a device to what it stores together. Only a weight that is split on axis 0 \
         has one. It is the block of the weight's type or, where devices take blocks to pieces, a multiple of 32 that \
         divides the block.",
    )
    .example("`split(0: c0 granule 256)` on an activation.")
    .cure("remove `granule`, or write the block length of the weight's type, or 32 where that is longer.");

    SHARDING_BLOCKS = error(
        "TPC0254",
        "a device holds parts of blocks",
        "A quantised tensor is stored in blocks along axis 0. Only a storage granule lets ranges end inside them, and then \
         each device holds one run.",
    )
    .example("a `q4_k` weight with ranges of 128.")
    .cure("end ranges at block boundaries, or give the weight a `granule`.");

    SHARDING_EQUATION = error(
        "TPC0255",
        "an op's rule does not hold",
        "The equations of an op's sharding rule relate the factors of its operands and results. The two sides of one are \
         split differently.",
    )
    .example("`add` of a value split by heads and one split by another class.")
    .cure("split operands and results by the same factors.");

    SHARDING_WHOLE = error(
        "TPC0256",
        "a factor must be whole",
        "The op mixes all indices of the factor, so every device needs all of them.",
    )
    .example("`soft_max` over a split axis, `rope` on parts of a head.")
    .cure("gather the operand first, or split another factor.");

    SHARDING_NORM = error(
        "TPC0257",
        "a norm over a split axis",
        "Each device sees only its part of the row, so its statistic would be wrong.",
    )
    .example("`rms_norm` of a value with `split(0: c0)`.")
    .cure("use `norm_stats`, `all_reduce` and `norm_apply`.");

    SHARDING_ONE_RANGE = error(
        "TPC0258",
        "an axis is not one range per device",
        "An axis that is read by index must be one range of one factor on each device. A contraction over several segments \
         must be split in all of them or in none.",
    )
    .example("`get_rows` from a table whose rows are `c0 + 16`.")
    .cure("split the whole of an indexed axis, and all segments of a contraction.");

    SHARDING_UNREDUCED_RESULT = error(
        "TPC0259",
        "a result is wrongly reduced or unreduced",
        "The operands and the split factors decide whether a result is reduced, `partial` or `owner_masked`. The graph \
         declares another of the three.",
    )
    .example("`mul_mat` contracted over a split factor, with a result that is not `partial`.")
    .cure("declare the result as the message says.");

    SHARDING_UNREDUCED_OPERAND = error(
        "TPC0260",
        "an op does not accept an unreduced operand",
        "The op is not linear in the operand, or another operand is split, so the sum must be reduced first.",
    )
    .example("`silu` of a `partial` value.")
    .cure("add an `all_reduce` before the op.");

    SHARDING_TRANSFER = error(
        "TPC0261",
        "a transfer of the wrong value",
        "Copies and gathers move values that are not unreduced; `all_reduce` and `reduce_scatter` take unreduced values, \
         and nothing else. A gather takes, and a scatter makes, ranges of the op's axis.",
    )
    .example("`all_reduce` of a mirrored value, which would count it once per device.")
    .cure("reduce unreduced values, and only those, before they move.");

    SHARDING_LEAF = error(
        "TPC0262",
        "an unreduced leaf",
        "Weights, inputs and states are whole or split: no op has made them a sum.",
    )
    .example("`weight … partial`.")
    .cure("remove `partial`.");

    STAGE = error(
        "TPC0263",
        "graph of another stage",
        "Each stage has an invariant of its own: a model is on the host, a placed graph has no shardings, and programs \
         have no values on groups. Text does not name its stage, so it cannot violate this; a pass that is left out can.",
    )
    .example("a sharded graph given to the interpreter.")
    .cure("run the pass that leads to the stage.");

    LAYER = error(
        "TPC0264",
        "layer beyond the last",
        "Layers are numbered from 0 to 65535.",
    )
    .example("an instruction of layer 4294967295.")
    .cure("number the layers from 0 on.");

    TOO_LARGE = error(
        "TPC0265",
        "too many elements",
        "The number of elements of a value is at most 2^64 − 1, or has at most 2^63 − 1 of each product of symbols.",
    )
    .example("`f32[4294967296, 4294967296]`.")
    .cure("correct the sizes.");

    WEIGHT_SIZE = error(
        "TPC0266",
        "a weight whose size varies",
        "A weight is a tensor of a file: its sizes are numbers, the same for every batch.",
    )
    .example("`f32[8, n_tokens] @dev0 = weight {tensor = \"a\"}`.")
    .cure("declare the sizes that the tensor has in the file.");
}
