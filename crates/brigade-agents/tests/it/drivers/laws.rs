//! Tests properties that every driver has for any input.

use brigade_agents::driver::{
    AGENTS, Access, AskId, Driver, DriverOutput, Invocation, PermissionAnswer, TextNumber, agent,
};
use proptest::prelude::*;
use proptest::sample::Index;

use super::play::{AgentProcess, play};
use super::scenario::Scenario;
use super::transcript::ReplayedProcess;
use super::{SCENARIOS, launch};

/// A replayed program whose output reaches the driver in pieces that `split` chooses.
struct SplitInput<F> {
    replayed: ReplayedProcess,
    split: F,
}

impl<F: FnMut(Vec<u8>) -> Vec<Vec<u8>>> AgentProcess for SplitInput<F> {
    fn line(&mut self) -> Vec<u8> {
        self.replayed.line()
    }
    fn write(&mut self, bytes: &[u8]) {
        self.replayed.write(bytes);
    }
    fn start(&mut self, invocation: Invocation) {
        self.replayed.start(invocation);
    }
    fn end(&mut self) {
        self.replayed.end();
    }
    fn with_recorded_ids(&self, log: String) -> String {
        self.replayed.with_recorded_ids(log)
    }
    fn split(&mut self, line: Vec<u8>) -> Vec<Vec<u8>> {
        (self.split)(line)
    }
}

fn play_unsplit(scenario: &Scenario) -> String {
    play(scenario, &mut ReplayedProcess::new(scenario))
}

fn play_split(scenario: &Scenario, split: impl FnMut(Vec<u8>) -> Vec<Vec<u8>>) -> String {
    play(scenario, &mut SplitInput { replayed: ReplayedProcess::new(scenario), split })
}

fn any_scenario() -> impl Strategy<Value = &'static Scenario> {
    any::<Index>().prop_map(|index| index.get(&SCENARIOS))
}

/// Returns all lines that the program wrote in a scenario's transcript.
fn lines(scenario: &Scenario) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    play_split(scenario, |line| {
        lines.push(line.clone());
        vec![line]
    });
    lines
}

fn drain(driver: &mut dyn Driver) {
    while let Some(output) = driver.next() {
        if let DriverOutput::Write(bytes) = output {
            let line: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            assert!(line.is_object() && bytes.iter().filter(|byte| **byte == b'\n').count() == 1);
        }
    }
}

fn call_driver(driver: &mut dyn Driver, which: u8) {
    let note = TextNumber(u64::from(which));
    match which % 8 {
        0 => driver.prompt(note, "a\nb\u{2028}c"),
        1 => driver.steer(note, "more"),
        2 => driver.answer(AskId(u64::from(which / 8)), &PermissionAnswer::Allow),
        3 => driver.answer(AskId(u64::from(which / 8)), &PermissionAnswer::Deny("no".to_owned())),
        4 => driver.interrupt(),
        5 => driver.set_access(Access::ReadOnly),
        6 => driver.set_access(Access::Full),
        _ => driver.start(),
    }
}

#[test]
fn input_in_single_bytes_gives_the_same_events() {
    for scenario in SCENARIOS.iter() {
        let log = play_split(scenario, |line| line.chunks(1).map(<[u8]>::to_vec).collect());
        assert_eq!(log, play_unsplit(scenario));
    }
}

#[test]
fn lines_that_are_not_json_are_skipped() {
    let long = [vec![b'x'; 1 << 20], b"\n".to_vec()].concat();
    for scenario in SCENARIOS.iter() {
        let mut first = true;
        let log = play_split(scenario, |line| {
            let mut pieces =
                vec![b"warning: \xff{\"id\":\n\n[1]\nnull\n{}\n{\"id\":1}\n".to_vec(), line];
            if std::mem::take(&mut first) {
                pieces.insert(0, long.clone());
            }
            pieces
        });
        assert_eq!(log, play_unsplit(scenario));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lines_split_anywhere_give_the_same_events(
        scenario in any_scenario(),
        cuts in prop::collection::vec(any::<Index>(), 1..40),
    ) {
        let mut cuts = cuts.into_iter().cycle();
        let log = play_split(scenario, |line| {
            let (first, second) = line.split_at(cuts.next().unwrap().index(line.len()));
            vec![first.to_vec(), second.to_vec()]
        });
        prop_assert_eq!(log, play_unsplit(scenario));
    }

    /// Damages and reorders recorded lines, and passes them to a driver. Also calls the driver at the wrong times.
    #[test]
    fn damaged_lines_never_panic(
        scenario in any_scenario(),
        actions in prop::collection::vec((any::<Index>(), any::<Index>(), any::<u8>(), any::<u8>()), 0..60),
    ) {
        let lines = lines(scenario);
        let mut driver = (agent(scenario.agent).unwrap().agent.driver)(launch(scenario, None));
        driver.start();
        for (index, position, byte, choice) in actions {
            if choice < 120 {
                call_driver(&mut *driver, choice);
            } else {
                let mut line = index.get(&lines).clone();
                if choice > 180 {
                    let position = position.index(line.len());
                    line[position] = byte;
                }
                driver.on_output(&line);
            }
            drain(&mut *driver);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        which in any::<Index>(),
        pieces in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..200), any::<u8>()), 0..20),
    ) {
        let scenario = &SCENARIOS[0];
        let mut driver = (which.get(AGENTS).driver)(launch(scenario, None));
        driver.start();
        for (bytes, choice) in pieces {
            driver.on_output(&bytes);
            call_driver(&mut *driver, choice);
            drain(&mut *driver);
        }
    }
}

#[test]
fn acp_with_a_command_names_an_agent() {
    let choice = agent("acp:goose acp --quiet").unwrap();
    assert_eq!((choice.agent.name, choice.program.as_str()), ("acp", "goose"));
    assert_eq!(choice.arguments, ["acp", "--quiet"]);
    assert!(agent("acp:").is_none() && agent("nobody").is_none());
    let mut names: Vec<_> = AGENTS.iter().map(|agent| agent.name).collect();
    names.dedup();
    assert_eq!(names.len(), AGENTS.len());
    for row in AGENTS {
        assert_eq!(agent(row.name).unwrap().program, row.program);
    }
}
