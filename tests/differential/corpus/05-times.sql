-- Dates, times, timestamps, intervals: arithmetic at edges, fields, truncation, zones, text.
let d = '2024-02-29' ;; '1999-12-31' ;; '0044-03-15 BC' ;; 'infinity' ;; '-infinity' ;; '5874897-12-31' ;; NULL
let ts = '2024-02-29 12:34:56.789' ;; '1999-12-31 23:59:59.999999' ;; '0001-01-01 00:00 BC' ;; 'infinity' ;; '-infinity' ;; NULL
let tz = '2024-03-31 00:30+00' ;; '2024-03-10 06:59:59+00' ;; '2024-11-03 05:30+00' ;; '1900-01-01 12:00+00' ;; 'infinity' ;; NULL
let t = '00:00' ;; '23:59:59.999999' ;; '24:00' ;; '12:00:00.5' ;; NULL
let i = '1 day' ;; '1 mon' ;; '-1 mon' ;; '1 year 2 mons 3 days 04:05:06.789' ;; '-00:00:01' ;; '100000 hours' ;; '0' ;; NULL
let comparison = = ;; <> ;; < ;; <= ;; > ;; >=
SELECT {d}::date {comparison} date '2024-02-29', {d}::date {comparison} timestamp '2024-02-29', {d}::date {comparison} timestamptz '2024-02-29';
SELECT {ts}::timestamp {comparison} timestamp '2024-02-29', {ts}::timestamp {comparison} date '2024-02-29', {ts}::timestamp {comparison} timestamptz '2024-02-29';
SELECT {tz}::timestamptz {comparison} timestamptz '2024-03-31', {tz}::timestamptz {comparison} timestamp '2024-03-31', {tz}::timestamptz {comparison} date '2024-03-31';
SELECT {t}::time {comparison} time '12:00', {i}::interval {comparison} interval '30 days';
SELECT {d}::date + 1, {d}::date - 1, 1 + {d}::date, {d}::date - date '2000-01-01';
SELECT {d}::date + {i}::interval;
SELECT {d}::date - {i}::interval;
SELECT {ts}::timestamp + {i}::interval;
SELECT {i}::interval + {ts}::timestamp;
SELECT {ts}::timestamp - {i}::interval;
SELECT {tz}::timestamptz + {i}::interval;
SELECT {i}::interval + {tz}::timestamptz;
SELECT {tz}::timestamptz - {i}::interval;
SELECT {t}::time + {i}::interval, {t}::time - {i}::interval, {i}::interval + {t}::time;
SELECT {d}::date + {t}::time, {t}::time + {d}::date;
SELECT {t}::time - time '01:00', {t}::time - {t}::time;
SELECT {ts}::timestamp - timestamp '2000-01-01 13:00', age({ts}::timestamp, timestamp '2000-01-31 13:00'), age(timestamp '2000-01-31', {ts}::timestamp);
SELECT {tz}::timestamptz - timestamptz '2000-01-01 13:00+00', age({tz}::timestamptz, timestamptz '2000-01-31 13:00+00');
let j = '1 day' ;; '1 mon -40 days' ;; '-25:00' ;; NULL
SELECT {i}::interval + {j}::interval, {i}::interval - {j}::interval, -{i}::interval;
SELECT {i}::interval * 2, {i}::interval * 1.5, 0.1 * {i}::interval, {i}::interval / 3, {i}::interval * -0.5::real;
SELECT justify_days({i}::interval), justify_hours({i}::interval), justify_interval({i}::interval);
let field = century ;; day ;; decade ;; dow ;; doy ;; epoch ;; hour ;; isodow ;; isoyear ;; julian ;; microseconds ;; millennium ;; milliseconds ;; minute ;; month ;; quarter ;; second ;; timezone ;; timezone_hour ;; timezone_minute ;; week ;; year
SELECT extract({field} FROM {d}::date);
SELECT extract({field} FROM {ts}::timestamp), date_part('{field}', {ts}::timestamp);
SELECT extract({field} FROM {tz}::timestamptz), date_part('{field}', {tz}::timestamptz);
SELECT extract({field} FROM {i}::interval), date_part('{field}', {i}::interval);
SELECT extract({field} FROM {t}::time), date_part('{field}', {t}::time);
SELECT date_part('{field}', {d}::date);
let unit = microseconds ;; milliseconds ;; second ;; minute ;; hour ;; day ;; week ;; month ;; quarter ;; year ;; decade ;; century ;; millennium
SELECT date_trunc('{unit}', {ts}::timestamp);
SELECT date_trunc('{unit}', {tz}::timestamptz), date_trunc('{unit}', {tz}::timestamptz, 'Europe/Berlin');
SELECT date_trunc('{unit}', {i}::interval);
SELECT date_trunc('{unit}', {d}::date);
SELECT id, date_trunc('{unit}', ts), date_trunc('{unit}', tz) FROM times WHERE id IN (1, 2, 3, 4, 8, 9) ORDER BY id;
let stride = '15 minutes' ;; '1 day 2 hours' ;; '1 week' ;; '0' ;; '1 month'
SELECT date_bin({stride}, {ts}::timestamp, timestamp '2001-01-01 00:05'), date_bin({stride}, {tz}::timestamptz, timestamptz '2001-01-01 00:05+00');
let zone = 'UTC' ;; 'America/New_York' ;; 'Asia/Kolkata'
SELECT {ts}::timestamp AT TIME ZONE {zone}, {tz}::timestamptz AT TIME ZONE {zone}, timezone({zone}, {ts}::timestamp);
SELECT timestamp '2024-01-01' AT TIME ZONE '+03', timestamp '2024-07-01' AT TIME ZONE 'EST5EDT';
SELECT {tz}::timestamptz AT TIME ZONE interval '-05:00', {ts}::timestamp AT TIME ZONE interval '02:30';
let span_of_zone = '00:00:01.9' ;; '-00:00:01.9' ;; '596523 hours' ;; '596523:14:07' ;; '596523:14:08' ;; '596524 hours' ;; '-596523:14:08' ;; '-596523:14:09' ;; '-596524 hours' ;; '1000000 hours' ;; '-1200000 hours' ;; '1 day'
SELECT timestamptz '2024-02-29 12:34:56.789+00' AT TIME ZONE interval {span_of_zone}, timestamp '2024-02-29 12:34:56.789' AT TIME ZONE interval {span_of_zone};
SELECT timestamptz '2024-02-29 12:34:56.789+00' AT TIME ZONE v.z, timestamp 'infinity' AT TIME ZONE v.z FROM (VALUES (interval {span_of_zone})) v (z);
SELECT {d}::date::timestamp, {d}::date::timestamptz, {d}::date::text;
SELECT {ts}::timestamp::date, {ts}::timestamp::time, {ts}::timestamp::timestamptz, {ts}::timestamp::text, {ts}::timestamp(0), {ts}::timestamp::timestamp(3);
SELECT {tz}::timestamptz::date, {tz}::timestamptz::time, {tz}::timestamptz::timestamp, {tz}::timestamptz::text, {tz}::timestamptz(2);
SELECT {t}::time::text, {t}::time::interval, {t}::time(1), {i}::interval::time, {i}::interval::text;
let pattern = YYYY-MM-DD HH24:MI:SS ;; FM ;; "" ;; TZHTH TZMth ;; OFth ;; Mon DD, YYYY ;; FMMonth FMDD ;; Day Dy D ID ;; IYYY-IW ;; Q ;; HH12 AM ;; MS US ;; DDD J ;; WW W ;; CC ;; YY Y ;; TZ OF ;; "text" YYYY ;; DDth ;; SSSS ;; month MON ;; RM
SELECT to_char({ts}::timestamp, '{pattern}');
SELECT to_char({tz}::timestamptz, '{pattern}');
SELECT to_char({d}::date, '{pattern}');
SELECT to_timestamp('2024-02-29 13:14:15.678', 'YYYY-MM-DD HH24:MI:SS.US'), to_timestamp('29 Feb 2024', 'DD Mon YYYY'), to_date('20240229', 'YYYYMMDD'), to_date('2024-02-30', 'YYYY-MM-DD');
let epoch = 0 ;; 1700000000 ;; -1.5 ;; 1e12 ;; 'NaN' ;; 'infinity'
SELECT to_timestamp({epoch}::double precision);
let day = 1 ;; 29 ;; 30 ;; NULL
SELECT make_date(2024, 2, {day}), make_timestamp(2024, 2, {day}, 1, 2, 3.5), make_timestamptz(2024, 2, {day}, 1, 2, 3.5), make_time(1, {day}, 3.25);
SELECT make_interval(), make_interval(1), make_interval(days => 2), make_interval(years => 1, secs => 1.5), make_interval(1, 2, 3, 4, 5, 6, 7.5), make_date(day => 1, month => 2, year => 3), make_time(1, sec => 2, min => 3);
SELECT isfinite({d}::date);
SELECT isfinite({ts}::timestamp), isfinite({tz}::timestamptz);
SELECT isfinite(interval '1 day');
SELECT {i}::interval + {d}::date;
SELECT age({ts}::timestamp) = age(current_date, {ts}::timestamp), age({tz}::timestamptz) IS NULL, transaction_timestamp() = now();
SELECT statement_timestamp() IS NULL;
SELECT pg_catalog.timestamp({d}::date, {t}::time), timestamptz({d}::date, {t}::time);
SELECT id, i::interval day, i::interval hour to minute FROM times ORDER BY id;
SELECT id, pg_catalog.interval(i, 2147418114) FROM times ORDER BY id;
SELECT id, d + interval '3' month, i + interval '90' minute FROM times ORDER BY id;
let ordered = d ;; t ;; ts ;; tz ;; i
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY {ordered}) FROM times WHERE id IN (1, 2, 3, 4, 8);
SELECT mode() WITHIN GROUP (ORDER BY {ordered}) FROM times WHERE id = 1;
SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY i) FROM times WHERE id IN (1, 2, 3, 4, 8);
let aggregated = d ;; ts ;; tz
SELECT array_agg({aggregated} ORDER BY id) FROM times;
SELECT (date '2024-01-01', date '2024-02-01') OVERLAPS (date '2024-01-15', interval '1 month');
let day = 1 ;; 29 ;; 30 ;; NULL
let literal = 2024-1-5 ;; Jan 5, 2024 ;; 5 Jan 2024 ;; 20240105 ;; 2024-01-05T10:20:30Z ;; 2024-01-05 10:20:30.123456789 ;; epoch ;; 2024-02-30 ;; 2024-06-01 12:00 America/New_York ;; 01/02/2024 ;; 2024-01-05 24:00 ;;
SELECT '{literal}'::date;
SELECT '{literal}'::timestamp;
SELECT '{literal}'::timestamptz;
let span = 1 ;; 1-2 ;; 1 2:03 ;; P1Y2M3DT4H5M6S ;; 3 days ago ;; -1 day +2:00 ;; 1.5 months ;; 1 fortnight ;; 1 century ;; 2 weeks 1.5 hours ;; @ 1 minute ;;
SELECT '{span}'::interval;
SELECT interval '1' day, interval '2' hour, interval '3' month, interval '1 day 2:03' hour to minute;
let x = d ;; t ;; ts ;; tz ;; i
SELECT min({x}), max({x}), count({x}), count(DISTINCT {x}) FROM times;
SELECT id FROM times ORDER BY {x} DESC NULLS LAST, id;
let k = d ;; t ;; ts ;; tz
SELECT {k}, count(*) FROM times GROUP BY {k} ORDER BY 1 NULLS FIRST;
SELECT sum(i), avg(i) FROM times WHERE id <> 7;
SELECT id % 2, avg(i), avg(DISTINCT i), avg(i) FILTER (WHERE id > 2), count(i) FROM times WHERE id <> 7 GROUP BY id % 2 ORDER BY 1;
SELECT id, avg(i) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW), avg(i) OVER (ORDER BY id) FROM times WHERE id <> 7 ORDER BY id;
SELECT avg(v::interval) FROM (VALUES ('1 month'), ('1 day'), ('1.5 seconds'), (NULL)) AS q (v);
SELECT avg(v::interval) FROM (VALUES ('-1 month 3 days'), ('11 months -7 days 23:59:59.999999'), ('5 years')) AS q (v);
SELECT avg(v::interval) FROM (VALUES ('178000000 years'), ('178000000 years')) AS q (v);
let spaced = '1 month - 1 day' ;; '1 month -  1 day 2:03' ;; '- 1 day' ;; '-  1-2' ;; '1 day + 2:03:04.5' ;; '1 day - - 2 hours' ;; '1 day -' ;; '+ 3' ;; '- .5 days' ;; '1 - 2' ;; '2 hours - 30 minutes ago'
SELECT interval {spaced}, timestamp '2024-03-31 12:00' + interval {spaced}, {spaced}::interval::text;
SELECT avg(NULL::interval), avg(i) FROM times WHERE id < 0;
SELECT id, {x} IS DISTINCT FROM {x}, coalesce({x}, {x}), greatest({x}, {x}), nullif({x}, {x}), {x}::text FROM times ORDER BY id;
SELECT id, d + 30, d + i, ts + i, tz + i, tz - i, ts - timestamp '2000-01-01', extract(epoch FROM tz - timestamptz '2024-01-01') FROM times WHERE id IN (1, 2, 3, 4, 8, 9) ORDER BY id;
SELECT id, d = ts, ts < tz, d >= tz, ts = d, tz <> ts, tz > d FROM times ORDER BY id;
let g = 1, 5 ;; 5, 1, -2 ;; timestamp '2024-01-01', timestamp '2024-01-03', interval '12 hours' ;; 1, 0
SELECT generate_series FROM generate_series({g});
let epoch2 = 0 ;; 1 ;; -3 ;; 1700000000
SELECT timestamp 'epoch' + {epoch2} * interval '1 second', date '2024-01-31' + interval '1 month' * {epoch2};
SELECT now() = now(), current_date - current_date, now() - current_timestamp, localtimestamp = now()::timestamp, current_date = now()::date;
let o1 = '2024-01-01' ;; '2024-01-05 12:00' ;; 'infinity' ;; NULL
let o2 = '2024-01-05 12:00' ;; '2024-01-03' ;; '-infinity' ;; NULL
let o3 = '2024-01-03' ;; '2024-01-05 12:00' ;; NULL
let o4 = '2024-01-04' ;; '2024-01-01' ;; NULL
SELECT ({o1}::timestamp, {o2}::timestamp) OVERLAPS ({o3}::timestamp, {o4}::timestamp), (({o1}::timestamptz, {o2}) OVERLAPS ({o3}, {o4})) IS TRUE, NOT ({o1}::date, {o2}::date) OVERLAPS ({o3}::date, {o4}::date);
let clock = '10:30' ;; '09:00' ;; '24:00' ;; '10:00'
SELECT ('10:00'::time, {clock}::time) OVERLAPS ({clock}::time, '12:00'::time);
SELECT overlaps('10:00'::time, '11:00', '10:30', '12:00');
SELECT ('2024-01-01'::timestamp, '1 day'::interval) OVERLAPS ('2024-01-01 12:00'::timestamp, '1 hour'::interval);
let length = '1 day 02:03:04.567891' ;; '-25:06:07.5' ;; '100 hours' ;; '-1 year -2 mons +3 days -00:00:00.25' ;; '13 months 40 days 12:00' ;; '0' ;; '-00:30' ;; '-12:00' ;; NULL
let pieces = HH24:MI:SS ;; "" ;; fm ;; HH12:MI:SS.MS AM ;; FMHH24"h "FMMI"m "SS"s" ;; DD HH24 ;; YYYY MM DD ;; FMYYYY-FMMM-FMDD ;; DDD SSSS ;; US FF1 FF3 ms ;; hh:mi p.m. ;; text ;; Mon ;; Q ;; TZ ;; DDth ;; Day ;; J
SELECT to_char({length}::interval, '{pieces}');
SELECT to_char({length}::interval, ''), to_char({length}::interval, NULL);
SELECT to_char(tz - '2024-01-01', 'HH24:MI'), to_char(i, 'DD "days" HH24:MI:SS') FROM times WHERE id IN (1, 2, 3) ORDER BY id;
let beyond = timestamp '294276-12-31 23:59:59.999999' ;; timestamptz '294276-12-31 23:59:59.999999+00' ;; timestamp '1999-12-31 23:59:59.5'
SELECT array[v::timestamp(3)], array[v::timestamptz(3), NULL], array_agg(v::timestamp(0)) FROM (SELECT {beyond}) s (v) GROUP BY v;
SELECT unnest(array[v::timestamp(3)]) FROM (SELECT {beyond}) s (v);
let far = 2562047788:00:54.775807 ;; -2562047788:00:54.775807 ;; -2562047788:00:54.775808 ;; 2562047764:00 ;; -2562047764:00
SELECT id, t + interval '{far}' AS a, interval '{far}' + t AS b FROM times ORDER BY id;
SELECT id, t - interval '{far}' AS a FROM times ORDER BY id;
SELECT interval '{far}'::time;
