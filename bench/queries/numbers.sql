-- Groupings of generated numbers: no file, so the grouping is all there is. Format: bench/README.md.
-- {numbers} is the engine's generator of 0 .. rows - 1, {uniq} its approximate distinct count.

-- query: n01_count
SELECT count(*) AS n, min(c) AS lo, max(c) AS hi, sum(k) AS s
FROM (SELECT number % 10000 AS k, count(*) AS c FROM {numbers} GROUP BY number % 10000) AS t;

-- query: n02_sum
SELECT count(*) AS n, min(s) AS lo, max(s) AS hi, sum(k) AS k
FROM (SELECT number % 10000 AS k, sum(number) AS s FROM {numbers} GROUP BY number % 10000) AS t;

-- query: n03_uniq
-- tolerance: 0.15  (the counts are estimates: the least and the greatest of 10,000 of them stray furthest)
SELECT count(*) AS n, min(u) AS lo, max(u) AS hi, avg(u) AS a
FROM (SELECT number % 10000 AS k, {uniq}(number) AS u FROM {numbers} GROUP BY number % 10000) AS t;

-- query: n08_uniq_exact
SELECT count(*) AS n, min(u) AS lo, max(u) AS hi, sum(u) AS s
FROM (SELECT number % 10000 AS k, count(DISTINCT number) AS u FROM {numbers} GROUP BY number % 10000) AS t;

-- query: n04_many_groups
SELECT count(*) AS n, min(c) AS lo, max(c) AS hi, sum(k) AS s
FROM (SELECT number % 1000003 AS k, count(*) AS c FROM {numbers} GROUP BY number % 1000003) AS t;

-- query: n05_global
SELECT count(*) AS n, sum(number) AS s, avg(number) AS a, max(number) AS m FROM {numbers};

-- query: n06_25m_groups
SELECT count(*) AS n, min(c) AS lo, max(c) AS hi, sum(k) AS s
FROM (SELECT number % 25000000 AS k, count(*) AS c FROM {numbers} GROUP BY number % 25000000) AS t;

-- query: n07_2m_groups
SELECT count(*) AS n, min(c) AS lo, max(c) AS hi, sum(k) AS s
FROM (SELECT number % 2000000 AS k, count(*) AS c FROM {numbers} GROUP BY number % 2000000) AS t;
