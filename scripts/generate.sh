#!/usr/bin/env bash
# Writes everything below src/api/gen that is generated, from one release of Kubernetes: its OpenAPI document, Go types and generated.proto files,
# which the Go toolchain fetches and checks by hash (go.sum of the module). Only names, types, markers and numbers are taken, never texts.
# The release is pinned here; docs/upgrading.md says how the next one is taken in.
set -euo pipefail
cd "$(dirname "$0")/.."
release=1.36.3
gatewayRelease=1.6.3

command -v go >/dev/null 2>&1 || { echo "generate: the Go toolchain must be installed: it fetches the release's modules"; exit 6; }
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

# module@version → its folder in the module cache.
folder() { (cd "$work" && go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'); }

types=$work/k8s.io
mkdir "$types"
for module in api apimachinery apiextensions-apiserver kube-aggregator; do
  # Packages are named as in protobuf, where a dash is an underscore.
  cp -r "$(folder "k8s.io/$module@v0.${release#1.}")" "$types/${module//-/_}"
done
openapi=$(folder "k8s.io/kubernetes@v$release")/api/openapi-spec/swagger.json
node scripts/generateTypes.mjs "$openapi"
node scripts/generateFacts.mjs "$openapi" "$work" "$types"
node scripts/generateGoStructs.mjs "$types"
node scripts/generateGateway.mjs "$(folder "sigs.k8s.io/gateway-api@v$gatewayRelease")"
npx --no-install biome check --write src/api/gen
