-- The main job: which of 1.8 million users came most often? 10 million page views, grouped by user.
SELECT UserID, count(*) AS views, avg(ResolutionWidth) AS screen_width, max(EventTime) AS last_seen
FROM 'data/hits.parquet'
GROUP BY UserID
ORDER BY views DESC, UserID
LIMIT 10;
