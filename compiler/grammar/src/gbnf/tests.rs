use super::*;

fn lark(text: &str) -> String {
    to_lark(text).unwrap()
}

#[test]
fn grammars_without_recursion_are_one_lexeme() {
    let out = lark("root ::= word (\" \" word)*\nword ::= [a-c ]+ # letters\n");
    assert_eq!(out.lines().count(), 3, "{out}");
}

#[test]
fn lexemes_are_as_large_as_the_longest_match_allows() {
    // A string ends at its quote, so it is one lexeme with the spaces after it.
    let out = lark(
        "root ::= list\nlist ::= string | \"[\" list \"]\"\nstring ::= \"\\\"\" [a-z]* \"\\\"\" \" \"*\n",
    );
    assert_eq!(out.matches("\nT").count(), 3, "{out}");
    // Letters may follow letters, so each letter is a lexeme.
    let out = lark("root ::= [a-z]+ root \"c\" | \"\"\n");
    assert!(!out.contains("+/"), "{out}");
}
