//! Forms: the members that an act asks for, and what was typed for them as a plan.
//!
//! Nothing is applied here and nothing is guessed: what is typed is read by the act's own readers. Every problem is told at its field, and
//! the values stay.

use farebox_ledger::text::SECRET_PREFIX;
use farebox_ledger::{Amount, Key, MarginQuery, OperationId, Scope, Timestamp};
use farebox_selling::customer::CustomerDocument;
use farebox_selling::key::KeyDocument;
use farebox_selling::member::{Member, Reads};
use serde_json::{Value, json};

use super::money::sums::{MarginView, by_name};
use super::party::Party;
use crate::acts::NEW_KEY;
use crate::field::{FieldEdit, TextField};
use crate::plan::{self, ActBody, ActKind, ActPlan, title};
use crate::{clock, format};

/// Amounts above this one are typed twice.
const TYPE_TWICE_ABOVE: Amount = Amount::from_picos(1_000_000_000_000_000);

// What is asked for besides the members of an act.
const AGAIN: &str = "again";
const LAST_FOUR: &str = "last_four";
const HOW_MANY: &str = "how_many";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FormPurpose {
    Act(ActForm),
    Export(ConsoleExport),
    SaveSecret,
}

/// What an act's form is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActForm {
    pub(crate) kind: &'static ActKind,
    /// What it is done to, as it was when the form opened; none for a new one.
    pub(crate) about: Option<Party>,
    pub(crate) charge: Option<RefundedCharge>,
    /// The line of the page that it is about, as a member of the act.
    pub(crate) row: Option<(String, Value)>,
    /// It is done to so many marked keys instead.
    pub(crate) marked: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefundedCharge {
    pub(crate) request: OperationId,
    pub(crate) amount: Amount,
    pub(crate) slug: String,
}

/// What an export writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConsoleExport {
    Keys,
    Entries(Scope),
    Audit,
    /// The rows of the Margin or Exposure tab, all of them.
    Sums(MarginView, MarginQuery),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FormField {
    pub(crate) member: Member,
    pub(crate) field: TextField,
    /// What it had when the form opened.
    first: String,
    pub(crate) error: Option<String>,
}

/// An open form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) purpose: FormPurpose,
    /// What the act will change, or what the file is named after.
    pub(crate) of: Option<Scope>,
    pub(crate) operation: OperationId,
    pub(crate) fields: Vec<FormField>,
    pub(crate) focus: usize,
    /// A refusal of the ledger, shown above the fields.
    pub(crate) error: Option<String>,
}

/// The result of a finished form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FinishedForm {
    Act(ActPlan),
    Export {
        what: ConsoleExport,
        json: bool,
        path: String,
    },
    SaveSecret {
        path: String,
    },
}

/// The name of a field, and what is wrong with it.
type Problem = (String, String);

fn at(name: &str, why: impl Into<String>) -> Problem {
    (name.to_owned(), why.into())
}

/// A field that is no member of an act.
fn besides(name: &str, words: &str, reads: Reads) -> FormField {
    let required = !matches!(name, AGAIN | LAST_FOUR | HOW_MANY);
    let (name, words) = (name.to_owned(), words.to_owned());
    let member = Member {
        name,
        words,
        reads,
        required,
    };
    FormField::new(member, String::new())
}

impl ActForm {
    /// Its fields when it opens. Each of many keys keeps its label.
    fn fields(&self, now: Timestamp) -> Vec<FormField> {
        let known = self.about.as_ref().filter(|_| self.kind.edits);
        let known = known.map_or(Value::Null, |party| known_of(party, now));
        let members = (self.kind.members)(self.kind.asks).into_iter();
        let members = members.filter(|member| self.marked == 0 || member.name != "label");
        let field = |member: Member| {
            let text = shown(&member.name, &known[&member.name]);
            FormField::new(member, text)
        };
        let sure = self.kind.permanent.map(|_| match self.marked {
            0 => besides(LAST_FOUR, "characters of the id above", Reads::Text),
            _ => besides(HOW_MANY, "keys: the number above", Reads::Text),
        });
        members.map(field).chain(sure).collect()
    }

    /// What is told below its fields.
    pub(crate) fn hint(&self) -> &'static str {
        match (self.kind.permanent, self.marked, self.kind.edits) {
            (Some(permanent), ..) => permanent,
            (None, 0, _) => "you review the change before it is applied",
            (None, _, true) => "empty keeps what each key has; none clears it",
            (None, _, false) => "for each key; its id is appended to the reference",
        }
    }

    /// Refuses what its kind, its charge or the account's rules would refuse; what each of many accounts allows is seen in the review.
    fn check(&self, plan: &ActPlan) -> Result<(), Problem> {
        if self.kind.edits && plan.body.is_empty() {
            let first = self.kind.asks.iter().find(|name| **name != "label");
            return Err(at(first.unwrap_or(&""), "type what to change"));
        }
        (self.kind.check)(&plan.body).map_err(|why| self.located(&plan.body, why))?;
        let giver = plan.of.map(|of| json!(of.to_string()));
        if plan
            .body
            .get("into")
            .is_some_and(|into| Some(into) == giver.as_ref())
        {
            return Err(at("into", "it is the one that gives"));
        }
        let (name, amount) = plan.money().unwrap_or(("balance", Amount::ZERO));
        if let Some(charge) = self.charge.as_ref().filter(|charge| amount > charge.amount) {
            return Err(at(
                name,
                format!("the request was charged {}", charge.amount),
            ));
        }
        let account = self.about.as_ref().map(Party::account).unwrap_or_default();
        match plan.after(account) {
            Some(Err(why)) if self.marked == 0 => Err(at(name, why)),
            _ => Ok(()),
        }
    }

    /// At the one member that is refused alone for the same reason.
    fn located(&self, body: &ActBody, why: String) -> Problem {
        let refused = |(name, value): &(&String, &Value)| {
            let alone = ActBody::from_iter([((*name).clone(), (*value).clone())]);
            (self.kind.check)(&alone).is_err_and(|told| told == why)
        };
        let name = body.iter().find(refused).map(|(name, _)| name.clone());
        (name.unwrap_or_default(), why)
    }
}

/// What a key or customer has, as its document.
fn known_of(party: &Party, now: Timestamp) -> Value {
    match party {
        Party::Key(key) => json!(KeyDocument::of(key, now)),
        Party::Customer(customer) => json!(CustomerDocument::from(&**customer)),
    }
}

/// A member of a document as it is typed.
fn shown(name: &str, value: &Value) -> String {
    let text = plan::typed(value);
    let end = clock::parse(&text).filter(|_| name == "expires_at");
    end.map_or(text, clock::end)
}

/// Whether a key has already what an edit says.
pub(crate) fn has_already(key: &Key, body: &ActBody, now: Timestamp) -> bool {
    let known = json!(KeyDocument::of(key, now));
    let mut said = body.iter();
    said.all(|(name, value)| shown(name, &known[name]) == plan::typed(value))
}

impl Form {
    pub(crate) fn act(
        act: ActForm,
        of: Option<Scope>,
        operation: OperationId,
        now: Timestamp,
    ) -> Self {
        let fields = act.fields(now);
        Self::new(FormPurpose::Act(act), of, operation, fields)
    }

    /// The form of a file that is written.
    pub(crate) fn file(purpose: FormPurpose, of: Option<Scope>, operation: OperationId) -> Self {
        let mut fields = vec![besides(
            "file",
            "a new file, readable only by you",
            Reads::Text,
        )];
        if matches!(purpose, FormPurpose::Export(_)) {
            let formats = ["csv", "json"].map(str::to_owned).to_vec();
            let format = besides("format", "csv or json: ← →", Reads::Choice(formats));
            fields.insert(0, format);
        }
        let mut form = Self::new(purpose, of, operation, fields);
        let path = form.default_path("csv");
        if let Some(file) = form.fields.last_mut() {
            file.field = TextField::new(path);
        }
        form
    }

    const fn new(
        purpose: FormPurpose,
        of: Option<Scope>,
        operation: OperationId,
        fields: Vec<FormField>,
    ) -> Self {
        Self {
            purpose,
            of,
            operation,
            fields,
            focus: 0,
            error: None,
        }
    }

    fn default_path(&self, ending: &str) -> String {
        match &self.purpose {
            FormPurpose::Export(ConsoleExport::Keys) => format!("farebox-keys.{ending}"),
            FormPurpose::Export(ConsoleExport::Entries(of)) => format!("farebox-{of}.{ending}"),
            FormPurpose::Export(ConsoleExport::Audit) => format!("farebox-audit.{ending}"),
            FormPurpose::Export(ConsoleExport::Sums(view, query)) => {
                format!("farebox-{}-by-{}.{ending}", view.name(), by_name(query.by))
            }
            FormPurpose::Act(_) | FormPurpose::SaveSecret => {
                self.of.map_or_else(String::new, |of| format!("{of}.key"))
            }
        }
    }

    /// What it is, and what it is about.
    pub(crate) fn title(&self) -> String {
        let about = |party: &Party| format!("{} · {}", party.scope(), party.label());
        match &self.purpose {
            FormPurpose::Act(ActForm { kind, marked, .. }) if *marked > 0 => {
                format!("{} {}", kind.name, format::many(*marked, "marked key"))
            }
            FormPurpose::Act(ActForm {
                kind, about: party, ..
            }) => {
                let of = if **kind == NEW_KEY { " of" } else { "" };
                let about = party.as_ref().map(|party| format!("{of} {}", about(party)));
                format!("{}{}", kind.name, about.unwrap_or_default())
            }
            FormPurpose::Export(ConsoleExport::Keys) => {
                "Export keys (those of the filter)".to_owned()
            }
            FormPurpose::Export(ConsoleExport::Entries(of)) => {
                format!("Export all entries of {of}")
            }
            FormPurpose::Export(ConsoleExport::Audit) => "Export the audit".to_owned(),
            FormPurpose::Export(ConsoleExport::Sums(..)) => "Export these sums".to_owned(),
            FormPurpose::SaveSecret => "Write to a file".to_owned(),
        }
    }

    /// A field's value, without surrounding blanks.
    pub(crate) fn value(&self, name: &str) -> &str {
        let mut fields = self.fields.iter();
        let field = fields.find(|field| field.member.name == name);
        field.map_or("", FormField::typed)
    }

    /// Edits the focused field.
    pub(crate) fn edit(&mut self, edit: &FieldEdit) {
        let Some(field) = self.fields.get_mut(self.focus) else {
            return;
        };
        field.error = None;
        let Some(word) = field.chosen(edit) else {
            return field.field.edit(edit);
        };
        let was = std::mem::replace(&mut field.field, TextField::new(word.clone()));
        // The file that is offered ends as its format is called.
        let (old, new) = (self.default_path(was.text()), self.default_path(&word));
        let mut fields = self.fields.iter_mut();
        let file = fields.find(|field| field.member.name == "file" && field.field.text() == old);
        if let Some(file) = file {
            file.field = TextField::new(new);
        }
    }

    /// Moves to the next or previous field.
    pub(crate) fn step(&mut self, forward: bool) {
        let last = self.fields.len().saturating_sub(1);
        self.focus = if forward {
            (self.focus + 1).min(last)
        } else {
            self.focus.saturating_sub(1)
        };
    }

    /// Whether the focus is on the last field, where enter ends the form.
    pub(crate) fn at_last(&self) -> bool {
        self.focus + 1 >= self.fields.len()
    }

    /// Checks every field. If there are problems, the first wrong field gets the focus and shows its error.
    pub(crate) fn finish(&mut self) -> Option<FinishedForm> {
        self.error = None;
        for field in &mut self.fields {
            field.error = None;
        }
        match self.check() {
            Ok(finished) => Some(finished),
            Err((name, error)) => {
                self.ask_again(&name);
                let place = |field: &FormField| field.member.name == name;
                self.focus = self.fields.iter().position(place).unwrap_or(0);
                if let Some(field) = self.fields.get_mut(self.focus) {
                    field.error = Some(error);
                }
                None
            }
        }
    }

    fn ask_again(&mut self, name: &str) {
        if name == AGAIN && !self.fields.iter().any(|field| field.member.name == AGAIN) {
            let is_money = |field: &FormField| matches!(&*field.member.name, "amount" | "balance");
            let money = self.fields.iter().position(is_money).unwrap_or_default();
            let again = besides(AGAIN, "the same amount", Reads::Text);
            self.fields.insert(money + 1, again);
        }
    }

    fn check(&self) -> Result<FinishedForm, Problem> {
        let edits = matches!(&self.purpose, FormPurpose::Act(act) if act.kind.edits);
        let mut body = ActBody::new();
        for field in &self.fields {
            if let Some(value) = field.said(edits)? {
                body.insert(field.member.name.clone(), value);
            }
        }
        let path = || self.value("file").to_owned();
        Ok(match &self.purpose {
            FormPurpose::Act(act) => {
                for asked_besides in [AGAIN, LAST_FOUR, HOW_MANY] {
                    body.shift_remove(asked_besides);
                }
                body.extend(act.row.clone());
                let plan = ActPlan {
                    kind: act.kind,
                    of: self.of,
                    request: act.charge.as_ref().map(|charge| charge.request),
                    body,
                };
                act.check(&plan)?;
                self.check_sure(act, &plan)?;
                FinishedForm::Act(plan)
            }
            FormPurpose::Export(what) => FinishedForm::Export {
                what: what.clone(),
                json: self.value("format") == "json",
                path: path(),
            },
            FormPurpose::SaveSecret => FinishedForm::SaveSecret { path: path() },
        })
    }

    /// Much money, and what cannot be undone, is only done if it was typed twice.
    fn check_sure(&self, act: &ActForm, plan: &ActPlan) -> Result<(), Problem> {
        if let Some((_, amount)) = plan.money() {
            let times = u64::try_from(act.marked.max(1)).unwrap_or(u64::MAX);
            let all = Amount::times(amount, times);
            let again = Amount::parse_adjustment(self.value(AGAIN));
            if all.is_none_or(|all| all > TYPE_TWICE_ABOVE) && again != Ok(amount) {
                return Err(at(AGAIN, "above $1,000 the amount is typed twice"));
            }
        }
        let symbols = match self.of {
            Some(Scope::Key(key)) => key.chars(),
            Some(Scope::Customer(customer)) => customer.chars(),
            None => String::new(),
        };
        // The last four of an id's ten.
        let end = symbols.get(6..).unwrap_or(&symbols);
        let is_end = self.value(LAST_FOUR).eq_ignore_ascii_case(end);
        match (act.kind.permanent, act.marked) {
            (None, _) => Ok(()),
            (Some(_), 0) if is_end => Ok(()),
            (Some(_), 0) => Err(at(
                LAST_FOUR,
                "these are not the last four characters of the id",
            )),
            (Some(_), keys) if self.value(HOW_MANY) == keys.to_string() => Ok(()),
            (Some(_), _) => Err(at(HOW_MANY, "this is not how many keys are marked")),
        }
    }
}

impl FormField {
    /// A field that has this at first, or its first choice.
    fn new(member: Member, known: String) -> Self {
        let first = match &member.reads {
            Reads::Choice(words) => words.first().cloned().unwrap_or_default(),
            Reads::Text | Reads::Number | Reads::UpTo(_) | Reads::List => known,
        };
        Self {
            field: TextField::new(first.clone()),
            member,
            first,
            error: None,
        }
    }

    fn typed(&self) -> &str {
        self.field.text().trim()
    }

    /// The choice after an edit, if it has some.
    fn chosen(&self, edit: &FieldEdit) -> Option<String> {
        let Reads::Choice(words) = &self.member.reads else {
            return None;
        };
        let is_here = |word: &String| word == self.field.text();
        let now = words.iter().position(is_here).unwrap_or_default();
        let next = match edit {
            FieldEdit::Left => now.saturating_sub(1),
            FieldEdit::Right => (now + 1).min(words.len().saturating_sub(1)),
            FieldEdit::Insert(' ') => (now + 1) % words.len().max(1),
            FieldEdit::Insert(letter) => {
                let begins = |word: &String| word.starts_with(*letter);
                words.iter().position(begins).unwrap_or(now)
            }
            _ => now,
        };
        words.get(next).cloned()
    }

    /// What it says. One that is left empty says nothing; in an edit, one that is left as it was, and an emptied one that there is nothing.
    fn said(&self, edits: bool) -> Result<Option<Value>, Problem> {
        let (name, typed) = (self.member.name.as_str(), self.typed());
        if edits && typed == self.first {
            return Ok(None);
        }
        if typed.is_empty() && (self.member.required || name == "label") {
            let name_of_it = title(name).to_lowercase();
            return Err(at(name, format!("the {name_of_it} is required")));
        }
        let is_all = typed == "all" && self.member.reads == Reads::List;
        if typed.is_empty() || (edits && (typed == "none" || is_all)) {
            return Ok(edits.then_some(Value::Null));
        }
        if typed.contains(SECRET_PREFIX) && name != "file" {
            return Err(at(name, "this looks like a secret: do not store it"));
        }
        let value = self.member.value(typed);
        value.map(Some).map_err(|why| at(name, why))
    }
}
