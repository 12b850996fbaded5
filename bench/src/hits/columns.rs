//! The 105 columns: name, type and where the values come from, one line each.
//!
//! Names and types are those of ClickBench's `hits.parquet`; the values are made up.
//! Invariant: number types have number sources, text has text sources (a test checks it).

use arrow::datatypes::DataType;

/// One column of the table.
pub struct Column {
    /// As in the file
    pub name: &'static str,
    /// Its type
    pub kind: Kind,
    /// Its values
    pub source: Source,
}

/// The types that occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Int16
    Short,
    /// Int32
    Int,
    /// Int64
    Long,
    /// UInt16, days since 1970
    Date,
    /// Binary: text without the annotation that says so
    Bytes,
}

/// What a value belongs to: equal owners have equal values.
#[derive(Clone, Copy)]
pub enum Of {
    /// Every row its own
    Row,
    /// A run of rows of one user
    Visit,
    /// A user, wherever it turns up
    User,
    /// A site
    Counter,
}

/// Where values come from.
pub enum Source {
    /// Always the same
    Fixed(i64),
    /// 0, but for `n` of a million: 1 to `distinct`, skewed
    Rare(Of, u64, u64),
    /// `distinct` values from `first`, skewed
    Skewed(Of, u64, i64),
    /// Even over low..high
    Uniform(Of, i64, i64),
    /// One of a few, weights in percent
    Pick(Of, &'static [(i64, u64)]),
    /// Follows from what the row is
    Known(Known),
    /// Empty, but for `n` of a million: one of `distinct` words
    Word(Of, u64, u64),
    /// One of a few texts, weights in percent
    PickText(Of, &'static [(&'static str, u64)]),
    /// Text that follows from what the row is
    Text(Text),
}

/// Numbers that follow from what the row is.
#[derive(Clone, Copy)]
pub enum Known {
    Watch,
    EventTime,
    LocalTime,
    ClientTime,
    Counter,
    User,
    Region,
    ClientIp,
    FirstSeen,
    UrlHash,
    RefererHash,
    Width,
    Height,
    Mobile,
    Phone,
    SearchEngine,
    Traffic,
}

/// Texts that follow from what the row is.
#[derive(Clone, Copy)]
pub enum Text {
    Url,
    Title,
    Referer,
    OriginalUrl,
    Phrase,
    PhoneModel,
}

impl Kind {
    /// The type in Arrow.
    pub fn data_type(self) -> DataType {
        match self {
            Self::Short => DataType::Int16,
            Self::Int => DataType::Int32,
            Self::Long => DataType::Int64,
            Self::Date => DataType::UInt16,
            Self::Bytes => DataType::Binary,
        }
    }
}

const fn column(kind: Kind, name: &'static str, source: Source) -> Column {
    Column { name, kind, source }
}
const fn short(name: &'static str, source: Source) -> Column {
    column(Kind::Short, name, source)
}
const fn int(name: &'static str, source: Source) -> Column {
    column(Kind::Int, name, source)
}
const fn long(name: &'static str, source: Source) -> Column {
    column(Kind::Long, name, source)
}
const fn text(name: &'static str, source: Source) -> Column {
    column(Kind::Bytes, name, source)
}

use Of::{Counter, Row, User, Visit};
use Source::{Fixed, Pick, PickText, Rare, Skewed, Uniform, Word};

const ZERO: Source = Fixed(0);

/// All columns, in the file's order.
pub static COLUMNS: &[Column] = &[
    long("WatchID", Source::Known(Known::Watch)),
    short("JavaEnable", Pick(User, &[(1, 78), (0, 22)])),
    text("Title", Source::Text(Text::Title)),
    short("GoodEvent", Fixed(1)),
    long("EventTime", Source::Known(Known::EventTime)),
    column(Kind::Date, "EventDate", ZERO),
    int("CounterID", Source::Known(Known::Counter)),
    int("ClientIP", Source::Known(Known::ClientIp)),
    int("RegionID", Source::Known(Known::Region)),
    long("UserID", Source::Known(Known::User)),
    short("CounterClass", Pick(Counter, &[(0, 60), (1, 5), (-1, 35)])),
    short("OS", Skewed(User, 90, 1)),
    short("UserAgent", Skewed(User, 80, 1)),
    text("URL", Source::Text(Text::Url)),
    text("Referer", Source::Text(Text::Referer)),
    short("IsRefresh", Rare(Row, 90_000, 1)),
    short("RefererCategoryID", Rare(Visit, 300_000, 2_000)),
    int("RefererRegionID", Rare(Visit, 250_000, 3_000)),
    short("URLCategoryID", Rare(Counter, 500_000, 2_000)),
    int("URLRegionID", Rare(Counter, 300_000, 2_000)),
    short("ResolutionWidth", Source::Known(Known::Width)),
    short("ResolutionHeight", Source::Known(Known::Height)),
    short(
        "ResolutionDepth",
        Pick(User, &[(32, 70), (24, 26), (16, 3), (0, 1)]),
    ),
    short("FlashMajor", Pick(User, &[(11, 80), (10, 8), (0, 12)])),
    short("FlashMinor", Skewed(User, 10, 0)),
    text(
        "FlashMinor2",
        PickText(User, &[("700", 55), ("202", 25), ("", 15), ("00", 5)]),
    ),
    short("NetMajor", Pick(User, &[(0, 70), (2, 15), (4, 10), (3, 5)])),
    short("NetMinor", Pick(User, &[(0, 85), (5, 10), (1, 5)])),
    short("UserAgentMajor", Skewed(User, 60, 1)),
    text(
        "UserAgentMinor",
        PickText(
            User,
            &[
                ("0", 55),
                ("12", 15),
                ("0.", 10),
                ("1", 10),
                ("5.", 6),
                ("", 4),
            ],
        ),
    ),
    short("CookieEnable", Pick(User, &[(1, 99), (0, 1)])),
    short("JavascriptEnable", Fixed(1)),
    short("IsMobile", Source::Known(Known::Mobile)),
    short("MobilePhone", Source::Known(Known::Phone)),
    text("MobilePhoneModel", Source::Text(Text::PhoneModel)),
    text("Params", Word(Row, 20_000, 10_000)),
    int("IPNetworkID", Uniform(User, 1_000_000, 4_500_000)),
    short("TraficSourceID", Source::Known(Known::Traffic)),
    short("SearchEngineID", Source::Known(Known::SearchEngine)),
    text("SearchPhrase", Source::Text(Text::Phrase)),
    short("AdvEngineID", Rare(Visit, 6_300, 18)),
    short("IsArtifical", Rare(Row, 120_000, 1)),
    short("WindowClientWidth", Uniform(Visit, 300, 2_000)),
    short("WindowClientHeight", Uniform(Visit, 200, 1_200)),
    short(
        "ClientTimeZone",
        Pick(
            User,
            &[(-240, 70), (-180, 15), (-120, 5), (-360, 5), (0, 5)],
        ),
    ),
    long("ClientEventTime", Source::Known(Known::ClientTime)),
    short(
        "SilverlightVersion1",
        Pick(User, &[(0, 60), (5, 38), (4, 2)]),
    ),
    short("SilverlightVersion2", Pick(User, &[(0, 70), (1, 30)])),
    int(
        "SilverlightVersion3",
        Pick(User, &[(0, 60), (20_125, 25), (10_411, 10), (50_401, 5)]),
    ),
    short("SilverlightVersion4", Rare(User, 3_000, 5)),
    text(
        "PageCharset",
        PickText(Counter, &[("utf-8", 60), ("windows-1251", 35), ("", 5)]),
    ),
    int("CodeVersion", Skewed(Counter, 30, 200)),
    short("IsLink", Rare(Row, 7_000, 1)),
    short("IsDownload", Rare(Row, 900, 1)),
    short("IsNotBounce", Rare(Row, 140_000, 1)),
    long("FUniqID", Source::Known(Known::FirstSeen)),
    text("OriginalURL", Source::Text(Text::OriginalUrl)),
    int("HID", Uniform(Row, 0, 1_073_741_824)),
    short("IsOldCounter", ZERO),
    short("IsEvent", ZERO),
    short("IsParameter", ZERO),
    short("DontCountHits", Rare(Row, 95_000, 1)),
    short("WithHash", Rare(Row, 4_000, 1)),
    text(
        "HitColor",
        PickText(Row, &[("F", 55), ("5", 22), ("S", 10), ("E", 8), ("W", 5)]),
    ),
    long("LocalEventTime", Source::Known(Known::LocalTime)),
    short(
        "Age",
        Pick(
            User,
            &[(0, 60), (22, 12), (31, 12), (16, 8), (39, 4), (55, 4)],
        ),
    ),
    short("Sex", Pick(User, &[(0, 60), (1, 22), (2, 18)])),
    short("Income", Pick(User, &[(0, 70), (2, 20), (3, 7), (1, 3)])),
    short("Interests", Rare(User, 400_000, 16_000)),
    short("Robotness", Rare(User, 60_000, 5)),
    int("RemoteIP", Source::Known(Known::ClientIp)),
    int("WindowName", Rare(Visit, 300_000, 3_000)),
    int("OpenerName", Rare(Visit, 250_000, 3_000)),
    short("HistoryLength", Skewed(Row, 60, -1)),
    text(
        "BrowserLanguage",
        PickText(User, &[("ru", 88), ("en", 8), ("uk", 3), ("", 1)]),
    ),
    text(
        "BrowserCountry",
        PickText(User, &[("RU", 80), ("UA", 8), ("US", 7), ("KZ", 5)]),
    ),
    text("SocialNetwork", Word(Row, 150, 10)),
    text("SocialAction", Word(Row, 150, 4)),
    short("HTTPError", Rare(Row, 2_500, 10)),
    int("SendTiming", Rare(Row, 700_000, 30_000)),
    int("DNSTiming", Rare(Row, 300_000, 3_000)),
    int("ConnectTiming", Rare(Row, 350_000, 5_000)),
    int("ResponseStartTiming", Rare(Row, 750_000, 10_000)),
    int("ResponseEndTiming", Rare(Row, 750_000, 15_000)),
    int("FetchTiming", Rare(Row, 700_000, 20_000)),
    short("SocialSourceNetworkID", Rare(Visit, 9_000, 12)),
    text("SocialSourcePage", Word(Visit, 8_000, 5_000)),
    long("ParamPrice", Rare(Row, 500, 100_000)),
    text("ParamOrderID", Word(Row, 300, 1_000_000)),
    text("ParamCurrency", PickText(Counter, &[("NH", 99), ("RU", 1)])),
    short("ParamCurrencyID", Rare(Counter, 10_000, 3)),
    text("OpenstatServiceName", Word(Visit, 9_000, 20)),
    text("OpenstatCampaignID", Word(Visit, 9_000, 3_000)),
    text("OpenstatAdID", Word(Visit, 9_000, 9_000)),
    text("OpenstatSourceID", Word(Visit, 9_000, 5_000)),
    text("UTMSource", Word(Visit, 25_000, 200)),
    text("UTMMedium", Word(Visit, 22_000, 30)),
    text("UTMCampaign", Word(Visit, 22_000, 4_000)),
    text("UTMContent", Word(Visit, 12_000, 10_000)),
    text("UTMTerm", Word(Visit, 9_000, 20_000)),
    text("FromTag", Word(Row, 9_000, 500)),
    short("HasGCLID", Rare(Visit, 9_000, 1)),
    long("RefererHash", Source::Known(Known::RefererHash)),
    long("URLHash", Source::Known(Known::UrlHash)),
    int("CLID", Rare(User, 15_000, 2_000)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_fit_their_types() {
        assert_eq!(COLUMNS.len(), 105);
        for column in COLUMNS {
            let is_text = matches!(
                column.source,
                Source::Word(..) | Source::PickText(..) | Source::Text(_)
            );
            assert_eq!(is_text, column.kind == Kind::Bytes, "{}", column.name);
        }
    }

    #[test]
    fn weights_sum_to_a_hundred() {
        for column in COLUMNS {
            let total: u64 = match column.source {
                Source::Pick(_, choices) => choices.iter().map(|choice| choice.1).sum(),
                Source::PickText(_, choices) => choices.iter().map(|choice| choice.1).sum(),
                _ => 100,
            };
            assert_eq!(total, 100, "{}", column.name);
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 105);
    }
}
