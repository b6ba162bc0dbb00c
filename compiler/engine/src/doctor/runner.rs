use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use tpc_cuda::{DeviceInfo, Driver};

use super::check::{Bench, Check, Job, Setup};
use super::report::{Checked, Finding, Report, Section, Status};
use super::table::checks;

/// Options of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// True if only the first device and the first pair run models.
    pub quick: bool,
    /// The time limit of a check. Checks that compile kernels have ten times this limit.
    pub limit: Duration,
    /// The first seed of random cases.
    pub seed: u64,
    /// The sections to run, in the order of [`Section::ALL`].
    pub sections: &'static [Section],
}

enum Message {
    /// The job with this index begins.
    Begun(usize),
    /// The job with this index has ended. `None` if it is one of several jobs with the same reason to be skipped.
    Ended(usize, Option<Finding>),
    Devices(Vec<DeviceInfo>),
}

/// Runs all checks, each section in its own thread. `observe` receives each finding at once.
///
/// If a check exceeds its limit, the later checks are skipped, and its thread continues until the process ends.
pub fn run<D: Driver + 'static>(
    setup: &Setup<D>,
    options: Options,
    observe: &mut dyn FnMut(&Checked),
) -> Report {
    let mut run = Run {
        table: Arc::new(checks::<D>()),
        options,
        report: Report::default(),
        failures: Failures::default(),
        observe,
    };
    let mut hung: Option<String> = None;
    let wanted = |s: &Section| options.sections.contains(s);
    for section in Section::ALL.into_iter().filter(wanted) {
        let table = run.table.iter().enumerate();
        let of_section = table.filter(|(_, c)| c.section == section);
        let jobs = of_section.flat_map(|(i, c)| c.jobs(i, &setup.cards, options.quick));
        let jobs: Arc<Vec<Job>> = Arc::new(jobs.collect());
        match &hung {
            Some(label) => run.skip(&jobs, 0, label),
            None => hung = run.section(setup, &jobs),
        }
    }
    run.report
}

struct Run<'o, D: Driver> {
    table: Arc<Vec<Check<D>>>,
    options: Options,
    report: Report,
    failures: Failures,
    observe: &'o mut dyn FnMut(&Checked),
}

impl<D: Driver + 'static> Run<'_, D> {
    fn limit(&self, job: &Job) -> Duration {
        self.options.limit * self.table[job.check].patience
    }

    fn add(&mut self, job: &Job, finding: Finding) {
        let check = &self.table[job.check];
        let checked = Checked {
            section: check.section,
            check: check.name,
            cards: job.cards.clone(),
            name: job.label.clone(),
            finding,
        };
        self.failures.add(&checked);
        (self.observe)(&checked);
        self.report.checks.push(checked);
    }

    /// Reports jobs from `first` as skipped, one line per check.
    fn skip(&mut self, jobs: &[Job], first: usize, hung: &str) {
        let mut last = None;
        for job in jobs.iter().skip(first) {
            if last.replace(job.check) != Some(job.check) {
                let job = self.of_machine(job);
                self.add(&job, Finding::skipped(format!("`{hung}` did not end")));
            }
        }
    }

    /// Returns the job of the check without devices.
    fn of_machine(&self, job: &Job) -> Job {
        Job {
            check: job.check,
            subject: Vec::new(),
            cards: Vec::new(),
            label: self.table[job.check].name.to_owned(),
        }
    }

    /// Runs the jobs of a section. Returns the name of a check that did not end.
    fn section(&mut self, setup: &Setup<D>, jobs: &Arc<Vec<Job>>) -> Option<String> {
        let (send, receive) = mpsc::channel();
        let worker = Worker {
            table: Arc::clone(&self.table),
            jobs: Arc::clone(jobs),
            failures: self.failures.clone(),
            send,
        };
        let (setup, options) = (setup.clone(), self.options);
        let cards = setup.cards.clone();
        let spawned = thread::Builder::new()
            .name("doctor".to_owned())
            .spawn(move || worker.run(Bench::new(setup, options.quick, options.seed)));
        if let (Err(e), Some(job)) = (spawned, jobs.first()) {
            let cure = "raise the limit of processes (`ulimit -u`)";
            self.add(job, Finding::failed(format!("no thread: {e}"), cure));
            return Some(job.label.clone());
        }
        self.collect(&receive, jobs, &cards)
    }

    /// Collects the findings of a worker until it ends or a check exceeds its limit.
    fn collect(
        &mut self,
        receive: &Receiver<Message>,
        jobs: &[Job],
        cards: &[u32],
    ) -> Option<String> {
        let mut current: Option<(usize, Instant)> = None;
        loop {
            let left = match current {
                Some((i, begun)) => self.limit(&jobs[i]).saturating_sub(begun.elapsed()),
                None => self.options.limit,
            };
            match receive.recv_timeout(left) {
                Ok(Message::Begun(i)) => current = Some((i, Instant::now())),
                Ok(Message::Ended(i, finding)) => {
                    current = None;
                    if let Some(finding) = finding {
                        let machine = finding.status == Status::Skipped
                            && self.failures.of_machine(self.table[jobs[i].check].after);
                        let job = self.of_machine(&jobs[i]);
                        self.add(if machine { &job } else { &jobs[i] }, finding);
                    }
                }
                Ok(Message::Devices(infos)) => {
                    self.report.devices = cards.iter().copied().zip(infos).collect();
                }
                Err(RecvTimeoutError::Timeout) => {
                    // Without a current check, the section's driver does not close.
                    let i = current.map_or(jobs.len().saturating_sub(1), |(i, _)| i);
                    let job = jobs.get(i)?;
                    let seconds = self.limit(job).as_secs_f64();
                    let text = format!("the check did not end within {seconds} s");
                    let cure =
                        "check the system log (`dmesg`) and `nvidia-smi`, then restart the machine";
                    self.add(job, Finding::failed(text, cure));
                    self.skip(jobs, i + 1, &job.label);
                    return Some(job.label.clone());
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let (i, _) = current?;
                    let finding = Finding::failed(
                        "the check stopped with an internal error",
                        super::report::REPORT_BUG,
                    );
                    self.add(&jobs[i], finding);
                    self.skip(jobs, i + 1, &jobs[i].label);
                    return None;
                }
            }
        }
    }
}

/// The checks that failed, with their cards.
#[derive(Clone, Default)]
struct Failures(Vec<(&'static str, Vec<u32>, String)>);

impl Failures {
    fn add(&mut self, checked: &Checked) {
        if checked.finding.status == Status::Failed {
            let name = checked.name.clone();
            self.0.push((checked.check, checked.cards.clone(), name));
        }
    }

    /// True if a check of the machine in `after` failed.
    fn of_machine(&self, after: &[&str]) -> bool {
        let mut failed = self.0.iter();
        failed.any(|(check, cards, _)| after.contains(check) && cards.is_empty())
    }

    /// Returns the name of a failed check in `after` whose cards are among these.
    fn blocking(&self, after: &[&str], cards: &[u32]) -> Option<&str> {
        let same = |of: &[u32]| of.iter().all(|c| cards.contains(c));
        let mut failed = self.0.iter();
        let found = failed.find(|(check, of, _)| after.contains(check) && same(of));
        found.map(|(_, _, name)| name.as_str())
    }
}

struct Worker<D: Driver> {
    table: Arc<Vec<Check<D>>>,
    jobs: Arc<Vec<Job>>,
    failures: Failures,
    send: Sender<Message>,
}

impl<D: Driver> Worker<D> {
    /// Runs the jobs. Stops if the receiver is gone.
    fn run(mut self, mut bench: Bench<D>) {
        let jobs = Arc::clone(&self.jobs);
        let mut reported = None;
        for (i, job) in jobs.iter().enumerate() {
            let check = &self.table[job.check];
            if let Some(name) = self.failures.blocking(check.after, &job.cards) {
                let of_machine = self.failures.of_machine(check.after);
                let repeated = of_machine && reported.replace(job.check) == Some(job.check);
                let finding = Finding::skipped(format!("`{name}` failed"));
                let finding = (!repeated).then_some(finding);
                if self.send.send(Message::Ended(i, finding)).is_err() {
                    return;
                }
                continue;
            }
            if self.send.send(Message::Begun(i)).is_err() {
                return;
            }
            let finding = (check.run)(&mut bench, &job.subject).unwrap_or_else(|e| {
                // An error may leave memory allocated, or a device unusable.
                bench.close();
                Finding::from(e)
            });
            self.failures.add(&Checked {
                section: check.section,
                check: check.name,
                cards: job.cards.clone(),
                name: job.label.clone(),
                finding: finding.clone(),
            });
            if self.send.send(Message::Ended(i, Some(finding))).is_err() {
                return;
            }
        }
        if let Some(driver) = bench.opened() {
            let _ = self.send.send(Message::Devices(driver.devices().to_vec()));
        }
    }
}
