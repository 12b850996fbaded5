-- The ten questions of db-benchmark's group-by task over `g1`. Format: bench/README.md.
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
