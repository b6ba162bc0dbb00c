use std::collections::HashSet;

use super::error::{VerifyError, VerifyErrorKind as Kind};
use crate::entity::Inst;
use crate::graph::{Graph, InstData};
use crate::op::Op;
use crate::place::Place;
use crate::sharding::Sharding;
use crate::text::Entity;

pub(super) fn check(graph: &Graph, errors: &mut Vec<VerifyError>) {
    for (inst, data) in graph.insts() {
        let operands: Vec<Place> = data
            .operands
            .iter()
            .map(|&v| graph.value(v).place)
            .collect();
        match &data.op {
            op if op.is_collective() => collective(graph, inst, data, &operands, errors),
            Op::Copy(_) => {}
            Op::Input(_) => {
                for &value in &data.results {
                    let place = graph.value(value).place;
                    if place != Place::Host {
                        let kind = Kind::InputPlace { place };
                        errors.push(VerifyError::new(kind, Entity::Value(value)));
                    }
                }
            }
            _ => check_one_place(graph, inst, data, &operands, errors),
        }
    }
    for (value, data) in graph.values() {
        let place = data.place;
        let alone = !matches!(place, Place::Group(_));
        if alone && data.sharding != Sharding::mirrored() {
            let kind = Kind::ShardedAlone { place };
            errors.push(VerifyError::new(kind, Entity::Value(value)));
        }
    }
}

fn check_one_place(
    graph: &Graph,
    inst: Inst,
    data: &InstData,
    operands: &[Place],
    errors: &mut Vec<VerifyError>,
) {
    let Some(&first) = operands.first() else {
        return;
    };
    let op = data.op.name();
    for (operand, &place) in operands.iter().enumerate() {
        if place != first {
            let kind = Kind::TwoPlaces {
                op,
                first,
                operand,
                place,
            };
            errors.push(VerifyError::new(kind, Entity::Inst(inst)));
        }
    }
    for &value in &data.results {
        let found = graph.value(value).place;
        if found != first {
            let expected = first;
            let kind = Kind::ResultPlace {
                op,
                expected,
                found,
            };
            errors.push(VerifyError::new(kind, Entity::Value(value)));
        }
    }
}

fn collective(
    graph: &Graph,
    inst: Inst,
    data: &InstData,
    operands: &[Place],
    errors: &mut Vec<VerifyError>,
) {
    let op = data.op.name();
    let mut error = |kind| errors.push(VerifyError::new(kind, Entity::Inst(inst)));
    let mut seen = HashSet::new();
    for (operand, &place) in operands.iter().enumerate() {
        let fits = match place {
            Place::Host => false,
            Place::Device(d) => seen.insert(d),
            Place::Group(_) => operands.len() == 1,
        };
        if !fits {
            error(Kind::Participant { op, operand, place });
        }
    }
    for (result, (&value, &expected)) in data.results.iter().zip(operands).enumerate() {
        let found = graph.value(value).place;
        if found != expected {
            error(Kind::ParticipantResult {
                op,
                result,
                expected,
                found,
            });
        }
    }
}
