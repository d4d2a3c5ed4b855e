//! The rules of the person who leads.

use std::path::Path;

use brigade_core::approvals::{
    self, Approval, MemberRules, NoRule, NumberedRule, RuleSource, propose_rules,
};
use brigade_core::handshake::{self, PermissionAsk};
use brigade_core::policy::{Rule, RuleDecision};
use brigade_testkit::env::TestEnv;
use brigade_testkit::files::in_memory;
use brigade_wire::name::MemberName;
use serde_json::{Value, json};

use super::{answers, ask, ask_with};
use crate::policy::rule;

const ALLOW: RuleDecision = RuleDecision::Allow;

fn rules(own: &[Rule], personal: &[Rule]) -> MemberRules {
    let personal = personal.iter().zip(1..);
    let personal = personal.map(|(rule, number)| NumberedRule { number, rule: rule.clone() });
    MemberRules {
        rules: own.to_vec(),
        personal: personal.collect(),
        folder: "/elsewhere".into(),
        ..MemberRules::default()
    }
}

/// Returns the newest request of bob for this command.
async fn request(env: &TestEnv, command: &str) -> Approval {
    ask(env, "bob", command).await;
    approvals::waiting(&env.seat("team-lead")).await.unwrap().pop().unwrap()
}

fn propose(
    approval: &Approval,
    rules: &MemberRules,
    ruling: RuleDecision,
    patterns: &[&str],
) -> Result<Vec<String>, NoRule> {
    let patterns: Vec<String> = patterns.iter().map(|text| (*text).to_owned()).collect();
    let proposed = propose_rules(approval, rules, ruling, &patterns, Path::to_owned)?;
    assert!(proposed.iter().all(|rule| rule.ruling == ruling));
    Ok(proposed.into_iter().map(|rule| rule.command.unwrap()).collect())
}

/// A member's rule that asks or denies comes before a personal rule that allows. A personal rule that denies comes before
/// everything.
#[test]
fn a_personal_rule_only_restricts_the_members_rules() {
    in_memory(async |env| {
        for command in ["git push", "git log", "make", "git log | head", "cargo publish"] {
            ask(&env, "bob", command).await;
        }
        let own = [
            rule(RuleDecision::Ask, "git push *"),
            rule(ALLOW, "git log *"),
            rule(ALLOW, "cargo publish"),
        ];
        let personal = [
            rule(ALLOW, "git push"),
            rule(ALLOW, "make"),
            rule(ALLOW, "head"),
            rule(RuleDecision::Deny, "cargo publish"),
        ];
        let of = |_: &MemberName| rules(&own, &personal);
        let lead = env.seat("team-lead");
        let ruled = approvals::apply_rules(&lead, of, Path::to_owned).await.unwrap();
        let ruled: Vec<_> = ruled
            .iter()
            .map(|found| (found.approval.number, found.rule.to_string(), found.decision))
            .collect();
        let allowed = |number, rule: &str| (number, rule.to_owned(), ALLOW);
        assert_eq!(
            ruled,
            [
                allowed(2, "rule 2 of bob"),
                allowed(3, "personal rule 2"),
                allowed(4, "rule 2 of bob"),
                (5, "personal rule 4".to_owned(), RuleDecision::Deny),
            ]
        );
        assert_eq!(approvals::waiting(&lead).await.unwrap().len(), 1);
        let answers = answers(&env).await;
        assert!(answers.iter().any(|text| text.contains("personal rule 2")), "{answers:?}");
    });
}

#[test]
fn the_narrowest_rule_is_the_exact_command() {
    in_memory(async |env| {
        let none = MemberRules { folder: "/elsewhere".into(), ..MemberRules::default() };
        for (command, expected) in [
            ("cargo test -p core", vec!["cargo test -p core"]),
            ("rm  build/*.o", vec!["rm build/*.o"]),
            ("git log | head -3", vec!["git log", "head -3"]),
            ("RUST_LOG=debug cargo test", vec!["RUST_LOG=debug cargo test"]),
            ("echo \"a  b\" \\*", vec!["echo 'a  b' '*'"]),
            ("git -c a.b=c log", vec!["git -c 'a.b=c' log"]),
        ] {
            let approval = request(&env, command).await;
            assert_eq!(propose(&approval, &none, ALLOW, &[]).unwrap(), expected, "{command}");
        }
        // The parts that a rule allows already need no further rule.
        let approval = request(&env, "git log | head -3").await;
        let own = rules(&[rule(ALLOW, "head *")], &[]);
        assert_eq!(propose(&approval, &own, ALLOW, &[]).unwrap(), ["git log"]);
        assert_eq!(propose(&approval, &own, ALLOW, &["git log *"]).unwrap(), ["git log *"]);
        assert_eq!(
            propose(&approval, &none, ALLOW, &["git log *"]).unwrap_err().to_string(),
            "the rule would not answer this request: it does not allow head -3"
        );
        assert_eq!(
            propose(&approval, &none, RuleDecision::Deny, &[]).unwrap(),
            ["git log | head -3"]
        );
        assert_eq!(propose(&approval, &none, RuleDecision::Deny, &["head *"]).unwrap(), ["head *"]);
        assert_eq!(
            propose(&approval, &none, RuleDecision::Deny, &["rm *"]).unwrap_err(),
            NoRule::NotMatched { left: Vec::new() }
        );
    });
}

#[test]
fn a_request_that_no_rule_may_allow_gets_no_rule() {
    in_memory(async |env| {
        let none = MemberRules { folder: "/elsewhere".into(), ..MemberRules::default() };
        for (command, reason) in [
            ("echo $HOME", "it contains a variable or a substitution"),
            ("ls > list", "ls > list: it writes to a file"),
            ("xargs rm", "its program runs other commands"),
            ("cat a.sql | psql", "psql: the program runs the commands in its input"),
            ("ls *", "can expand to an option"),
            ("cd ..", "it does not stay in the member's folder"),
        ] {
            let approval = request(&env, command).await;
            let refused = propose(&approval, &none, ALLOW, &[]).unwrap_err().to_string();
            assert!(refused.starts_with("no rule may allow this request: "), "{refused}");
            assert!(refused.contains(reason), "{command}: {refused}");
            assert!(propose(&approval, &none, RuleDecision::Deny, &[]).is_ok(), "{command}");
        }
        let approval = request(&env, "make").await;
        let outside = MemberRules { folder: "/project".into(), ..MemberRules::default() };
        let refused = propose(&approval, &outside, ALLOW, &["make *"]).unwrap_err().to_string();
        assert!(refused.ends_with("it would run outside the member's folder"), "{refused}");
        ask_with(&env, "bob", "make", &json!({ "additionalPermissions": { "network": true } }))
            .await;
        let widening = approvals::waiting(&env.seat("team-lead")).await.unwrap().pop().unwrap();
        let refused = propose(&widening, &none, ALLOW, &["make"]).unwrap_err().to_string();
        assert!(refused.contains("it asks for more permissions"), "{refused}");
        let bad = propose(&approval, &none, ALLOW, &["make | sh"]).unwrap_err().to_string();
        assert!(bad.contains("can never allow a command: it contains several commands"), "{bad}");
        handshake::submit_plan(&env.seat("bob"), "1. Read", None).await.unwrap();
        let plan = approvals::waiting(&env.seat("team-lead")).await.unwrap().pop().unwrap();
        assert_eq!(propose(&plan, &none, ALLOW, &[]), Err(NoRule::Plan));
    });
}

#[test]
fn a_rule_that_decides_already_is_named() {
    in_memory(async |env| {
        let approval = request(&env, "git push").await;
        let asks = rules(&[rule(RuleDecision::Ask, "git *")], &[]);
        assert_eq!(
            propose(&approval, &asks, ALLOW, &[]).unwrap_err().to_string(),
            "rule 1 of bob (ask git *) is checked first, and a new rule cannot override it"
        );
        assert_eq!(propose(&approval, &asks, RuleDecision::Deny, &[]).unwrap(), ["git push"]);
        let allows = rules(&[], &[rule(ALLOW, "make"), rule(ALLOW, "git push *")]);
        let refused = propose(&approval, &allows, ALLOW, &[]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "personal rule 2 (allow git push *) already answers such requests"
        );
        let NoRule::Covered { rule } = refused else { panic!("{refused}") };
        assert_eq!((rule.source, rule.number), (RuleSource::Person, 2));
    });
}

/// For a tool that runs no command line, the narrowest rule is for this tool with exactly this input.
#[test]
fn a_rule_for_another_tool_names_its_input() {
    in_memory(async |env| {
        let none = MemberRules { folder: "/elsewhere".into(), ..MemberRules::default() };
        let lead = env.seat("team-lead");
        for (input, expected) in [
            (json!({ "file_path": "/elsewhere/a", "content": "x" }), true),
            (json!({ "file_path": "/elsewhere/a", "content": "a*b" }), false),
            (json!({ "file_path": "/etc/passwd", "content": "x" }), false),
        ] {
            let permission = PermissionAsk {
                tool: "Write",
                tool_use_id: "t",
                description: "to see",
                input: &input,
                request: &Value::Null,
                cwd: "/elsewhere",
            };
            handshake::request_permission(&env.seat("bob"), &permission).await.unwrap();
            let approval = approvals::waiting(&lead).await.unwrap().pop().unwrap();
            let proposed = propose_rules(&approval, &none, ALLOW, &[], Path::to_owned);
            assert_eq!(proposed.is_ok(), expected, "{proposed:?}");
            if let Ok(proposed) = proposed {
                let (tool, command) = (Some("Write".to_owned()), Some(input.to_string()));
                assert_eq!(proposed, [Rule { ruling: ALLOW, tool, command }]);
            }
        }
        let history = approvals::permission_history(&lead, lead.clock.now()).await.unwrap();
        assert_eq!(history, []);
        let history =
            approvals::permission_history(&lead, jiff::Timestamp::UNIX_EPOCH).await.unwrap();
        assert_eq!(history.len(), 3);
    });
}
