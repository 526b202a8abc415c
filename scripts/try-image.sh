#!/usr/bin/env bash
# Makes the OCI image of deploy/image, and plays three viewers on the embedded server in it: what is
# in its layers is all that there is, and nobody is root. As root, with buildah; no runtime of
# containers is needed.
#   scripts/try-image.sh [BINARY]
set -euo pipefail
cd "$(dirname "$0")/.."
[[ $(id -u) -eq 0 ]] || { echo "$0 mounts, and enters another root: run it as root" >&2; exit 1; }
PATH=$PATH:/usr/sbin:/sbin
command -v buildah >/dev/null ||
  apt-get install -y -qq --no-install-recommends buildah >/dev/null
most_bytes=20000000
work=$(mktemp -d)
# All mounts are in a namespace that is gone by then.
trap 'rm -rf --one-file-system "$work"' EXIT
deploy/image/build.sh -o "$work" "$@"
size=$(stat -c %s "$work/throng.tar")
[[ $size -le $most_bytes ]] || { echo "$size bytes are more than $most_bytes" >&2; exit 1; }

# As a runtime does: the layers of the image, one on the other.
mkdir "$work/root"
python3 - "$work" <<'PY'
import json, pathlib, subprocess, sys, tarfile

work = pathlib.Path(sys.argv[1])
with tarfile.open(work / "throng.tar") as archive:
    def blob(digest):
        return archive.extractfile("blobs/" + digest.replace(":", "/")).read()

    index = json.load(archive.extractfile("index.json"))
    manifest = json.loads(blob(index["manifests"][0]["digest"]))
    config = json.loads(blob(manifest["config"]["digest"]))["config"]
    for layer in manifest["layers"]:
        file = work / "layer"
        file.write_bytes(blob(layer["digest"]))
        subprocess.run(["tar", "-C", work / "root", "-xpf", file], check=True)
if config["Entrypoint"] != ["/usr/bin/throng"] or config["User"] != "65534:65534":
    sys.exit(f"the image starts {config}")
PY

export root=$work/root work
unshare --mount --pid --fork --kill-child bash -euc '
  # Those a runtime has for each container.
  mkdir -p "$root"/{proc,sys,dev}
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  enter=$(command -v chroot)
  throng() { env -i PATH=/usr/bin "$enter" --userspec=65534:65534 "$root" /usr/bin/throng "$@"; }
  throng --version
  throng stage --listen 127.0.0.1:0 >"$work/stage" &
  for _ in $(seq 100); do
    target=$(grep -oE "whep\+http://[a-z0-9.:/]+" "$work/stage" || true)
    [[ -z $target ]] || break
    sleep 0.1
  done
  throng view "$target" -n 3 --every 100ms --for 5s --plain --output /tmp/played'
[[ -s $root/tmp/played/report.html ]] || { echo "no report was written" >&2; exit 1; }
echo "the image of $size bytes: three viewers played in it"
