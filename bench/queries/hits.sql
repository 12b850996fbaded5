-- Group-by queries over the web-analytics table `hits`.
-- Format: bench/README.md. Every ORDER BY ends in the keys, so that each answer is the only one.

-- query: global_aggregates
-- columns: AdvEngineID, ResolutionWidth
SELECT sum(AdvEngineID) AS adv, count(*) AS c, avg(ResolutionWidth) AS w FROM hits;

-- query: global_avg_wide_integer
-- columns: UserID
SELECT avg(UserID) AS a FROM hits;
-- only: chdb  (its avg of Int64 sums in 64 bits and wraps)
SELECT avg(toFloat64(UserID)) AS a FROM hits;

-- query: global_min_max
-- columns: EventDate, EventTime, WatchID
SELECT min(EventDate) AS d0, max(EventDate) AS d1, min(EventTime) AS t0, max(EventTime) AS t1, min(WatchID) AS w0 FROM hits;

-- query: global_many_sums
-- columns: ResolutionWidth
SELECT sum(ResolutionWidth) AS s0, sum(ResolutionWidth + 1) AS s1, sum(ResolutionWidth + 2) AS s2, sum(ResolutionWidth + 3) AS s3,
       sum(ResolutionWidth + 4) AS s4, sum(ResolutionWidth + 5) AS s5, sum(ResolutionWidth + 6) AS s6, sum(ResolutionWidth + 7) AS s7,
       sum(ResolutionWidth + 8) AS s8, sum(ResolutionWidth + 9) AS s9, sum(ResolutionWidth + 10) AS s10, sum(ResolutionWidth + 11) AS s11,
       sum(ResolutionWidth + 12) AS s12, sum(ResolutionWidth + 13) AS s13, sum(ResolutionWidth + 14) AS s14, sum(ResolutionWidth + 15) AS s15
FROM hits;

-- query: distinct_integer
-- columns: UserID
SELECT count(DISTINCT UserID) AS u FROM hits;

-- query: distinct_string
-- columns: SearchPhrase
SELECT count(DISTINCT SearchPhrase) AS u FROM hits;

-- query: distinct_long_string
-- columns: URL
SELECT count(DISTINCT URL) AS u FROM hits;

-- query: filter_count
-- columns: AdvEngineID
SELECT count(*) AS c FROM hits WHERE AdvEngineID <> 0;

-- query: like_count
-- columns: URL
SELECT count(*) AS c FROM hits WHERE URL LIKE '%google%';

-- query: sparse_low_key
-- columns: AdvEngineID
SELECT AdvEngineID, count(*) AS c FROM hits WHERE AdvEngineID <> 0 GROUP BY AdvEngineID ORDER BY c DESC, AdvEngineID;

-- query: sparse_key_mostly_zero
-- columns: ParamPrice
SELECT ParamPrice, count(*) AS c FROM hits GROUP BY ParamPrice ORDER BY c DESC, ParamPrice LIMIT 10;

-- query: low_key_many_aggregates
-- columns: OS, ResolutionWidth, ResolutionHeight, UserID
SELECT OS, count(*) AS c, sum(ResolutionWidth) AS s, avg(ResolutionHeight) AS a, min(UserID) AS lo, max(UserID) AS hi
FROM hits GROUP BY OS ORDER BY c DESC, OS LIMIT 10;

-- query: low_key_deviation
-- columns: CounterClass, ResolutionWidth, WindowClientWidth
SELECT CounterClass, stddev_samp(ResolutionWidth) AS d, avg(WindowClientWidth) AS a, count(*) AS c
FROM hits GROUP BY CounterClass ORDER BY CounterClass;
-- only: polars
SELECT CounterClass, stddev(ResolutionWidth) AS d, avg(WindowClientWidth) AS a, count(*) AS c
FROM hits GROUP BY CounterClass ORDER BY CounterClass;

-- query: low_string_key
-- columns: BrowserCountry, PageCharset, ResolutionWidth
SELECT BrowserCountry, PageCharset, count(*) AS c, avg(ResolutionWidth) AS w
FROM hits GROUP BY BrowserCountry, PageCharset ORDER BY c DESC, BrowserCountry, PageCharset;

-- query: low_string_filtered
-- columns: MobilePhoneModel, RegionID
SELECT RegionID, count(*) AS c FROM hits WHERE MobilePhoneModel LIKE '%a%' AND MobilePhoneModel NOT LIKE 'n%'
GROUP BY RegionID ORDER BY c DESC, RegionID LIMIT 10;

-- query: low_string_key_filtered
-- columns: BrowserCountry, ResolutionWidth
SELECT BrowserCountry, count(*) AS c, sum(ResolutionWidth) AS w FROM hits WHERE BrowserCountry <> 'US'
GROUP BY BrowserCountry ORDER BY c DESC, BrowserCountry;

-- query: low_string_function_key
-- columns: MobilePhoneModel, ResolutionWidth
SELECT upper(MobilePhoneModel) AS m, count(*) AS c, sum(ResolutionWidth) AS w FROM hits
GROUP BY upper(MobilePhoneModel) ORDER BY c DESC, m LIMIT 10;

-- query: low_string_regex_key
-- columns: UTMCampaign, UserID
SELECT regexp_replace(UTMCampaign, '_.*$', '') AS k, count(*) AS c, max(UserID) AS u FROM hits
GROUP BY regexp_replace(UTMCampaign, '_.*$', '') ORDER BY c DESC, k LIMIT 10;
-- only: chdb
SELECT replaceRegexpOne(UTMCampaign, '_.*$', '') AS k, count(*) AS c, max(UserID) AS u FROM hits
GROUP BY k ORDER BY c DESC, k LIMIT 10;

-- query: low_string_argument
-- columns: CounterClass, HitColor, UTMSource, ResolutionWidth
SELECT CounterClass, sum(CASE WHEN HitColor = '5' THEN ResolutionWidth ELSE 0 END) AS t,
       sum(length(UTMSource)) AS n, count(*) AS c
FROM hits GROUP BY CounterClass ORDER BY CounterClass;

-- query: three_low_string_keys
-- columns: BrowserCountry, BrowserLanguage, HitColor
SELECT BrowserCountry, BrowserLanguage, HitColor, count(*) AS c FROM hits
GROUP BY BrowserCountry, BrowserLanguage, HitColor ORDER BY c DESC, BrowserCountry, BrowserLanguage, HitColor LIMIT 10;

-- query: chosen_string_key
-- columns: Age, OS
SELECT a, OS, count(*) AS c FROM (
    SELECT CASE WHEN Age = 0 THEN 'unknown' WHEN Age < 30 THEN 'younger' ELSE 'older' END AS a, OS FROM hits
) AS t GROUP BY a, OS ORDER BY c DESC, a, OS LIMIT 10;

-- query: referer_domain
-- columns: Referer
SELECT regexp_replace(Referer, '^https?://(?:www\.)?([^/]+)/.*$', '\1') AS k, count(*) AS c, min(Referer) AS r FROM hits
WHERE Referer <> '' GROUP BY regexp_replace(Referer, '^https?://(?:www\.)?([^/]+)/.*$', '\1')
HAVING count(*) > 100 ORDER BY c DESC, k LIMIT 10;
-- only: chdb
SELECT replaceRegexpOne(Referer, '^https?://(?:www\\.)?([^/]+)/.*$', '\\1') AS k, count(*) AS c, min(Referer) AS r FROM hits
WHERE Referer <> '' GROUP BY k HAVING count(*) > 100 ORDER BY c DESC, k LIMIT 10;

-- query: aggregates_with_filter
-- columns: TraficSourceID, IsRefresh, ResolutionWidth, SearchPhrase
SELECT TraficSourceID, count(*) AS c, count(*) FILTER (WHERE IsRefresh = 1) AS refreshed,
       sum(ResolutionWidth) FILTER (WHERE SearchPhrase <> '') AS w
FROM hits GROUP BY TraficSourceID ORDER BY TraficSourceID;
-- only: polars
SELECT TraficSourceID, count(*) AS c, sum(CASE WHEN IsRefresh = 1 THEN 1 ELSE 0 END) AS refreshed,
       CASE WHEN sum(CASE WHEN SearchPhrase <> '' THEN 1 ELSE 0 END) = 0 THEN NULL
            ELSE sum(CASE WHEN SearchPhrase <> '' THEN CAST(ResolutionWidth AS BIGINT) ELSE 0 END) END AS w
FROM hits GROUP BY TraficSourceID ORDER BY TraficSourceID;
-- only: chdb  (its sum over no rows is 0)
SELECT TraficSourceID, count(*) AS c, count(*) FILTER (WHERE IsRefresh = 1) AS refreshed,
       sumOrNull(ResolutionWidth) FILTER (WHERE SearchPhrase <> '') AS w
FROM hits GROUP BY TraficSourceID ORDER BY TraficSourceID;

-- query: ten_low_keys
-- columns: OS, UserAgent, JavaEnable, ResolutionDepth, FlashMajor, NetMajor, CookieEnable, IsMobile, Sex, Age
SELECT OS, UserAgent, JavaEnable, ResolutionDepth, FlashMajor, NetMajor, CookieEnable, IsMobile, Sex, Age, count(*) AS c
FROM hits GROUP BY OS, UserAgent, JavaEnable, ResolutionDepth, FlashMajor, NetMajor, CookieEnable, IsMobile, Sex, Age
ORDER BY c DESC, OS, UserAgent, JavaEnable, ResolutionDepth, FlashMajor, NetMajor, CookieEnable, IsMobile, Sex, Age LIMIT 10;

-- query: medium_key
-- columns: RegionID, AdvEngineID, ResolutionWidth
SELECT RegionID, sum(AdvEngineID) AS adv, count(*) AS c, avg(ResolutionWidth) AS w
FROM hits GROUP BY RegionID ORDER BY c DESC, RegionID LIMIT 10;

-- query: medium_key_distinct
-- columns: RegionID, UserID
SELECT RegionID, count(DISTINCT UserID) AS u FROM hits GROUP BY RegionID ORDER BY u DESC, RegionID LIMIT 10;

-- query: medium_key_mixed_distinct
-- columns: RegionID, AdvEngineID, ResolutionWidth, UserID
SELECT RegionID, sum(AdvEngineID) AS adv, count(*) AS c, avg(ResolutionWidth) AS w, count(DISTINCT UserID) AS u
FROM hits GROUP BY RegionID ORDER BY c DESC, RegionID LIMIT 10;

-- query: medium_key_two_distincts
-- columns: RegionID, UserID, SearchPhrase
SELECT RegionID, count(DISTINCT UserID) AS u, count(DISTINCT SearchPhrase) AS p FROM hits
GROUP BY RegionID ORDER BY u DESC, RegionID LIMIT 10;

-- query: date_distinct_strings
-- columns: EventDate, SearchPhrase
SELECT EventDate, count(DISTINCT SearchPhrase) AS p FROM hits GROUP BY EventDate ORDER BY EventDate;

-- query: medium_key_string_extremes
-- columns: RegionID, SearchPhrase, URL
SELECT RegionID, min(SearchPhrase) AS p, max(URL) AS u, count(*) AS c
FROM hits WHERE SearchPhrase <> '' GROUP BY RegionID ORDER BY c DESC, RegionID LIMIT 10;

-- query: sorted_key_distinct_strings
-- columns: CounterID, URL
SELECT CounterID, count(DISTINCT URL) AS u, count(*) AS c FROM hits GROUP BY CounterID ORDER BY u DESC, CounterID LIMIT 10;

-- query: having_string_length
-- columns: CounterID, URL
SELECT CounterID, avg(length(URL)) AS l, count(*) AS c FROM hits WHERE URL <> ''
GROUP BY CounterID HAVING count(*) > 1000 ORDER BY l DESC, CounterID LIMIT 25;

-- query: medium_key_distinct_pairs
-- columns: CounterID, RegionID, UserID
SELECT RegionID, count(DISTINCT (UserID, CounterID)) AS u FROM hits GROUP BY RegionID ORDER BY u DESC, RegionID LIMIT 10;

-- query: string_key_distinct_users
-- columns: MobilePhoneModel, UserID
SELECT MobilePhoneModel, count(DISTINCT UserID) AS u FROM hits WHERE MobilePhoneModel <> ''
GROUP BY MobilePhoneModel ORDER BY u DESC, MobilePhoneModel LIMIT 10;

-- query: mixed_key_distinct_users
-- columns: MobilePhone, MobilePhoneModel, UserID
SELECT MobilePhone, MobilePhoneModel, count(DISTINCT UserID) AS u FROM hits WHERE MobilePhoneModel <> ''
GROUP BY MobilePhone, MobilePhoneModel ORDER BY u DESC, MobilePhone, MobilePhoneModel LIMIT 10;

-- query: high_string_key
-- columns: SearchPhrase
SELECT SearchPhrase, count(*) AS c FROM hits WHERE SearchPhrase <> ''
GROUP BY SearchPhrase ORDER BY c DESC, SearchPhrase LIMIT 10;

-- query: high_string_key_distinct
-- columns: SearchPhrase, UserID
SELECT SearchPhrase, count(DISTINCT UserID) AS u FROM hits WHERE SearchPhrase <> ''
GROUP BY SearchPhrase ORDER BY u DESC, SearchPhrase LIMIT 10;

-- query: high_mixed_key
-- columns: SearchEngineID, SearchPhrase
SELECT SearchEngineID, SearchPhrase, count(*) AS c FROM hits WHERE SearchPhrase <> ''
GROUP BY SearchEngineID, SearchPhrase ORDER BY c DESC, SearchEngineID, SearchPhrase LIMIT 10;

-- query: high_integer_key
-- columns: UserID
SELECT UserID, count(*) AS c FROM hits GROUP BY UserID ORDER BY c DESC, UserID LIMIT 10;

-- query: high_integer_key_average
-- columns: UserID, ResolutionWidth, EventTime
SELECT UserID, count(*) AS c, avg(ResolutionWidth) AS w, min(EventTime) AS t0, max(EventTime) AS t1
FROM hits GROUP BY UserID ORDER BY c DESC, UserID LIMIT 10;

-- query: high_integer_key_having
-- columns: UserID, AdvEngineID
SELECT count(*) AS users, sum(c) AS hits, max(adv) AS adv
FROM (SELECT UserID, count(*) AS c, sum(AdvEngineID) AS adv FROM hits GROUP BY UserID HAVING count(*) >= 20) AS t;

-- query: high_integer_key_distinct
-- columns: UserID, CounterID
SELECT UserID, count(DISTINCT CounterID) AS k FROM hits GROUP BY UserID ORDER BY k DESC, UserID LIMIT 10;

-- query: user_and_phrase
-- columns: UserID, SearchPhrase
SELECT UserID, SearchPhrase, count(*) AS c FROM hits
GROUP BY UserID, SearchPhrase ORDER BY c DESC, UserID, SearchPhrase LIMIT 10;

-- query: user_minute_and_phrase
-- columns: UserID, EventTime, SearchPhrase
SELECT UserID, EventTime % 3600 - EventTime % 60 AS m, SearchPhrase, count(*) AS c FROM hits
GROUP BY UserID, EventTime % 3600 - EventTime % 60, SearchPhrase ORDER BY c DESC, UserID, m, SearchPhrase LIMIT 10;

-- query: long_string_key
-- columns: URL
SELECT URL, count(*) AS c FROM hits GROUP BY URL ORDER BY c DESC, URL LIMIT 10;

-- query: long_string_key_and_constant
-- columns: URL
SELECT 1 AS one, URL, count(*) AS c FROM hits GROUP BY 1, URL ORDER BY c DESC, URL LIMIT 10;
-- only: polars
SELECT 1 AS one, URL, count(*) AS c FROM hits GROUP BY URL ORDER BY c DESC, URL LIMIT 10;

-- query: long_text_key
-- columns: Title
SELECT Title, count(*) AS c FROM hits WHERE Title <> '' GROUP BY Title ORDER BY c DESC, Title LIMIT 10;

-- query: user_and_address
-- columns: UserID, URL
SELECT UserID, URL, count(*) AS c FROM hits GROUP BY UserID, URL ORDER BY c DESC, UserID, URL LIMIT 10;

-- query: dependent_keys
-- columns: ClientIP
SELECT ClientIP, ClientIP - 1 AS a, ClientIP - 2 AS b, ClientIP - 3 AS d, count(*) AS c FROM hits
GROUP BY ClientIP, ClientIP - 1, ClientIP - 2, ClientIP - 3 ORDER BY c DESC, ClientIP LIMIT 10;

-- query: filtered_pair
-- columns: SearchEngineID, ClientIP, IsRefresh, ResolutionWidth, SearchPhrase
SELECT SearchEngineID, ClientIP, count(*) AS c, sum(IsRefresh) AS r, avg(ResolutionWidth) AS w FROM hits WHERE SearchPhrase <> ''
GROUP BY SearchEngineID, ClientIP ORDER BY c DESC, SearchEngineID, ClientIP LIMIT 10;

-- query: all_rows_distinct_pair
-- columns: WatchID, ClientIP, IsRefresh, ResolutionWidth
SELECT WatchID, ClientIP, count(*) AS c, sum(IsRefresh) AS r, avg(ResolutionWidth) AS w FROM hits
GROUP BY WatchID, ClientIP ORDER BY c DESC, WatchID, ClientIP LIMIT 10;

-- query: all_rows_distinct_key
-- columns: WatchID
SELECT count(*) AS groups, max(c) AS most, min(WatchID) AS lo FROM (SELECT WatchID, count(*) AS c FROM hits GROUP BY WatchID) AS t;

-- query: like_then_group
-- columns: SearchPhrase, URL
SELECT SearchPhrase, min(URL) AS u, count(*) AS c FROM hits WHERE URL LIKE '%google%' AND SearchPhrase <> ''
GROUP BY SearchPhrase ORDER BY c DESC, SearchPhrase LIMIT 10;

-- query: like_then_group_texts
-- columns: SearchPhrase, Title, URL, UserID
SELECT SearchPhrase, min(URL) AS u, min(Title) AS t, count(*) AS c, count(DISTINCT UserID) AS n FROM hits
WHERE Title LIKE '%Google%' AND URL NOT LIKE '%google%' AND SearchPhrase <> ''
GROUP BY SearchPhrase ORDER BY c DESC, SearchPhrase LIMIT 10;

-- query: one_site_addresses
-- columns: CounterID, EventDate, DontCountHits, IsRefresh, URL
SELECT URL, count(*) AS c FROM hits
WHERE CounterID = 62 AND EventDate >= 15888 AND EventDate <= 15917 AND DontCountHits = 0 AND IsRefresh = 0 AND URL <> ''
GROUP BY URL ORDER BY c DESC, URL LIMIT 10;

-- query: one_site_sources
-- columns: CounterID, TraficSourceID, SearchEngineID, AdvEngineID, Referer, URL
SELECT TraficSourceID, SearchEngineID, AdvEngineID,
       CASE WHEN SearchEngineID = 0 AND AdvEngineID = 0 THEN Referer ELSE '' END AS src, URL AS dst, count(*) AS c
FROM hits WHERE CounterID = 62
GROUP BY TraficSourceID, SearchEngineID, AdvEngineID,
         CASE WHEN SearchEngineID = 0 AND AdvEngineID = 0 THEN Referer ELSE '' END, URL
ORDER BY c DESC, TraficSourceID, SearchEngineID, AdvEngineID, src, dst LIMIT 10;

-- query: time_buckets_minutes
-- columns: CounterID, EventTime
SELECT EventTime - EventTime % 60 AS m, count(*) AS c FROM hits WHERE CounterID = 62
GROUP BY EventTime - EventTime % 60 ORDER BY c DESC, m LIMIT 10;

-- query: time_buckets_hours
-- columns: EventTime, UserID
SELECT EventTime - EventTime % 3600 AS h, count(*) AS c, count(DISTINCT UserID) AS u FROM hits
GROUP BY EventTime - EventTime % 3600 ORDER BY u DESC, h LIMIT 10;

-- query: all_minutes
-- columns: EventTime
SELECT EventTime - EventTime % 60 AS m, count(*) AS c FROM hits
GROUP BY EventTime - EventTime % 60 ORDER BY c DESC, m LIMIT 10;

-- query: hour_as_text
-- columns: EventTime, ResolutionWidth
SELECT to_char(to_timestamp_seconds(EventTime), '%Y-%m-%d %H:00') AS h, count(*) AS c, sum(ResolutionWidth) AS w FROM hits
GROUP BY h ORDER BY c DESC, h LIMIT 10;
-- only: duckdb
SELECT strftime(make_timestamp(EventTime * 1000000), '%Y-%m-%d %H:00') AS h, count(*) AS c, sum(ResolutionWidth) AS w FROM hits
GROUP BY h ORDER BY c DESC, h LIMIT 10;
-- only: chdb
SELECT formatDateTime(toDateTime(EventTime, 'UTC'), '%Y-%m-%d %H:00') AS h, count(*) AS c, sum(ResolutionWidth) AS w FROM hits
GROUP BY h ORDER BY c DESC, h LIMIT 10;

-- query: date_and_region
-- columns: EventDate, RegionID, ResolutionWidth
SELECT EventDate, RegionID, count(*) AS c, avg(ResolutionWidth) AS w FROM hits
GROUP BY EventDate, RegionID ORDER BY c DESC, EventDate, RegionID LIMIT 10;
