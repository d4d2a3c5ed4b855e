//! `brigade demo`

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::time::Duration;

use brigade_core::store::event_log::EventStream;
use brigade_host::context::{Context, ContextSettings};
use brigade_host::demo::{self, Demo, DemoFolder, DemoPace};
use brigade_host::history_text::LogFormatter;
use brigade_host::location::Location;
use brigade_host::signals;
use brigade_tui::View;
use jiff::tz::TimeZone;

use super::logs::lines;
use super::ui;
use crate::cli::{DemoArgs, UiArgs};
use crate::context::current_dir;
use crate::error::CliError;
use crate::{env, exit, output, progress};

/// How long the text waits for the last events after the last task is done.
const LAST_EVENTS: Duration = Duration::from_millis(500);

const WELCOME: &str = "This demo uses scripted agents and no model. The team's files, mail, board and permission \
requests are real, in a temporary folder that is removed at the end.";

pub(crate) async fn run(json: bool, args: DemoArgs) -> Result<u8, CliError> {
    let parent = std::env::temp_dir();
    demo::remove_leftovers(&parent);
    let is_text = args.text || json || !io::stdout().is_terminal() || !io::stdin().is_terminal();
    let (mut folder, mut demo) = (None, None);
    // Listen for signals before the folder exists, so that a signal never leaves it behind.
    let started = signals::until_stop_signal(async {
        let folder = folder.insert(DemoFolder::create(&parent).await?);
        let context = open(folder).await?;
        let demo = demo.insert(demo::start(&context, DemoPace { speed: args.speed }).await?);
        if is_text {
            output::note(WELCOME);
            print_log(&context, demo, json).await?;
        }
        Ok(context)
    })
    .await;
    let done = match started {
        Ok(Some(context)) if !is_text => {
            let ui = UiArgs { view: View::Team, replay: None, speed: 1.0, no_mouse: args.no_mouse };
            brigade_tui::run(context, &ui::options(ui)).await.map(|()| exit::DONE)
        }
        Ok(Some(_)) => Ok(exit::DONE),
        Ok(None) => Ok(exit::INTERRUPTED),
        Err(error) => Err(error),
    };
    if let Some(demo) = demo {
        demo.stop().await;
    }
    drop(folder);
    if !is_text && done.is_ok() {
        output::note(
            "the demo is over, and its folder is removed; `brigade new` starts a team of yours",
        );
    }
    if is_text && !json && matches!(done, Ok(exit::DONE)) {
        output::hint("`brigade demo` on a terminal shows the same team in the dashboard");
        output::hint("`brigade new` writes a brigade.toml for a team of your own agents");
    }
    done
}

/// Opens a context whose folders are all below the demo's folder.
async fn open(folder: &DemoFolder) -> Result<Context, CliError> {
    let (claude_dir, state_dir) = demo::folders(&folder.path)?;
    let settings = ContextSettings {
        location: Location::Files,
        claude_dir,
        state_dir,
        config_dir: None,
        durability: brigade_files::Durability::Process,
        lock_wait: brigade_files::DEFAULT_LOCK_WAIT,
        is_read_only: false,
        is_lasting: true,
        wait: brigade_host::location::ServerWait::NONE,
        team: Some(demo::TEAM.parse().map_err(CliError::failed)?),
        me: None,
        lead_key: None,
        answers: None,
        programs: Arc::new(env::programs()),
        host_name: env::host_name(),
        cwd: current_dir(),
        claude_session: None,
        task_list: None,
        announce: |_| {},
    };
    Context::open(settings, &progress::print).await
}

/// Prints the events of the demo until every task is done.
async fn print_log(context: &Context, demo: &Demo, json: bool) -> Result<(), CliError> {
    let (mut events, _) = context.event_stream(&demo.lead.team).await?;
    let mut formatter = LogFormatter::with_work(TimeZone::system());
    let finished = async {
        demo.finished().await?;
        tokio::time::sleep(LAST_EVENTS).await;
        Ok(())
    };
    tokio::select! {
        shown = print_events(&mut events, &mut formatter, json) => shown,
        finished = finished => finished,
    }
}

async fn print_events(
    events: &mut EventStream,
    formatter: &mut LogFormatter,
    json: bool,
) -> Result<(), CliError> {
    while let Some(batch) = events.next().await {
        if json {
            output::print_raw(&lines(batch.records.iter().map(|(_, record)| record))?)?;
            continue;
        }
        for (_, record) in &batch.records {
            output::print(&formatter.format_record(record, output::width()))?;
        }
    }
    Ok(())
}
