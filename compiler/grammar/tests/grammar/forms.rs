//! Regular expressions and Lark grammars.

use tpc_grammar::Grammar;

use super::vocabularies::Model;
use super::walk::permits;

#[test]
fn regular_expressions_match_whole_answers() {
    let model = Model::small();
    let cases: [(&str, &[&str], &[&str]); 6] = [
        ("(yes|no)", &["yes", "no"], &["", "yesno", " yes"]),
        ("^[a-c]+$", &["abc"], &["abcd", ""]),
        ("a/b\\$", &["a/b$"], &["a/b"]),
        ("", &[""], &["a"]),
        ("\\d{3}-\\d{2}", &["123-45"], &["12-345"]),
        ("[é日]?x", &["éx", "日x", "x"], &["é"]),
    ];
    for (text, inside, outside) in cases {
        let grammar = Grammar::regex(text).unwrap();
        for answer in inside {
            assert!(permits(&grammar, &model, answer), "{text}: {answer}");
        }
        for answer in outside {
            assert!(!permits(&grammar, &model, answer), "{text}: {answer}");
        }
    }
}

#[test]
fn lark_grammars_nest() {
    let text =
        "start: sum\nsum: term (\"+\" term)*\nterm: NUMBER | \"(\" sum \")\"\nNUMBER: /[0-9]+/\n";
    let grammar = Grammar::lark(text).unwrap();
    for model in Model::all() {
        for (answer, fits) in [
            ("1+(2+34)+5", true),
            ("((7))", true),
            ("1+", false),
            ("(1", false),
        ] {
            assert_eq!(
                permits(&grammar, &model, answer),
                fits,
                "{}: {answer}",
                model.name
            );
        }
    }
}
