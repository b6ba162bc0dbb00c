//! Numeric options without effect on a plan. The program stops if the value is not a number.

use super::programs::Program;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Whole,
    Real,
}

/// Returns the kind of number that an option takes; `None` if the value is not numeric or affects a plan.
pub(super) fn number_of(spelling: &str, program: Program) -> Option<Number> {
    let name = match spelling.strip_prefix("--") {
        Some(rest) => format!("--{}", rest.replace('_', "-")),
        None => spelling.to_owned(),
    };
    let among = |names: &str| names.split_whitespace().any(|n| n == name);
    match () {
        // `-r` takes a text in other programs.
        () if program == Program::Bench && name == "-r" => Some(Number::Whole),
        () if among(WHOLE) => Some(Number::Whole),
        () if among(REAL) => Some(Number::Real),
        () => None,
    }
}

const WHOLE: &str = "\
    -t --threads -tb --threads-batch -td --threads-draft --spec-draft-threads -tbd --threads-batch-draft \
    --spec-draft-threads-batch --threads-http --prio --prio-batch --prio-draft --prio-batch-draft --spec-draft-prio \
    --spec-draft-prio-batch --poll -n --predict --n-predict --keep -fitc --fit-ctx --moe-cache-mib -lv --verbosity \
    --log-verbosity -s --seed --top-k --repeat-last-n --dry-allowed-length --dry-penalty-last-n --mirostat -ctxcp \
    --ctx-checkpoints --swa-checkpoints -cms --checkpoint-min-step -cram --cache-ram --image-min-tokens --image-max-tokens \
    --mtmd-batch-max-tokens --embd-normalize --port -to --timeout --sse-ping-interval --cache-reuse --models-max \
    --reasoning-budget --sleep-idle-seconds -ncmoed --n-cpu-moe-draft --spec-draft-n-cpu-moe --spec-draft-ncmoe \
    --spec-draft-n-max --spec-draft-n-min --draft --draft-n --draft-max --draft-min --draft-n-min -cd --ctx-size-draft \
    -gan --grp-attn-n -gaw --grp-attn-w --spec-ngram-mod-n-min --spec-ngram-mod-n-max --spec-ngram-mod-n-match \
    --spec-ngram-simple-size-n --spec-ngram-simple-size-m --spec-ngram-simple-min-hits --spec-ngram-map-k-size-n \
    --spec-ngram-map-k-size-m --spec-ngram-map-k-min-hits --yarn-orig-ctx --chunk --chunks --chunk-size --from-chunk \
    --hellaswag-tasks --winogrande-tasks --multiple-choice-tasks --ppl-stride --ppl-output-type --pca-batch --pca-iter \
    --junk --pos --print-token-count -ptc --output-frequency -ofreq --save-frequency --sequences -ns --epochs -epochs \
    --diffusion-steps --diffusion-block-length --repetitions --delay -mla --mla-use --mla-attn -amb --attention-max-batch";

const REAL: &str = "\
    --temp --temperature --top-p --min-p --top-nsigma --top-n-sigma --xtc-probability --xtc-threshold --typical --typical-p \
    --repeat-penalty --presence-penalty --frequency-penalty --dry-multiplier --dry-base --adaptive-target --adaptive-decay \
    --dynatemp-range --dynatemp-exp --mirostat-lr --mirostat-ent -sps --slot-prompt-similarity --draft-p-split \
    --spec-draft-p-split --draft-p-min --spec-draft-p-min --rope-scale --rope-freq-base --rope-freq-scale --yarn-ext-factor \
    --yarn-attn-factor --yarn-beta-slow --yarn-beta-fast --learning-rate -lr --learning-rate-min -lr-min --weight-decay -wd \
    --val-split -val-split --diffusion-eps --diffusion-cfg-scale --diffusion-alg-temp";

#[cfg(test)]
mod tests {
    use super::super::option_spec::Arity;
    use super::super::programs::Maker;
    use super::*;

    #[test]
    fn options_with_numbers_take_a_value() {
        let programs = [Program::General, Program::Bench];
        for name in WHOLE.split_whitespace().chain(REAL.split_whitespace()) {
            let known = programs.into_iter().any(|p| {
                let mut all = p.options(Maker::IkLlamaCpp);
                all.any(|o| o.arity == Arity::One && o.names.contains(&name))
            });
            assert!(known, "{name}");
        }
        let of = |name| programs.map(|p| number_of(name, p));
        assert_eq!(of("--top_k"), [Some(Number::Whole); 2]);
        assert_eq!(of("--grammar"), [None; 2]);
        assert_eq!(of("-r"), [None, Some(Number::Whole)]);
    }
}
