use tpc_ir::op::TypeError;

use super::*;
use crate::{ArchError, CODES};

/// Returns one error of every kind of this module.
fn every_error() -> Vec<ArchError> {
    let (key, found, expected) = ("k".to_owned(), "f".to_owned(), "e".to_owned());
    let name = "t".to_owned();
    vec![
        ArchError::Unsupported {
            found: found.clone(),
            nearest: Some("llama"),
            reason: None,
        },
        ArchError::OutOfRange {
            key: key.clone(),
            found: found.clone(),
            expected: expected.clone(),
        },
        ArchError::Contradiction {
            key: key.clone(),
            found: found.clone(),
            with: key.clone(),
            expected,
        },
        ArchError::EmptyLayer {
            layer: 3,
            key: key.clone(),
        },
        ArchError::RopeScaling {
            key: key.clone(),
            found: found.clone(),
        },
        ArchError::Overflow {
            what: "w",
            of: found,
        },
        ArchError::MissingTensor {
            name: name.clone(),
            expected: [1; 4],
            split_experts: true,
        },
        ArchError::WrongShape {
            name: name.clone(),
            found: [1; 4],
            expected: [2, 3, 1, 1],
            axis: 0,
            meaning: key.clone(),
        },
        ArchError::WrongElements {
            name: name.clone(),
            found: DType::I32,
            expected: "real numbers",
        },
        ArchError::MissingPartner {
            present: name.clone(),
            missing: name,
        },
        ArchError::CacheType {
            option: "--cache-type-k",
            dtype: DType::Q4K,
            what: "key heads",
            size: 80,
            layer: 0,
            reason: "r",
        },
        ArchError::ContextTooLong {
            found: 2,
            limit: 1,
            key,
        },
        ArchError::Inconsistent {
            model: "m".into(),
            op: "rope",
            operands: Vec::new(),
            source: Box::new(TypeError::Overflow),
        },
        ArchError::NoDrafts {
            arch: "a",
            reason: "r".into(),
        },
    ]
}

fn lacking() -> Vec<ArchError> {
    vec![ArchError::HeadsSelect {
        arch: "minimax-m3",
        found: 512,
        limit: 256,
    }]
}

#[test]
fn every_code_is_documented_once_and_used() {
    let used: Vec<_> = every_error()
        .iter()
        .chain(&lacking())
        .map(ArchError::code)
        .collect();
    let documented: Vec<_> = CODES.to_vec();
    assert_eq!(used, documented);
    assert!(CODES.windows(2).all(|w| w[0] < w[1]));
    for code in CODES {
        assert!(matches!(code.number(), Some(150..180)));
        assert!(!code.example.is_empty() && !code.cure.is_empty());
    }
}

#[test]
fn every_error_has_a_message_and_help() {
    for error in every_error().into_iter().chain(lacking()) {
        assert!(!error.to_string().is_empty());
        assert!(!error.help().is_empty());
    }
}

#[test]
fn an_unknown_architecture_gets_a_suggestion_and_the_list() {
    let error = lower(&header(&metadata("qwen3mo"), &[]), &OPTIONS).unwrap_err();
    assert_eq!(error.code(), "TPC0150");
    assert!(error.to_string().contains("did you mean \"qwen3moe\"?"));
    let names: Vec<&str> = ARCHS.iter().map(|a| a.name).collect();
    assert!(error.help().contains(&names.join(", ")));
    let stranger = lower(&header(&metadata("t5"), &[]), &OPTIONS).unwrap_err();
    assert!(!stranger.to_string().contains("did you mean"));
}
