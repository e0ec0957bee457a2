//! Plans by command: started, renewed, changed, paused, ended and shown; and what to type instead.

use serde_json::Value;

use super::cli::Cli;

const PLANS: &str = r#"
[[plan]]
name      = "coder"
title     = "Coder, monthly"
price     = "20.00"
allowance = "25.00"
period    = "month"
windows   = [ { per = "5h", usd = "4.00" } ]

[[plan]]
name      = "team"
title     = "Team, monthly"
price     = "40.00"
allowance = "50.00"
period    = "month"
"#;

/// Commands with a catalog that has plans.
struct Sells {
    cli: Cli,
    catalog: String,
}

impl Sells {
    fn new() -> Self {
        let cli = Cli::new();
        let root = crate::support::HOME;
        let models = std::fs::read_to_string(format!("{root}/catalog.toml")).unwrap();
        let file = cli.folder.path().join("catalog.toml");
        std::fs::write(&file, format!("{models}{PLANS}")).unwrap();
        let catalog = file.to_str().unwrap().to_owned();
        Self { cli, catalog }
    }

    fn json(&self, line: &str) -> Value {
        let words: Vec<&str> = line.split(' ').collect();
        self.cli
            .json(&[&words[..], &["--json", "--catalog", &self.catalog]].concat())
    }

    fn said(&self, line: &str) -> (bool, String) {
        let words: Vec<&str> = line.split(' ').collect();
        let output = self
            .cli
            .run(&[&words[..], &["--catalog", &self.catalog]].concat());
        let all = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(all).unwrap())
    }
}

#[test]
fn plans_are_started_renewed_changed_and_ended() {
    let sells = Sells::new();
    sells.json("keys create --new-ledger --label x");
    let made = sells.json("customers create --label Ada");
    let id = made["id"].as_str().unwrap();
    let plan = format!("customers plan {id}");
    assert!(
        sells
            .said("plans list")
            .1
            .contains("There are no subscriptions. Sell one")
    );
    let (_, started) = sells.said(&format!("{plan} start coder --reference pi_1"));
    assert!(
        started.contains("active, 25.00 of 25.00 left until")
            && started.contains("4.00 of 4.00 per 5h"),
        "{started}"
    );
    let listed = sells.json("plans list --plan coder");
    let subscription = listed["subscriptions"][0]["id"].as_str().unwrap();
    let (_, again) = sells.said(&format!("{plan} start coder --reference pi_1"));
    assert!(again.contains("The ledger knew this"), "{again}");
    let renewed = sells.json(&format!("{plan} renew {subscription} --given --periods 2"));
    assert_eq!(renewed["paid_ahead"], 2);
    let changed = sells.json(&format!("{plan} change coder team"));
    assert_eq!(
        (&changed["plan"], &changed["period"]["plan"]),
        (&"team".into(), &"coder".into())
    );
    assert_eq!(
        sells.json(&format!("{plan} pause team"))["status"],
        "paused"
    );
    assert_eq!(
        sells.json(&format!("{plan} resume team"))["status"],
        "active"
    );
    for show in ["plans show", "show"] {
        let (_, shown) = sells.said(&format!("{show} {subscription}"));
        assert!(
            shown.contains("paid ahead") && shown.contains("5h"),
            "{shown}"
        );
    }
    let (_, page) = sells.said(&format!("customers show {id}"));
    let line = format!("team ({subscription}): active, 25.00 of 25.00 left until");
    assert!(page.contains(&line), "{page}");
    assert_eq!(sells.json(&format!("{plan} end team"))["status"], "ended");
    let lot = sells.json("vouchers create --count 1 --plan coder");
    assert_eq!(
        (&lot["amount"], &lot["kind"]),
        (&"25.00".into(), &"plan".into())
    );
    let verified = sells.said("ledger verify");
    assert!(verified.0, "{}", verified.1);
}

#[test]
fn what_is_mistaken_says_what_to_type_instead() {
    let sells = Sells::new();
    sells.json("keys create --new-ledger --label x");
    let ids = ["Ada", "Bob"].map(|label| {
        let made = sells.json(&format!("customers create --label {label}"));
        made["id"].as_str().unwrap().to_owned()
    });
    let [ada, bob] = &ids;
    let started = sells.json(&format!("customers plan {ada} start coder --given"));
    let subscription = started["id"].as_str().unwrap();
    for (line, hint) in [
        (format!("{ada} start coder --given"), "renew coder"),
        (format!("{ada} renew team --given"), "start team"),
        (format!("{ada} start codr --given"), "did you mean `coder`?"),
        (format!("{ada} renew coder"), "--reference"),
        (
            format!("{ada} renew coder --given --periods 25"),
            "between 1 and 24",
        ),
        (format!("{ada} pause team"), "it has coder"),
        (
            format!("{ada} resume coder"),
            "it is active and cannot be resumed",
        ),
        (
            format!("{bob} pause {subscription}"),
            "start one: farebox customers plan",
        ),
    ] {
        let (done, said) = sells.said(&format!("customers plan {line}"));
        assert!(!done && said.contains(hint), "{line}: {said}");
    }
    let (done, said) = sells.said("vouchers create --count 1 --plan codr");
    assert!(!done && said.contains("did you mean `coder`?"), "{said}");
}
