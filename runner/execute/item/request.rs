//! A module's request to the host: what travels with it, what was planned for it before, and jobs apart from it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use kubeon_modules::wire;

use super::{ItemRun, Sending};
use crate::action::Failure;
use crate::connection::{Answered, Contents, Plans};
use crate::execute::ahead::{self, Planned};
use crate::execute::reach::truth;
use crate::playbook::Keyword;
use crate::value::{Map, Value};
use crate::vars::alike::Told;

impl ItemRun<'_> {
    /// Runs a module over the task's connection, apart from it where the task has `async`.
    pub(super) fn module(&self, name: &str, args: &Map, contents: &Contents) -> Result<Map, Failure> {
        let limit = match self.keyword(Keyword::Timeout)? {
            Some(_) => Some(self.number(Keyword::Timeout, 0.0).map_err(Failure::message)?).filter(|limit| *limit > 0.0),
            None => self.world.options.connect.task_timeout.map(|limit| limit.as_secs_f64()),
        };
        let mut request = wire::Task {
            id: self.world.next_id(),
            module: name.to_owned(),
            args: args.to_json(),
            check: self.check,
            diff: self.diff,
            environment: self.environment()?,
            timeout_s: limit,
            job: None,
        };
        let seconds = self.number(Keyword::Async, 0.0).map_err(Failure::message)?;
        if seconds > 0.0 && !self.check {
            let job = format!("j{}.{}", request.id, std::process::id());
            request.job = Some(job.clone());
            request.timeout_s = Some(seconds);
            let started = self.send(&request, contents)?;
            let poll = self.number(Keyword::Poll, self.world.options.poll_s).map_err(Failure::message)?;
            return if poll > 0.0 { self.follow_job(&job, seconds, poll) } else { Ok(started) };
        }
        self.send(&request, contents)
    }

    fn send(&self, request: &wire::Task, contents: &Contents) -> Result<Map, Failure> {
        let next = match self.sending {
            Sending::Now(next) => next,
            Sending::Planning(slot) => {
                if contents.is_empty() && request.job.is_none() {
                    slot.replace(Some(request.clone()));
                }
                return Err(Failure::message("its turn has not come"));
            }
        };
        let (world, reach) = (self.world, self.reach());
        let become_ = reach.become_.as_ref();
        let mut tasks = if next.then.is_empty() { VecDeque::new() } else { ahead::plan(self, &next.then) };
        let mut behind = Vec::new();
        for (_, planned) in &mut tasks {
            if let Planned::Asked(asked) = planned {
                behind.extend(asked.ahead.take_frame());
            }
        }
        let count = tasks.iter().filter(|(_, planned)| matches!(planned, Planned::Asked(_))).count();
        let may_plan = ahead::may_plan(world) && contents.is_empty() && request.job.is_none();
        // What others change at the same time would make plans behind it worthless.
        let leads = count == 0 && (next.alone || ahead::is_plannable_module(&request.module));
        let answer = world.connections.borrowed(&reach.target, |connection| {
            let alive = |line: &str| self.alive(line);
            let changes = world.changes();
            if may_plan && let Some(foreseen) = connection.foreseen(become_, request, changes, &alive)? {
                return Ok((foreseen, false));
            }
            let most = if leads { connection.most_plans() } else { 0 };
            let plans = Plans { tasks: ahead::foresee(self, next, most), changes };
            let answered = connection.run_as::<Told>(become_, request, (count, &behind), plans, contents, &alive)?;
            if ahead::is_plannable_module(&request.module) {
                connection.note_plan(answered.looked);
            }
            if !ahead::is_harmless(&request.module, answered.looked) {
                connection.keep_planned(become_, world.note_change());
            }
            Ok((answered, true))
        });
        let ((Answered { result: Told(result), .. }, is_sent), connection) = answer?;
        if is_sent && count > 0 && ahead::went_well(&result) {
            world.sent.keep(self.host, connection, tasks);
        } else {
            world.connections.give_back(&reach.target, connection);
        }
        Ok(result)
    }

    /// Asks for a job's end until it has come or its time is up.
    fn follow_job(&self, job: &str, seconds: f64, poll: f64) -> Result<Map, Failure> {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        loop {
            self.world.sleep(Duration::from_secs_f64(poll));
            let result = self.ask_job(job, "status")?;
            if result.get("finished").is_some_and(|finished| truth(finished) && *finished != Value::Int(0)) {
                // Nobody asks for it again, and what it returned may be secret.
                self.ask_job(job, "cleanup").ok();
                return Ok(result);
            }
            if Instant::now() > end || self.world.is_interrupted() {
                return Err(Failure::message(format!("the task was not done within its {seconds} s")));
            }
        }
    }

    fn ask_job(&self, job: &str, mode: &str) -> Result<Map, Failure> {
        let request = wire::Task {
            id: self.world.next_id(),
            module: "async_status".to_owned(),
            args: [("jid".to_owned(), job.into()), ("mode".to_owned(), mode.into())].into_iter().collect(),
            ..wire::Task::default()
        };
        self.send(&request, &Contents::default())
    }
}
