#!/usr/bin/env bash
# wheel_test.sh REPOSITORY BUILD PYTHON : the wheel, installed by pip into a folder of its own, runs the tests.
set -euo pipefail
for module in pip wheel; do
  "$3" -c "import $module" 2>/dev/null || { echo "SKIPPED: wheel: no $module (apt-get install python3-$module)"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1/scripts/wheel.sh" "$2" "$work/wheel"
ls -l "$work"/wheel
"$3" -m pip install --quiet --no-index --no-deps --target "$work/site" "$work"/wheel/*.whl
cd "$work" # not the tree: what is imported is what was installed
PYTHONPATH=$work/site "$3" "$1/tests/python/weft_test.py" "$work/site/weft/bin/weft" "$1"
