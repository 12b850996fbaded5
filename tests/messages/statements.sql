SELECT country, count(*) FROM orders GROUP BY country ORDER BY country LIMIT 3
SELECT sum(price * amount), avg(price) FROM orders WHERE country = 'DE' AND amount > 2
SELECT upper(country), round(price, 1) FROM orders WHERE country LIKE 'D%'
SELECT o.country, c.name FROM orders o JOIN customers c ON o.customer = c.id WHERE c.name IN ('Anna', 'Bert')
SELECT CASE WHEN price > 10 THEN 'dear' ELSE 'cheap' END AS class, count(*) FROM orders GROUP BY class
SELECT country, rank() OVER (PARTITION BY country ORDER BY price DESC) FROM orders
WITH big AS (SELECT country, price FROM orders WHERE price > 5) SELECT country, max(price) FROM big GROUP BY country HAVING max(price) > 7
SELECT date_trunc('month', day), count(DISTINCT customer) FROM orders WHERE day BETWEEN DATE '2024-01-01' AND DATE '2024-12-31' GROUP BY 1
SELECT CAST(amount AS VARCHAR), substr(country, 1, 2), price + 1.5 FROM orders
SELECT year(day), strftime(day, '%Y-%m'), day + INTERVAL '1 day' FROM orders WHERE NOT amount IS NULL
SELECT coalesce(name, 'nobody'), abs(id) FROM customers UNION ALL SELECT country, amount FROM orders
SELECT string_split(name, ' '), regexp_extract(name, '([A-Z])', 1), list_sum([id, 2]) FROM customers
SELECT json_extract('{"a": 1}', '$.a'), split_part(country, '-', 1) FROM orders
SELECT country, sum(amount) FILTER (WHERE price > 3) FROM orders GROUP BY country
SELECT customers.name, orders.price FROM customers LEFT JOIN orders ON customers.id = orders.customer ORDER BY orders.price
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) v(n, t) WHERE n = 2
