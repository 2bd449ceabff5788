package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/mem"

	"example.com/operator-workshop/internal/repo"
	"example.com/operator-workshop/internal/toolchain"
)

// checkWritable tries to write to the checkout and the cache.
func checkWritable(r repo.Repo) Check {
	check := Check{Name: "writable folders", Needed: "checkout, cache"}
	cache, err := repo.CacheDir()
	if err != nil {
		check.Found, check.Remedy = "no cache", err.Error()
		return check
	}
	if err := tryWrite(r.Root); err != nil {
		check.Found, check.Remedy = "checkout not writable", "clone the repository into a directory that you can write to"
		return check
	}
	if err := tryWrite(cache); err != nil {
		check.Found, check.Remedy = "cache not writable", fmt.Sprintf("export %s=DIR, GOCACHE=DIR and GOMODCACHE=DIR with directories that you can write to", repo.CacheVariable)
		return check
	}
	check.Found = "both"
	return check
}

func tryWrite(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

func checkDisk(r repo.Repo) Check {
	needed := uint64(runSpace)
	if !built(r) {
		needed = buildSpace
	}
	check := Check{Name: "free disk", Needed: gigabytes(needed)}
	cache, err := repo.CacheDir()
	if err != nil {
		check.Found, check.Remedy = "unknown", err.Error()
		return check
	}
	dir := existingParent(cache)
	usage, err := disk.Usage(dir)
	if err != nil {
		check.Found, check.Remedy = "unknown", fmt.Sprintf("check with `df -h %s` that at least %s is free", dir, gigabytes(needed))
		return check
	}
	check.Found = gigabytes(usage.Free)
	if usage.Free < needed {
		check.Remedy = fmt.Sprintf("free some space on the disk of %s, for example with `go clean -cache` (the next build then takes longer)", dir)
	}
	return check
}

func existingParent(dir string) string {
	for {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

func built(r repo.Repo) bool {
	_, err := os.Stat(filepath.Join(r.Bin(), "kube-apiserver"))
	return err == nil
}

func checkMemory() Check {
	check := Check{Name: "memory", Needed: gigabytes(memoryNeeded)}
	memory, err := mem.VirtualMemory()
	if err != nil {
		check.Found, check.Optional, check.Remedy = "unknown", true, "make sure that the machine has at least 4 GB"
		return check
	}
	check.Found = gigabytes(memory.Total)
	// A machine sold with 4 GB reports a little less.
	if float64(memory.Total) < 0.9*memoryNeeded {
		check.Remedy = "use a machine with more memory: compiling kube-apiserver takes about 3 GB"
	}
	return check
}

func checkPorts() Check {
	check := Check{Name: "loopback ports", Needed: "127.0.0.1"}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		check.Found, check.Remedy = "none", fmt.Sprintf("make sure that programs may listen on 127.0.0.1 (%v)", err)
		return check
	}
	_ = listener.Close()
	check.Found = "free"
	return check
}

func checkTools(ctx context.Context, r repo.Repo) Check {
	check := Check{Name: "tools in bin/", Found: "built", Needed: "built"}
	set, err := toolchain.LoadSet(ctx, r.Root, toolchain.Main)
	if err != nil {
		check.Found, check.Remedy = "unknown", err.Error()
		return check
	}
	missing := 0
	for _, component := range set.Components {
		if _, err := os.Stat(filepath.Join(r.Bin(), component.Name)); err != nil {
			missing++
		}
	}
	if missing > 0 {
		check.Found = fmt.Sprintf("%d of %d", len(set.Components)-missing, len(set.Components))
		check.Optional, check.Remedy = true, "make tools (commands that need them also build them)"
	}
	return check
}

// checkInotify checks a recommendation: small kind clusters work with less.
func checkInotify(name string, needed int) Check {
	check := Check{Name: "inotify " + name, Needed: strconv.Itoa(needed) + " for kind", Optional: true}
	content, err := os.ReadFile("/proc/sys/fs/inotify/" + name)
	if err != nil {
		check.Found, check.Remedy = "unknown", fmt.Sprintf("make sure that /proc/sys/fs/inotify/%s contains at least %d (for CLUSTER=kind)", name, needed)
		return check
	}
	check.Found = strings.TrimSpace(string(content))
	if found, err := strconv.Atoi(check.Found); err != nil || found < needed {
		check.Remedy = fmt.Sprintf("sudo sysctl fs.inotify.%s=%d (for CLUSTER=kind)", name, needed)
	}
	return check
}

func gigabytes(bytes uint64) string { return fmt.Sprintf("%.1f GB", float64(bytes)/1e9) }
