//! `brigade attach`

use brigade_wire::name::MemberName;
use clap::Args;

pub(super) const EXAMPLES: &str = "\
Examples:
  brigade attach bob                watch bob work, write to it, answer its requests
  brigade attach bob --takeover     continue bob's session in its agent's own program";

/// Arguments of `brigade attach`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AttachArgs {
    /// The member
    #[arg(value_name = "MEMBER")]
    pub(crate) name: MemberName,
    /// Open the agent's own program on the member's session, in this terminal
    #[arg(long)]
    pub(crate) takeover: bool,
    /// Do not capture the mouse
    #[arg(long, conflicts_with = "takeover")]
    pub(crate) no_mouse: bool,
}
