//! The pre-tokenizer of each value of `tokenizer.ggml.pre`.
//!
//! Names and settings follow llama.cpp (`llama-vocab.cpp`). Expressions follow the models' `tokenizer.json`:
//! llama.cpp's engine lacks classes for upper and lower case, so llama.cpp changes some expressions.

use super::Spaces::{LeaveLast, LeaveLastOfLine, Powers, Whole};
use super::Step::{self, Only, Thousands, Words};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pre {
    pub(crate) name: &'static str,
    pub(crate) steps: &'static [Step],
    /// True if a word that is a token is not split.
    pub(crate) ignore_merges: bool,
    /// True if the begin token is added by default.
    pub(crate) add_bos: bool,
    pub(crate) bytes: Bytes,
    /// True if the file may lack merges: any pair that forms a token is merged, smaller ids first.
    pub(crate) may_lack_merges: bool,
    /// True if the begin token has no default id.
    pub(crate) no_default_bos: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bytes {
    /// Bytes as printable characters, with `Ġ` for the space.
    Characters,
    /// Plain bytes; the fallback token of a byte is spelled `<0x0A>`.
    Plain,
    /// Like [`Bytes::Plain`], with `▁` for spaces.
    Escaped,
    /// Like [`Bytes::Escaped`]. Runs of line breaks that form a token are not split. The begin token is always added.
    Gemma,
}

impl Pre {
    const fn new(name: &'static str, steps: &'static [Step]) -> Pre {
        Pre {
            name,
            steps,
            ignore_merges: false,
            add_bos: false,
            bytes: Bytes::Characters,
            may_lack_merges: false,
            no_default_bos: false,
        }
    }

    const fn whole(self) -> Pre {
        Pre {
            ignore_merges: true,
            ..self
        }
    }

    const fn bos(self) -> Pre {
        Pre {
            add_bos: true,
            ..self
        }
    }

    const fn bytes(self, bytes: Bytes) -> Pre {
        Pre { bytes, ..self }
    }

    const fn without_bos(self) -> Pre {
        Pre {
            no_default_bos: true,
            ..self
        }
    }
}

macro_rules! part {
    (contraction) => {
        "'(?:[sStTmMdD]|[lL][lL]|[vV][eE]|[rR][eE])"
    };
    (line) => {
        r"\s*[\r\n]+"
    };
    (upper) => {
        r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
    };
    (lower) => {
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
    };
    (ascii_word) => {
        r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"##
    };
}

/// Words in upper and lower case, each with an optional leading character. `$after` follows the letters.
macro_rules! cased {
    ($after:expr) => {
        concat!(
            r"[^\r\n\p{L}\p{N}]?",
            part!(upper),
            "*",
            part!(lower),
            "+",
            $after,
            r"|[^\r\n\p{L}\p{N}]?",
            part!(upper),
            "+",
            part!(lower),
            "*",
            $after
        )
    };
}

const GPT2_WORDS: Step = Words(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+",
    LeaveLast,
);
const DIGIT: Step = Words(r"\p{N}", Whole);
const THREE_DIGITS: Step = Words(r"\p{N}{1,3}", Whole);
const LINES: Step = Words(r"[^\n]+|[\n]+", Whole);
const BLOOM_WORDS: Step = Words(r" ?[^(\s|.,!?…。，、।۔،)]+", Whole);
const QWEN2_WORDS: Step = Words(
    concat!(
        part!(contraction),
        r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|",
        part!(line),
        r"|\s+"
    ),
    LeaveLastOfLine,
);
const HAN_AND_KANA: Step = Words(
    r"[\u{4e00}-\u{9fa5}\u{3040}-\u{309f}\u{30a0}-\u{30ff}]+",
    Whole,
);
const GPT4O_WORDS: Step = Words(
    concat!(
        cased!(concat!("(?:", part!(contraction), ")?")),
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|",
        part!(line),
        r"|\s+"
    ),
    LeaveLastOfLine,
);

const DEFAULT: &[Step] = &[
    Words(r"[\p{P}$+<=>^~|]+", Whole),
    GPT2_WORDS,
    Words(r"\p{N}+", Whole),
    Words("[0-9][0-9][0-9]", Whole),
];
const GPT2: &[Step] = &[GPT2_WORDS];
const STARCODER: &[Step] = &[DIGIT, GPT2_WORDS];
const LLAMA3: &[Step] = &[Words(
    concat!(
        part!(contraction),
        r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|",
        part!(line),
        r"|\s+"
    ),
    LeaveLastOfLine,
)];
const JAIS2: &[Step] = &[Words(
    concat!(
        part!(contraction),
        r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|",
        part!(line),
        r"|\s+"
    ),
    Powers,
)];
const MINICPM5: &[Step] = &[
    THREE_DIGITS,
    Words(
        concat!(
            part!(contraction),
            r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|",
            part!(line),
            r"|\s+"
        ),
        LeaveLastOfLine,
    ),
];
const QWEN2: &[Step] = &[QWEN2_WORDS];
const QWEN35: &[Step] = &[Words(
    concat!(
        part!(contraction),
        r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|",
        part!(line),
        r"|\s+"
    ),
    LeaveLastOfLine,
)];
const UFAKZEKA: &[Step] = &[Words(
    concat!(
        r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|",
        part!(line),
        r"|\s+"
    ),
    LeaveLastOfLine,
)];
const LAGUNA: &[Step] = &[LINES, QWEN2_WORDS];
const SEED_CODER: &[Step] = &[Words(
    concat!(
        part!(contraction),
        r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|",
        part!(line),
        r"|\s+"
    ),
    LeaveLastOfLine,
)];
const BAILING: &[Step] = &[Words(
    concat!(
        part!(contraction),
        r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+"
    ),
    LeaveLastOfLine,
)];
const EXAONE_MOE: &[Step] = &[Words(
    concat!(
        part!(contraction),
        r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+"
    ),
    LeaveLastOfLine,
)];
const DEEPSEEK_LLM: &[Step] = &[
    Words(r"[\r\n]", Whole),
    Words(r"\s?\p{Cased_Letter}+", Whole),
    Words(
        r"\s?[!-/:-~\u{ff01}-\u{ff0f}\u{ff1a}-\u{ff5e}\u{2018}-\u{201f}\u{3000}-\u{3002}]+",
        Whole,
    ),
    Words(r"\s+$", Whole),
    Words(
        r"[\u{4e00}-\u{9fa5}\u{800}-\u{4e00}\u{ac00}-\u{d7ff}]+",
        Whole,
    ),
    Words(r"\p{N}+", Whole),
];
const DEEPSEEK_CODER: &[Step] = &[
    Words(r"[\r\n]", Whole),
    Words(r"\s?\p{L}+", Whole),
    Words(r"\s?\p{P}+", Whole),
    Words(
        r"[\u{4e00}-\u{9fa5}\u{800}-\u{4e00}\u{ac00}-\u{d7ff}]+",
        Whole,
    ),
    DIGIT,
];
const DEEPSEEK3: &[Step] = &[
    THREE_DIGITS,
    HAN_AND_KANA,
    Words(
        concat!(
            part!(ascii_word),
            r"| ?[\p{P}\p{S}]+[\r\n]*|",
            part!(line),
            r"|\s+"
        ),
        LeaveLastOfLine,
    ),
];
const SPARK: &[Step] = &[
    THREE_DIGITS,
    HAN_AND_KANA,
    Words(
        concat!(part!(ascii_word), r"| ?[\p{P}\p{S}]+|[\r\n]|\s+"),
        LeaveLast,
    ),
    DIGIT,
];
const AFMOE: &[Step] = &[
    Thousands(r"\p{N}+"),
    Words(
        concat!(
            r"[\u{4e00}-\u{9fff}\u{3400}-\u{4dbf}\u{f900}-\u{faff}\u{3040}-\u{309f}\u{30a0}-\u{30ff}\u{ff65}-\u{ff9f}",
            r"\u{2f00}-\u{2fdf}\u{e40}-\u{e7f}\u{e80}-\u{eff}\u{1780}-\u{17ff}\u{1000}-\u{109f}\u{aa60}-\u{aa7f}",
            r"\u{a9e0}-\u{a9ff}\u{ac00}-\u{d7af}\u{1100}-\u{11ff}]+"
        ),
        Whole,
    ),
    Words(
        concat!(
            part!(ascii_word),
            r"| ?[\p{P}\p{S}]+[\r\n]*|",
            part!(line),
            r"|\s+"
        ),
        LeaveLastOfLine,
    ),
];
const YOUTU: &[Step] = &[
    Words(
        r"[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，\u{3001}-\u{303f}\u{fe30}-\u{fe4f}]+|[ㄅ-ㄯ]+|[\u{4e00}-\u{9fa5}\u{3040}-\u{309f}\u{30a0}-\u{30ff}]+",
        Whole,
    ),
    Words(
        concat!(
            cased!(concat!("(?:", part!(contraction), ")?")),
            r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|",
            part!(line),
            r"|\s+"
        ),
        LeaveLastOfLine,
    ),
];
const FALCON: &[Step] = &[
    Words(r"[\p{P}$+<=>^~|`]+", Whole),
    GPT2_WORDS,
    Words("[0-9][0-9][0-9]", Whole),
];
const BLOOM: &[Step] = &[BLOOM_WORDS];
const VIKING: &[Step] = &[BLOOM_WORDS, DIGIT];
const TEKKEN: &[Step] = &[Words(
    concat!(
        cased!(""),
        r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|",
        part!(line),
        r"|\s+"
    ),
    LeaveLastOfLine,
)];
const TEKKEN_THOUSANDS: &[Step] = &[
    Words(
        concat!(
            cased!(""),
            r"|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n/]*|",
            part!(line),
            r"|\s+"
        ),
        LeaveLastOfLine,
    ),
    Thousands(r"\p{N}+"),
];
const FLINT: &[Step] = &[
    THREE_DIGITS,
    HAN_AND_KANA,
    Words(
        concat!(
            cased!(concat!("(?:", part!(contraction), ")?")),
            r"| ?[\p{P}\p{S}]+[\r\n]*|",
            part!(line),
            r"|\s+"
        ),
        LeaveLastOfLine,
    ),
];
const K2_HORIZON: &[Step] = &[Words(
    concat!(
        part!(contraction),
        r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}\u{200C}\u{200D}]+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|",
        part!(line),
        r"|\s+"
    ),
    LeaveLastOfLine,
)];
const GPT4O: &[Step] = &[GPT4O_WORDS];
const TINY_AYA: &[Step] = &[Thousands(r"\d+\b"), GPT4O_WORDS];
const KIMI: &[Step] = &[Words(
    concat!(
        r"\p{Han}+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?:",
        part!(contraction),
        r")?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?:",
        part!(contraction),
        r")?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|",
        part!(line),
        r"|\s+"
    ),
    LeaveLastOfLine,
)];
const SUPERBPE: &[Step] = &[Words(r"\p{N}+", Whole), Thousands("[0-9]+")];
const CHAMELEON: &[Step] = &[
    Words("<sentinel:[0-9]+>", Whole),
    Words("IMGIMG[A-I]{1,4}Z", Whole),
    Words(r"[\t\n]|    |  ", Whole),
    DIGIT,
    Words(r"[\p{P}!-/:-@\[-`{-~]", Whole),
    GPT2_WORDS,
];
const RAW_LINES: &[Step] = &[LINES];
const WHITESPACE: &[Step] = &[Only(r"\S+")];

const TABLE: &[Pre] = &[
    Pre::new("a.x-4.0", GPT2),
    Pre::new("afmoe", AFMOE),
    Pre::new("bailingmoe", BAILING),
    Pre::new("bailingmoe2", BAILING),
    Pre::new("bloom", BLOOM),
    Pre::new("chameleon", CHAMELEON).bos(),
    Pre::new("chatglm-bpe", LLAMA3).without_bos(),
    Pre::new("codeshell", STARCODER),
    Pre::new("cohere2moe", TINY_AYA),
    Pre::new("command-r", STARCODER),
    Pre::new("dbrx", LLAMA3),
    Pre::new("deepseek-coder", DEEPSEEK_CODER),
    Pre::new("deepseek-llm", DEEPSEEK_LLM),
    Pre::new("deepseek-r1-qwen", QWEN2),
    Pre::new("deepseek-v3", DEEPSEEK3),
    Pre::new("default", DEFAULT),
    Pre::new("exaone", STARCODER),
    Pre::new("exaone-moe", EXAONE_MOE),
    Pre::new("exaone4", GPT2),
    Pre::new("f2llmv2", QWEN2),
    Pre::new("falcon", FALCON),
    Pre::new("falcon-h1", LLAMA3).whole().bos(),
    Pre::new("falcon3", LLAMA3).whole().bos(),
    Pre::new("flint", FLINT),
    Pre::new("gemma4", RAW_LINES).bytes(Bytes::Gemma),
    Pre::new("gigachat", GPT2),
    Pre::new("glm4", LLAMA3).without_bos(),
    Pre::new("gpt-2", GPT2),
    Pre::new("gpt-4o", GPT4O),
    Pre::new("gpt3-finnish", BLOOM),
    Pre::new("granite-docling", GPT2),
    Pre::new("granite-embed-multi-311m", RAW_LINES).bytes(Bytes::Gemma),
    Pre::new("granite-embed-multi-97m", GPT4O).whole(),
    Pre::new("grok-2", QWEN2),
    Pre::new("hunyuan", QWEN2),
    Pre::new("hunyuan-dense", DEEPSEEK3),
    Pre::new("hy_v4", DEEPSEEK3),
    Pre::new("jais", GPT2),
    Pre::new("jais-2", JAIS2),
    Pre::new("jina-de", GPT2),
    Pre::new("jina-es", GPT2),
    Pre::new("jina-v1-en", GPT2),
    Pre::new("jina-v2-code", GPT2),
    Pre::new("jina-v2-de", GPT2),
    Pre::new("jina-v2-es", GPT2),
    Pre::new("jina-v5-nano", LLAMA3).whole().bos(),
    Pre::new("joyai-llm", DEEPSEEK3),
    Pre::new("k2-horizon", K2_HORIZON),
    Pre::new("kanana2", GPT4O),
    Pre {
        may_lack_merges: true,
        ..Pre::new("kimi-k2", KIMI)
    },
    Pre::new("kormo", QWEN2),
    Pre::new("laguna", LAGUNA),
    Pre::new("lfm2", LLAMA3).whole().bos(),
    Pre::new("llada-moe", BAILING),
    Pre::new("llama-bpe", LLAMA3).whole().bos(),
    Pre::new("llama-v3", LLAMA3).whole().bos(),
    Pre::new("llama3", LLAMA3).whole().bos(),
    Pre::new("llama4", GPT4O),
    Pre::new("megrez", QWEN2),
    Pre::new("mellum", GPT2),
    Pre::new("mellum2", STARCODER),
    Pre::new("midm-2.0", LLAMA3).whole().bos(),
    Pre::new("minerva-7b", STARCODER),
    Pre::new("minicpm5", MINICPM5).whole(),
    Pre::new("minimax-m2", GPT4O),
    Pre::new("modern-bert", GPT2),
    Pre::new("mpt", GPT2),
    Pre::new("olmo", GPT2),
    Pre::new("phi-2", GPT2),
    Pre::new("pixtral", LLAMA3).whole().bos(),
    Pre::new("poro-chat", BLOOM),
    Pre::new("qwen2", QWEN2),
    Pre::new("qwen35", QWEN35),
    Pre::new("refact", STARCODER),
    Pre::new("roberta-bpe", GPT2),
    Pre::new("sarvam-moe", RAW_LINES).bytes(Bytes::Escaped),
    Pre::new("seed-coder", SEED_CODER),
    Pre::new("smaug-bpe", LLAMA3),
    Pre::new("smollm", STARCODER),
    Pre::new("solar-open", QWEN2),
    Pre::new("spark2_5", SPARK),
    Pre::new("stablelm2", QWEN2),
    Pre::new("starcoder", STARCODER),
    Pre::new("superbpe", SUPERBPE),
    Pre::new("talkie", GPT4O),
    Pre::new("tekken", TEKKEN).whole().bos(),
    Pre::new("tekken-num3", TEKKEN_THOUSANDS).whole().bos(),
    Pre::new("tiny_aya", TINY_AYA),
    Pre::new("trillion", GPT2),
    Pre::new("ufakzeka", UFAKZEKA),
    Pre::new("viking", VIKING),
    Pre::new("whitespace", WHITESPACE).bytes(Bytes::Plain),
    Pre::new("youtu", YOUTU).whole(),
];

pub(crate) fn find(name: &str) -> Option<&'static Pre> {
    TABLE.iter().find(|p| p.name == name)
}

/// Returns all names, in alphabetical order.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|p| p.name)
}
