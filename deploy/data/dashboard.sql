-- The ten queries of the demo's dashboard, each below a comment with its name.

-- name: flights and delay by airline
SELECT a.name, count(*) AS flights, round(avg(f.dep_delay), 2) AS departure_delay, max(f.arr_delay) AS worst_arrival
FROM flights f JOIN airlines a ON a.carrier = f.carrier
GROUP BY a.name ORDER BY flights DESC, a.name;

-- name: flights per month and airport
SELECT date_trunc('month', time_hour) AS month, origin, count(*) AS flights, sum(distance) AS miles
FROM flights GROUP BY 1, 2 ORDER BY 1, 2;

-- name: punctuality by hour of day
SELECT hour, count(*) AS flights, avg(arr_delay) AS mean_delay,
       sum(CASE WHEN arr_delay > 15 THEN 1 ELSE 0 END) * 100.0 / count(*) AS late_percent
FROM flights WHERE arr_delay IS NOT NULL GROUP BY hour ORDER BY hour;

-- name: top ten destinations
SELECT p.name AS destination, count(*) AS flights, min(f.air_time) AS shortest, avg(f.air_time) AS mean_air_time
FROM flights f JOIN airports p ON p.faa = f.dest
GROUP BY p.name ORDER BY flights DESC, destination LIMIT 10;

-- name: delay by visibility
SELECT CASE WHEN w.visib < 2 THEN 'poor' WHEN w.visib < 8 THEN 'fair' ELSE 'good' END AS visibility,
       count(*) AS flights, avg(f.dep_delay) AS mean_delay, avg(w.wind_speed) AS mean_wind
FROM flights f JOIN weather w ON w.origin = f.origin AND w.time_hour = f.time_hour
GROUP BY 1 ORDER BY 1;

-- name: fleet by manufacturer
SELECT coalesce(upper(p.manufacturer), 'UNKNOWN') AS manufacturer, count(DISTINCT f.tailnum) AS planes,
       count(*) AS flights, sum(p.seats) AS seats
FROM flights f LEFT JOIN planes p ON p.tailnum = f.tailnum
GROUP BY 1 HAVING count(*) > 1000 ORDER BY flights DESC, 1;

-- name: cancellations by day of week
SELECT extract(isodow FROM time_hour) AS weekday, origin, count(*) AS cancelled
FROM flights WHERE dep_time IS NULL GROUP BY 1, 2 ORDER BY 1, 2;

-- name: one quarter in figures
SELECT count(*) AS flights, count(DISTINCT tailnum) AS planes, count(DISTINCT dest) AS destinations,
       sum(distance) AS miles, avg(distance) AS mean_distance
FROM flights
WHERE time_hour >= '2013-07-01 00:00:00+00' AND time_hour < '2013-10-01 00:00:00+00' AND origin IN ('JFK', 'LGA');

-- name: long hauls of three airlines
SELECT carrier, dest, count(*) AS flights, round(avg(air_time) / 60, 1) AS hours
FROM flights
WHERE distance BETWEEN 2000 AND 5000 AND carrier IN ('UA', 'DL', 'AA') AND NOT dest LIKE 'S%'
GROUP BY carrier, dest ORDER BY hours DESC, carrier, dest LIMIT 15;

-- name: busiest days
SELECT d.day, d.flights, d.mean_delay
FROM (SELECT date_trunc('day', time_hour) AS day, count(*) AS flights, avg(dep_delay) AS mean_delay
      FROM flights GROUP BY 1) d
WHERE d.flights > 900 ORDER BY d.flights DESC, d.day LIMIT 20;
