"""Runs a notebook from the top of the repository; fails on the first cell that raises.

notebook_test.py NOTEBOOK REPOSITORY PACKAGE [OUT]: with OUT the notebook is written there with its outputs.
"""
import os
import sys

try:
    import nbformat
    from nbclient import NotebookClient
except ImportError as missing:
    print(f"SKIPPED: notebook: {missing} (apt-get install python3-nbclient python3-ipykernel)")
    sys.exit(77)

path, repository, package = sys.argv[1:4]
os.environ |= {"PYTHONPATH": package, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
notebook = nbformat.read(path, as_version=4)
NotebookClient(notebook, timeout=300, resources={"metadata": {"path": repository}}).execute()
pictures = sum("image/png" in output.get("data", {}) for cell in notebook.cells if cell.cell_type == "code"
               for output in cell.outputs)
print(f"{len(notebook.cells)} cells, {pictures} pictures")
if len(sys.argv) > 4:
    nbformat.write(notebook, sys.argv[4])
sys.exit(0 if pictures == 2 else 1)
