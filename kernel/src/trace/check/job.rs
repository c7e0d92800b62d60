//! The life of a job: queued, running, then done, or abandoned and an orphan; or dropped unbegun.

use super::{Event, Line, Oracle};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Job {
    Queued,
    Running,
    Abandoned,
    /// Its value was handed to its caller, who may yet leave it unread.
    Done,
    Ended,
}

impl Oracle {
    pub(super) fn job(&mut self, line: &Line<'_>) {
        match &line.event {
            Event::Offload { job, running, queued, .. } => {
                let has_token = *running as usize == self.job_counts[1] + 1;
                let state = if has_token { Job::Running } else { Job::Queued };
                if self.set_job(*job, state).is_some() {
                    self.report(line, "job", format!("o{job} was offloaded before"));
                }
                self.count_jobs(line, *running, *queued);
            }
            Event::OffloadStarts { job, running, queued, cause } => {
                self.cause(line, *cause);
                self.step(line, *job, &[Job::Queued], Job::Running);
                self.count_jobs(line, *running, *queued);
            }
            Event::Done { job } => self.step(line, *job, &[Job::Running], Job::Done),
            Event::Abandon { job } => self.step(line, *job, &[Job::Running], Job::Abandoned),
            // One that comes back in the turn of a deadline that wins has a caller still.
            Event::Orphan { job } => {
                self.step(line, *job, &[Job::Running, Job::Abandoned, Job::Done], Job::Ended);
            }
            Event::Drop { what } => {
                let unbegun = what.strip_suffix("_before_it_ran");
                let number = |name: &str| name.strip_prefix('o')?.parse().ok();
                if let Some(job) = number(unbegun.unwrap_or(what)) {
                    let all = [Job::Queued, Job::Running, Job::Abandoned];
                    self.step(line, job, &all, Job::Ended);
                }
            }
            _ => {}
        }
    }

    fn set_job(&mut self, job: u64, to: Job) -> Option<Job> {
        let was = self.jobs.insert(job, to);
        *self.count_of(to) += 1;
        if let Some(was) = was {
            *self.count_of(was) -= 1;
        }
        was
    }

    /// How many jobs are in that state, as far as it has a token or waits for one.
    fn count_of(&mut self, state: Job) -> &mut usize {
        let [queued, with_token, over] = &mut self.job_counts;
        match state {
            Job::Queued => queued,
            Job::Running | Job::Abandoned => with_token,
            Job::Done | Job::Ended => over,
        }
    }

    fn step(&mut self, line: &Line<'_>, job: u64, from: &[Job], to: Job) {
        match self.set_job(job, to) {
            Some(was) if from.contains(&was) => {}
            Some(was) => self.report(line, "job", format!("o{job} was {was:?}")),
            None => self.report(line, "job", format!("o{job} was not offloaded")),
        }
    }

    /// How many run and wait is what the lines before say.
    fn count_jobs(&mut self, line: &Line<'_>, running: u32, queued: u32) {
        let [waiting, with_token, _] = self.job_counts;
        let found = (with_token, waiting);
        if found != (running as usize, queued as usize) {
            let (running, queued) = found;
            self.report(
                line,
                "job",
                format!("by the lines before running={running} queued={queued}"),
            );
        }
    }

    pub(super) fn halt_jobs(&mut self, line: &Line<'_>, threads: u64) {
        let [queued, with_token, _] = self.job_counts;
        let left = queued + with_token;
        if left as u64 != threads {
            self.report(line, "job", format!("{left} have not ended, threads={threads}"));
        }
    }
}
