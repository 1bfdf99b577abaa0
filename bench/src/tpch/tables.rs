//! The eight tables: definitions that PostgreSQL and DuckDB both read, rows from a generator that follows the
//! specification, and the keys and foreign keys as indexes, without which PostgreSQL needs hours for some queries.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use freshet_bench_duckdb::Database;
use indicatif::ProgressStyle;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};

use crate::console::progress;
use crate::wire::{Client, query_message};

pub(super) struct Table {
    pub(super) name: &'static str,
    columns: &'static str,
    key: &'static str,
    indexes: &'static [&'static str],
}

pub(super) const ALL: [Table; 8] = [
    Table {
        name: "region",
        columns: "r_regionkey int NOT NULL, r_name text NOT NULL, r_comment text",
        key: "r_regionkey",
        indexes: &[],
    },
    Table {
        name: "nation",
        columns: "n_nationkey int NOT NULL, n_name text NOT NULL, n_regionkey int NOT NULL, n_comment text",
        key: "n_nationkey",
        indexes: &[],
    },
    Table {
        name: "supplier",
        columns: "s_suppkey int NOT NULL, s_name text NOT NULL, s_address text NOT NULL, s_nationkey int NOT NULL, \
                  s_phone text NOT NULL, s_acctbal decimal(15,2) NOT NULL, s_comment text NOT NULL",
        key: "s_suppkey",
        indexes: &["s_nationkey"],
    },
    Table {
        name: "part",
        columns: "p_partkey int NOT NULL, p_name text NOT NULL, p_mfgr text NOT NULL, p_brand text NOT NULL, \
                  p_type text NOT NULL, p_size int NOT NULL, p_container text NOT NULL, \
                  p_retailprice decimal(15,2) NOT NULL, p_comment text NOT NULL",
        key: "p_partkey",
        indexes: &[],
    },
    Table {
        name: "partsupp",
        columns: "ps_partkey int NOT NULL, ps_suppkey int NOT NULL, ps_availqty int NOT NULL, \
                  ps_supplycost decimal(15,2) NOT NULL, ps_comment text NOT NULL",
        key: "ps_partkey, ps_suppkey",
        indexes: &["ps_suppkey"],
    },
    Table {
        name: "customer",
        columns: "c_custkey int NOT NULL, c_name text NOT NULL, c_address text NOT NULL, c_nationkey int NOT NULL, \
                  c_phone text NOT NULL, c_acctbal decimal(15,2) NOT NULL, c_mktsegment text NOT NULL, \
                  c_comment text NOT NULL",
        key: "c_custkey",
        indexes: &["c_nationkey"],
    },
    Table {
        name: "orders",
        columns: "o_orderkey int NOT NULL, o_custkey int NOT NULL, o_orderstatus text NOT NULL, \
                  o_totalprice decimal(15,2) NOT NULL, o_orderdate date NOT NULL, o_orderpriority text NOT NULL, \
                  o_clerk text NOT NULL, o_shippriority int NOT NULL, o_comment text NOT NULL",
        key: "o_orderkey",
        indexes: &["o_custkey"],
    },
    Table {
        name: "lineitem",
        columns: "l_orderkey int NOT NULL, l_partkey int NOT NULL, l_suppkey int NOT NULL, l_linenumber int NOT NULL, \
                  l_quantity decimal(15,2) NOT NULL, l_extendedprice decimal(15,2) NOT NULL, \
                  l_discount decimal(15,2) NOT NULL, l_tax decimal(15,2) NOT NULL, l_returnflag text NOT NULL, \
                  l_linestatus text NOT NULL, l_shipdate date NOT NULL, l_commitdate date NOT NULL, \
                  l_receiptdate date NOT NULL, l_shipinstruct text NOT NULL, l_shipmode text NOT NULL, \
                  l_comment text NOT NULL",
        key: "l_orderkey, l_linenumber",
        indexes: &["l_partkey, l_suppkey", "l_suppkey"],
    },
];

impl Table {
    /// Rows, about: an order has four lines on average.
    fn count(&self, scale: f64) -> u64 {
        let of_scale_one = match self.name {
            "supplier" => 10_000.0,
            "part" => 200_000.0,
            "partsupp" => 800_000.0,
            "customer" => 150_000.0,
            "orders" => 1_500_000.0,
            "lineitem" => 6_000_000.0,
            _ => return 25,
        };
        (of_scale_one * scale) as u64
    }

    /// Into PostgreSQL by COPY and, by a file in `folder`, into DuckDB.
    pub(super) fn load(
        &self,
        scale: f64,
        client: &mut Client,
        duckdb: Option<&Database>,
        folder: &Path,
    ) -> io::Result<()> {
        let definition = format!("CREATE TABLE {} ({})", self.name, self.columns);
        client.query(&query_message(&definition))?;
        let path = folder.join(format!("{}.tbl", self.name));
        let mut file = BufWriter::new(File::create(&path)?);
        client.send(&query_message(&format!("COPY {} FROM STDIN WITH (DELIMITER '|')", self.name)))?;
        client.read_frame_of(b'G')?;
        let bar = progress(&format!("{} into PostgreSQL", self.name), self.count(scale));
        let mut portion = Vec::with_capacity(1 << 17);
        for (n, row) in (0_u64..).zip(rows(self.name, scale)) {
            // Each field of a row ends with the delimiter, the last one, too.
            portion.extend_from_slice(row.strip_suffix('|').unwrap_or(&row).as_bytes());
            portion.push(b'\n');
            if portion.len() > 1 << 16 {
                send(client, &mut file, &mut portion)?;
                bar.set_position(n);
            }
        }
        bar.finish_and_clear();
        send(client, &mut file, &mut portion)?;
        file.flush()?;
        client.send(&[b'c', 0, 0, 0, 4])?;
        client.read_reply()?;
        client.query(&query_message(&format!("ALTER TABLE {} ADD PRIMARY KEY ({})", self.name, self.key)))?;
        for columns in self.indexes {
            client.query(&query_message(&format!("CREATE INDEX ON {} ({columns})", self.name)))?;
        }
        client.query(&query_message(&format!("VACUUM (ANALYZE) {}", self.name)))?;
        if let Some(duckdb) = duckdb {
            let bar = progress(&format!("{} into DuckDB", self.name), self.count(scale));
            // One COPY reads the whole file and does not tell how far it is.
            bar.set_style(ProgressStyle::default_spinner());
            bar.enable_steady_tick(Duration::from_millis(100));
            duckdb.query(&definition).map_err(io::Error::other)?;
            let copy = format!("COPY {} FROM '{}' (DELIMITER '|', HEADER false)", self.name, path.display());
            duckdb.query(&copy).map_err(io::Error::other)?;
            bar.finish_and_clear();
        }
        std::fs::remove_file(path)
    }
}

fn send(client: &mut Client, file: &mut impl Write, portion: &mut Vec<u8>) -> io::Result<()> {
    file.write_all(portion)?;
    let length = u32::try_from(portion.len() + 4).map_err(io::Error::other)?;
    client.send(&[b"d".as_slice(), length.to_be_bytes().as_slice(), portion].concat())?;
    portion.clear();
    Ok(())
}

fn rows(table: &str, scale: f64) -> Box<dyn Iterator<Item = String>> {
    match table {
        "region" => Box::new(RegionGenerator::new(scale, 1, 1).iter().map(|row| row.to_string())),
        "nation" => Box::new(NationGenerator::new(scale, 1, 1).iter().map(|row| row.to_string())),
        "supplier" => Box::new(SupplierGenerator::new(scale, 1, 1).iter().map(|row| row.to_string())),
        "part" => Box::new(PartGenerator::new(scale, 1, 1).iter().map(|row| row.to_string())),
        "partsupp" => Box::new(PartSuppGenerator::new(scale, 1, 1).iter().map(|row| row.to_string())),
        "customer" => Box::new(CustomerGenerator::new(scale, 1, 1).iter().map(|row| row.to_string())),
        "orders" => Box::new(OrderGenerator::new(scale, 1, 1).iter().map(|row| row.to_string())),
        _ => Box::new(LineItemGenerator::new(scale, 1, 1).iter().map(|row| row.to_string())),
    }
}
