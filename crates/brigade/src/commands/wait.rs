//! `brigade wait`

use brigade_host::wait_for::{WaitEnd, WaitReport, WaitRequest, wait_for};

use crate::context::CliContext;
use crate::error::CliError;
use crate::{exit, output};

pub(crate) async fn run(context: &CliContext, request: WaitRequest) -> Result<u8, CliError> {
    let report = wait_for(context, &request).await?;
    if context.json {
        output::print_json(&report)?;
    } else {
        output::print(&format!("{}\n", line(&report)))?;
    }
    Ok(match report.outcome {
        WaitEnd::Done => exit::DONE,
        WaitEnd::Failed => exit::FAILED,
        WaitEnd::TimedOut => exit::TIMED_OUT,
    })
}

fn line(report: &WaitReport) -> String {
    let summary = report.summary();
    match report.outcome {
        WaitEnd::Done => summary,
        WaitEnd::Failed => format!("failed: {summary}"),
        WaitEnd::TimedOut => format!("not in time: {summary}"),
    }
}
