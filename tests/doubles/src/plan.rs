//! The rules of a wire, ready to judge: their places read once.

use serde_json::Value;

use crate::place::{Tree, Way};
use crate::{BrokenRule, WireRule};

/// Rules in the order of their table.
#[derive(Debug)]
pub(crate) struct RulePlan {
    rules: Vec<&'static WireRule>,
    headers: Vec<usize>,
    places: Tree,
}

impl RulePlan {
    pub(crate) fn new(rules: impl IntoIterator<Item = &'static WireRule>) -> Self {
        let rules: Vec<_> = rules.into_iter().collect();
        let (mut headers, mut places) = (Vec::new(), Tree::default());
        for (number, rule) in rules.iter().enumerate() {
            if rule.place.starts_with('@') {
                headers.push(number);
            } else {
                places.add(rule.place, number);
            }
        }
        Self {
            rules,
            headers,
            places,
        }
    }

    /// What is wrong with the headers, in the order of the table.
    pub(crate) fn header_faults(
        &self,
        headers: &[(String, String)],
        body: &Value,
    ) -> Vec<(usize, BrokenRule<'static>)> {
        let judged = self.headers.iter().filter_map(|number| {
            let rule = self.rules[*number];
            let why = rule.wrong_header(headers, body)?;
            let place = rule.place.to_owned();
            Some((*number, BrokenRule { rule, place, why }))
        });
        judged.collect()
    }

    /// What is wrong with the body, in no order.
    pub(crate) fn body_faults(&self, body: &Value) -> Vec<(usize, BrokenRule<'static>)> {
        let mut faults = Vec::new();
        let mut show = |numbers: &[usize], way: Way<'_>, value: &Value| {
            for number in numbers {
                let rule = self.rules[*number];
                if let Some(why) = rule.wrong(body, value) {
                    let place = way.pointer();
                    faults.push((*number, BrokenRule { rule, place, why }));
                }
            }
        };
        self.places.walk(body, Way::Root, &mut show);
        faults
    }

    /// What is wrong with a request, in the order of the table.
    pub(crate) fn faults(
        &self,
        headers: &[(String, String)],
        body: &Value,
    ) -> Vec<BrokenRule<'static>> {
        let mut faults = self.header_faults(headers, body);
        faults.extend(self.body_faults(body));
        faults.sort_by_key(|(number, _)| *number);
        faults.into_iter().map(|(_, fault)| fault).collect()
    }
}
