package repo

import (
	"fmt"
	"os"
	"path/filepath"
)

// CacheVariable names the environment variable that moves the cache of finished tools.
const CacheVariable = "WORKSHOP_CACHE"

// CacheDir is where finished tools are kept: $WORKSHOP_CACHE, or a folder of the user's cache directory.
func CacheDir() (string, error) {
	if dir := os.Getenv(CacheVariable); dir != "" {
		return filepath.Abs(dir)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory (%w): set %s to a directory that you can write", err, CacheVariable)
	}
	return filepath.Join(base, "operator-workshop"), nil
}
