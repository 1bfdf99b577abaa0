//! The eight statements of the published suite's `analytics_stress`, one workload each, over its six tables, which it keeps in
//! files for the most part; here every engine has them as tables.

use crate::batch::workloads::{Group, Workload, asks_free};
use crate::data::{REGIONS, Table, int, star, table, word};
use crate::rows::Same;

const REASONS: &[&str] = &["defective", "wrong_size", "changed_mind", "damaged", "other"];

pub(super) fn group() -> Group {
    let tables = || {
        let of_star = star(50_000).into_iter().filter_map(|table| {
            let name = match table.name {
                "orders" => "as_orders",
                "events" => "as_events",
                "customers" => "as_customers",
                _ => return None,
            };
            Some(Table { name, ..table })
        });
        of_star.chain(others()).collect()
    };
    Group { name: "analytics_stress", tables: Box::new(tables), workloads: workloads(), is_large: false }
}

fn others() -> [Table; 3] {
    let id = || int("id", |n| n);
    let products = star(0).into_iter().find(|table| table.name == "products").expect("of the star");
    let mut columns = products.columns;
    columns.push(int("weight", |n| 1 + 3 * n % 50));
    [
        table("as_products", products.rows, columns),
        table("as_regions", 4, vec![id(), word("name", REGIONS), int("tax_rate", |n| [10, 8, 12, 9][n as usize])]),
        table(
            "as_returns",
            10_000,
            vec![
                id(),
                int("order_id", |n| n % 50_000),
                word("reason", REASONS),
                int("refund_amount", |n| 10 + 17 * n % 490),
            ],
        ),
    ]
}

fn workloads() -> Vec<Workload> {
    vec![
        asks_free(
            "as_revenue",
            "SELECT c.region, p.category, COUNT(*), SUM(o.quantity * p.price) AS revenue FROM as_orders o \
             JOIN as_customers c ON o.customer_id = c.id JOIN as_products p ON o.product_id = p.id \
             GROUP BY c.region, p.category ORDER BY revenue DESC",
            "SELECT c.region, p.category, COUNT(*), SUM(o.quantity * p.price) AS revenue FROM as_orders o \
             JOIN as_customers c ON o.customer_id = c.id JOIN as_products p ON o.product_id = p.id WHERE o.amount > -@ \
             GROUP BY c.region, p.category ORDER BY revenue DESC",
            Same::All,
        ),
        asks_free(
            "as_user_totals",
            "WITH user_totals AS (SELECT user_id, COUNT(*) AS n, SUM(amount) AS total FROM as_events WHERE event_type = 0 \
             GROUP BY user_id HAVING SUM(amount) > 500) SELECT * FROM user_totals ORDER BY total DESC LIMIT 50",
            "WITH user_totals AS (SELECT user_id, COUNT(*) AS n, SUM(amount) AS total FROM as_events \
             WHERE event_type = 0 AND score > -@ GROUP BY user_id HAVING SUM(amount) > 500) \
             SELECT * FROM user_totals ORDER BY total DESC LIMIT 50",
            Same::Columns(&[2]),
        ),
        asks_free(
            "as_rank",
            "SELECT id, event_type, score, RANK() OVER (PARTITION BY event_type ORDER BY score DESC) FROM as_events \
             WHERE score > 8000 ORDER BY event_type, score DESC",
            "SELECT id, event_type, score, RANK() OVER (PARTITION BY event_type ORDER BY score DESC) FROM as_events \
             WHERE score > 8000 AND id > -@ ORDER BY event_type, score DESC",
            Same::All,
        ),
        asks_free(
            "as_premium",
            "SELECT * FROM as_orders WHERE customer_id IN (SELECT id FROM as_customers WHERE tier = 'premium') \
             AND amount > 500 ORDER BY amount DESC LIMIT 100",
            "SELECT * FROM as_orders WHERE customer_id IN (SELECT id FROM as_customers WHERE tier = 'premium') \
             AND amount > 500 AND id > -@ ORDER BY amount DESC LIMIT 100",
            Same::Columns(&[4]),
        ),
        asks_free(
            "as_refunds",
            "SELECT r.reason, COUNT(*), SUM(ABS(r.refund_amount - o.amount)), ROUND(AVG(r.refund_amount)::numeric, 0) \
             FROM as_returns r JOIN as_orders o ON r.order_id = o.id GROUP BY r.reason ORDER BY r.reason",
            "SELECT r.reason, COUNT(*), SUM(ABS(r.refund_amount - o.amount)), ROUND(AVG(r.refund_amount)::numeric, 0) \
             FROM as_returns r JOIN as_orders o ON r.order_id = o.id WHERE r.id > -@ GROUP BY r.reason ORDER BY r.reason",
            Same::All,
        ),
        asks_free(
            "as_union",
            "SELECT region, SUM(total) FROM (\
             SELECT c.region AS region, SUM(o.amount) AS total FROM as_orders o JOIN as_customers c ON o.customer_id = c.id \
             GROUP BY c.region UNION ALL \
             SELECT g.name, SUM(r.refund_amount) FROM as_returns r JOIN as_regions g ON r.order_id % 4 = g.id GROUP BY g.name\
             ) both_kinds GROUP BY region ORDER BY region",
            "SELECT region, SUM(total) FROM (\
             SELECT c.region AS region, SUM(o.amount) AS total FROM as_orders o JOIN as_customers c ON o.customer_id = c.id \
             WHERE o.id > -@ GROUP BY c.region UNION ALL \
             SELECT g.name, SUM(r.refund_amount) FROM as_returns r JOIN as_regions g ON r.order_id % 4 = g.id GROUP BY g.name\
             ) both_kinds GROUP BY region ORDER BY region",
            Same::All,
        ),
        asks_free(
            "as_distinct",
            "SELECT DISTINCT c.name, c.region FROM as_customers c JOIN as_orders o ON o.customer_id = c.id \
             WHERE c.name LIKE 'cust_1%' AND o.amount > 500 ORDER BY c.region, c.name",
            "SELECT DISTINCT c.name, c.region FROM as_customers c JOIN as_orders o ON o.customer_id = c.id \
             WHERE c.name LIKE 'cust_1%' AND o.amount > 500 AND o.id > -@ ORDER BY c.region, c.name",
            Same::All,
        ),
        asks_free(
            "as_two_ctes",
            "WITH totals AS (SELECT customer_id, SUM(amount) AS total FROM as_orders GROUP BY customer_id), \
             large AS (SELECT c.region, t.total FROM totals t JOIN as_customers c ON t.customer_id = c.id WHERE t.total > 1000) \
             SELECT region, COUNT(*), SUM(total) FROM large GROUP BY region ORDER BY region",
            "WITH totals AS (SELECT customer_id, SUM(amount) AS total FROM as_orders WHERE id > -@ GROUP BY customer_id), \
             large AS (SELECT c.region, t.total FROM totals t JOIN as_customers c ON t.customer_id = c.id WHERE t.total > 1000) \
             SELECT region, COUNT(*), SUM(total) FROM large GROUP BY region ORDER BY region",
            Same::All,
        ),
    ]
}
