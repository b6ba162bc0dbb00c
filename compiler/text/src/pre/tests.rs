use super::*;

fn cut(name: &str, text: &str) -> Vec<String> {
    let pre = find(name).unwrap();
    let words = Splitter::new(pre.steps).words(text);
    words.into_iter().map(|w| text[w].to_owned()).collect()
}

#[track_caller]
fn check(name: &str, text: &str, expected: &str) {
    assert_eq!(cut(name, text).join("|"), expected, "{name}");
}

#[test]
fn rows_stand_in_order_and_their_expressions_match_no_empty_text() {
    let all: Vec<&str> = names().collect();
    assert!(all.windows(2).all(|w| w[0] < w[1]), "{all:?}");
    for name in all {
        for cutter in Splitter::new(find(name).unwrap().steps).0 {
            assert!(!cutter.regex.is_match(""), "{name}: {}", cutter.regex);
        }
    }
}

#[test]
fn white_space_leaves_its_last_character_to_the_word() {
    check("gpt-2", "a   b\n\n c \n", "a|  | b|\n\n| c| \n");
    check("gpt-2", "a\n\nb\t\tc", "a|\n|\n|b|\t|\t|c");
    check("llama-bpe", "a   b\n\n c \n", "a|  | b|\n\n| c| \n");
    check("llama-bpe", "a \n\n  b\n\n", "a| \n\n| | b|\n\n");
    check("llama-bpe", "a  \u{3000}b", "a|  |\u{3000}b");
    check("qwen2", "  x", " | x");
    check("qwen2", "x  ", "x|  ");
}

#[test]
fn white_space_of_jais_comes_in_powers() {
    let run = |n: usize, after: &str| {
        let text = format!("{}{after}", " ".repeat(n));
        let words = cut("jais-2", &text);
        words.iter().map(String::len).collect::<Vec<_>>()
    };
    assert_eq!(run(13, ""), [8, 4, 1]);
    assert_eq!(run(13, "x"), [8, 4, 2]);
    assert_eq!(run(1500, "x"), [512, 512, 256, 128, 64, 16, 8, 2, 1, 2]);
}

#[test]
fn contractions_know_both_cases_where_the_model_does() {
    check("gpt-2", "I'm 'RE we'Ve", "I|'m| '|RE| we|'|Ve");
    check("llama-bpe", "I'm 'RE we'Ve", "I|'m| '|RE| we|'Ve");
    check("gpt-4o", "I'm 'RE we'Ve", "I'm| '|RE| we'Ve");
    check("ufakzeka", "I'm", "I|'m");
}

#[test]
fn digits_are_cut_as_each_model_wants() {
    check("gpt-2", "x 12345", "x| 12345");
    check("llama-bpe", "x 12345", "x| |123|45");
    check("qwen2", "x 123", "x| |1|2|3");
    check("starcoder", "x 123", "x| |1|2|3");
    check("falcon", "x 12345", "x| |123|45");
    check("tiny_aya", "x 1234567 1234x", "x| |1|234|567| |123|4|x");
    check("superbpe", "ab 1234567 cd", "ab |1|234|567| cd");
    check("afmoe", "x  12345", "x|  |12|345");
    check("deepseek-v3", "x 12345", "x| |123|45");
    check("tekken-num3", "x  1234567 12", "x| | |1|234|567| |12");
    check("flint", "x 12345", "x| |123|45");
    check("k2-horizon", "x 12345", "x| |123|45");
}

#[test]
fn scripts_are_cut_as_each_model_wants() {
    check(
        "flint",
        "HelloWorld's 中文, ok",
        "Hello|World's| |中文|,| ok",
    );
    check("k2-horizon", "क्\u{200d}ष a's", "क्\u{200d}ष| a|'s");
    check("kimi-k2", "HelloWorld中文abc", "Hello|World|中文|abc");
    check("tekken", "HelloWorld ПриветМир", "Hello|World| Привет|Мир");
    check("deepseek-llm", "Hello 中文, ok", "Hello| |中文|,| ok");
    check("deepseek-coder", "a b1", "a| b|1");
    check("bloom", " Hello, world", " Hello|,| world");
    check("gemma4", "a b\n\nc", "a b|\n\n|c");
    check("whitespace", " a  b ", "a|b");
    check("chameleon", "IMGIMGBCZ  a", "IMGIMGBCZ|  |a");
    check("qwen35", "กำลัง", "กำลัง");
    check("exaone-moe", "a b c", "a b c");
}

#[test]
fn the_book_has_every_name() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/src/text.md")).unwrap();
    let section = page
        .split("\n## ")
        .find(|s| s.starts_with("Pre-tokenizers"))
        .unwrap();
    let rows = section.lines().filter(|l| l.starts_with("| `"));
    let cells = rows.map(|l| l.split('|').nth(1).unwrap());
    let mut named: Vec<&str> = cells
        .flat_map(|c| c.split('`').skip(1).step_by(2))
        .collect();
    named.sort_unstable();
    assert_eq!(named, names().collect::<Vec<_>>());
}
