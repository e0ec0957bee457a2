//! The codes of findings: one mistake, one code, forever.
//!
//! A code is never reused for another mistake; `docs/config.md` lists them, but for the shop's, and a test compares the two. A code
//! also states which parts of the files it depends on, so that a syntax error in one place does not cause false findings elsewhere.

use crate::diagnostic::{Diagnostic, Severity};

/// What a finding depends on, which decides whether it can be trusted when a file has syntax errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FindingScope {
    /// Only the place it points to.
    Place,
    /// The whole file: something is missing.
    File,
    /// Both files.
    Both,
}

macro_rules! codes {
    ($($name:ident $id:literal $severity:ident $scope:ident $title:literal;)*) => {
        /// A kind of mistake.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $(#[doc = concat!("`", $id, "`: ", $title, ".")] $name),* }

        impl Code {
            /// Every code, in order.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The stable name: `E101`.
            pub const fn id(self) -> &'static str {
                match self { $(Self::$name => $id),* }
            }

            /// How bad it is.
            pub const fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity),* }
            }

            pub(crate) const fn scope(self) -> FindingScope {
                match self { $(Self::$name => FindingScope::$scope),* }
            }

            /// Its title on their page.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title),* }
            }
        }
    };
}

codes! {
    Syntax             "E101" Error Place "the file is not valid TOML";
    UnknownField       "E102" Error Place "unknown field";
    WrongType          "E103" Error Place "wrong type of value";
    MissingField       "E104" Error File  "a required field is missing";
    WrongTable         "E105" Error Place "wrong form of table header";
    Unreadable         "E106" Error File  "the file cannot be read";
    OutOfRange         "E107" Error Place "a number or duration out of range";
    UnknownWord        "E108" Error Place "not one of the allowed words";
    BadText            "E109" Error Place "empty, too long or unprintable text";

    EmptyCatalog       "E201" Error File  "the catalog publishes no model";
    BadSlug            "E202" Error Place "malformed slug or alias";
    DuplicateSlug      "E203" Error Place "the same slug twice";
    AliasTaken         "E204" Error Place "an alias that is already a slug or an alias";
    RetiredPublished   "E205" Error Place "a retired slug that is published";
    BadReplacement     "E206" Error File  "the replacement of a retired slug is not published";
    BadPrice           "E207" Error Place "not a price";
    BadTier            "E208" Error Place "contradicting price tiers";
    BadLimits          "E209" Error Place "contradicting limits";
    BadDate            "E210" Error Place "not a date";
    BadClass           "E211" Error Place "a class that cannot be priced";
    BadLink            "E212" Error Place "a link that customers cannot open";
    FarBelowCost       "E213" Error Both  "a price below half of a target's cost";
    UnlistedCost       "E214" Error Place "a cost that the library does not have";
    BadPlan            "E215" Error Place "a plan that cannot be sold";
    DuplicatePlan      "E216" Error Place "two plans with one name";
    PlanModel          "E217" Error File  "a plan for a model that is not published";
    BadPriceList       "E218" Error Place "a price list that nobody can have";
    DuplicatePriceList "E219" Error Place "two price lists with one name";
    ListedModel        "E220" Error File  "a price for a model that is not published";
    UnknownCost        "E221" Error Both  "a markup on a cost that nobody said";
    LostPriceList      "E222" Error Both  "a price list that customers have is gone";
    BadDefault         "E223" Error Place "a default that nobody could be set to";
    DefaultModel       "E224" Error File  "a default cap for a model that is not published";

    ModelWithoutRoute  "E301" Error Both  "a model without a route";
    DuplicateRoute     "E302" Error Place "two routes for one slug";
    NoTargets          "E303" Error Place "a route without targets";
    UnknownProvider    "E304" Error File  "a target names an unknown provider";
    FamilyMismatch     "E305" Error Both  "no target speaks the model's best path";
    MixedSimulated     "E306" Error File  "a route mixes simulated and real providers";
    BadBaseUrl         "E307" Error Place "an invalid base URL";
    LiteralSecret      "E308" Error Place "a secret in the file";
    UnsetSecret        "E309" Error Place "a missing secret";
    BadSecret          "E310" Error Place "a malformed secret";
    Contradiction      "E311" Error Place "fields that exclude each other";
    BadDuration        "E312" Error Place "not a duration";
    BadHeader          "E313" Error Place "a header that cannot be sent";
    BadProviderName    "E314" Error Place "malformed provider name";
    BadWebhook         "E315" Error Place "an address that cannot receive events";
    DuplicateWebhook   "E316" Error Place "two webhooks with one address";

    Unreachable        "E601" Error Both  "a provider cannot be reached";
    WrongPath          "E602" Error Both  "a provider knows no such path";
    WrongModel         "E603" Error Both  "a provider knows no such model";
    KeyRefused         "E604" Error Both  "a provider refuses the key";
    AccountDrained     "E605" Error Both  "an account at a provider has no money or quota left";
    AbilityMissing     "E606" Error Both  "a target cannot do what its model is sold for";
    TargetFails        "E607" Error Both  "a target does not answer properly";
    CertificateUnusable "E608" Error Both "a certificate that cannot be used";
    CertificateExpired "E609" Error Both  "a certificate that has expired";

    BadCurrency        "E701" Error Place "not a currency";
    BadSum             "E702" Error Place "a sum that cannot be sold";
    TaxAbovePrice      "E703" Error Place "a tax that is not part of its price";
    NothingForSale     "E704" Error File  "a shop that sells nothing";
    BadListener        "E705" Error Place "an address that cannot be listened on or trusted";
    BadShopUrl         "E706" Error Place "a URL that buyers or the shop cannot use";
    TooMuchCredit      "E707" Error Place "credit worth more than twice its price";
    NoRate             "E708" Error File  "a currency without a rate";
    DuplicateOffer     "E709" Error Place "the same offer twice";
    GatewayAway        "E711" Error Both  "a gateway that does not answer the shop";
    TokenRefused       "E712" Error Both  "a token that cannot sell";
    BeyondBound        "E713" Error Both  "an offer that can never be booked";
    ProcessorAway      "E714" Error Both  "a processor that does not answer";
    ProcessorKeyRefused "E715" Error Both "a key that the processor refuses";
    AccountCannotCharge "E716" Error Both "an account that cannot charge";
    NoWebhookEndpoint  "E717" Error Both  "no webhook endpoint at the shop's address";
    EventsMissing      "E718" Error Both  "a webhook endpoint that is not told everything";

    RouteWithoutModel  "W401" Warning Both  "a route without a model";
    SimulatedInLineup  "W402" Warning Both  "a published slug is simulated beside real ones";
    PriceJump          "W403" Warning Both  "a price changed by more than half";
    Vanished           "W404" Warning Both  "a published slug vanished";
    NoKey              "W405" Warning File  "a provider without a key";
    PlainHttp          "W406" Warning Place "a base URL without encryption";
    NoPath             "W407" Warning Place "a base URL without a path";
    RepeatedTarget     "W408" Warning Place "the same target twice";
    DeadTier           "W409" Warning Place "a price tier that never applies";
    UnusedProvider     "W410" Warning File  "a provider that no route uses";
    Miscounting        "W411" Warning Both  "a target's counts are repeatedly not charged as they stand";
    CheapCacheWrite    "W412" Warning Place "a cache write cheaper than input";
    CacheWriteUnpriced "W414" Warning Both  "cache writes that cost more than they are sold for";

    NoCapacity         "W415" Warning Both  "a target could not be checked: it has no capacity now";
    SwappedPrices      "W416" Warning Place "output cheaper than input";
    DearCacheRead      "W417" Warning Place "a cache read dearer than input";
    BelowCost          "W418" Warning Both  "a price below a target's cost";
    FarFromList        "W419" Warning Both  "a price far from the list price";
    NoCost             "W420" Warning Both  "a target without a cost that the library has";
    TinyPrice          "W421" Warning Both  "a price that looks like one per token or per thousand";
    MountedAlone       "W422" Warning Place "a file that is mounted by itself";
    CertificateName    "W423" Warning Both "a certificate for another name";
    CertificateEnds    "W424" Warning Both "a certificate that ends within 14 days";
    DropChanges        "W425" Warning Place "a dropped field that changes the answer or the price";
    FormerField        "W426" Warning Place "a field that is no longer used";
    WordContradicted   "W427" Warning Both  "a service does not do what is said of it";
    DeadPlan           "W428" Warning File  "a plan whose models are all retired";

    OtherAddress       "W711" Warning Both "addresses of gateway and shop that do not lead to each other";
    MayDoMore          "W712" Warning Both "a token that may do more than sell";
    OtherVersion       "W713" Warning Both "callbacks in the shapes of another version";
    NotShown           "W714" Warning Both "what the processor does not show this key";
    Unproved           "W715" Warning Both "a webhook secret that no callback has proved";

    SecretNotChecked   "N501" Note Place "a secret was not checked";
    MoreFindings       "N502" Note File  "more findings than are shown";
    SkippedChecks      "N503" Note File  "checks that had to be skipped";
    OtherStatus        "N504" Note Place "a refusal for lack of money that is not 429 for everybody";
    Organisations      "N505" Note Both  "which keys of a provider share a prompt cache";
    SpeedOfModel       "N506" Note Place "a speed that targets and providers may name";
    UnsaidLimit        "N507" Note Both  "nobody says what an output limit bounds at a service";
    ServiceTried       "N508" Note Both  "what a service did in a trial";
}

impl Code {
    /// Whether it is of a shop's file, or of what a shop asks.
    pub fn is_of_shop(self) -> bool {
        self.id()[1..].starts_with('7')
    }
}

impl Diagnostic {
    /// A finding of the running gateway about a target whose counts it cannot charge: a setting is wrong, and no line shows which.
    #[must_use]
    pub fn miscounting(what: String, remedy: String) -> Self {
        Self::without_line(Code::Miscounting, what, remedy)
    }

    /// A finding about something other than the files, such as a target that was seen at work; no line shows it.
    #[must_use]
    pub fn without_line(code: Code, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            severity: code.severity(),
            code: code.id(),
            message: what.into(),
            place: None,
            help: Some(remedy.into()),
            related: Vec::new(),
        }
    }
}
