//! The answer of `tpc plan`: fit, speed, reason for the split, and commands.

use std::fmt::Write;

use tpc_passes::machine::{Engine, Topology};

use super::commands::{Commands, ShellCommand};
use super::plan::{CandidateReport, DeviceReport, PlanReport};
use super::step;
use crate::format::{bytes, count, printable, shortened, speed, wrapped};
use crate::placement::SplitMode;

const LABEL: usize = 8;

struct FullestPlace<'a> {
    place: &'a DeviceReport,
    total: u64,
    usable: u64,
}

impl PlanReport {
    /// Returns the usable bytes of a device, including the bytes of additional files; `None` if the memory is unknown.
    pub fn usable_bytes(&self, device: usize) -> Option<u64> {
        let profile = self.machine.devices.get(device)?;
        let usable = |memory: f64| (memory - profile.reserve).max(0.0) as u64;
        profile.memory.map(usable)
    }

    /// Returns the usable bytes of the host. Shared memory counts as a pool instead.
    pub fn usable_host_bytes(&self) -> Option<u64> {
        let host = &self.machine.host;
        let usable = |memory: f64| (memory - host.reserve).max(0.0) as u64;
        host.memory.filter(|_| self.pool.is_none()).map(usable)
    }

    fn pool_usage(&self) -> Option<(u64, u64)> {
        self.pool
            .as_ref()
            .map(|p| (p.total_bytes, p.usable_bytes()))
    }

    fn rooms(&self) -> impl Iterator<Item = (&DeviceReport, Option<u64>)> {
        let devices = self.devices.iter().enumerate();
        let devices = devices.map(|(i, d)| (d, self.usable_bytes(i)));
        devices.chain([(&self.host, self.usable_host_bytes())])
    }

    /// True if everything fits; `None` if no device memory is known.
    pub fn fits(&self) -> Option<bool> {
        let over = self
            .rooms()
            .any(|(p, room)| room.is_some_and(|r| p.total_bytes > r))
            || self.pool_usage().is_some_and(|(total, room)| total > room);
        let known = (0..self.devices.len()).any(|d| self.usable_bytes(d).is_some());
        match over {
            true => Some(false),
            false => known.then_some(true),
        }
    }

    fn fullest(&self) -> Option<FullestPlace<'_>> {
        let known = self.rooms().filter_map(|(place, usable)| {
            Some(FullestPlace {
                place,
                total: place.total_bytes,
                usable: usable?,
            })
        });
        let mut out: Option<FullestPlace<'_>> = None;
        for f in known {
            if out.as_ref().is_none_or(|o| f.share() > o.share()) {
                out = Some(f);
            }
        }
        out
    }

    pub(super) fn largest(&self) -> Option<&DeviceReport> {
        let devices = self.devices.iter().enumerate();
        let first = devices.max_by_key(|(i, d)| (d.total_bytes, std::cmp::Reverse(*i)));
        first.map(|(_, d)| d)
    }

    /// Returns the highest ratio of used to usable memory.
    pub(super) fn fullest_share(&self) -> Option<f64> {
        self.fullest().map(|f| f.share())
    }

    fn reserve_of(&self, place: &DeviceReport) -> u64 {
        let device = self.devices.iter().position(|d| d.name == place.name);
        let device = device.filter(|_| place.kind != "host");
        let profile = device.and_then(|d| self.machine.devices.get(d));
        profile.map_or(0, |d| d.reserve as u64)
    }

    /// True if several devices hold the same bytes in memories of the same size, to the displayed precision.
    fn devices_are_alike(&self) -> bool {
        let shown = |i: usize| {
            let usable = self.usable_bytes(i).map(bytes);
            (bytes(self.devices[i].total_bytes), usable)
        };
        let n = self.devices.len();
        n > 1 && (1..n).all(|i| shown(i) == shown(0))
    }
}

impl FullestPlace<'_> {
    fn share(&self) -> f64 {
        self.total as f64 / (self.usable as f64).max(1.0)
    }
}

/// Formats a share in whole percent, or with one decimal from 99 % to 101 %.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    // For a device with hardly any memory the exact ratio is useless.
    if percent >= 10_000.0 {
        return ">9999".to_owned();
    }
    if (99.0..101.0).contains(&percent) && percent != 100.0 {
        format!("{percent:.1}")
    } else {
        format!("{percent:.0}")
    }
}

pub(super) fn answer(report: &PlanReport, width: usize) -> String {
    let mut out = wrapped(&model(report), width, 2);
    out.push_str(&wrapped(&machine(report), width, 2));
    out.push('\n');
    let own = report.engine_build.is_none();
    let bits = own.then(|| ("bits", report.bits.brief()));
    let model = report.step.as_ref().map(|s| ("model", step::brief(s)));
    for (label, text) in [
        ("fits", fits(report)),
        ("speed", speeds(report)),
        ("range", range(report)),
        ("split", split(report)),
    ]
    .into_iter()
    .chain(bits)
    .chain(model)
    {
        out.push_str(&wrapped(&format!("{label:<LABEL$}{text}"), width, LABEL));
    }
    out.push('\n');
    if report.fits() == Some(false) {
        let text = "run it: does not fit; see TPC0300 for configurations that do";
        out.push_str(&wrapped(text, width, 2));
    } else {
        out.push_str(&commands(&report.commands, width));
    }
    out
}

fn model(report: &PlanReport) -> String {
    let m = &report.model;
    let drafts = match report.drafts.as_ref().map(|d| d.blocks) {
        None => String::new(),
        Some(1) => " and 1 block that drafts".to_owned(),
        Some(n) => format!(" and {n} blocks that draft"),
    };
    format!(
        "{}: {}, {} layers{drafts}, {} parameters, {}",
        shortened(&printable(&m.name), 200),
        m.arch,
        m.n_layer,
        count(m.n_params),
        bytes(m.bytes)
    )
}

fn machine(report: &PlanReport) -> String {
    format!(
        "on {}, context {}",
        printable(&report.machine.devices_in_words()),
        report.model.n_ctx
    )
}

fn fits(report: &PlanReport) -> String {
    let alike = report.devices_are_alike();
    let subject = |place: &DeviceReport| match place.kind {
        "host" => "the host".to_owned(),
        _ if alike => "each device".to_owned(),
        _ => printable(&place.name),
    };
    let reserve = match report.fullest().map_or(0, |f| report.reserve_of(f.place)) {
        0 => String::new(),
        n => format!("; {} is reserved", bytes(n)),
    };
    let Some(fits) = report.fits() else {
        let most = report.largest().map_or_else(String::new, |d| {
            format!("; {} needs {}", subject(d), bytes(d.total_bytes))
        });
        let cure = match report.machine.of_processors() {
            true => "state it in a topology file: --topology FILE".to_owned(),
            false => format!("name the cards: --devices {}x3090", report.devices.len()),
        };
        return format!("not known (no memory given; {cure}){most}");
    };
    let Some(f) = report.fullest() else {
        return "yes".to_owned();
    };
    let (held, usable) = (bytes(f.total), bytes(f.usable));
    let share = percent(f.share());
    let subject = subject(f.place);
    if fits {
        let unknown = (0..report.devices.len()).filter(|&i| report.usable_bytes(i).is_none());
        let unknown: Vec<String> = unknown
            .map(|i| printable(&report.devices[i].name))
            .collect();
        let unknown = match unknown.as_slice() {
            [] => String::new(),
            some => format!("; the memory of {} is not given", some.join(", ")),
        };
        return format!("yes, {subject} holds {held} of {usable} ({share} %){reserve}{unknown}");
    }
    let over = |(p, room): (&DeviceReport, Option<u64>)| room.is_some_and(|r| p.total_bytes > r);
    let others = report
        .rooms()
        .filter(|r| over(*r))
        .count()
        .saturating_sub(1);
    let others = match others {
        0 => String::new(),
        _ if alike => String::new(),
        1 => "; 1 other place lacks room too".to_owned(),
        n => format!("; {n} other places lack room too"),
    };
    let lacking = bytes(f.total.saturating_sub(f.usable));
    format!(
        "no, {subject} needs {held} of {usable} ({share} %), {lacking} too many{others}{reserve}"
    )
}

fn speeds(report: &PlanReport) -> String {
    let e = &report.estimate;
    format!(
        "{} tokens/s at depth {}; prompts {} tokens/s",
        speed(e.decode_tps),
        e.depth,
        speed(e.prompt_tps)
    )
}

fn range(report: &PlanReport) -> String {
    let e = &report.estimate;
    if report.machine.assumed && report.machine.of_processors() {
        let bandwidth = report.machine.host.bandwidth;
        return format!(
            "unknown: the estimate is for a CPU that reads {:.0} GB/s, not for yours",
            bandwidth / 1e9
        );
    }
    if report.machine.assumed {
        let bandwidth = report.machine.devices.first().map_or(0.0, |d| d.bandwidth);
        return format!(
            "unknown: the estimate is for a default device ({:.1} TB/s), not for your cards",
            bandwidth / 1e12
        );
    }
    let mut out = band(report);
    let on_cards = report.machine.devices.iter().any(|d| d.processor.is_some());
    match e.engine == Engine::Tpc.name() && on_cards {
        // docs/src/card-report.md has the measurements.
        true => out.push_str(
            "if tpc's kernels match llama.cpp's: on an H200, decoding did, prompts took 5 to 16 times as long",
        ),
        false => {
            let _ = write!(out, "estimated with the profile of {}", e.engine);
        }
    }
    let host = &report.machine.host;
    // The time for one row of the embedding is negligible.
    if e.breakdown.host_us > e.decode_us / 10.0 && *host == Topology::default().host {
        let _ = write!(
            out,
            "; the host is assumed to read {:.0} GB/s",
            host.bandwidth / 1e9
        );
    }
    out
}

fn band(report: &PlanReport) -> String {
    let e = &report.estimate;
    let Some(b) = &e.band else {
        return String::new();
    };
    let range = format!("{} to {} tokens/s", speed(b.low_tps), speed(b.high_tps));
    let measurements = match b.rows {
        1 => "1 measurement".to_owned(),
        n => format!("{n} measurements"),
    };
    let percent = b.error * 100.0;
    if e.engine == Engine::Tpc.name() {
        return format!("{range}, ");
    }
    if !e.calibrated {
        let lacking = e.not_calibrated_for.join(" nor for ");
        return format!("not calibrated for {lacking}: perhaps {range}, ");
    }
    let whose = match b.of_this_machine {
        true => "this machine",
        false => "similar cards and models",
    };
    format!("{range} (±{percent:.0} %) from {measurements} of {whose}, ")
}

fn split(report: &PlanReport) -> String {
    let all = &report.considered;
    let Some(chosen) = all.iter().find(|c| c.chosen) else {
        return match (report.devices.len(), only_device(report)) {
            (1, _) => "none, there is one device".to_owned(),
            (_, Some(device)) => format!("none, all on {device}, as requested"),
            (n, None) => {
                let division = report
                    .cluster
                    .as_ref()
                    .map(|c| format!(" ({})", c.division));
                let division = division.unwrap_or_default();
                format!(
                    "{} over {n} devices{division}, as requested",
                    report.split_mode
                )
            }
        };
    };
    let fitting: Vec<&CandidateReport> = all.iter().filter(|c| c.fits).collect();
    let fastest = fitting
        .iter()
        .max_by(|a, b| a.decode_tps.total_cmp(&b.decode_tps));
    let that_fits = match report.fits() {
        Some(_) => " that fits",
        None => "",
    };
    let why = match (fastest, fitting.len()) {
        (None, _) => "no mode fits; this one lacks the least memory".to_owned(),
        (Some(_), 1) => format!("the only one that fits{}", refusals(report)),
        (Some(f), _) if chosen.decode_tps >= f.decode_tps => {
            format!("the fastest{that_fits}{}", refusals(report))
        }
        (Some(f), _) if f.within_error => format!(
            "as fast as {} within the model's error, and {}",
            f.name,
            merits(chosen, f)
        ),
        (Some(f), _) => format!(
            "{}; {} decodes {:.0} % faster",
            merits(chosen, f),
            f.name,
            (f.decode_tps / chosen.decode_tps - 1.0) * 100.0
        ),
    };
    let division = report.cluster.as_ref().map(|c| c.division);
    match (only_device(report), division) {
        (Some(device), _) => format!("none, all on {device}, {why}"),
        (None, Some(division)) => format!("{} ({division}), {why}", chosen.name),
        (None, None) => format!("{}, {why}", chosen.name),
    }
}

fn refusals(report: &PlanReport) -> String {
    let all = report.left_out.iter();
    let all: Vec<String> = all
        .map(|l| format!("; {} refuses {} ({})", l.engine, l.name, l.code))
        .collect();
    all.concat()
}

fn only_device(report: &PlanReport) -> Option<&str> {
    let devices = report.devices.iter().filter(|d| d.kind != "host");
    let most = devices.max_by_key(|d| d.weights_bytes)?;
    (report.split_mode == SplitMode::None.name()).then_some(most.name.as_str())
}

fn merits(chosen: &CandidateReport, faster: &CandidateReport) -> &'static str {
    let prompts = chosen.prompt_tps > faster.prompt_tps * 1.005;
    let memory = chosen.fullest_bytes < faster.fullest_bytes;
    match (prompts, memory) {
        (true, true) => "better for prompts and memory",
        (true, false) => "better for prompts",
        (false, true) => "with more free memory",
        (false, false) if chosen.name == SplitMode::None.name() => "one device is enough",
        (false, false) => "simpler",
    }
}

fn commands(commands: &Commands, width: usize) -> String {
    let mut out = String::new();
    let mut say = |with: &str, command: Option<&ShellCommand>, reason: Option<&String>| match (
        command, reason,
    ) {
        (Some(c), _) => {
            out.push_str(&wrapped(&format!("{with}:"), width, 2));
            out.push_str(&c.lines(width, 2));
        }
        (None, Some(why)) => {
            out.push_str(&wrapped(&format!("{with}: not possible; {why}"), width, 2));
        }
        (None, None) => {}
    };
    let c = commands;
    say("run it", c.tpc.as_ref(), c.tpc_reason.as_ref());
    let (command, reason) = (c.ik_llama_cpp.as_ref(), c.ik_llama_cpp_reason.as_ref());
    say("with ik_llama.cpp", command, reason);
    let (command, reason) = (c.llama_cpp.as_ref(), c.llama_cpp_reason.as_ref());
    say("with llama.cpp", command, reason);
    say(
        "with llama.cpp by layers",
        c.llama_cpp_by_layers.as_ref(),
        None,
    );
    for note in c.llama_cpp_order.iter().chain(&c.needs) {
        out.push_str(&wrapped(&format!("    ({})", printable(note)), width, 4));
    }
    out
}
