//! Statements over the star ([`crate::data::star`]), used by several suites.

use crate::rows::Same;

pub(crate) struct Query {
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
    /// The same with a literal (`@`) that changes nothing but the text: no cached reply fits.
    pub(crate) varied: &'static str,
    pub(crate) same: Same,
}

pub(crate) const ALL: &[Query] = &[
    Query {
        name: "multi_join",
        sql: "SELECT c.region, p.category, SUM(o.quantity * p.price) FROM orders o JOIN customers c ON o.customer_id = c.id \
              JOIN products p ON o.product_id = p.id GROUP BY c.region, p.category ORDER BY c.region, p.category",
        varied: "SELECT c.region, p.category, SUM(o.quantity * p.price) FROM orders o JOIN customers c ON o.customer_id = c.id \
                 JOIN products p ON o.product_id = p.id WHERE o.amount > -@ GROUP BY c.region, p.category \
                 ORDER BY c.region, p.category",
        same: Same::All,
    },
    Query {
        name: "analytical_cte",
        sql: "WITH user_totals AS (SELECT user_id, SUM(amount) AS total FROM events WHERE event_type = 0 \
              GROUP BY user_id HAVING SUM(amount) > 500) SELECT * FROM user_totals ORDER BY total DESC LIMIT 100",
        varied: "WITH user_totals AS (SELECT user_id, SUM(amount) AS total FROM events WHERE event_type = 0 AND amount > -@ \
                 GROUP BY user_id HAVING SUM(amount) > 500) SELECT * FROM user_totals ORDER BY total DESC LIMIT 100",
        same: Same::Columns(&[1]),
    },
    Query {
        name: "wide_agg",
        sql: "SELECT sensor_id, COUNT(*), AVG(v1), SUM(v2), MIN(v3), MAX(v4), AVG(v5) FROM metrics \
              GROUP BY sensor_id ORDER BY sensor_id",
        varied: "SELECT sensor_id, COUNT(*), AVG(v1), SUM(v2), MIN(v3), MAX(v4), AVG(v5) FROM metrics WHERE v1 > -@ \
                 GROUP BY sensor_id ORDER BY sensor_id",
        same: Same::All,
    },
    Query {
        name: "large_sort",
        sql: "SELECT * FROM events ORDER BY score DESC, id ASC",
        varied: "SELECT * FROM events WHERE amount > -@ ORDER BY score DESC, id ASC",
        same: Same::All,
    },
    Query {
        name: "subquery_complex",
        sql: "SELECT * FROM events WHERE user_id IN (SELECT id FROM customers WHERE tier = 'premium') AND amount > 100 \
              ORDER BY amount DESC LIMIT 500",
        varied: "SELECT * FROM events WHERE user_id IN (SELECT id FROM customers WHERE tier = 'premium') AND amount > 100 \
                 AND score > -@ ORDER BY amount DESC LIMIT 500",
        same: Same::Columns(&[3]),
    },
    Query {
        name: "window_rank",
        sql: "SELECT rep_id, region_id, amount, RANK() OVER (PARTITION BY region_id ORDER BY amount DESC) FROM sales",
        varied: "SELECT rep_id, region_id, amount, RANK() OVER (PARTITION BY region_id ORDER BY amount DESC) FROM sales \
                 WHERE amount > -@",
        same: Same::All,
    },
    Query {
        name: "mixed_analytical",
        sql: "WITH order_summary AS (SELECT o.customer_id, SUM(o.quantity * p.price) AS total FROM orders o \
              JOIN products p ON o.product_id = p.id GROUP BY o.customer_id) \
              SELECT c.region, COUNT(*) AS num_customers, SUM(os.total) AS revenue FROM order_summary os \
              JOIN customers c ON os.customer_id = c.id GROUP BY c.region ORDER BY revenue DESC",
        varied: "WITH order_summary AS (SELECT o.customer_id, SUM(o.quantity * p.price) AS total FROM orders o \
                 JOIN products p ON o.product_id = p.id WHERE o.amount > -@ GROUP BY o.customer_id) \
                 SELECT c.region, COUNT(*) AS num_customers, SUM(os.total) AS revenue FROM order_summary os \
                 JOIN customers c ON os.customer_id = c.id GROUP BY c.region ORDER BY revenue DESC",
        same: Same::All,
    },
    Query {
        name: "wc_join_reorder",
        sql: "SELECT o.id, o.amount, c.name, c.region FROM orders o JOIN events e ON o.customer_id = e.user_id \
              JOIN customers c ON o.customer_id = c.id WHERE c.tier = 'premium' AND e.event_type = 0 \
              ORDER BY o.amount DESC LIMIT 100",
        varied: "SELECT o.id, o.amount, c.name, c.region FROM orders o JOIN events e ON o.customer_id = e.user_id \
                 JOIN customers c ON o.customer_id = c.id WHERE c.tier = 'premium' AND e.event_type = 0 AND o.quantity > -@ \
                 ORDER BY o.amount DESC LIMIT 100",
        same: Same::Columns(&[1]),
    },
    Query {
        name: "wc_nested_cte",
        sql: "WITH active_customers AS (SELECT id, name, region FROM customers WHERE tier != 'basic'), \
              customer_orders AS (SELECT o.customer_id, COUNT(*) AS order_count, SUM(o.amount) AS total FROM orders o \
              JOIN active_customers a ON o.customer_id = a.id GROUP BY o.customer_id), \
              ranked AS (SELECT a.region, co.order_count, co.total FROM customer_orders co \
              JOIN active_customers a ON co.customer_id = a.id WHERE co.total > 500) \
              SELECT region, COUNT(*) AS n, SUM(total) AS revenue, AVG(order_count) AS avg_orders FROM ranked \
              GROUP BY region ORDER BY revenue DESC",
        varied: "WITH active_customers AS (SELECT id, name, region FROM customers WHERE tier != 'basic'), \
                 customer_orders AS (SELECT o.customer_id, COUNT(*) AS order_count, SUM(o.amount) AS total FROM orders o \
                 JOIN active_customers a ON o.customer_id = a.id WHERE o.quantity > -@ GROUP BY o.customer_id), \
                 ranked AS (SELECT a.region, co.order_count, co.total FROM customer_orders co \
                 JOIN active_customers a ON co.customer_id = a.id WHERE co.total > 500) \
                 SELECT region, COUNT(*) AS n, SUM(total) AS revenue, AVG(order_count) AS avg_orders FROM ranked \
                 GROUP BY region ORDER BY revenue DESC",
        same: Same::All,
    },
];
