//! Follows the pods of a spread run until each shard is done or lost: what they print, what the API says of them, and how
//! far they may go. It can begin at any moment of the run, and goes on after the API was away.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use kubeon_modules::{ApiServer, KubeAnswer, KubeRequest, Streamed};
use serde_json::{Value as Json, json};

use super::job::CONTAINER;
use super::seen::{encoded, indexes, newest, pod_of, reason};
use super::state::{State, Taken};
use super::{GATE, Plan};
use crate::report::{HostName, Merged, Recap, Row};

/// How often the API is asked for the pods.
const LOOK: Duration = Duration::from_secs(1);
/// How long an answer may take: within it a request is tried again.
const ANSWER_S: u64 = 15;
/// How long the API may be away.
const AWAY: Duration = Duration::from_secs(900);
/// How often the log of a pod that has ended is read again, where its end is missing.
const READS: u32 = 5;
/// How long pods may take to end after they were told to.
const STOPPING: Duration = Duration::from_secs(180);

/// The log of the pod of one shard.
#[derive(Default)]
struct Log {
    uid: String,
    open: bool,
    /// The time of the last line.
    latest: Option<String>,
    reads: u32,
    next: Option<Instant>,
}

/// How following has ended.
pub enum Ended {
    /// All shards have settled.
    Whole(Recap),
    /// The user has asked to stop: the pods have been told to, and have ended.
    Interrupted(Recap),
    /// Why it can't go on; the shards may.
    Broken(String),
    /// A mistake that every shard makes.
    Wrong(String),
}

/// What follows a spread run.
pub struct Watch<'a> {
    api: &'a ApiServer,
    namespace: String,
    name: String,
    plan: &'a Plan,
    state: State,
    logs: Vec<Log>,
    view: &'a mut Merged,
    told: Sender<(usize, String, Streamed)>,
    tells: Receiver<(usize, String, Streamed)>,
    /// Since when the API does not answer.
    away: Option<Instant>,
    /// What was said of pods, once each.
    said: BTreeSet<String>,
    stopping: Option<Instant>,
    started: Instant,
}

impl<'a> Watch<'a> {
    pub fn new(
        api: &'a ApiServer,
        (namespace, name): (&str, &str),
        plan: &'a Plan,
        hosts: Vec<HostName>,
        view: &'a mut Merged,
    ) -> Watch<'a> {
        let (told, tells) = channel();
        Watch {
            api,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            state: State::new(plan.shards, hosts, plan.gated),
            logs: (0..plan.shards).map(|_| Log::default()).collect(),
            plan,
            view,
            told,
            tells,
            away: None,
            said: BTreeSet::new(),
            stopping: None,
            started: Instant::now(),
        }
    }

    fn ask(&self, method: &str, path: String, body: Option<Json>) -> Result<KubeAnswer, String> {
        let content_type = body.is_some().then(|| "application/merge-patch+json".to_owned());
        let request = KubeRequest {
            method: method.to_owned(),
            path,
            content_type,
            body,
            timeout_s: Some(ANSWER_S),
            ..KubeRequest::default()
        };
        self.api.ask(request).map_err(|error| error.to_string())
    }

    fn job_path(&self) -> String {
        format!("/apis/batch/v1/namespaces/{}/jobs/{}", self.namespace, self.name)
    }

    /// Follows the run to its end.
    pub fn run(mut self, interrupted: &AtomicBool) -> Ended {
        let mut next = Instant::now();
        loop {
            if let Some(problem) = self.hear() {
                return Ended::Wrong(problem);
            }
            if self.state.is_settled() {
                return Ended::Whole(self.state.recap(self.started.elapsed().as_secs_f64(), false));
            }
            if interrupted.load(Ordering::Relaxed) && self.stopping.is_none() {
                self.stopping = Some(Instant::now());
                self.view.warning(
                    "stopping: the shards' hosts finish the tasks that they are at; once more leaves them to it",
                );
                next = Instant::now();
            }
            if Instant::now() < next {
                continue;
            }
            next = Instant::now() + LOOK;
            match self.look() {
                Ok(None) => self.away = None,
                Ok(Some(ended)) => return ended,
                Err(message) => {
                    let since = *self.away.get_or_insert_with(|| {
                        self.view.warning(&format!("the API does not answer, and the shards go on: {message}"));
                        Instant::now()
                    });
                    if since.elapsed() > AWAY {
                        return Ended::Broken(message);
                    }
                }
            }
            self.view.progress(&self.rows());
        }
    }

    fn rows(&self) -> Vec<Row> {
        let row = |(index, shard): (usize, &super::state::ShardState)| Row {
            shard: index,
            hosts: self.state.size_of(index),
            state: match (&shard.done, &shard.lost, &shard.pod) {
                (Some(_), _, _) => "done".to_owned(),
                (None, Some(reason), _) => format!("lost: {reason}"),
                (None, None, None) => "waits for a pod".to_owned(),
                (None, None, Some(pod)) if !pod.has_run => format!("starts: {}", pod.reason),
                (None, None, Some(_)) if shard.waits.is_some() => "waits for the other shards".to_owned(),
                (None, None, Some(_)) => shard.task.clone(),
            },
            is_settled: shard.is_settled(),
            changed: shard.changed,
            failed: shard.failed + shard.unreachable,
        };
        self.state.shards.iter().enumerate().map(row).collect()
    }

    /// Takes what the logs say, for a moment; returns what makes an end of it.
    fn hear(&mut self) -> Option<String> {
        let mut wait = Duration::from_millis(100);
        loop {
            match self.tells.recv_timeout(wait) {
                Ok((index, uid, streamed)) if self.logs[index].uid == uid => {
                    if let Some(problem) = self.streamed(index, streamed) {
                        return Some(problem);
                    }
                }
                // Another pod's, which has taken its place.
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
            wait = Duration::ZERO;
        }
    }

    fn streamed(&mut self, index: usize, streamed: Streamed) -> Option<String> {
        let line = match streamed {
            Streamed::Line(line) => line,
            Streamed::End(end) => {
                let log = &mut self.logs[index];
                log.open = false;
                log.next = Some(Instant::now() + if end.is_ok() { Duration::ZERO } else { LOOK });
                return None;
            }
        };
        let (time, text) = line.split_once(' ').unwrap_or(("", &line));
        let seen = self.logs[index].latest.as_deref().is_some_and(|latest| time <= latest);
        if !seen {
            self.logs[index].latest = Some(time.to_owned());
        }
        let Some(event) = serde_json::from_str::<Json>(text).ok().filter(|event| event["n"].is_u64()) else {
            if !seen && !text.trim().is_empty() {
                self.view.said(index, text);
            }
            return None;
        };
        if event["event"] == "part_begins" {
            self.view.project(index, event["project"].as_str().unwrap_or_default(), &self.plan.project);
        }
        match self.state.take(index, event) {
            Taken::Nothing | Taken::Progress => None,
            Taken::Shown(event) => {
                self.view.event(index, event);
                None
            }
            Taken::Done => {
                // A pod that is told to stop says what it came to; unless everybody is, it is run again.
                let interrupted = self.state.shards[index].done.as_ref().map(|done| done.code);
                if interrupted == Some(crate::execute::EXIT_INTERRUPTED) && self.stopping.is_none() {
                    self.state.shards[index].done = None;
                } else {
                    self.view.done(index);
                }
                None
            }
            Taken::Wrong(problem) => Some(problem),
        }
    }

    /// Asks the API how the Job and its pods are, and does what follows from it.
    fn look(&mut self) -> Result<Option<Ended>, String> {
        let job = self.ask("GET", self.job_path(), None)?;
        if job.status == 404 {
            return Ok(Some(Ended::Broken(format!("the Job `{}` is gone", self.name))));
        }
        let pods = self.ask(
            "GET",
            format!(
                "/api/v1/namespaces/{}/pods?labelSelector=batch.kubernetes.io%2Fjob-name%3D{}",
                self.namespace, self.name
            ),
            None,
        )?;
        if job.status != 200 || pods.status != 200 {
            return Err(format!("the API answers {} and {}", job.status, pods.status));
        }
        // Of pods that are told to stop, too, what they have come to is in their logs.
        self.see_pods(&pods.body);
        self.follow_logs();
        if let Some(since) = self.stopping {
            return self.stop(since, &job.body, &pods.body);
        }
        if let Some(wrong) = self.see_job(&job.body) {
            return Ok(Some(Ended::Wrong(wrong)));
        }
        self.open_gates()?;
        Ok(None)
    }

    /// Tells the pods to stop, and returns once they have and their logs are read.
    fn stop(&mut self, since: Instant, job: &Json, pods: &Json) -> Result<Option<Ended>, String> {
        if job["spec"]["suspend"] != true {
            self.ask("PATCH", self.job_path(), Some(json!({"spec": {"suspend": true}})))?;
            return Ok(None);
        }
        let ended = |pod: &Json| matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        let at_work = pods["items"].as_array().into_iter().flatten().any(|pod| !ended(pod));
        let unread = self.logs.iter().zip(&self.state.shards).any(|(log, shard)| {
            let ended = shard.pod.as_ref().is_some_and(|pod| pod.ended);
            log.open || ended && !shard.is_settled() && log.reads == 0
        });
        if (at_work || unread) && since.elapsed() < STOPPING {
            return Ok(None);
        }
        // Who has worked on their hosts and has not said what that came to is told of: they are not as they were.
        for index in 0..self.plan.shards {
            let shard = &self.state.shards[index];
            let Some(pod) = shard.pod.as_ref().filter(|pod| pod.has_run && !shard.is_settled()) else { continue };
            let why = format!("{} was stopped, and its log can't be read to the end", pod.name);
            self.lose(index, why);
        }
        Ok(Some(Ended::Interrupted(self.state.recap(self.started.elapsed().as_secs_f64(), true))))
    }

    /// Notes which pod works on which shard: of several the newest.
    fn see_pods(&mut self, pods: &Json) {
        for (index, pod) in newest(pods, self.plan.shards).into_iter().enumerate() {
            if self.state.shards[index].is_settled() {
                continue;
            }
            let Some(pod) = pod.map(pod_of) else {
                // One that is gone says no more.
                if let Some(gone) = &mut self.state.shards[index].pod {
                    gone.ended = true;
                }
                continue;
            };
            let before = self.state.shards[index].pod.as_ref();
            let is_new = before.is_none_or(|before| before.uid != pod.uid);
            if is_new {
                let again =
                    before.map(|before| format!("shard {index}: {} is lost ({}), and ", before.name, reason(before)));
                self.view.note(&match again {
                    Some(again) => format!("{again}{} begins it again", pod.name),
                    None => format!("shard {index}: {}", pod.name),
                });
                self.logs[index] = Log { uid: pod.uid.clone(), ..Log::default() };
                self.state.shards[index].begin(pod);
                continue;
            }
            if !pod.has_run && !pod.reason.is_empty() && self.said.insert(format!("{index} {}", pod.reason)) {
                self.view.note(&format!("shard {index}: {} does not run yet: {}", pod.name, pod.reason));
            }
            self.state.shards[index].pod = Some(pod);
        }
    }

    /// Reads the log of each pod that has one, as it grows.
    fn follow_logs(&mut self) {
        let mut unreadable = Vec::new();
        for (index, log) in self.logs.iter_mut().enumerate() {
            let shard = &self.state.shards[index];
            let Some(pod) = shard.pod.clone().filter(|pod| pod.has_run) else { continue };
            if log.open || shard.is_settled() || log.next.is_some_and(|next| Instant::now() < next) {
                continue;
            }
            if pod.ended {
                log.reads += 1;
                if log.reads > READS && pod.succeeded {
                    unreadable.push((index, format!("{} has ended, and its log can't be read to the end", pod.name)));
                }
                if log.reads > if pod.succeeded { READS } else { 1 } {
                    continue;
                }
            }
            // What a cut connection may have left out is read from the beginning.
            let since = log.latest.as_deref().filter(|_| log.reads < 2);
            let since = since.map(|since| format!("&sinceTime={}", encoded(since))).unwrap_or_default();
            let path = format!(
                "/api/v1/namespaces/{}/pods/{}/log?container={CONTAINER}&follow=true&timestamps=true{since}",
                self.namespace, pod.name
            );
            let (told, uid) = (self.told.clone(), pod.uid.clone());
            let tell = move |streamed| {
                // Whoever no longer follows need not be told.
                told.send((index, uid.clone(), streamed)).ok();
            };
            match self.api.follow(path, Box::new(tell)) {
                Ok(()) => log.open = true,
                Err(_) => log.next = Some(Instant::now() + LOOK),
            }
        }
        for (index, why) in unreadable {
            self.lose(index, why);
        }
    }

    /// Notes which shards the Job controller has given up; returns what every shard would come to.
    fn see_job(&mut self, job: &Json) -> Option<String> {
        let given_up = indexes(job["status"]["failedIndexes"].as_str().unwrap_or_default());
        let conditions = job["status"]["conditions"].as_array();
        let failed = conditions
            .into_iter()
            .flatten()
            .find(|condition| condition["type"] == "Failed" && condition["status"] == "True");
        let why = |condition: &Json| {
            let text = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
            format!("{}: {}", text("reason"), text("message"))
        };
        let is_mistake = failed.is_some_and(|condition| condition["reason"] == "PodFailurePolicy");
        // What a pod has said of its mistake is heard first.
        let heard = self.logs.iter().all(|log| !log.open);
        if is_mistake {
            return heard.then(|| failed.map(why).unwrap_or_default());
        }
        for index in 0..self.plan.shards {
            let shard = &mut self.state.shards[index];
            // A log that is still read may end well.
            if shard.is_settled() || self.logs[index].open {
                continue;
            }
            let last = shard.pod.as_ref().map(|pod| format!("{}: {}", pod.name, reason(pod))).unwrap_or_default();
            let lost = match failed {
                _ if given_up.contains(&index) => Some(last),
                Some(_) if shard.pod.as_ref().is_some_and(|pod| pod.succeeded) => None,
                Some(condition) => Some(why(condition)),
                None => None,
            };
            if let Some(lost) = lost {
                self.lose(index, lost);
            }
        }
        None
    }

    fn lose(&mut self, index: usize, why: String) {
        self.view.lost(index, &why, &self.state.hosts_of(index));
        self.state.shards[index].lost = Some(why);
    }

    /// Tells each pod how far it may go.
    fn open_gates(&mut self) -> Result<(), String> {
        let Some(open) = self.state.gate() else { return Ok(()) };
        for index in 0..self.state.shards.len() {
            let shard = &self.state.shards[index];
            let Some(pod) = shard.pod.as_ref().filter(|pod| !pod.ended && !shard.is_settled()) else { continue };
            if pod.gate.as_ref() == Some(&open) {
                continue;
            }
            let path = format!("/api/v1/namespaces/{}/pods/{}", self.namespace, pod.name);
            let answer = self.ask("PATCH", path, Some(json!({"metadata": {"annotations": {GATE: open}}})))?;
            match answer.status {
                200 => {
                    if let Some(pod) = &mut self.state.shards[index].pod {
                        pod.gate = Some(open.clone());
                    }
                }
                // It has gone meanwhile.
                404 => {}
                status => return Err(format!("the API answers {status} to a change of a pod")),
            }
        }
        Ok(())
    }
}
