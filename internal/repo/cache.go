package repo

import (
	"fmt"
	"os"
	"path/filepath"
)

// CacheVariable is the environment variable that names the directory for what the workshop caches, such as built tools.
const CacheVariable = "WORKSHOP_CACHE"

// CacheDir returns the directory for what the workshop caches, such as built tools: $WORKSHOP_CACHE, or a folder in the
// user's cache directory.
func CacheDir() (string, error) {
	if dir := os.Getenv(CacheVariable); dir != "" {
		return filepath.Abs(dir)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory (%w): set %s to a directory that you can write to", err, CacheVariable)
	}
	return filepath.Join(base, "operator-workshop"), nil
}
