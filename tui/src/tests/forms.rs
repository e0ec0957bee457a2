//! Every form by keys, with right and wrong input. A form has the members of its act, whose readers say what is wrong.

use std::collections::HashSet;

use farebox_selling::member::Reads;
use serde_json::{Value, json};

use super::bench::Bench;
use super::fixture::{counted, customers, keys};
use crate::acts::ACTS;
use crate::app::modal::Modal;

/// What is pressed up to the form, then right input with the members that it comes to, and wrong input with what is said.
type Driven = (&'static str, String, Value, Vec<(String, &'static str)>);

fn wrong(list: &[(&str, &'static str)]) -> Vec<(String, &'static str)> {
    let owned = list.iter().map(|(keys, says)| ((*keys).to_owned(), *says));
    owned.collect()
}

fn of_keys() -> Vec<Driven> {
    let end: String = keys()[0].id.chars().chars().skip(6).collect();
    vec![
        (
            "t",
            "12.50<tab>inv-1".to_owned(),
            json!({ "amount": "12.50", "reference": "inv-1" }),
            wrong(&[
                ("1,000<tab>inv-1", "type 1000 for a"),
                ("<tab>inv-1", "the amount is required"),
                ("0<tab>inv-1", "more than zero"),
                ("5<tab>", "the reference is required"),
                ("5<tab>sk-fb-0123", "looks like a secret"),
                ("100000.01<tab>inv-1", "at most 100000"),
                ("1000.01<tab>inv-1", "typed twice"),
                ("1000.01<tab>inv-1<enter><back>9<tab>", "typed twice"),
            ]),
        ),
        (
            "a",
            "2.50<tab>a slow day<tab>fix-1".to_owned(),
            json!({ "amount": "2.50", "reason": "a slow day", "reference": "fix-1" }),
            wrong(&[
                ("-99<tab>why<tab>fix-1", "has 0.00"),
                ("0<tab>why<tab>fix-1", "changes nothing"),
                ("x<tab>why<tab>fix-1", "is not an amount"),
                ("1<tab><tab>fix-1", "the reason is required"),
            ]),
        ),
        (
            "n",
            "laptop<tab>5<tab>inv-2<tab>a, b<tab>2099-01-31<tab>7<tab>8".to_owned(),
            json!({
                "label": "laptop", "balance": "5", "reference": "inv-2", "models": ["a", "b"],
                "expires_at": "2099-01-31", "rate": 7, "concurrency": 8,
            }),
            wrong(&[
                ("<tab>5<tab>inv-2", "the label is required"),
                ("x<tab>5", "go together"),
                ("x<tab><tab>inv-2", "go together"),
                ("x<tab>1e3<tab>inv-2", "is not an amount"),
                ("x<tab>2000<tab>inv-2", "typed twice"),
                ("x<tab><tab><tab><tab>tomorrow", "write a day in UTC"),
                ("x<tab><tab><tab><tab><tab>0", "a whole number above 0"),
                (
                    "x<tab><tab><tab><tab><tab><tab>some",
                    "a whole number above 0",
                ),
            ]),
        ),
        (
            "e",
            "<tab>a b<tab><tab>7".to_owned(),
            json!({ "models": ["a", "b"], "rate": 7 }),
            wrong(&[
                ("", "type what to change"),
                ("<tab><tab>2027-02-30", "write a day in UTC"),
                ("<tab><tab><tab>-1", "a whole number above 0"),
            ]),
        ),
        (
            "R",
            "<right>".to_owned(),
            json!({ "overlap": "1h" }),
            Vec::new(),
        ),
        (
            "x",
            end,
            json!({}),
            wrong(&[
                ("", "last four characters"),
                ("zzzz", "last four characters"),
            ]),
        ),
        (
            "jjj<enter>f",
            "0.001<tab>a broken answer<tab>back-1".to_owned(),
            json!({ "amount": "0.001", "reason": "a broken answer", "reference": "back-1" }),
            wrong(&[
                ("99<tab>why<tab>back-1", "the request was charged"),
                ("-1<tab>why<tab>back-1", "is not an amount"),
            ]),
        ),
    ]
}

fn of_customers() -> Vec<Driven> {
    let [class, other] = [customers()[0].id, customers()[1].id];
    let end: String = class.chars().chars().skip(6).collect();
    let to = |into: String, rest: &str| format!("{into}<tab>{rest}");
    vec![
        (
            "Ut",
            "5<tab>inv-1".to_owned(),
            json!({ "amount": "5", "reference": "inv-1" }),
            wrong(&[("five<tab>inv-1", "is not an amount")]),
        ),
        (
            "Un",
            "Class 9c<tab>crm-10<tab>2.50<tab>5<tab>6<tab>partners".to_owned(),
            json!({
                "label": "Class 9c", "external_id": "crm-10", "low_balance": "2.50", "rate": 5,
                "concurrency": 6, "price_list": "partners",
            }),
            wrong(&[
                ("<tab>crm-10", "the label is required"),
                ("x<tab><tab>little", "is not an amount"),
                ("x<tab><tab><tab>1.5", "a whole number above 0"),
            ]),
        ),
        (
            "Ue",
            " b<tab><back><back><back><back><back>none<tab>3".to_owned(),
            json!({ "label": "Class 9b b", "external_id": null, "low_balance": "3" }),
            wrong(&[
                ("", "type what to change"),
                (
                    "<back><back><back><back><back><back><back><back>",
                    "the label is required",
                ),
                ("<tab><tab>x", "is not an amount"),
            ]),
        ),
        (
            "Um",
            to(other.to_string(), "1<tab>one purse"),
            json!({ "into": other.to_string(), "amount": "1", "reference": "one purse" }),
            vec![
                (to(class.to_string(), "1<tab>x"), "it is the one that gives"),
                (to("c_1".to_owned(), "1<tab>x"), "is not a customer id"),
                (to(other.to_string(), "99<tab>x"), "has 36.25"),
            ],
        ),
        (
            "Ui",
            "5<tab>spring-1<tab><tab>2099-01-31<tab>0".to_owned(),
            json!({
                "amount": "5", "reference": "spring-1", "kind": "promotional",
                "expires_at": "2099-01-31", "priority": 0,
            }),
            wrong(&[
                ("0<tab>spring-1", "more than zero"),
                ("5<tab>", "the reference is required"),
                ("5<tab>spring-1<tab><tab>soon", "write a day in UTC"),
                ("5<tab>spring-1<tab><tab><tab>101", "between 0 and 100"),
            ]),
        ),
        (
            "Up",
            "coder<tab>2<tab>inv-9".to_owned(),
            json!({ "plan": "coder", "periods": 2, "reference": "inv-9", "given": false }),
            wrong(&[
                ("<tab>2", "the plan is required"),
                ("coder<tab>0", "a whole number above 0"),
            ]),
        ),
        (
            "U<enter>]]]P",
            "team<tab>y".to_owned(),
            json!({ "plan": "team", "at_once": true, "subscription": "s_000000002z" }),
            wrong(&[("<tab>y", "the plan is required")]),
        ),
        (
            "Ux",
            end,
            json!({}),
            wrong(&[("abcd", "last four characters")]),
        ),
    ]
}

fn of_marked_keys() -> Vec<Driven> {
    vec![
        (
            "<space><space>t",
            "5<tab>inv".to_owned(),
            json!({ "amount": "5", "reference": "inv" }),
            wrong(&[("501<tab>inv", "typed twice")]),
        ),
        (
            "<space><space>a",
            "-1<tab>why<tab>fix".to_owned(),
            json!({ "amount": "-1", "reason": "why", "reference": "fix" }),
            wrong(&[("-1<tab><tab>fix", "the reason is required")]),
        ),
        (
            "<space><space>e",
            "all<tab>none<tab><tab>4".to_owned(),
            json!({ "models": null, "expires_at": null, "concurrency": 4 }),
            wrong(&[("", "type what to change")]),
        ),
        (
            "<space><space>x",
            "2".to_owned(),
            json!({}),
            wrong(&[("3", "not how many")]),
        ),
    ]
}

#[test]
fn every_form_takes_what_is_right_and_says_what_is_wrong() {
    let mut driven = HashSet::new();
    for (open, right, said, wrong) in [of_keys(), of_customers(), of_marked_keys()].concat() {
        let bench = || {
            let mut bench = Bench::with(120, 40, keys(), counted);
            bench.press(open);
            bench
        };
        let mut form = bench();
        assert!(matches!(form.app.modal, Some(Modal::Form(_))), "{open}");
        form.press(&right);
        form.event(&super::bench::submit());
        let plan = match &form.app.modal {
            Some(Modal::Review(review)) => &review.pending.plan,
            Some(Modal::Bulk(act)) => &act.plan,
            _ => panic!("{open} {right}\n{}", form.screen()),
        };
        assert_eq!(json!(plan.body), said, "{open}");
        driven.insert(plan.kind.name);
        for (keys, says) in wrong {
            let mut form = bench();
            form.press(&keys);
            form.event(&super::bench::submit());
            let words = form.screen().replace(['│', '\n', '"'], " ");
            let words: Vec<&str> = words.split_whitespace().collect();
            assert!(
                matches!(form.app.modal, Some(Modal::Form(_))) && words.join(" ").contains(says),
                "{open} {keys}: {says}\n{}",
                form.screen()
            );
        }
    }
    let forms = ACTS
        .iter()
        .filter(|kind| !kind.asks.is_empty() || kind.permanent.is_some());
    let forms: HashSet<&str> = forms.map(|kind| kind.name).collect();
    assert_eq!(driven, forms, "each is driven");
}

#[test]
fn a_form_has_the_members_of_its_act() {
    for kind in ACTS {
        let members = (kind.members)(kind.asks);
        for member in &members {
            assert!(!member.words.is_empty(), "{kind:?}: {}", member.name);
            let is_number = matches!(&*member.name, "rate" | "concurrency" | "periods");
            assert_eq!(is_number, member.reads == Reads::Number, "{kind:?}");
            assert_eq!(member.name == "models", member.reads == Reads::List);
        }
        let needed: Vec<&str> = members
            .iter()
            .filter(|member| member.required)
            .map(|member| member.name.as_str())
            .collect();
        // What an act needs, its form asks for: nothing else would ever be read.
        let body = needed.iter().map(|name| ((*name).to_owned(), json!("")));
        let told = (kind.check)(&body.collect()).err().unwrap_or_default();
        assert!(!told.contains("missing field"), "{kind:?}: {told}");
    }
}
