//! The state of one member in few words, for a front end that shows it all the time.

use brigade_core::approvals::Approval;
use brigade_core::pulse::Liveness;
use brigade_core::seat::Seat;
use brigade_wire::name::MemberName;

use super::{attention, liveness, words};
use crate::Host;
use crate::error::HostError;

/// The state of one member in few words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StateSummary {
    /// Whether the member is alive; `None` if that is unknown.
    pub liveness: Option<Liveness>,
    /// The activity of the member and its duration, in the words of `brigade status`.
    pub words: String,
    /// The member's agent, if this host runs the member.
    pub agent: Option<String>,
    /// The model that the member's settings name, if any.
    pub model: Option<String>,
    /// The numbers of input and output tokens used.
    pub tokens: (u64, u64),
    /// The cost of the conversation in US dollars, if the agent reports it.
    pub cost: Option<f64>,
}

/// Returns the state of one member. `request` is the member's oldest request that waits for an answer.
pub async fn member_summary(
    host: &Host,
    lead: &Seat,
    name: &MemberName,
    request: Option<&Approval>,
) -> Result<StateSummary, HostError> {
    let host = host.of_member(&lead.team, name)?;
    let spec = host.registry.member(&lead.team, name)?;
    let (_, pulse, judged) = liveness(&host, lead, name).await?;
    let mut words = words::describe(pulse.as_ref(), &judged, lead.clock.now());
    let mut liveness = judged.liveness;
    if let (Liveness::Idle | Liveness::Waiting, Some(request)) = (liveness, request) {
        liveness = Liveness::Waiting;
        words = attention::request_words(request);
    }
    let (agent, model) = spec.map(|spec| (spec.agent, spec.model)).unzip();
    Ok(StateSummary {
        liveness: Some(liveness),
        words,
        agent,
        model: model.flatten(),
        cost: pulse.as_ref().and_then(|pulse| pulse.cost),
        tokens: pulse.map(|pulse| pulse.tokens).unwrap_or_default(),
    })
}
