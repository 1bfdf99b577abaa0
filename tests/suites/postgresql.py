"""PostgreSQL's own source of the installed version: for the suites regress, isolation and libpq_pipeline."""
import pathlib
import re
import subprocess

from sources import Unreachable, debian_files, debian_source, debian_version, run


def major(ground):
    said = subprocess.run([ground.binaries / "postgres", "--version"], check=True, capture_output=True, text=True).stdout
    return int(re.search(r"\d+", said)[0])


def source(ground):
    """The unpacked source."""
    package = f"postgresql-{major(ground)}"
    return debian_source(package, debian_version(package))


def headers(ground):
    """The server's generated headers and static libraries, of the package that is for extensions."""
    package = f"postgresql-{major(ground)}"
    return debian_files(f"postgresql-server-dev-{major(ground)}", debian_version(package)) / "usr"


def test_program(ground, name):
    """A program of the installed test tools, `regress/pg_regress` or the like."""
    path = ground.binaries.parent / "lib" / "pgxs" / "src" / "test" / name
    if not path.exists():
        raise Unreachable(f"{path} is not installed")
    return path


def compile(ground, target, files, *options):
    """Compiles with the server's headers."""
    usr = headers(ground)
    tree = source(ground)
    includes = [usr / "include" / "postgresql" / str(major(ground)) / "server", tree / "src" / "include"]
    includes += [tree / "src" / "interfaces" / "libpq", pathlib.Path("/usr/include/postgresql")]
    run("gcc", "-w", "-O1", *(f"-I{path}" for path in includes), "-o", target, *files, *options)
    return target


def run_pg_regress(program, leg, folder, inputdir, schedule, *options):
    """The result files by name, and each test's verdict against PostgreSQL's expected output."""
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": str(folder)}
    command = [program, f"--inputdir={inputdir}", f"--outputdir={folder}", f"--bindir={leg.cluster.binaries}"]
    command += ["--host=127.0.0.1", f"--port={leg.port}", "--user=postgres", f"--schedule={schedule}", *options]
    command = [str(word) for word in command]
    output = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, errors="replace")
    (folder / "output").write_text(output.stdout + output.stderr)
    verdicts = re.findall(r"^(?:test|    ) ?(\S+) +\.\.\. (ok|FAILED)", output.stdout, flags=re.M)
    results = {f"{name}: verdict": verdict for name, verdict in verdicts}
    for file in (folder / "results").rglob("*"):
        if file.is_file():
            results[str(file.relative_to(folder / "results"))] = file.read_text(errors="surrogateescape")
    if not verdicts:
        raise RuntimeError(f"{program} ran no test:\n{output.stdout}{output.stderr}")
    return results


def verdicts(results):
    of = [text for name, text in results.items() if name.endswith(": verdict")]
    return f"{of.count('ok')} of {len(of)} tests as PostgreSQL expects"
