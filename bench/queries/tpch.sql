-- Groupings of TPC-H's `lineitem`. Format: bench/README.md.

-- query: t01_pricing_summary
-- columns: l_returnflag, l_linestatus, l_quantity, l_extendedprice, l_discount, l_tax, l_shipdate
SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
       sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
       sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
       avg(l_quantity) AS avg_qty, avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc, count(*) AS count_order
FROM lineitem WHERE l_shipdate <= DATE '1998-09-02'
GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus;

-- query: t02_by_order
-- columns: l_orderkey, l_quantity
SELECT l_orderkey, sum(l_quantity) AS q, count(*) AS c FROM lineitem
GROUP BY l_orderkey ORDER BY q DESC, l_orderkey LIMIT 10;

-- query: t03_by_part_and_supplier
-- columns: l_partkey, l_suppkey, l_extendedprice
SELECT l_partkey, l_suppkey, count(*) AS c, avg(l_extendedprice) AS p FROM lineitem
GROUP BY l_partkey, l_suppkey ORDER BY c DESC, l_partkey, l_suppkey LIMIT 10;

-- query: t04_by_comment
-- columns: l_comment
SELECT l_comment, count(*) AS c FROM lineitem GROUP BY l_comment ORDER BY c DESC, l_comment LIMIT 10;

-- query: t05_large_orders
-- columns: l_orderkey, l_quantity
SELECT count(*) AS n, sum(q) AS s FROM
(SELECT l_orderkey, sum(l_quantity) AS q FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 250) AS t;

-- query: t06_revenue_by_supplier
-- columns: l_suppkey, l_extendedprice, l_discount
SELECT l_suppkey, sum(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem
GROUP BY l_suppkey ORDER BY revenue DESC, l_suppkey LIMIT 10;

-- query: t07_by_ship_date
-- columns: l_shipdate, l_quantity, l_extendedprice
SELECT l_shipdate, count(*) AS c, sum(l_quantity) AS q, max(l_extendedprice) AS p FROM lineitem
GROUP BY l_shipdate ORDER BY c DESC, l_shipdate LIMIT 10;

-- query: t08_parts_of_suppliers
-- columns: l_suppkey, l_partkey
SELECT l_suppkey, count(DISTINCT l_partkey) AS parts FROM lineitem
GROUP BY l_suppkey ORDER BY parts DESC, l_suppkey LIMIT 10;

-- query: t09_four_low_string_keys
-- columns: l_returnflag, l_linestatus, l_shipmode, l_shipinstruct, l_quantity
SELECT l_returnflag, l_linestatus, l_shipmode, l_shipinstruct, count(*) AS c, sum(l_quantity) AS q FROM lineitem
GROUP BY l_returnflag, l_linestatus, l_shipmode, l_shipinstruct
ORDER BY c DESC, l_returnflag, l_linestatus, l_shipmode, l_shipinstruct LIMIT 10;

-- query: t10_distinct_rows
-- columns: l_orderkey, l_partkey, l_suppkey, l_linenumber, l_quantity, l_extendedprice, l_discount, l_tax, l_returnflag, l_linestatus, l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode, l_comment
SELECT count(*) AS n FROM (SELECT DISTINCT * FROM lineitem) AS t;
