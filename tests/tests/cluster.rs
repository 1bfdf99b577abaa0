//! The harness itself: a cluster starts, restarts, and leaves nothing behind.

use freshet_tests::cluster::Cluster;

#[test]
fn a_cluster_starts_restarts_and_is_removed() {
    let cluster = Cluster::start(&["work_mem=5MB"]);
    let database = cluster.database();
    cluster.psql(&database, "CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2)");
    assert_eq!(cluster.psql(&database, "SHOW work_mem"), "5MB");
    assert_eq!(cluster.psql(&database, "SHOW wal_level"), "logical");
    cluster.stop();
    cluster.restart();
    assert_eq!(cluster.psql(&database, "SELECT count(*) FROM t"), "2");
    let directory = cluster.directory().to_path_buf();
    drop(cluster);
    assert!(!directory.exists());
}
