-- Found by the generator, seed 20261123: the whole has C's order, but PostgreSQL sorts by the arm that is left
--! database TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'
--! protocol 
--! order 0
--! free 
CREATE TABLE t1 (id integer, t text, PRIMARY KEY (id));
INSERT INTO t1 VALUES ('388', 'B'), ('389', 'ab');
--! statement
SELECT CASE WHEN true THEN t::name ELSE 'Co'::name END FROM t1 ORDER BY 1
