//! Where the shared library comes from: the npm package that carries it, fetched once and kept in the user's cache.

use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::Error;

const PACKAGE: &str = "@duckdb/node-bindings-linux-x64";
const VERSION: &str = "1.5.6-r.1";
/// Of the library in that version of the package.
const SHA256: &str = "3f4962cdd266eab2b479a5b5a4a6d063d279b2954ae814ed00385d553b747633";

/// The library's path: `FRESHET_BENCH_DUCKDB`, or from the cache, or fetched into it. An error says why there is none.
pub fn library() -> Result<PathBuf, Error> {
    if let Some(path) = std::env::var_os("FRESHET_BENCH_DUCKDB") {
        return Ok(path.into());
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(Error::Library(
            "no pinned DuckDB for this machine; set FRESHET_BENCH_DUCKDB to a libduckdb".into(),
        ));
    }
    let folder = cache()?.join("freshet").join("duckdb").join(VERSION);
    let library = folder.join("libduckdb.so");
    if !library.is_file() {
        fetch(&folder)?;
    }
    Ok(library)
}

fn cache() -> Result<PathBuf, Error> {
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let chosen = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or(home);
    chosen.ok_or_else(|| Error::Library("neither XDG_CACHE_HOME nor HOME is set".into()))
}

/// Unpacks beside the final place and renames: an interrupted run leaves nothing half done.
fn fetch(folder: &Path) -> Result<(), Error> {
    let problem = |error: std::io::Error| Error::Library(format!("{}: {error}", folder.display()));
    let partial = folder.with_extension(format!("partial-{}", std::process::id()));
    std::fs::create_dir_all(&partial).map_err(problem)?;
    let fetched = download(&partial).and_then(|()| {
        let unpacked = partial.join("package/libduckdb.so");
        let digest = Sha256::digest(std::fs::read(&unpacked).map_err(problem)?);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        if digest != SHA256 {
            return Err(Error::Library(format!("{PACKAGE}@{VERSION} holds another library than expected: {digest}")));
        }
        std::fs::create_dir_all(folder).map_err(problem)?;
        std::fs::rename(unpacked, folder.join("libduckdb.so")).map_err(problem)
    });
    let _ = std::fs::remove_dir_all(&partial);
    fetched
}

fn download(into: &Path) -> Result<(), Error> {
    run(Command::new("npm").args(["pack", "--silent", &format!("{PACKAGE}@{VERSION}")]).current_dir(into))?;
    let name = PACKAGE.trim_start_matches('@').replace('/', "-");
    run(Command::new("tar").args(["xzf", &format!("{name}-{VERSION}.tgz"), "package/libduckdb.so"]).current_dir(into))
}

fn run(command: &mut Command) -> Result<(), Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| Error::Library(format!("{program}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(Error::Library(format!("{program}: {}", text.lines().find(|line| !line.is_empty()).unwrap_or("failed"))))
}
