//! Certificates of all kinds, made by the openssl program as PostgreSQL's manual does it; and a cluster that shows them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use crate::cluster::Cluster;

/// Files `NAME.crt` and `NAME.key` in one folder:
///
/// - `ca`: a certificate authority, which issued `server` (for localhost and 127.0.0.1), `elsewhere` (for another host),
///   `client` (common name `login_cert`), `version1` (no extensions, common name localhost) and `renewed` (as `server`);
/// - `alone`: self-signed, common name localhost; `stranger`: another authority.
pub struct Certificates {
    folder: PathBuf,
    /// Removes the folder when this process ends, by whatever cause: its input closes then.
    _owner: Child,
}

const OWNER_SCRIPT: &str = r#"folder=$(mktemp -d) || exit 1; echo "$folder"; read -r _; rm -rf "$folder""#;

const SCRIPT: &str = r#"
set -e
authority() {
    openssl req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256 -days 30 -keyout "$1.key" -out "$1.crt" -subj "/CN=$1"
}
issue() {
    name=$1; subject=$2; shift 2
    openssl req -new -nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256 -keyout "$name.key" -out "$name.csr" -subj "$subject"
    openssl x509 -req -in "$name.csr" -days 30 -CA ca.crt -CAkey ca.key -CAcreateserial -out "$name.crt" "$@"
}
authority ca
authority stranger
openssl req -x509 -nodes -newkey rsa:2048 -days 30 -keyout alone.key -out alone.crt -subj /CN=localhost
echo "subjectAltName=DNS:localhost,IP:127.0.0.1" >names
echo "subjectAltName=DNS:elsewhere.example" >other-names
echo "basicConstraints=CA:FALSE" >plain
issue server /CN=server -extfile names
issue renewed /CN=server -extfile names
issue elsewhere /CN=localhost -extfile other-names
issue client /CN=login_cert -extfile plain
issue version1 /CN=localhost
chmod 0600 ./*.key
"#;

impl Certificates {
    /// Made once for each test binary.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Certificates> = OnceLock::new();
        SHARED.get_or_init(|| {
            let mut owner = Command::new("sh")
                .args(["-c", OWNER_SCRIPT])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("a shell");
            let mut folder = String::new();
            let told = BufReader::new(owner.stdout.take().expect("piped")).read_line(&mut folder);
            assert!(told.is_ok_and(|count| count > 1), "a folder");
            let folder = PathBuf::from(folder.trim_end());
            let output = Command::new("sh").args(["-c", SCRIPT]).current_dir(&folder).output();
            let output = output.expect("a shell");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Self { folder, _owner: owner }
        })
    }

    pub fn certificate(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.crt"))
    }

    pub fn key(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.key"))
    }

    /// The certificate as it is sent.
    pub fn der(&self, name: &str) -> Vec<u8> {
        let output = Command::new("openssl")
            .args(["x509", "-outform", "DER", "-in"])
            .arg(self.certificate(name))
            .output()
            .expect("openssl runs");
        assert!(output.status.success());
        output.stdout
    }

    /// Lets a cluster show `name` to its clients and trust certificates of `ca`; `rules` are its pg_hba.conf, but for
    /// the superuser, who comes in everywhere.
    pub fn use_in(&self, cluster: &Cluster, name: &str, rules: &str) {
        for (from, to) in
            [(self.certificate(name), "tls.crt"), (self.key(name), "tls.key"), (self.certificate("ca"), "tls-ca.crt")]
        {
            give_to(cluster, &from, &cluster.directory().join(to));
        }
        let hba =
            format!("{rules}\nlocal all all trust\nhost all postgres all trust\nhost replication postgres all trust\n");
        std::fs::write(cluster.directory().join("data/pg_hba.conf"), hba).expect("written");
        let setting = |name: &str, file: &str| {
            let path = cluster.directory().join(file);
            cluster.psql("postgres", &format!("ALTER SYSTEM SET {name} = '{}'", path.display()));
        };
        setting("ssl_cert_file", "tls.crt");
        setting("ssl_key_file", "tls.key");
        setting("ssl_ca_file", "tls-ca.crt");
        cluster.psql("postgres", "ALTER SYSTEM SET ssl = on");
        cluster.reload();
        while ssl_answer(cluster.port()) != b'S' {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// What the server at this port says to SSLRequest.
pub fn ssl_answer(port: u16) -> u8 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the port is open");
    let mut request = Vec::new();
    freshet::wire::startup::write_ssl_request(&mut request);
    stream.write_all(&request).expect("the other side reads");
    let mut answer = [0];
    stream.read_exact(&mut answer).expect("a byte");
    answer[0]
}

/// PostgreSQL insists that a key is its own.
fn give_to(cluster: &Cluster, from: &Path, to: &Path) {
    let owner = std::fs::metadata(cluster.directory()).expect("it is there");
    std::fs::copy(from, to).expect("copied");
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o600)).expect("our file");
    std::os::unix::fs::chown(to, Some(owner.uid()), Some(owner.gid())).expect("we are the owner, or root");
}
