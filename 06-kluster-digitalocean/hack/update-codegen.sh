#!/bin/sh
# Regenerates the code that is derived from the types in pkg/apis: DeepCopy functions, the client, its apply
# configurations, listers and informers. The calls are those of kube_codegen.sh in k8s.io/code-generator; the
# generators are the repository's pinned tools, so that neither a vendor folder nor a checkout is needed.
set -eu
cd "$(dirname "$0")/.."

BIN=../bin
MODULE=example.com/operator-workshop/06-kluster-digitalocean
APIS=$MODULE/pkg/apis/inspirit941.dev/v1alpha1
GENERATED=pkg/generated
HEADER=hack/boilerplate.go.txt

for tool in deepcopy-gen applyconfiguration-gen client-gen lister-gen informer-gen; do
  if [ ! -x "$BIN/$tool" ]; then
    echo "update-codegen: $BIN/$tool is missing: run \`make tools\` in the repository's root" >&2
    exit 1
  fi
done

# The generators never delete files, so the files of a removed kind would stay. That's why all of them except
# deepcopy-gen write into an empty folder, which replaces the old one once all have succeeded.
NEW=$(mktemp -d)
trap 'rm -rf "$NEW"' EXIT

"$BIN/deepcopy-gen" --go-header-file "$HEADER" --output-file zz_generated.deepcopy.go "$APIS"

"$BIN/applyconfiguration-gen" --go-header-file "$HEADER" \
  --output-dir "$NEW/applyconfiguration" --output-pkg "$MODULE/$GENERATED/applyconfiguration" "$APIS"

"$BIN/client-gen" --go-header-file "$HEADER" \
  --output-dir "$NEW/clientset" --output-pkg "$MODULE/$GENERATED/clientset" --clientset-name versioned \
  --apply-configuration-package "$MODULE/$GENERATED/applyconfiguration" \
  --input-base "$MODULE/pkg/apis" --input inspirit941.dev/v1alpha1

"$BIN/lister-gen" --go-header-file "$HEADER" \
  --output-dir "$NEW/listers" --output-pkg "$MODULE/$GENERATED/listers" "$APIS"

"$BIN/informer-gen" --go-header-file "$HEADER" \
  --output-dir "$NEW/informers" --output-pkg "$MODULE/$GENERATED/informers" \
  --versioned-clientset-package "$MODULE/$GENERATED/clientset/versioned" \
  --listers-package "$MODULE/$GENERATED/listers" "$APIS"

rm -rf "$GENERATED"
mkdir "$GENERATED"
mv "$NEW"/* "$GENERATED"
