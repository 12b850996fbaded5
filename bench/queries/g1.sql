-- The ten questions of db-benchmark's group-by task over `g1`, and aggregates that they do not ask for. Format: bench/README.md.
-- Large answers are reduced to their group count and a few checksums, in SQL, on every engine.

-- query: g01_sum_by_100_strings
-- columns: id1, v1
SELECT count(*) AS n, min(id1) AS lo, max(id1) AS hi, min(v1) AS m0, max(v1) AS m1, sum(v1) AS s
FROM (SELECT id1, sum(v1) AS v1 FROM g1 GROUP BY id1) AS t;

-- query: g02_sum_by_10k_string_pairs
-- columns: id1, id2, v1
SELECT count(*) AS n, min(id1) AS lo, max(id2) AS hi, min(v1) AS m0, max(v1) AS m1, sum(v1) AS s
FROM (SELECT id1, id2, sum(v1) AS v1 FROM g1 GROUP BY id1, id2) AS t;

-- query: g03_sum_mean_by_100k_strings
-- columns: id3, v1, v3
SELECT count(*) AS n, min(id3) AS lo, max(id3) AS hi, sum(v1) AS s, max(v1) AS m, sum(v3) AS t, max(v3) AS u
FROM (SELECT id3, sum(v1) AS v1, avg(v3) AS v3 FROM g1 GROUP BY id3) AS t;

-- query: g04_means_by_100_integers
-- columns: id4, v1, v2, v3
SELECT count(*) AS n, sum(id4) AS k, sum(v1) AS s1, sum(v2) AS s2, sum(v3) AS s3, max(v3) AS m
FROM (SELECT id4, avg(v1) AS v1, avg(v2) AS v2, avg(v3) AS v3 FROM g1 GROUP BY id4) AS t;

-- query: g05_sums_by_100k_integers
-- columns: id6, v1, v2, v3
SELECT count(*) AS n, sum(id6) AS k, sum(v1) AS s1, max(v2) AS s2, sum(v3) AS s3, max(v3) AS m
FROM (SELECT id6, sum(v1) AS v1, sum(v2) AS v2, sum(v3) AS v3 FROM g1 GROUP BY id6) AS t;

-- query: g06_median_deviation_by_integer_pairs
-- columns: id4, id5, v3
SELECT count(*) AS n, sum(id4) AS k, sum(median_v3) AS s, max(median_v3) AS m, sum(sd_v3) AS d, max(sd_v3) AS e
FROM (SELECT id4, id5, median(v3) AS median_v3, stddev(v3) AS sd_v3 FROM g1 GROUP BY id4, id5) AS t;
-- only: chdb  (the deviation of one row is NaN there, not NULL)
SELECT count(*) AS n, sum(id4) AS k, sum(median_v3) AS s, max(median_v3) AS m, sumIf(sd_v3, NOT isNaN(sd_v3)) AS d, maxIf(sd_v3, NOT isNaN(sd_v3)) AS e
FROM (SELECT id4, id5, quantileExactInclusive(0.5)(v3) AS median_v3, stddev_samp(v3) AS sd_v3 FROM g1 GROUP BY id4, id5) AS t;

-- query: g07_range_by_100k_strings
-- columns: id3, v1, v2
SELECT count(*) AS n, min(id3) AS lo, max(id3) AS hi, sum(r) AS s, max(r) AS m0, min(r) AS m1
FROM (SELECT id3, max(v1) - min(v2) AS r FROM g1 GROUP BY id3) AS t;

-- query: g08_largest_two_by_100k_integers
-- columns: id6, v3
SELECT count(*) AS n, sum(id6) AS k, sum(v3) AS s, min(v3) AS m
FROM (SELECT id6, v3, row_number() OVER (PARTITION BY id6 ORDER BY v3 DESC) AS place FROM g1 WHERE v3 IS NOT NULL) AS t WHERE place <= 2;

-- query: g09_regression_by_string_integer_pairs
-- columns: id2, id4, v1, v2
SELECT count(*) AS n, min(id2) AS lo, sum(id4) AS k, sum(r2) AS s, max(r2) AS m
FROM (SELECT id2, id4, corr(v1, v2) * corr(v1, v2) AS r2 FROM g1 GROUP BY id2, id4) AS t
WHERE r2 < 2; -- not the groups of a small table whose v1 or v2 is constant: engines differ in what they call that

-- query: g10_all_keys
-- columns: id1, id2, id3, id4, id5, id6, v3
SELECT count(*) AS n, min(id1) AS lo, max(id3) AS hi, sum(id6) AS k, sum(v3) AS s, sum(c) AS r, max(c) AS m
FROM (SELECT id1, id2, id3, id4, id5, id6, sum(v3) AS v3, count(*) AS c FROM g1 GROUP BY id1, id2, id3, id4, id5, id6) AS t;

-- Aggregates that keep rows of a group, or values of them, beyond db-benchmark's questions.

-- query: a01_first_and_last_by_100k_integers
-- columns: id1, id6, v1, v3
SELECT count(*) AS n, sum(id6) AS k, min(f) AS lo, max(f) AS hi, sum(CAST(substr(f, 3) AS INTEGER)) AS s, sum(l) AS l
FROM (SELECT id6, first_value(id1 ORDER BY v3, id1) AS f, last_value(v1 ORDER BY v3, v1) AS l FROM g1 GROUP BY id6) AS t;
-- only: duckdb
SELECT count(*) AS n, sum(id6) AS k, min(f) AS lo, max(f) AS hi, sum(CAST(substr(f, 3) AS INTEGER)) AS s, sum(l) AS l
FROM (SELECT id6, first(id1 ORDER BY v3, id1) AS f, last(v1 ORDER BY v3, v1) AS l FROM g1 GROUP BY id6) AS t;
-- only: chdb
SELECT count(*) AS n, sum(id6) AS k, min(f) AS lo, max(f) AS hi, sum(CAST(substr(f, 3) AS INTEGER)) AS s, sum(l) AS l
FROM (SELECT id6, argMin(id1, (v3, id1)) AS f, argMax(v1, (v3, v1)) AS l FROM g1 GROUP BY id6) AS t;

-- query: a02_any_of_texts_by_100k_integers
-- columns: id1, id6
SELECT count(*) AS n, sum(id6) AS k, count(f) AS c, sum(CASE WHEN f BETWEEN 'id001' AND 'id100' THEN 1 ELSE 0 END) AS s
FROM (SELECT id6, any_value(id1) AS f FROM g1 GROUP BY id6) AS t;
-- only: polars
SELECT count(*) AS n, sum(id6) AS k, count(f) AS c, sum(CASE WHEN f BETWEEN 'id001' AND 'id100' THEN 1 ELSE 0 END) AS s
FROM (SELECT id6, first(id1) AS f FROM g1 GROUP BY id6) AS t;

-- query: a03_lists_in_order_by_100k_integers
-- columns: id6, v1, v3
SELECT count(*) AS n, sum(id6) AS k, sum(array_length(l)) AS c, sum(l[1]) AS f, sum(l[-1]) AS e
FROM (SELECT id6, array_agg(v1 ORDER BY v3, v1) AS l FROM g1 GROUP BY id6) AS t;
-- only: chdb
SELECT count(*) AS n, sum(id6) AS k, sum(length(l)) AS c, sum(l[1].2) AS f, sum(l[-1].2) AS e
FROM (SELECT id6, arraySort(groupArray((v3, v1))) AS l FROM g1 GROUP BY id6) AS t;

-- query: a04_texts_in_order_by_100k_integers
-- columns: id1, id6, v3
SELECT count(*) AS n, sum(id6) AS k, sum(length(s)) AS c, min(s) AS lo, max(s) AS hi
FROM (SELECT id6, string_agg(id1, ',' ORDER BY v3, id1) AS s FROM g1 GROUP BY id6) AS t;
-- only: chdb
SELECT count(*) AS n, sum(id6) AS k, sum(length(s)) AS c, min(s) AS lo, max(s) AS hi
FROM (SELECT id6, arrayStringConcat(arrayMap(p -> p.2, arraySort(groupArray((v3, id1)))), ',') AS s FROM g1 GROUP BY id6) AS t;

-- query: a05_distinct_texts_by_100k_integers
-- columns: id1, id6
SELECT count(*) AS n, sum(id6) AS k, sum(length(s)) AS c, min(s) AS lo, max(s) AS hi
FROM (SELECT id6, string_agg(DISTINCT id1, ',' ORDER BY id1) AS s FROM g1 GROUP BY id6) AS t;
-- only: chdb
SELECT count(*) AS n, sum(id6) AS k, sum(length(s)) AS c, min(s) AS lo, max(s) AS hi
FROM (SELECT id6, arrayStringConcat(arraySort(groupUniqArray(id1)), ',') AS s FROM g1 GROUP BY id6) AS t;

-- query: a06_distinct_lists_by_100k_integers
-- columns: id6, v2
SELECT count(*) AS n, sum(id6) AS k, sum(array_length(l)) AS c, sum(l[1]) AS f, sum(l[-1]) AS e
FROM (SELECT id6, array_agg(DISTINCT v2 ORDER BY v2) AS l FROM g1 GROUP BY id6) AS t;
-- only: chdb
SELECT count(*) AS n, sum(id6) AS k, sum(length(l)) AS c, sum(l[1]) AS f, sum(l[-1]) AS e
FROM (SELECT id6, arraySort(groupUniqArray(v2)) AS l FROM g1 GROUP BY id6) AS t;

-- query: a07_lists_by_100k_strings
-- columns: id3, v3
SELECT count(*) AS n, min(id3) AS lo, max(id3) AS hi, sum(array_length(l)) AS c
FROM (SELECT id3, array_agg(v3) AS l FROM g1 GROUP BY id3) AS t;
-- only: chdb
SELECT count(*) AS n, min(id3) AS lo, max(id3) AS hi, sum(length(l)) AS c
FROM (SELECT id3, groupArray(v3) AS l FROM g1 GROUP BY id3) AS t;

-- query: a08_percentiles_by_100k_integers
-- columns: id6, v3
-- tolerance: 1e-8  (the host cuts what lies between two values to 1e-6 of it)
SELECT count(*) AS n, sum(id6) AS k, sum(p) AS s, min(p) AS lo, max(p) AS hi
FROM (SELECT id6, percentile_cont(0.9) WITHIN GROUP (ORDER BY v3) AS p FROM g1 GROUP BY id6) AS t;
-- only: chdb
SELECT count(*) AS n, sum(id6) AS k, sum(p) AS s, min(p) AS lo, max(p) AS hi
FROM (SELECT id6, quantileExactInclusive(0.9)(v3) AS p FROM g1 GROUP BY id6) AS t;

-- query: a09_estimated_percentiles_by_100k_integers
-- columns: id6, v3
-- tolerance: 0.05
SELECT count(*) AS n, sum(id6) AS k, avg(p) AS a
FROM (SELECT id6, approx_percentile_cont(0.9) WITHIN GROUP (ORDER BY v3) AS p FROM g1 GROUP BY id6) AS t;
-- only: duckdb
SELECT count(*) AS n, sum(id6) AS k, avg(p) AS a FROM (SELECT id6, approx_quantile(v3, 0.9) AS p FROM g1 GROUP BY id6) AS t;
-- only: chdb
SELECT count(*) AS n, sum(id6) AS k, avg(p) AS a FROM (SELECT id6, quantileTDigest(0.9)(v3) AS p FROM g1 GROUP BY id6) AS t;

-- query: a10_estimated_percentiles_by_100_strings
-- columns: id1, v3
-- tolerance: 0.02
SELECT id1, approx_percentile_cont(0.5) WITHIN GROUP (ORDER BY v3) AS a, approx_percentile_cont(0.99) WITHIN GROUP (ORDER BY v3) AS b
FROM g1 GROUP BY id1 ORDER BY id1 LIMIT 10;
-- only: duckdb
SELECT id1, approx_quantile(v3, 0.5) AS a, approx_quantile(v3, 0.99) AS b FROM g1 GROUP BY id1 ORDER BY id1 LIMIT 10;
-- only: chdb
SELECT id1, quantileTDigest(0.5)(v3) AS a, quantileTDigest(0.99)(v3) AS b FROM g1 GROUP BY id1 ORDER BY id1 LIMIT 10;

-- query: a11_modes_by_100_integers
-- columns: id4, v2
SELECT id4, mode(v2) AS m, count(*) AS c FROM g1 GROUP BY id4 ORDER BY id4 LIMIT 10;
-- only: chdb
SELECT id4, topK(1)(v2)[1] AS m, count(*) AS c FROM g1 GROUP BY id4 ORDER BY id4 LIMIT 10;

-- query: a12_first_rows_of_100k_integers
-- columns: id1, id6, v1, v2, v3
SELECT count(*) AS n, sum(id6) AS k, min(id1) AS lo, sum(v1) AS s, sum(v2) AS t, sum(v3) AS u
FROM (SELECT DISTINCT ON (id6) id6, id1, v1, v2, v3 FROM g1 ORDER BY id6, v3, v1, v2, id1) AS t;

-- query: a13_rollup_of_integers
-- columns: id4, id5, v1, v3
SELECT count(*) AS n, count(id4) AS k, count(id5) AS m, sum(s) AS s, sum(a) AS a
FROM (SELECT id4, id5, sum(v1) AS s, avg(v3) AS a FROM g1 GROUP BY ROLLUP (id4, id5)) AS t;

-- query: a14_cube_of_strings
-- columns: id1, id2, v1
SELECT count(*) AS n, count(id1) AS k, count(id2) AS m, sum(s) AS s, max(s) AS t
FROM (SELECT id1, id2, sum(v1) AS s FROM g1 GROUP BY CUBE (id1, id2)) AS t;
