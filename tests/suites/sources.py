"""Gets the suites' sources by the registries' ordinary clients and keeps them; tells when a registry is out of reach.

Everything lies under `${XDG_CACHE_HOME:-$HOME/.cache}/freshet/suites`. What is there is not asked for again: remove a
folder to have it fetched anew.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import urllib.error
import urllib.request

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "freshet" / "suites"


class Unreachable(Exception):
    """A source, or a program that the suite needs, cannot be had here."""


def run(*command, cwd=None, env=None, seconds_max=1800):
    """A client of a registry; its failure counts as the registry being out of reach."""
    try:
        return subprocess.run(
            [str(word) for word in command], cwd=cwd, env=env, check=True, capture_output=True, text=True,
            timeout=seconds_max).stdout
    except FileNotFoundError as error:
        raise Unreachable(f"{error.filename} is not installed") from error
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        said = (getattr(error, "stderr", None) or getattr(error, "stdout", None) or str(error)).strip().splitlines()
        raise Unreachable(f"{command[0]}: {said[-1] if said else 'failed'}") from error


def kept(name, make):
    """The folder `name` in the cache, filled by `make(folder)` the first time; a failed attempt leaves nothing."""
    folder = CACHE / name
    if folder.exists():
        return folder
    beginning = CACHE / f"{name}.part"
    shutil.rmtree(beginning, ignore_errors=True)
    beginning.mkdir(parents=True)
    make(beginning)
    beginning.rename(folder)
    return folder


def unpack(archive, folder):
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(folder)


def debian_version(package):
    """The installed version, else the candidate."""
    said = run("apt-cache", "policy", package)
    for word in ("Installed:", "Candidate:"):
        for line in said.splitlines():
            if line.strip().startswith(word) and "(none)" not in line:
                return line.split()[-1]
    raise Unreachable(f"apt knows no {package}")


def debian_source(package, version):
    """The upstream part of a source package of the distribution, unpacked."""
    return only_folder(kept(f"{package}_{version}", lambda folder: fetch_debian_source(package, version, folder)))


def fetch_debian_source(package, version, folder):
    state = CACHE / "apt"
    for name in ("lists/partial", "archives/partial"):
        (state / name).mkdir(parents=True, exist_ok=True)
    release = dict(line.split("=", 1) for line in pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
    suite = release["VERSION_CODENAME"]
    if release["ID"] == "ubuntu":
        places = [("http://archive.ubuntu.com/ubuntu", s) for s in (suite, f"{suite}-updates", f"{suite}-security")]
    else:
        places = [("http://deb.debian.org/debian", suite), ("http://deb.debian.org/debian", f"{suite}-updates")]
        places += [("http://deb.debian.org/debian-security", f"{suite}-security")]
    (state / "sources.list").write_text("".join(f"deb-src {place} {s} main\n" for place, s in places))
    # A list of its own: the machine's is left as it is.
    options = ["-o", f"Dir::Etc::sourcelist={state}/sources.list", "-o", "Dir::Etc::sourceparts=/dev/null"]
    options += ["-o", f"Dir::State::lists={state}/lists", "-o", f"Dir::Cache={state}", "-o", "APT::Sandbox::User=root"]
    run("apt-get", *options, "update")
    known = re.findall(r"^Version: (\S+)", run("apt-cache", *options, "showsrc", package), flags=re.M)
    download_source(package, [version, *(other for other in reversed(known) if other != version)], options, folder)
    (archive,) = folder.glob("*.orig.tar.*")
    unpack(archive, folder)
    for file in folder.iterdir():
        if file.is_file():
            file.unlink()


def download_source(package, versions, options, folder):
    """The first of these versions that the archive still has: an index may name what is there no longer, or not yet."""
    failure = None
    for version in versions:
        try:
            run("apt-get", *options, "source", "--download-only", f"{package}={version}", cwd=folder)
        except Unreachable as error:
            failure = failure or error
            continue
        if version != versions[0]:
            print(f"{package} {versions[0]}: source not reachable, that of {version} instead", flush=True)
        return
    raise failure


def debian_files(package, version):
    """The files of a binary package, without installing it."""

    def fetch(folder):
        run("apt-get", "-o", "APT::Sandbox::User=root", "download", f"{package}={version}", cwd=folder)
        (archive,) = folder.glob("*.deb")
        run("dpkg-deb", "-x", archive, folder)
        archive.unlink()

    return kept(f"{package}_{version}_files", fetch)


def download(url, name):
    """A file of a registry that is served by plain HTTP (Maven Central, crates.io)."""

    def fetch(folder):
        try:
            with urllib.request.urlopen(url, timeout=60) as reply, open(folder / "archive", "wb") as file:
                shutil.copyfileobj(reply, file)
        except (urllib.error.URLError, TimeoutError) as error:
            raise Unreachable(f"{url}: {error}") from error
        unpack(folder / "archive", folder)
        (folder / "archive").unlink()

    return only_folder(kept(name, fetch))


def crate(name, version):
    return download(f"https://static.crates.io/crates/{name}/{name}-{version}.crate", f"{name}-{version}-crate")


def pypi_source(name, version):
    """A source distribution, unpacked."""

    def fetch(folder):
        run("python3", "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:",
            f"{name}=={version}", "-d", folder)
        (archive,) = folder.glob("*.tar.gz")
        unpack(archive, folder)
        archive.unlink()

    return only_folder(kept(f"{name}-{version}-sdist", fetch))


def python_with(name, *packages):
    """The interpreter of a virtual environment that has the packages."""

    def make(folder):
        # Made in place: a virtual environment cannot be moved.
        folder.rmdir()
        place = folder.with_name(name)
        try:
            run("python3", "-m", "venv", place)
            run(place / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages)
        except Unreachable:
            shutil.rmtree(place, ignore_errors=True)
            raise

    folder = CACHE / name
    if not folder.exists():
        part = CACHE / f"{name}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        make(part)
    return folder / "bin" / "python"


def only_folder(folder):
    (inner,) = [path for path in folder.iterdir() if path.is_dir()]
    return inner
