#!/usr/bin/env bash
# Prints the Secret of a fleet's bus: a new password, and a certificate that signs itself, for a
# month. Nothing is left behind.
#   deploy/kubernetes/secret.sh [NAME [NAMESPACE [SAN…]]] | kubectl apply -f -
# NAME and NAMESPACE are those of `throng fleet manifest`; SAN is a further name of the bus, such as
# IP:10.0.0.5 or DNS:bus.example.
set -euo pipefail
umask 077

name=${1:-throng} namespace=${2:-}
names=DNS:$name-bus
[[ -z $namespace ]] || names+=,DNS:$name-bus.$namespace.svc
for more in "${@:3}"; do names+=,$more; done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/openssl.cnf" <<END
[req]
distinguished_name = name
x509_extensions = leaf
prompt = no
[name]
CN = $name-bus
[leaf]
basicConstraints = critical, CA:FALSE
subjectAltName = $names
END
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 31 \
  -config "$work/openssl.cnf" \
  -keyout "$work/tls.key" -out "$work/tls.crt" 2>"$work/said" || { cat "$work/said" >&2; exit 1; }

# A letter first: nats-server reads a word of digits as a number.
password=p$(openssl rand -hex 16)
encoded() { base64 | tr -d '\n'; }
cat <<END
apiVersion: v1
kind: Secret
metadata:
  name: $name-bus${namespace:+
  namespace: \"$namespace\"}
  labels:
    app.kubernetes.io/name: throng
    app.kubernetes.io/instance: "$name"
type: Opaque
data:
  password: $(printf %s "$password" | encoded)
  tls.crt: $(encoded <"$work/tls.crt")
  tls.key: $(encoded <"$work/tls.key")
END
