//! The throughput workloads: tables, rows and texts.
//!
//! Names and data follow a published suite of another project, corrected: set-up is never cut short, indexes exist,
//! tables are analysed, tables without a key get REPLICA IDENTITY FULL so that they can be mirrored as they are.

/// One workload: what must exist and the texts that each thread sends in turn.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    /// The name it has in published reports.
    pub(crate) label: &'static str,
    pub(crate) texts: Vec<String>,
}

/// Makes every table of the workloads below.
pub(crate) const SETUP: &str = "
CREATE TABLE bench_pr AS SELECT n AS id, 'value_' || n AS val FROM generate_series(0, 9999) n;
CREATE INDEX ON bench_pr (id);
CREATE TABLE bench_agg AS
    SELECT n AS id, (ARRAY['north','south','east','west'])[n % 4 + 1] AS region, (13 * n) % 1000 AS amount
    FROM generate_series(0, 4999) n;
CREATE TABLE customers AS
    SELECT n AS id, 'cust_' || n AS name, (ARRAY['north','south','east','west'])[n % 4 + 1] AS region,
           (ARRAY['basic','premium','enterprise'])[n % 3 + 1] AS tier
    FROM generate_series(0, 1999) n;
CREATE TABLE products AS
    SELECT n AS id, 'prod_' || n AS name,
           (ARRAY['electronics','clothing','food','books','toys'])[n % 5 + 1] AS category, 10 + (17 * n) % 490 AS price
    FROM generate_series(0, 499) n;
CREATE TABLE orders AS
    SELECT n AS id, n % 2000 AS customer_id, n % 500 AS product_id, 1 + (7 * n) % 20 AS quantity,
           10 + (13 * n) % 990 AS amount
    FROM generate_series(0, 49999) n;
ALTER TABLE bench_pr REPLICA IDENTITY FULL;
ALTER TABLE bench_agg REPLICA IDENTITY FULL;
ALTER TABLE customers REPLICA IDENTITY FULL;
ALTER TABLE products REPLICA IDENTITY FULL;
ALTER TABLE orders REPLICA IDENTITY FULL;
";

/// The tables of [`SETUP`].
pub(crate) const TABLES: [&str; 5] = ["bench_pr", "bench_agg", "customers", "products", "orders"];

const MIXED_ANALYTICAL: &str = "WITH order_summary AS (SELECT o.customer_id, SUM(o.quantity * p.price) AS total \
     FROM orders o JOIN products p ON o.product_id = p.id GROUP BY o.customer_id) \
     SELECT c.region, COUNT(*) AS num_customers, SUM(os.total) AS revenue FROM order_summary os \
     JOIN customers c ON os.customer_id = c.id GROUP BY c.region ORDER BY revenue DESC";

pub(crate) fn all() -> Vec<Workload> {
    vec![
        Workload {
            name: "point_read",
            label: "Indexed point lookup",
            texts: (0..100).map(|i| format!("SELECT * FROM bench_pr WHERE id = {}", 100 * i)).collect(),
        },
        Workload {
            name: "aggregate",
            label: "Group + sum",
            texts: vec!["SELECT region, SUM(amount) FROM bench_agg GROUP BY region".into()],
        },
        Workload { name: "mixed_analytical", label: "mixed_analytical", texts: vec![MIXED_ANALYTICAL.into()] },
    ]
}
