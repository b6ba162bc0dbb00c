//! GBNF grammars.

use serde_json::Value;
use tpc_grammar::Grammar;

use super::vocabularies::Model;
use super::walk::{permits, walk};

/// The grammar of JSON in llama.cpp's style.
pub(crate) const JSON: &str = r#"
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,2})? ws

# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
"#;

/// Returns all texts of these letters up to a length.
fn texts(letters: &[char], longest: usize) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut from = 0;
    for _ in 0..longest {
        let end = out.len();
        for i in from..end {
            out.extend(
                letters
                    .iter()
                    .map(|&c| format!("{}{c}", out[i]))
                    .collect::<Vec<_>>(),
            );
        }
        from = end;
    }
    out
}

fn balanced(text: &str) -> bool {
    let depth = text.chars().try_fold(0i32, |depth, c| {
        let depth = depth + if c == 'a' { 1 } else { -1 };
        (depth >= 0).then_some(depth)
    });
    depth == Some(0)
}

fn palindrome(text: &str) -> bool {
    text.chars().rev().eq(text.chars())
}

/// Texts of letters `a` and `b` that each grammar permits, by a predicate.
#[test]
fn grammars_permit_exactly_their_texts() {
    type Case = (&'static str, fn(&str) -> bool);
    let cases: [Case; 13] = [
        ("root ::= \"a\" root \"b\" | \"\"", |t| {
            let n = t.len() / 2;
            t == "a".repeat(n) + &"b".repeat(n)
        }),
        ("root ::= (\"a\" root \"b\")*", balanced),
        ("root ::= root \"a\" root \"b\" |", balanced),
        (
            "root ::= [ab]? | \"a\" root \"a\" | \"b\" root \"b\"",
            palindrome,
        ),
        // A greedy lexeme would take the last letter, too.
        ("root ::= [ab]* \"b\"", |t| t.ends_with('b')),
        ("root ::= item | \"b\" root\nitem ::= [ab]+ \"b\"", |t| {
            t.len() > 1 && t.ends_with('b')
        }),
        ("root ::= x root | x\nx ::= \"a\" | \"ab\" | \"aba\"", |t| {
            t.starts_with('a') && !t.contains("bb")
        }),
        (
            "root ::= \"ab\" \"a\" t | \"aba\" \"b\" t\nt ::= \"b\" t | \"b\"",
            |t| t.len() > 3 && t.starts_with("abab") && !t[3..].contains('a'),
        ),
        ("root ::= \"a\"{2} \"b\"{1,} \"a\"{0,1} \"b\"{0}", |t| {
            t.starts_with("aab") && matches!(t[2..].trim_start_matches('b'), "" | "a")
        }),
        ("root ::= (\"a\"{2,3} | root \"b\"){1}", |t| {
            matches!(t.trim_end_matches('b'), "aa" | "aaa")
        }),
        ("root ::= . [^a] | x\nx ::= x \"a\" | \"a\"", |t| {
            t.len() == 2 && t.ends_with('b') || !t.is_empty() && !t.contains('b')
        }),
        (
            "root ::= ws r ws\nr ::= \"a\" ws r | \"a\"\nws ::= \"b\"*",
            |t| t.contains('a'),
        ),
        ("root ::= (\"a\"*)* e\ne ::= e \"b\" | \"\" | ()", |t| {
            !t.contains("ba")
        }),
    ];
    let model = Model::small();
    for (text, expected) in cases {
        let grammar = Grammar::gbnf(text).unwrap();
        for answer in texts(&['a', 'b'], 5) {
            let found = permits(&grammar, &model, &answer);
            assert_eq!(found, expected(&answer), "{text}: {answer:?}");
        }
    }
}

#[test]
fn json_answers_parse() {
    let grammar = Grammar::gbnf(JSON).unwrap();
    for model in Model::all() {
        for seed in 0..6 {
            let (_, text) = walk(&grammar, &model, seed);
            match serde_json::from_str::<Value>(&text) {
                Ok(value) => assert!(value.is_object(), "{}: {text}", model.name),
                // serde_json refuses unpaired surrogates and large numbers.
                Err(e) => {
                    let known = ["surrogate", "hex escape", "out of range"];
                    let known = known.iter().any(|k| e.to_string().contains(k));
                    assert!(known, "{}: {text}: {e}", model.name);
                }
            }
        }
        for text in [
            "{}",
            "{\"a\": [1,-2.5e3 , true], \"b\":{\n  \"c\":\"\\u00e9é\"}}",
        ] {
            assert!(permits(&grammar, &model, text), "{}: {text}", model.name);
        }
        for text in ["[]", "{\"a\"}", "{\"a\":01}", "{\"a\":\"\\x\"}"] {
            assert!(!permits(&grammar, &model, text), "{}: {text}", model.name);
        }
    }
}

#[test]
fn examples_of_clients_work() {
    let arithmetic = "root ::= (expr \"=\" ws term \"\\n\")+\nexpr ::= term ([-+*/] term)*\n\
        term ::= ident | num | \"(\" ws expr \")\" ws\nident ::= [a-z] [a-z0-9_]* ws\nnum ::= [0-9]+ ws\nws ::= [ \\t\\n]*\n";
    let list = "root ::= item+\n\n# Excludes various line break characters\n\
        item ::= \"- \" [^\\r\\n\\x0b\\x0c\\x85\\u2028\\u2029]+ \"\\n\"\n";
    let japanese = "root ::= jp-char+ ([ \\t\\n] jp-char+)*\njp-char ::= hiragana | katakana\n\
        hiragana ::= [ぁ-ゟ]\nkatakana ::= [ァ-ヿ]\n";
    let cases: [(&str, &[&str], &[&str]); 5] = [
        (
            arithmetic,
            &["1+2=3\n", "(a +b) *c1 = x\n2=2\n"],
            &["1+2", "1+=3\n", "(1=1\n"],
        ),
        (list, &["- one\n- two é\n"], &["one\n", "- \n", "- a"]),
        (japanese, &["ぁァ ヿ"], &["a", "ぁ  ァ"]),
        (
            "root ::= \"yes\" | \"no\"",
            &["yes", "no"],
            &["", "y", "yesno"],
        ),
        (
            "root ::= \"\\u65e5\\U0000672c\\x21\\\"\\\\\" [\\]\\-^]",
            &["日本!\"\\]", "日本!\"\\-", "日本!\"\\^"],
            &["日本!\"\\a"],
        ),
    ];
    for model in Model::all() {
        for (text, inside, outside) in cases {
            let grammar = Grammar::gbnf(text).unwrap();
            for answer in inside {
                assert!(
                    permits(&grammar, &model, answer),
                    "{}: {text}: {answer}",
                    model.name
                );
            }
            for answer in outside {
                assert!(
                    !permits(&grammar, &model, answer),
                    "{}: {text}: {answer}",
                    model.name
                );
            }
        }
    }
}

#[test]
fn errors_name_the_place() {
    let cases = [
        ("", "the rule root is not defined"),
        ("start ::= \"a\"", "the rule root is not defined"),
        (
            "root ::= item",
            "line 1, column 10: the rule item is not defined",
        ),
        (
            "root ::= \"a\"\nroot ::= \"b\"",
            "line 2, column 1: the rule root is defined twice",
        ),
        ("root ::= \"a", "line 1, column 12: expected \""),
        ("root ::= [a", "line 1, column 12: expected ]"),
        (
            "root ::= [z-a]",
            "line 1, column 10: a range of characters ends before it begins",
        ),
        (
            "root ::= []",
            "line 1, column 10: the set of characters is empty",
        ),
        ("root ::= (\"a\"\n  \"b\"", "line 2, column 6: expected )"),
        (
            "root ::= \"a\" )",
            "line 1, column 14: expected the end of the line",
        ),
        ("root = \"a\"", "line 1, column 6: expected ::="),
        (
            "root ::= \"a\"{3,2}",
            "line 1, column 13: the upper bound is less than the lower bound",
        ),
        ("root ::= \"a\"{,2}", "line 1, column 14: expected a number"),
        ("root ::= \"\\q\"", "line 1, column 11: unknown escape"),
        (
            "root ::= \"\\ud800\"",
            "line 1, column 11: the escape names no character",
        ),
        (
            "root ::= \"\\u12é\"",
            "line 1, column 11: the escape names no character",
        ),
        (
            "root ::= <think>",
            "line 1, column 10: references to tokens are not supported",
        ),
        ("*", "line 1, column 1: expected the name of a rule"),
    ];
    for (text, expected) in cases {
        let d = Grammar::gbnf(text).unwrap_err();
        assert_eq!(
            (d.code.id, d.message.to_string().as_str()),
            ("TPC0596", expected),
            "{text}"
        );
    }
}
