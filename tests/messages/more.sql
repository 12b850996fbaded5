SELECT cnt(*) FROM orders
SELECT count(*) FORM orders
SELECT * FROM orders WHERE country = "DE"
SELECT * FROM orders.csv
SELECT * FROM data/orders.parquet
SELECT * FROM 'missing.csv'
SELECT * FROM read_csv('missing.csv')
SELECT * FROM ordrs
SELECT contry FROM orders
SELECT o.contry FROM orders o
SELECT x.country FROM orders o
SELECT country FROM orders, orders o2
SELECT country, price FROM orders GROUP BY country
SELECT country FROM orders WHERE sum(price) > 1
SELECT sum(country) FROM orders
SELECT avg(day) FROM orders
SELECT country + 1 FROM orders
SELECT day * 2 FROM orders
SELECT NOT price FROM orders
SELECT -country FROM orders
SELECT * FROM orders WHERE price
SELECT * FROM orders WHERE amount AND true
SELECT * FROM orders LIMIT 'x'
SELECT * FROM orders LIMIT -1
SELECT CAST('x' AS INTEGER)
SELECT CAST('2024-13-01' AS DATE)
SELECT DATE '2024-02-30'
SELECT CAST(country AS BIGINT) FROM orders
SELECT CAST(price AS NOTYPE) FROM orders
SELECT substr(country) FROM orders
SELECT substr(country, 'x') FROM orders
SELECT abs('x')
SELECT abs()
SELECT abs(1, 2)
SELECT round('x')
SELECT length(1, 2)
SELECT date_trunc('moth', day) FROM orders
SELECT date_part('yaer', day) FROM orders
SELECT strftime(day, '%Q') FROM orders
SELECT strftime(1, 2)
SELECT year(price) FROM orders
SELECT coalesce() FROM orders
SELECT max() FROM orders
SELECT count(price, ) FROM orders
SELECT sum(price, amount) FROM orders
SELECT sum(DISTINCT) FROM orders
SELECT rank() FROM orders
SELECT rank(1) OVER () FROM orders
SELECT sum(price) OVER (ORDER BY) FROM orders
SELECT price[1] FROM orders
SELECT country.x FROM orders
SELECT array_agg(price)['a'] FROM orders
SELECT [1, 'a', DATE '2024-01-01']
SELECT 1 UNION SELECT 1, 2
SELECT 1 UNION SELECT DATE '2024-01-01'
SELECT (SELECT 1, 2)
SELECT (SELECT price FROM orders)
SELECT * FROM orders WHERE country IN (SELECT id, name FROM customers)
SELECT * FROM orders JOIN customers USING (id)
SELECT * FROM orders JOIN customers ON country
SELECT country AS a, price AS a FROM orders ORDER BY a
SELECT * FROM orders ORDER BY 9
SELECT country FROM orders GROUP BY 5
INSERT INTO orders VALUES (1)
INSERT INTO nothing VALUES (1)
CREATE TABLE orders (a INT)
CREATE TABLE t (a NOTYPE)
DROP TABLE nothing
COPY nothing TO 'x.csv'
DESCRIBE nothing
SET nothing = 1
SET threads = 'many'
SELECT 1 / 0
SELECT 9223372036854775807 + 1
SELECT 'a' || 1 || DATE '2024-01-01' < 3
SELECT interval '1 parsec'
SELECT TIMESTAMP 'yesterday'
SELECT regexp_replace('a', '(', 'b')
SELECT make_date(2024, 13, 1)
SELECT list_sum('x')
SELECT struct_extract(country, 'a') FROM orders
SELECT unnest(price) FROM orders
SELECT * FROM numbers('x')
SELECT * FROM numbers()
SELECT * FROM generate_series()
SELECT median(country) FROM orders
SELECT stddev(country) FROM orders
SELECT percentile_cont(2) WITHIN GROUP (ORDER BY price) FROM orders
SELECT approx_quantile(price, 'x') FROM orders
SELECT bool_and(price) FROM orders
SELECT corr(country, price) FROM orders
SELECT string_agg(price) FROM orders
SELECT nth_value(price) FROM orders
SELECT lag(price, 'x') OVER (ORDER BY day) FROM orders
SELECT ntile(0) OVER (ORDER BY day) FROM orders
SELECT price BETWEEN 'a' AND 'b' FROM orders
SELECT CASE price WHEN 'a' THEN 1 END FROM orders
SELECT day - 'x' FROM orders
SELECT extract(yaer FROM day) FROM orders
SELECT price IN ('a', 1, true) FROM orders
SELECT country LIKE 1 FROM orders
SELECT country ~ '(' FROM orders
SELECT * EXCLUDE (nothing) FROM orders
SELECT MAP {'a': 1, 2}
SELECT {'a': 1}.b
SELECT named_struct('a')
SELECT to_timestamp('x')
SELECT decode('x', 'base63')
SELECT repeat('a', 'b')
SELECT lpad(1, 2, 3)
SELECT concat()
SELECT greatest()
SELECT nullif(1)
SELECT uuid(1)
SELECT power('a', 2)
SELECT chr('a')
SELECT to_hex('a')
SELECT array_position(1, 2)
SELECT array_sort([1, 2], 'UP')
SELECT range('a')
EXPLAIN SELECT contry FROM orders
CREATE VIEW v AS SELECT contry FROM orders
SELECT 1; SELECT 2
SELECT
SELECT FROM orders WHERE
SELECT * FROM
SELECT 'it's'
SELECT "country FROM orders
SELECT (1 + 2 FROM orders
SELECT 1 + 2) FROM orders
SELECT country price amount FROM orders
SELECT * FROM orders WHERE country == 'DE' AND
SELECT * FORM orders WEHRE price > 1
UPDAET orders SET price = 1
SELECT sum(price, amount, customer) FROM orders
SELECT round(price, 1, 2) FROM orders
SELECT lag(price, 1, 2, 3) OVER () FROM orders
SELECT mean(price, 1) FROM orders
SELECT list_sum([1], 2)
SELECT round(1.5, 'x')
SELECT INTERVAL "1 day"
SELECT INTERVAL amount FROM orders
SELECT 'x', price, count(*) FROM orders GROUP BY 1
SELECT country, count(*) FROM orders GROUP BY country HAVING price > 3
SELECT country, count(*) FROM orders GROUP BY country ORDER BY price
SELECT count(*) FROM orders GROUP BY count(*)
SELECT sum(sum(price)) FROM orders
SELECT sum(rank() OVER ()) FROM orders
SELECT grouping(price) FROM orders GROUP BY country
SELECT price AND true FROM orders
SELECT price ~ 'a' FROM orders
SELECT price & 1 FROM orders
SELECT price || day FROM orders
SELECT day < price FROM orders
SELECT day BETWEEN 1 AND 2 FROM orders
SELECT [price] IN (SELECT day FROM orders) FROM orders
SELECT CASE WHEN true THEN [1] ELSE {'a': 1} END
SELECT coalesce([1], 1)
SELECT country FROM orders UNION SELECT [price] FROM orders
SELECT price FROM orders UNION SELECT day FROM orders
SELECT sum(price) OVER (ORDER BY [price] RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM orders
SELECT last_value() OVER () FROM orders
SELECT ntile(amount) OVER () FROM orders
SELECT nth_value(price, amount) OVER () FROM orders
SELECT length({'a': 1})
SELECT trim([1])
SELECT map_extract(1, 2)
SELECT list_resize([1], -1)
SELECT list_transform([1], 1)
SELECT list_transform([1], (x, y, z) -> x)
SELECT sum(unnest([1]))
SELECT avg(*) FROM orders
SELECT read_csv('x.csv')
SELECT CAST('a')
SELECT 12345::DECIMAL(3,1)
SELECT 1::DECIMAL(100)
SELECT [1]::DATE
SELECT X'G'
SELECT TIMESTAMP 'noon' AT TIME ZONE 'Mars'
SELECT sum(n) FROM (VALUES (9223372036854775807), (1)) v(n)
SELECT sum(n) OVER () FROM (VALUES (9223372036854775807), (1)) v(n)
VALUES (1), (1, 2)
VALUES (1), ([1])
SELECT * FROM orders, orders
SELECT * FROM nosuch.orders
SELECT * FROM orders LIMIT 'a' OFFSET 'b'
SELECT price FROM orders WHER price > 1
SELECT price FROM orders GROUPBY price
SELECT price FROM orders ORDER BY price NULLS
SELECT x.id FROM orders x
SELECT * FROM ''
SELECT * FROM read_csv(5)
SELECT * FROM read_csv('x.csv', delm => ',')
SELECT * FROM read_csv('x.csv', columns => {'a': 'NOPE'})
COPY orders TO 'x.parquet' (ROW_GROUP_SIZE 0)
CREATE EXTERNAL TABLE e STORED AS NOPE LOCATION 'x.csv'
INSERT INTO customers SELECT 1
INSERT INTO customers VALUES ([1], 'a')
SET datafusion.execution.batch_size = 'a'
SET datafusion.execution.nope = 1
SELECT price / 0 FROM orders WHERE amount % 2 = 1
SELECT * FROM orders WHERE customer = (SELECT id, name FROM customers)
SELECT coalesce(customer, [1])
SELECT customer[1] FROM orders
SELECT [1]['a']
SELECT quantile_cont(price, price) FROM orders
SELECT regexp_matches('a', '(')
SELECT strptime('x', '%Y')
SELECT * FROM read_csv()
SELECT * FROM read_csv(1)
SET threads = 'x'
SET memory_limit = 'lots'
SELECT list_transform(customer, x -> x) FROM orders
SELECT map(['a'], [1, 2])
SELECT * FROM orders USING SAMPLE 200%
SELECT log(-1)
SELECT sqrt(-1)
SELECT sum(x) FROM (VALUES (9223372036854775807), (1)) t(x)
SELECT repeat('a', 10000000000)
SELECT chr(-1)
SELECT json_extract('x', '$.a')
SELECT '{"a":1'::JSON
SELECT 'x'::UUID
SELECT country::INT FROM orders
SELECT -'x'
SELECT * FROM numbers('a')
SELECT * FROM generate_series(1, 5, 0)
SELECT * FROM range('a')
EXECUTE nope
SELECT ?
SELECT $1
SELECT [1, [2]]
ALTER TABLE customers ADD COLUMN id INT
SELECT date_diff('foo', day, day) FROM orders
SELECT 1 WHERE 'abc'
SELECT sum(*) FROM orders
SELECT round(price / 0) FROM orders ORDER BY ntile('x') OVER ()
