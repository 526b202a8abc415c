#!/usr/bin/env bash
# What `throng fleet manifest` prints, given to a real control plane of Kubernetes: etcd,
# kube-apiserver and kube-controller-manager on loopback, without a kubelet, so that no container
# runs. The API server judges every field, the controllers make the pods, and the pods' own commands
# are then run here as processes, against the embedded stage, with a real nats-server in the place
# of the bus's pod. The Kustomize base is judged too, and Helm installs and removes the chart. The
# control plane is built once (20 minutes on two cores) and kept in ~/.cache/throng.
#   scripts/kubernetes_proof.sh [PATH-OF-THRONG [WORKERS]]
set -euo pipefail
cd "$(dirname "$0")/.."
throng=$(realpath "${1:-${CARGO_TARGET_DIR:-target}/release/throng}")
workers=${2:-3}
[[ -x $throng ]] || { echo "there is no $throng: make build" >&2; exit 1; }
[[ $(id -u) -eq 0 ]] || {
  echo "only root may give each worker a host's name of its own (unshare --uts)" >&2; exit 1
}

# Job.spec.backoffLimitPerIndex is on by default since 1.29.
version=1.32.4
kept=${XDG_CACHE_HOME:-$HOME/.cache}/throng/kubernetes-$version
scripts/setup.sh kubernetes
PATH=$PATH:/usr/local/go/bin:/usr/sbin:/sbin

# Debian's kubectl (1.20) knows no Indexed Jobs and no --validate=strict, so that all three are of
# one version.
build_control_plane() (
  local source ldflags module program minor=${version#1.}
  command -v go >/dev/null || { echo "Kubernetes is not built: there is no Go" >&2; exit 1; }
  echo "Building Kubernetes $version (once)"
  work=$(mktemp -d)
  trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
  source=$(go mod download -json "k8s.io/kubernetes@v$version" |
    sed -nE 's/^\s*"Dir": "(.*)",?$/\1/p')
  [[ -n $source ]] || { echo "Kubernetes $version cannot be fetched" >&2; exit 1; }
  cp -r "$source" "$work/source"
  chmod -R u+w "$work/source"
  cd "$work/source"
  rm -rf go.work go.work.sum vendor
  export GOWORK=off GOFLAGS="-mod=mod -buildvcs=false" CGO_ENABLED=0
  # A module's archive leaves out nested modules, and with them staging/: they are modules of their
  # own, by the same minor version.
  while read -r module; do
    go mod edit -dropreplace="$module"
    if grep -qE "^\s*$module v0\.0\.0\s*$" go.mod; then
      go mod edit -require="$module@v0.${version#1.}"
    fi
  done < <(sed -nE 's#^\s*(replace )?(k8s\.io/\S+) => \./staging/.*#\2#p' go.mod)
  ldflags="-s -w"
  for module in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    ldflags+=" -X $module.gitVersion=v$version -X $module.gitMajor=1 -X $module.gitMinor=${minor%%.*}"
  done
  mkdir -p "$kept"
  for program in kube-apiserver kube-controller-manager kubectl; do
    go build -ldflags "$ldflags" -o "$work/$program" "./cmd/$program"
    mv "$work/$program" "$kept/$program"
  done
)
for program in kube-apiserver kube-controller-manager kubectl; do
  [[ -x $kept/$program ]] || { build_control_plane; break; }
done

work=$(mktemp -d)
pids=()
finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap finish EXIT
background() { # NAME COMMAND…: its output goes to a log
  local name=$1; shift
  "$@" >"$work/$name.log" 2>&1 &
  pids+=($!)
}
wait_for() { # NAME COMMAND…
  local name=$1; shift
  for _ in $(seq 240); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.5
  done
  echo "$name did not come up; its log:" >&2
  tail -40 "$work/$name.log" >&2
  exit 1
}
free_ports() { # COUNT
  python3 -c '
import socket, sys
sockets = [socket.socket() for _ in range(int(sys.argv[1]))]
for s in sockets: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))' "$1"
}
read -r etcd_port peer_port api_port manager_port <<<"$(free_ports 4)"

# One authority, a certificate of the API server, a key of service accounts, a token of ours.
certificates() {
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=proof -keyout "$work/ca.key" \
    -out "$work/ca.crt"
  openssl req -newkey rsa:2048 -nodes -subj /CN=kube-apiserver -keyout "$work/api.key" \
    -out "$work/api.csr"
  openssl x509 -req -in "$work/api.csr" -CA "$work/ca.crt" -CAkey "$work/ca.key" -CAcreateserial \
    -days 2 \
    -extfile <(echo "subjectAltName = IP:127.0.0.1, IP:10.96.0.1, DNS:kubernetes.default.svc") \
    -out "$work/api.crt"
  openssl genrsa -out "$work/accounts.key" 2048
  openssl rsa -in "$work/accounts.key" -pubout -out "$work/accounts.pub"
}
certificates >"$work/certificates.log" 2>&1 || { cat "$work/certificates.log" >&2; exit 1; }
token=$(openssl rand -hex 16)
echo "$token,admin,1,system:masters" >"$work/tokens.csv"
cat >"$work/kubeconfig" <<END
apiVersion: v1
kind: Config
clusters:
  - {name: proof, cluster: {server: "https://127.0.0.1:$api_port", certificate-authority: "$work/ca.crt"}}
users:
  - {name: admin, user: {token: "$token"}}
contexts:
  - {name: proof, context: {cluster: proof, user: admin}}
current-context: proof
END
kubectl() { "$kept/kubectl" --kubeconfig "$work/kubeconfig" "$@"; }

echo "== a control plane of Kubernetes $version"
background etcd etcd --data-dir "$work/etcd" --listen-client-urls "http://127.0.0.1:$etcd_port" \
  --advertise-client-urls "http://127.0.0.1:$etcd_port" \
  --listen-peer-urls "http://127.0.0.1:$peer_port" \
  --initial-advertise-peer-urls "http://127.0.0.1:$peer_port" \
  --initial-cluster "default=http://127.0.0.1:$peer_port"
background kube-apiserver "$kept/kube-apiserver" --etcd-servers "http://127.0.0.1:$etcd_port" \
  --bind-address 127.0.0.1 --advertise-address 127.0.0.1 --secure-port "$api_port" \
  --cert-dir "$work/api" \
  --tls-cert-file "$work/api.crt" --tls-private-key-file "$work/api.key" \
  --token-auth-file "$work/tokens.csv" \
  --authorization-mode RBAC --service-cluster-ip-range 10.96.0.0/24 \
  --endpoint-reconciler-type none \
  --service-account-issuer https://kubernetes.default.svc \
  --service-account-key-file "$work/accounts.pub" \
  --service-account-signing-key-file "$work/accounts.key"
wait_for kube-apiserver kubectl get --raw /readyz
background kube-controller-manager "$kept/kube-controller-manager" --kubeconfig "$work/kubeconfig" \
  --leader-elect=false \
  --bind-address 127.0.0.1 --secure-port "$manager_port" --cert-dir "$work/manager" \
  --service-account-private-key-file "$work/accounts.key" --root-ca-file "$work/ca.crt" \
  --controllers=job-controller,deployment-controller,replicaset-controller,serviceaccount-controller,namespace-controller

read -r stage_port bus_port <<<"$(free_ports 2)"
cat >"$work/crowd.toml" <<END
objectives = ["failed < 1%"]

[target]
url = "whep+http://127.0.0.1:$stage_port/whep" # each pod's processes run on this host
token = "env:WHEP_TOKEN"

[crowd]
size = $((workers * 4))
arrival = { every = "100ms" }

[run]
duration = "10s"

[stream]
video = "100kbit/s"
audio = "48kbit/s"
END

echo "== what the command prints, judged by the API server"
"$throng" fleet manifest "$work/crowd.toml" --workers "$workers" --name proof --namespace load \
  --max-users 100 \
  --allow-target 10.0.0.0/8 --consent-secret-name proof-consent >"$work/manifest.yaml"
kubectl apply --server-side --validate=strict -f "$work/manifest.yaml"
# Its certificate is also for the address that stands for the bus's Service here.
deploy/kubernetes/secret.sh proof load IP:127.0.0.1 | kubectl apply --validate=strict -f -
kubectl -n load create secret generic proof-env --from-literal=WHEP_TOKEN=a-token
kubectl -n load create secret generic proof-consent --from-literal=secret=not-used
echo "== the Kustomize base"
kubectl kustomize deploy/kubernetes |
  kubectl apply --server-side --validate=strict --dry-run=server -f -
for file in reader.yaml secret.example.yaml; do
  kubectl apply --validate=strict --dry-run=server -f "deploy/kubernetes/$file"
done

echo "== the chart, installed and removed by Helm"
scripts/helm.sh
helm() {
  "${XDG_CACHE_HOME:-$HOME/.cache}/throng/bin/helm" "$@" \
    --kubeconfig "$work/kubeconfig" --namespace load
}
"$throng" fleet manifest "$work/crowd.toml" --workers "$workers" --max-users 100 \
  --allow-target 10.0.0.0/8 --consent-secret-name proof-consent --helm "$work/chart"
helm lint --strict "$work/chart"
helm install chart "$work/chart"
helm get manifest chart >"$work/release.yaml"
released() { kubectl -n load get -f "$work/release.yaml" -o name "$@"; }
# Fails where the API server has not all of it.
released
helm uninstall chart
# The claim of the run folders outlives a release.
for _ in $(seq 60); do
  left=$(released --ignore-not-found)
  [[ $left != persistentvolumeclaim/chart-runs ]] || break
  sleep 0.5
done
[[ $left == persistentvolumeclaim/chart-runs ]] || { echo "Helm left: $left" >&2; exit 1; }

echo "== the pods that the controllers make"
pods() { kubectl -n load get pods -l app.kubernetes.io/instance=proof -o json; }
for _ in $(seq 120); do
  pods >"$work/pods.json"
  count=$(python3 -c 'import json, sys; print(len(json.load(sys.stdin)["items"]))' \
    <"$work/pods.json")
  [[ $count -lt $((workers + 2)) ]] || break
  sleep 0.5
done
for kind in secrets configmaps; do kubectl -n load get $kind -o json >"$work/$kind.json"; done

background stage "$throng" stage --listen "127.0.0.1:$stage_port" --card low --token a-token
wait_for stage bash -c "echo >/dev/tcp/127.0.0.1/$stage_port"
scripts/kubernetes_pods.py "$work" "$throng" "$workers" "$bus_port"
