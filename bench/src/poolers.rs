//! Other projects' servers that stand before PostgreSQL, where they are installed.

use std::ffi::OsString;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::process::{Process, find_program, version};
use crate::servers::{free_address, wait_for};

/// A server and where it listens, or why there is none.
pub(crate) type Started = Result<(Process, SocketAddr), String>;

/// Of those that are installed.
pub(crate) fn versions() -> Vec<(&'static str, String)> {
    let programs = [("PgBouncer", "pgbouncer"), ("pgpool-II", "pgpool")];
    let of = |(name, program)| Some((name, version(&find_program(program)?, "--version")?));
    programs.into_iter().filter_map(of).collect()
}

/// PgBouncer with session pooling: one server connection for each client, as freshet has. The reason where it is
/// not installed.
pub(crate) fn start_pgbouncer(folder: &Path, host: &str, port: u16, database: &str, log: &Path) -> io::Result<Started> {
    let Some(program) = find_program("pgbouncer") else {
        return Ok(Err("not installed (Debian package pgbouncer)".into()));
    };
    // It may run as another user.
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777))?;
    let address = free_address()?;
    let (users, file) = (folder.join("users.txt"), folder.join(format!("pgbouncer-{}.ini", address.port())));
    std::fs::write(&users, "\"postgres\" \"\"\n")?;
    std::fs::write(
        &file,
        format!(
            "[databases]\n{database} = host={host} port={port} dbname={database}\n[pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {}\nunix_socket_dir =\nauth_type = trust\nauth_file = {}\n\
             pool_mode = session\ndefault_pool_size = 100\nmax_client_conn = 200\n\
             log_connections = 0\nlog_disconnections = 0\n",
            address.port(),
            users.display()
        ),
    )?;
    let mut arguments: Vec<OsString> = vec!["-q".into(), file.into()];
    if rustix::process::geteuid().is_root() {
        arguments.splice(0..0, ["-u".into(), "postgres".into()]);
    }
    let process = Process::start(program, &arguments, log)?;
    wait_for(|| TcpStream::connect(address).is_ok(), "PgBouncer")?;
    Ok(Ok((process, address)))
}

/// pgpool-II with its query cache in shared memory, with room for every reply of the workloads; one connection behind each
/// client's. The reason where it is not installed.
pub(crate) fn start_pgpool(folder: &Path, host: &str, port: u16, log: &Path) -> io::Result<Started> {
    let Some(program) = find_program("pgpool") else {
        return Ok(Err("not installed (Debian package pgpool2)".into()));
    };
    let all = || std::fs::Permissions::from_mode(0o777);
    let (oids, file) = (folder.join("oids"), folder.join("pgpool.conf"));
    std::fs::create_dir_all(&oids)?;
    std::fs::set_permissions(folder, all())?;
    std::fs::set_permissions(&oids, all())?;
    let (address, control) = (free_address()?, free_address()?);
    let folder = folder.display();
    let text = format!(
        "backend_clustering_mode = 'raw'\nlisten_addresses = '127.0.0.1'\nport = {}\npcp_port = {}\n\
         pcp_listen_addresses = ''\nunix_socket_directories = '{folder}'\npcp_socket_dir = '{folder}'\n\
         wd_ipc_socket_dir = '{folder}'\npid_file_name = '{folder}/pgpool.pid'\nlogdir = '{folder}'\n\
         work_dir = '{folder}'\nbackend_hostname0 = '{host}'\nbackend_port0 = {port}\nnum_init_children = 40\n\
         max_pool = 1\nenable_pool_hba = off\nmemory_cache_enabled = on\nmemqcache_oiddir = '{}'\n\
         memqcache_total_size = 256MB\nmemqcache_cache_block_size = 16MB\nmemqcache_maxcache = 8MB\n",
        address.port(),
        control.port(),
        oids.display()
    );
    std::fs::write(&file, text)?;
    let arguments: Vec<OsString> = vec!["-n".into(), "-f".into(), file.into()];
    let process = if rustix::process::geteuid().is_root() {
        // It replaces itself by the program: the process stays the same.
        let mut all: Vec<OsString> =
            ["--reuid=postgres", "--regid=postgres", "--clear-groups"].map(OsString::from).into();
        all.push(program.into());
        all.extend(arguments);
        Process::start("setpriv", &all, log)?
    } else {
        Process::start(program, &arguments, log)?
    };
    wait_for(|| TcpStream::connect(address).is_ok(), "pgpool-II")?;
    Ok(Ok((process, address)))
}
