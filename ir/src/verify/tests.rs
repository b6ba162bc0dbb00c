//! Graphs that text cannot express, and the catalogue; the file tests cover the rest.

use super::stage::{self, Stage};
use super::{CODES, Entity, Verified, VerifyErrorKind, verify};
use crate::op::{Clamp, Copy, Glu, GluKind, Input, InputKind, Scale, Unary, UnaryKind};
use crate::{
    AxisTree, Class, ClassData, ClassRef, Code, DType, Device, DeviceData, Dim, Graph, Group,
    GroupData, Inst, Interval, Op, Output, Place, Sharding, TensorType, Unreduced, Value,
};

fn ty() -> TensorType {
    TensorType::new(DType::F32, [Dim::constant(8)])
}

fn graph() -> Graph {
    let mut g = Graph::new("g");
    g.devices.push(DeviceData { name: "d".into() });
    g.groups.push(GroupData {
        devices: vec![Device::new(0)],
    });
    g.classes.push(ClassData {
        name: String::new(),
        size: 8,
        ranges: vec![Interval { start: 0, len: 8 }],
    });
    let kind = InputKind::Other("x".into());
    g.push(Input { kind }, vec![], vec![ty()], Place::Host, None);
    push(&mut g, relu(), Place::Host);
    g.outputs = vec![Output::Named("y".into(), Value::new(1))];
    g
}

fn relu() -> Op {
    let kind = UnaryKind::Relu;
    Unary { kind }.into()
}

fn push(g: &mut Graph, op: impl Into<Op>, place: Place) -> Inst {
    g.push(op, vec![Value::new(0)], vec![ty()], place, None)
}

fn found(g: &Graph) -> Vec<(&'static str, Entity)> {
    let errors = verify(g).err().unwrap_or_default();
    for e in &errors {
        assert!(!e.to_string().is_empty() && !e.help().is_empty());
    }
    errors.iter().map(|e| (e.code().id, e.entity)).collect()
}

#[test]
fn a_sound_graph_is_verified() {
    let g = graph();
    assert_eq!(found(&g), []);
    assert_eq!(verify(&g), Ok(()));
}

fn of_stage<S: Stage>(g: &Graph) -> Vec<&'static str> {
    let violations = Verified::<S>::new(g.clone()).err();
    let errors = violations.into_iter().flat_map(|v| v.errors);
    errors.map(|e| e.code().id).collect()
}

#[test]
fn each_stage_has_its_invariant() {
    let host = graph();
    let mut on_group = graph();
    let copy = on_group.push(
        Copy,
        vec![Value::new(1)],
        vec![ty()],
        Place::Group(Group::new(0)),
        None,
    );
    let mut split = on_group.clone();
    let copied = split.inst(copy).results[0];
    let leaf = AxisTree::Leaf {
        size: Dim::constant(8),
        split: Some(ClassRef {
            class: Class::new(0),
            div: 1,
        }),
    };
    split.value_mut(copied).sharding.axes[0] = Some(Box::new(leaf));
    let stages = |g: &Graph| {
        [
            of_stage::<stage::Model>(g),
            of_stage::<stage::Placed>(g),
            of_stage::<stage::Sharded>(g),
            of_stage::<stage::Programs>(g),
        ]
    };
    let (yes, no): (Vec<&str>, _) = (vec![], vec!["TPC0263"]);
    assert_eq!(
        stages(&host),
        [yes.clone(), yes.clone(), yes.clone(), yes.clone()]
    );
    assert_eq!(
        stages(&on_group),
        [no.clone(), yes.clone(), yes.clone(), no.clone()]
    );
    assert_eq!(stages(&split), [no.clone(), no.clone(), yes, no]);
    let violations = Verified::<stage::Programs>::new(split).expect_err("a value is on a group");
    assert_eq!(
        violations.to_string(),
        "programs graph: TPC0263: v2: it is on a group, which the stage `programs` does not allow"
    );
}

#[test]
fn every_dangling_handle_is_reported() {
    let mut g = graph();
    g.groups[0].devices.push(Device::new(7));
    g.value_mut(Value::new(0)).place = Place::Device(Device::new(8));
    g.value_mut(Value::new(1)).place = Place::Group(Group::new(9));
    let split = Some(ClassRef {
        class: Class::new(3),
        div: 0,
    });
    let size = Dim::ONE;
    let tree = AxisTree::Sum(vec![AxisTree::Leaf { size, split }]);
    g.value_mut(Value::new(1)).sharding = Sharding {
        axes: [None, None, None, Some(Box::new(tree))],
        unreduced: Unreduced::OwnerMasked(Class::new(4)),
        granule: 0,
    };
    let inst = g.push(relu(), vec![Value::new(40)], vec![ty()], Place::Host, None);
    g.outputs.push(Output::State {
        state: Value::new(50),
        value: Value::new(60),
    });
    let v = |i| Entity::Value(Value::new(i));
    let expected = [
        Entity::Group(Group::new(0)),
        v(0),
        v(1),
        v(1),
        v(1),
        Entity::Inst(inst),
        Entity::Output(1),
        Entity::Output(1),
    ];
    assert_eq!(found(&g), expected.map(|e| ("TPC0220", e)));
    assert!(
        g.to_string()
            .contains("split(3: c3/0) granule(0) owner_masked(c4)")
    );
}

#[test]
fn a_value_is_not_its_own_operand() {
    let mut g = graph();
    let inst = g.push(relu(), vec![Value::new(2)], vec![ty()], Place::Host, None);
    assert_eq!(found(&g), [("TPC0221", Entity::Inst(inst))]);
}

#[test]
fn definitions_refer_back() {
    let mut g = graph();
    g.value_mut(Value::new(1)).def.1 = 1;
    assert_eq!(found(&g), [("TPC0222", Entity::Inst(Inst::new(1)))]);
}

#[test]
fn leaves_have_the_size_of_their_class() {
    for (size, div, expected) in [
        (8, 1, true),
        (4, 2, true),
        (7, 1, false),
        (2, 3, false),
        (8, 0, false),
    ] {
        let mut g = graph();
        let split = Some(ClassRef {
            class: Class::new(0),
            div,
        });
        let size = Dim::constant(size);
        let leaf = AxisTree::Leaf { size, split };
        let data = g.value_mut(Value::new(1));
        data.sharding.axes[0] = Some(Box::new(leaf));
        let error = ("TPC0233", Entity::Value(Value::new(1)));
        assert_eq!(!found(&g).contains(&error), expected, "{div}");
    }
}

#[test]
fn parameters_that_text_cannot_express_are_reported() {
    let swiglu = Glu {
        limit: 1.0,
        ..Glu::new(GluKind::Swiglu)
    };
    let scale = |scale| Scale { scale, bias: -0.0 };
    let (min, max) = (f32::NEG_INFINITY, f32::INFINITY);
    let ops: [(Op, bool); 4] = [
        (swiglu.into(), false),
        (scale(f32::NAN).into(), false),
        (scale(-0.0).into(), true),
        (Clamp { min, max }.into(), true),
    ];
    for (op, expected) in ops {
        let mut g = graph();
        let name = format!("{op:?}");
        let inst = push(&mut g, op, Place::Host);
        let error = ("TPC0235", Entity::Inst(inst));
        assert_eq!(!found(&g).contains(&error), expected, "{name}");
    }
}

#[test]
fn unsound_graphs_accumulate_errors_of_all_sections() {
    let mut g = graph();
    g.outputs.clear();
    push(&mut g, relu(), Place::Device(Device::new(0)));
    g.value_mut(Value::new(1)).ty.dtype = DType::F16;
    let codes: Vec<_> = found(&g).iter().map(|e| e.0).collect();
    assert_eq!(codes, ["TPC0223", "TPC0237", "TPC0245"]);
    assert!(VerifyErrorKind::EmptyGroup.blocks_rule_checks());
    assert!(!VerifyErrorKind::NoOutputs.blocks_rule_checks());
}

#[test]
fn catalogues_are_well_formed() {
    let head = include_str!("mod.rs");
    let check = |codes: &[&Code], from: u16, to: u16| {
        let mut last = from;
        for code in codes {
            let number = code.number().expect("a code is TPC and a number");
            assert_eq!(code.id.len(), 7, "{code}");
            assert!((last..=to).contains(&number), "{code} is out of order");
            last = number + 1;
            assert!(
                code.title.len() < 80 && !code.title.ends_with('.'),
                "{code}"
            );
            assert!(!code.example.is_empty() && !code.cure.is_empty(), "{code}");
        }
    };
    check(crate::text::CODES, 200, 219);
    check(CODES, 220, 269);
    for doc in CODES {
        let item = format!("//! - {}: ", doc.id);
        assert_eq!(head.matches(&item).count(), 1, "{} in the list", doc.id);
    }
}
