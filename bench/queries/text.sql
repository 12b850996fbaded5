-- Groupings over text: db-benchmark's table as CSV (`g1_csv`) and as NDJSON (`g1_json`). Format: bench/README.md.
-- Each reads one key and one or two values of nine columns, so that the others need not be parsed.

-- query: csv_sum_by_100_strings
-- columns: id1, v1
SELECT count(*) AS n, min(id1) AS lo, max(id1) AS hi, min(v1) AS m0, max(v1) AS m1, sum(v1) AS s
FROM (SELECT id1, sum(v1) AS v1 FROM g1_csv GROUP BY id1) AS t;

-- query: csv_sum_mean_by_many_strings
-- columns: id3, v1, v3
SELECT count(*) AS n, min(id3) AS lo, max(id3) AS hi, sum(v1) AS s, max(v1) AS m, sum(v3) AS t, max(v3) AS u
FROM (SELECT id3, sum(v1) AS v1, avg(v3) AS v3 FROM g1_csv GROUP BY id3) AS t;

-- query: csv_sums_by_many_integers
-- columns: id6, v1, v2, v3
SELECT count(*) AS n, sum(id6) AS k, sum(v1) AS s1, max(v2) AS s2, sum(v3) AS s3, max(v3) AS m
FROM (SELECT id6, sum(v1) AS v1, sum(v2) AS v2, sum(v3) AS v3 FROM g1_csv GROUP BY id6) AS t;

-- query: json_sum_by_100_strings
-- columns: id1, v1
SELECT count(*) AS n, min(id1) AS lo, max(id1) AS hi, min(v1) AS m0, max(v1) AS m1, sum(v1) AS s
FROM (SELECT id1, sum(v1) AS v1 FROM g1_json GROUP BY id1) AS t;

-- query: json_sum_mean_by_many_strings
-- columns: id3, v1, v3
SELECT count(*) AS n, min(id3) AS lo, max(id3) AS hi, sum(v1) AS s, max(v1) AS m, sum(v3) AS t, max(v3) AS u
FROM (SELECT id3, sum(v1) AS v1, avg(v3) AS v3 FROM g1_json GROUP BY id3) AS t;

-- query: json_sums_by_many_integers
-- columns: id6, v1, v2, v3
SELECT count(*) AS n, sum(id6) AS k, sum(v1) AS s1, max(v2) AS s2, sum(v3) AS s3, max(v3) AS m
FROM (SELECT id6, sum(v1) AS v1, sum(v2) AS v2, sum(v3) AS v3 FROM g1_json GROUP BY id6) AS t;
