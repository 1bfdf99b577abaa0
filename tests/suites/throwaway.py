"""A throwaway PostgreSQL and a freshet in front of it: started here, ended by process id, their folder removed."""
import contextlib
import ctypes
import dataclasses
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

# Settings of every cluster: durability is not what is tested, room for suites that open many sessions is.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "wal_level": "logical",
    "fsync": "off",
    "max_connections": "200",
    "max_wal_senders": "20",
    "max_replication_slots": "20",
    "max_prepared_transactions": "20",
    "shared_buffers": "128MB",
    "log_min_messages": "warning",
}
START_SECONDS_MAX = 60


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def server_user():
    """initdb refuses to run as root: then its programs run as the user postgres."""
    return {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}


def end_with_parent():
    """In the child: ended by the kernel should the runner die without tidying up."""
    ctypes.CDLL(None).prctl(1, signal.SIGINT)


def own(path):
    """Hands a folder to the user that PostgreSQL runs as."""
    if os.geteuid() == 0:
        entry = pwd.getpwnam("postgres")
        os.chown(path, entry.pw_uid, entry.pw_gid)


@dataclasses.dataclass
class Cluster:
    """A running PostgreSQL."""

    binaries: pathlib.Path
    directory: pathlib.Path
    port: int

    def psql(self, sql, database="postgres"):
        """Runs SQL directly; raises on an error. Rows with | between fields."""
        command = [self.binaries / "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(self.port)]
        command += ["-U", "postgres", "-d", database, "-c", sql]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.rstrip("\n")


@dataclasses.dataclass
class Freshet:
    """A running freshet."""

    port: int
    admin: int
    log: pathlib.Path

    def metrics(self):
        """Metric name with labels to value."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics") as reply:
            lines = reply.read().decode().splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    def psql(self, cluster, sql, database):
        """Runs SQL through freshet, as `Cluster.psql` does directly."""
        return dataclasses.replace(cluster, port=self.port).psql(sql, database)

    def routes(self):
        """How often each route was taken, by the name of the route."""
        found = {}
        for name, value in self.metrics().items():
            matched = re.fullmatch(r'freshet_statements_total\{route="(\w+)".*\}', name)
            if matched:
                found[matched[1]] = found.get(matched[1], 0) + int(value)
        return found


@dataclasses.dataclass
class Ground:
    """Where clusters are made: one initdb, copied for each."""

    binaries: pathlib.Path
    freshet: pathlib.Path
    directory: pathlib.Path
    count: int = dataclasses.field(default=0)

    def folder(self, name):
        """A new folder that PostgreSQL may write to."""
        self.count += 1
        path = self.directory / f"{self.count:03}-{name}"
        path.mkdir()
        own(path)
        path.chmod(0o777)
        return path

    @contextlib.contextmanager
    def cluster(self, settings=None, port=None):
        data = self.folder("data")
        port = port or free_port()
        data.rmdir()
        shutil.copytree(self._template(), data, copy_function=shutil.copy2)
        for path in [data, *data.rglob("*")]:
            own(path)
        data.chmod(0o700)
        command = [str(self.binaries / "postgres"), "-D", str(data), "-p", str(port), "-k", str(self.folder("socket"))]
        for name, value in (SETTINGS | (settings or {})).items():
            command += ["-c", f"{name}={value}"]
        with open(self.directory / f"postgres-{port}.log", "wb") as log:
            process = subprocess.Popen(
                command, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=end_with_parent, **server_user())
        try:
            self._wait_for_cluster(process, port)
            yield Cluster(self.binaries, data, port)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
            shutil.rmtree(data, ignore_errors=True)

    @contextlib.contextmanager
    def freshet_before(self, cluster, *, database="postgres", listen=None, arguments=(), environment=None):
        listen, admin = listen or free_port(), free_port()
        log = self.directory / f"freshet-{listen}-{admin}.log"
        command = [str(self.freshet), "serve", "--upstream", f"postgres://postgres@127.0.0.1:{cluster.port}/{database}"]
        command += ["--listen", f"127.0.0.1:{listen}", "--admin", f"127.0.0.1:{admin}", *arguments]
        # As root, cargo's target folder may not be readable for others: freshet runs as whoever runs this.
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "FRESHET_"))}
        with open(log, "wb") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=variables | (environment or {}),
                preexec_fn=end_with_parent)
        try:
            wait_for_port(process, listen, log)
            wait_for_port(process, admin, log)
            yield Freshet(listen, admin, log)
            if process.poll() is not None:
                raise RuntimeError(f"freshet ended by itself:\n{tail(log)}")
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _template(self):
        template = self.directory / "template"
        if not template.exists():
            template.mkdir()
            own(template)
            command = [self.binaries / "initdb", "-D", template, "-U", "postgres", "-A", "trust", "-E", "UTF8"]
            subprocess.run(
                [*command, "--locale=C", "--no-sync"], check=True, cwd="/", capture_output=True, **server_user())
        return template

    def _wait_for_cluster(self, process, port):
        command = [self.binaries / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres"]
        limit = time.monotonic() + START_SECONDS_MAX
        while subprocess.run(command).returncode:
            if process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError(f"PostgreSQL does not start:\n{tail(self.directory / f'postgres-{port}.log')}")
            time.sleep(0.05)


def wait_for_port(process, port, log):
    limit = time.monotonic() + START_SECONDS_MAX
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if process.poll() is not None or time.monotonic() > limit:
            raise RuntimeError(f"freshet does not start:\n{tail(log)}")
        time.sleep(0.02)


def tail(path, lines=20):
    return "\n".join(pathlib.Path(path).read_text(errors="replace").splitlines()[-lines:])
