use super::accesses::reads;
use super::structure::{covering_launches, is_leaf};
use super::{ProgramError, codes};
use crate::entity::{Arena, Buffer, Launch, Value};
use crate::interval::Interval;
use crate::op::{Op, OpCategory};
use crate::program::text::Part;
use crate::program::{ALIGNMENT, ArenaKind, Extent, Home, Layout, Program, StorageFormat};

pub(super) fn check(program: &Program, errors: &mut Vec<ProgramError>) {
    let covering = covering_launches(program);
    for (value, data) in program.graph.values() {
        let inst = program.graph.inst(data.def.0);
        let covered = covering[data.def.0.index()].is_some();
        let Some(home) = program.home(value) else {
            continue;
        };
        let known = match () {
            () if is_leaf(&inst.op) => Ok(()),
            () if !covered => check_view(program, value, home),
            () => Ok(()),
        };
        if let Err(what) = known.and_then(|()| check_place(program, value, home, covered)) {
            let what = format!("{value}: {what}");
            errors.push(ProgramError::new(&codes::HOME, Part::Home(value), what));
        }
        check_bounds(program, value, home, errors);
    }
    check_needed_homes(program, &covering, errors);
    buffers(program, errors);
}

fn check_view(program: &Program, value: Value, home: &Home) -> Result<(), String> {
    let graph = &program.graph;
    let data = graph.value(value);
    let inst = graph.inst(data.def.0);
    let operand = inst.operands[0];
    let of = program
        .home(operand)
        .ok_or("it views a value without a home")?;
    let (from, to) = (&graph.value(operand).ty, &data.ty);
    let layout = of.layout.view(&inst.op, from, to);
    if of.buffer != home.buffer || layout.as_ref() != Some(&home.layout) {
        return Err(format!(
            "its layout differs from the result of {}",
            inst.op.name()
        ));
    }
    if program.buffer(home.buffer).format != StorageFormat::FILE {
        return Err("it views a weight in a kernel's storage format".into());
    }
    Ok(())
}

/// Checks the arena of a value, and the layout unless the value is a view.
fn check_place(program: &Program, value: Value, home: &Home, covered: bool) -> Result<(), String> {
    let graph = &program.graph;
    let data = graph.value(value);
    let inst = graph.inst(data.def.0);
    let buffer = program.buffer(home.buffer);
    let arena = program.arena(buffer.arena);
    if arena.place != data.place {
        return Err(format!(
            "it is at {} but must be at {}",
            arena.place, data.place
        ));
    }
    let kind = |kind: ArenaKind| match arena.kind == kind {
        true => Ok(()),
        false => Err(format!("it is in an arena for {}", arena.kind.name())),
    };
    let dense = || match Layout::dense(&data.ty) == Some(home.layout.clone()) {
        true => Ok(()),
        false => Err("it does not fill a buffer".to_owned()),
    };
    match inst.op.category() {
        OpCategory::Stored if matches!(inst.op, Op::Weight(_)) => {
            kind(ArenaKind::Weights)?;
            check_rows(program, value, buffer.format)?;
            dense()
        }
        OpCategory::Stored => {
            kind(ArenaKind::States)?;
            dense()
        }
        OpCategory::Input => {
            kind(ArenaKind::Work)?;
            dense()
        }
        OpCategory::Update => {
            let operand = inst.operands[0];
            if program.home(operand) == Some(home) {
                return Ok(());
            }
            kind(ArenaKind::Work)?;
            dense()
        }
        _ if !covered => Ok(()),
        _ => {
            kind(ArenaKind::Work)?;
            dense()
        }
    }
}

fn check_rows(program: &Program, value: Value, format: StorageFormat) -> Result<(), String> {
    let dtype = program.graph.value(value).ty.dtype;
    let granule = format.granule(dtype);
    let rows = program.graph.def_op(value).parts().and_then(<[_]>::first);
    let fits = |r: &Interval| r.start.is_multiple_of(granule) && r.len.is_multiple_of(granule);
    match rows.is_none_or(|rows| rows.iter().all(fits)) {
        true => Ok(()),
        false => Err(format!(
            "its rows end inside a unit of {granule} elements of {dtype}, which {} stores whole",
            format.name()
        )),
    }
}

fn check_bounds(program: &Program, value: Value, home: &Home, errors: &mut Vec<ProgramError>) {
    let ty = &program.graph.value(value).ty;
    let buffer = program.buffer(home.buffer);
    if buffer.format != StorageFormat::FILE {
        return;
    }
    for (n, shape) in program.shapes.iter().enumerate() {
        let reach = home.layout.span_bytes(ty, &shape.most);
        if reach.is_none_or(|reach| reach > buffer.extent(n).bytes) {
            let what = format!(
                "{value} reaches beyond {} for batches of shape {n}",
                home.buffer
            );
            errors.push(ProgramError::new(&codes::BOUNDS, Part::Home(value), what));
            return;
        }
    }
}

fn check_needed_homes(
    program: &Program,
    covering: &[Option<Launch>],
    errors: &mut Vec<ProgramError>,
) {
    let graph = &program.graph;
    let mut missing = |value: Value, why: String| {
        let what = format!("{value} does not have a home: {why}");
        errors.push(ProgramError::new(&codes::LAUNCH, Part::Home(value), what));
    };
    for i in 0..program.launches.len() {
        let launch = Launch::new(i);
        for value in reads(program, launch) {
            if program.home(value).is_none() {
                missing(value, format!("{launch} reads it"));
            }
        }
    }
    for output in &graph.outputs {
        if program.home(output.value()).is_none() {
            missing(output.value(), "it is an output".into());
        }
    }
    for (inst, data) in graph.insts() {
        let leaf = is_leaf(&data.op);
        let alone =
            covering[inst.index()].is_none_or(|l| program.launch(l).covered_insts().len() == 1);
        for &v in &data.results {
            if program.home(v).is_none() && (leaf || alone) {
                missing(
                    v,
                    format!("only a home holds the result of {}", data.op.name()),
                );
            }
        }
    }
}

fn buffers(program: &Program, errors: &mut Vec<ProgramError>) {
    let mut wrong = |buffer: Buffer, what: String| {
        errors.push(ProgramError::new(
            &codes::BOUNDS,
            Part::Buffer(buffer),
            what,
        ));
    };
    let mut lasting: Vec<(Arena, Extent, Buffer)> = Vec::new();
    for (i, buffer) in program.buffers.iter().enumerate() {
        let name = Buffer::new(i);
        let arena = program.arena(buffer.arena);
        let wanted = match arena.kind {
            ArenaKind::Work => program.shapes.len(),
            ArenaKind::Weights | ArenaKind::States => 1,
        };
        if buffer.extents.len() != wanted {
            let ranges = buffer.extents.len();
            wrong(name, format!("{name} has {ranges} ranges, not {wanted}"));
            continue;
        }
        if buffer.extents.iter().any(|e| e.end() > arena.bytes) {
            wrong(name, format!("{name} reaches beyond {}", buffer.arena));
        }
        if buffer
            .extents
            .iter()
            .any(|e| !e.offset.is_multiple_of(ALIGNMENT))
        {
            wrong(
                name,
                format!("the offset of {name} is not a multiple of {ALIGNMENT} bytes"),
            );
        }
        if wanted == 1 && arena.kind != ArenaKind::Work {
            lasting.push((buffer.arena, buffer.extents[0], name));
        }
        if buffer.format != StorageFormat::FILE && arena.kind != ArenaKind::Weights {
            wrong(name, format!("{name} has a storage format for weights"));
        }
    }
    lasting.sort_by_key(|(arena, e, _)| (*arena, e.offset));
    for pair in lasting.windows(2) {
        if pair[0].0 == pair[1].0 && pair[0].1.overlaps(&pair[1].1) {
            let (a, b) = (pair[0].2, pair[1].2);
            wrong(b, format!("{b} overlaps {a}"));
        }
    }
}
