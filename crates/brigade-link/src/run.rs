//! A link at work: woken by both sides, and behind that by a slow sweep.

use std::future::{Future, pending, ready};
use std::pin::pin;

use tokio::time::{Instant, sleep_until};

use super::pass::Work;
use super::{Link, LinkError, News};
use brigade_core::event::Record;
use brigade_core::store::{Store as _, Watch};

/// How often everything is gone over to bring two sides into step once.
const ROUNDS: usize = 3;

/// What both sides tell.
#[derive(Debug, Default)]
struct Watches {
    here: Option<Watch>,
    there: Option<Watch>,
}

/// What woke a link.
enum Wake {
    Here(Option<Record>),
    There(Option<Record>),
    Time,
    Stop,
}

async fn next(watch: &mut Option<Watch>) -> Option<Record> {
    match watch {
        Some(watch) => watch.next().await,
        None => pending().await,
    }
}

/// What a watch has to tell at once.
async fn ready_now(watch: &mut Option<Watch>) -> Option<Record> {
    let watch = watch.as_mut()?;
    tokio::select! {
        biased;
        record = watch.next() => record,
        () = ready(()) => None,
    }
}

impl Link {
    /// Brings both sides into step, once.
    pub async fn once(&mut self) -> Result<(), LinkError> {
        // What one part does may give another something to do.
        for _ in 0..ROUNDS {
            self.pass(&mut Work::all()).await?;
        }
        Ok(())
    }

    /// Keeps both sides in step until `stop`.
    pub async fn run(&mut self, stop: impl Future<Output = ()> + Send) -> Result<(), LinkError> {
        let mut stop = pin!(stop);
        let mut watches = Watches::default();
        let mut work = Work::all();
        let mut retry = self.ends.pace.retry;
        let mut cut = false;
        // Nothing before this, while the far store cannot be reached.
        let mut not_before = Instant::now();
        // However much is heard that gives nothing to do.
        let mut sweep = Instant::now() + self.ends.pace.sweep;
        loop {
            if !work.is_empty() && Instant::now() >= not_before {
                let done = tokio::select! {
                    biased;
                    () = &mut stop => return Ok(()),
                    done = self.go(&mut work, &mut watches) => done,
                };
                match done {
                    Ok(()) => {
                        if std::mem::take(&mut cut) {
                            self.say(&News::Back);
                        }
                        retry = self.ends.pace.retry;
                        not_before = Instant::now();
                    }
                    Err(error @ LinkError::Notes(_)) => return Err(error),
                    Err(error) => {
                        if error.is_cut() {
                            if !std::mem::replace(&mut cut, true) {
                                self.say(&News::Cut { why: error.to_string() });
                            }
                        } else {
                            self.complain(error.to_string());
                        }
                        // Who lives where may have changed meanwhile. What is known of mail stays true, but
                        // for what was under way: see there.
                        self.sides = None;
                        work = Work::all();
                        not_before = Instant::now() + retry;
                        retry = (retry * 2).min(self.ends.pace.retry * 5);
                    }
                }
            }
            let time = if work.is_empty() { sweep } else { not_before };
            let wake = tokio::select! {
                biased;
                () = &mut stop => Wake::Stop,
                record = next(&mut watches.here) => Wake::Here(record),
                record = next(&mut watches.there) => Wake::There(record),
                () = sleep_until(time) => Wake::Time,
            };
            match wake {
                Wake::Stop => return Ok(()),
                Wake::Time => {
                    work = Work::all();
                    sweep = Instant::now() + self.ends.pace.sweep;
                }
                Wake::Here(Some(record)) => self.heard_here(&record, &mut work),
                Wake::There(Some(record)) => self.heard_there(&record, &mut work),
                // One that ended is begun anew, and everything looked at.
                Wake::Here(None) => (watches.here, work) = (None, Work::all()),
                Wake::There(None) => (watches.there, work) = (None, Work::all()),
            }
            while let Some(record) = ready_now(&mut watches.here).await {
                self.heard_here(&record, &mut work);
            }
            while let Some(record) = ready_now(&mut watches.there).await {
                self.heard_there(&record, &mut work);
            }
        }
    }

    /// Watches what is not watched, and does what there is to do.
    async fn go(&mut self, work: &mut Work, watches: &mut Watches) -> Result<(), LinkError> {
        if watches.here.is_none() || watches.there.is_none() {
            self.teams().await?;
            let ends = &self.ends;
            if watches.here.is_none() {
                let watch =
                    ends.local.watch_proceedings(&ends.team).await.map_err(LinkError::Here)?;
                watches.here = Some(watch);
                // Whatever was missed there is done once more, to no effect; here it would not be done at all.
                self.posts.clear();
            }
            if watches.there.is_none() {
                watches.there = Some(ends.far(ends.far.watch_proceedings(&ends.team)).await?);
            }
            // What happened before is not told.
            self.sides = None;
            *work = Work::all();
        }
        self.pass(work).await
    }
}
