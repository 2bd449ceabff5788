// Package pins contains the versions of the control plane's programs.
package pins

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"path/filepath"
	"slices"

	"example.com/operator-workshop/internal/repo"
)

// The pinned modules and their checksums: copies of those in tools/, which is a separate module.
var (
	//go:embed go.mod.txt
	Modules []byte
	//go:embed go.sum.txt
	Sums []byte
)

// Dir returns the folder, in the workshop's cache directory, for programs of exactly these versions.
func Dir() (string, error) {
	cache, err := repo.CacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(slices.Concat(Modules, Sums))
	return filepath.Join(cache, "controlplane-"+hex.EncodeToString(sum[:8])), nil
}
