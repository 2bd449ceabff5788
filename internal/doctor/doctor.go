// Package doctor looks whether a machine has what the workshop needs, and names
// the command that mends what is missing.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/mem"

	"example.com/operator-workshop/internal/classroom"
	"example.com/operator-workshop/internal/repo"
	"example.com/operator-workshop/internal/toolchain"
)

// What the workshop was measured to need; docs/benchmarks.md has the figures.
const (
	// buildSpace is the disk space of a first build, in bytes: modules, compiler cache and tools.
	buildSpace = 8e9
	// runSpace is the disk space of a cluster and its tests once the tools are built, in bytes.
	runSpace = 1e9
	// memoryNeeded is what the largest compiler process and a cluster take, in bytes.
	memoryNeeded = 4e9
	// inotifyInstances and inotifyWatches are what kind recommends on Linux.
	inotifyInstances = 512
	inotifyWatches   = 524288
)

// Check is the outcome for one requirement.
type Check struct {
	Name   string
	Found  string
	Needed string
	// Remedy is what to do; empty when the requirement is met.
	Remedy string
	// Optional requirements do not make the machine unready.
	Optional bool
}

// OK tells whether the requirement is met.
func (c Check) OK() bool { return c.Remedy == "" }

// Examine checks every requirement. kind adds those of CLUSTER=kind as required ones.
func Examine(ctx context.Context, r repo.Repo, kind bool) []Check {
	checks := []Check{
		checkGo(ctx, r),
		checkTool(ctx, "make", "GNU make 3.81", "3.81", regexp.MustCompile(`GNU Make ([0-9.]+)`)),
		checkTool(ctx, "git", "git 2.20", "2.20", regexp.MustCompile(`git version ([0-9.]+)`)),
		checkWritable(r),
		checkDisk(r),
		checkMemory(),
		checkPorts(),
		checkTools(ctx, r),
	}
	if runtime.GOOS == "linux" {
		checks = append(checks,
			checkInotify("max_user_instances", inotifyInstances, kind),
			checkInotify("max_user_watches", inotifyWatches, kind))
	}
	return append(checks, checkDocker(ctx, kind))
}

// Ready tells whether every requirement that is not optional is met.
func Ready(checks []Check) bool {
	for _, check := range checks {
		if !check.OK() && !check.Optional {
			return false
		}
	}
	return true
}

// Print writes the checks as a table, remedies below the requirement they mend.
func Print(out io.Writer, checks []Check) {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "\tREQUIREMENT\tFOUND\tNEEDED")
	for _, check := range checks {
		mark := "ok"
		if !check.OK() {
			mark = "MISSING"
			if check.Optional {
				mark = "optional"
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", mark, check.Name, check.Found, check.Needed)
	}
	table.Flush()
	for _, check := range checks {
		if !check.OK() {
			fmt.Fprintf(out, "\n%s: %s\n", check.Name, check.Remedy)
		}
	}
}

var goDirective = regexp.MustCompile(`(?m)^go ([0-9.]+)$`)

func checkGo(ctx context.Context, r repo.Repo) Check {
	check := Check{Name: "Go", Found: "none"}
	content, err := os.ReadFile(filepath.Join(r.Root, "go.mod"))
	if err != nil {
		check.Remedy = "go.mod cannot be read: clone the repository again"
		return check
	}
	needed := "0"
	if match := goDirective.FindSubmatch(content); match != nil {
		needed = string(match[1])
	}
	check.Needed = "go " + needed
	install := "install Go " + needed + " or newer from https://go.dev/dl/ and put its bin directory on your PATH"
	out, err := goEnv(ctx, r.Root, "GOVERSION")
	if err != nil {
		check.Remedy = install
		return check
	}
	check.Found = out
	if !atLeast(strings.TrimPrefix(out, "go"), needed) {
		check.Remedy = install
	}
	return check
}

func goEnv(ctx context.Context, dir, name string) (string, error) {
	command := exec.CommandContext(ctx, "go", "env", name)
	command.Dir = dir
	out, err := command.Output()
	return strings.TrimSpace(string(out)), err
}

// packageCommand is how the usual package manager of this system installs a tool.
func packageCommand(tool string) string {
	if runtime.GOOS == "darwin" {
		return "xcode-select --install"
	}
	for manager, command := range map[string]string{"apt-get": "sudo apt-get install ", "dnf": "sudo dnf install ", "apk": "sudo apk add ", "pacman": "sudo pacman -S "} {
		if _, err := exec.LookPath(manager); err == nil {
			return command + tool
		}
	}
	return "install " + tool + " with your system's package manager"
}

func checkTool(ctx context.Context, name, needed, version string, pattern *regexp.Regexp) Check {
	check := Check{Name: name, Found: "none", Needed: needed}
	out, err := exec.CommandContext(ctx, name, "--version").Output()
	if err != nil {
		check.Remedy = packageCommand(name)
		return check
	}
	match := pattern.FindSubmatch(out)
	if match == nil {
		check.Found = strings.SplitN(string(out), "\n", 2)[0]
		check.Remedy = packageCommand(name)
		return check
	}
	check.Found = string(match[1])
	if !atLeast(check.Found, version) {
		check.Remedy = packageCommand(name)
	}
	return check
}

// atLeast compares dotted version numbers; what follows a number, such as "rc1", is not looked at.
func atLeast(found, needed string) bool {
	have, want := strings.Split(found, "."), strings.Split(needed, ".")
	for i := range want {
		if i >= len(have) {
			return strings.Trim(strings.Join(want[i:], ""), "0") == ""
		}
		h, w := leadingNumber(have[i]), leadingNumber(want[i])
		if h != w {
			return h > w
		}
	}
	return true
}

func leadingNumber(text string) int {
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	number, _ := strconv.Atoi(text[:end])
	return number
}

// checkWritable tries the directories that are written: the checkout and the cache.
func checkWritable(r repo.Repo) Check {
	check := Check{Name: "writable folders", Needed: "checkout, cache"}
	cache, err := toolchain.CacheDir()
	if err != nil {
		check.Found, check.Remedy = "no cache", err.Error()
		return check
	}
	if err := tryWrite(r.Root); err != nil {
		check.Found, check.Remedy = "checkout read-only", "clone the repository into a directory that you can write"
		return check
	}
	if err := tryWrite(cache); err != nil {
		check.Found, check.Remedy = "cache read-only", fmt.Sprintf("export %s=DIR, GOCACHE=DIR and GOMODCACHE=DIR with directories that you can write", toolchain.CacheVariable)
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
	cache, err := toolchain.CacheDir()
	if err != nil {
		check.Found, check.Remedy = "unknown", err.Error()
		return check
	}
	dir := existingParent(cache)
	usage, err := disk.Usage(dir)
	if err != nil {
		check.Found, check.Remedy = "unknown", "df -h "+dir
		return check
	}
	check.Found = gigabytes(usage.Free)
	if usage.Free < needed {
		check.Remedy = fmt.Sprintf("free some space on the disk of %s, for example with `go clean -cache` (the next build takes long then)", dir)
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
	// A machine sold with 4 GB shows a little less.
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
	set, err := toolchain.LoadSet(ctx, r.Root, toolchain.Default)
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
		check.Optional, check.Remedy = true, "make tools (every command that needs them does it by itself)"
	}
	return check
}

func checkInotify(name string, needed int, required bool) Check {
	check := Check{Name: "inotify " + name, Needed: strconv.Itoa(needed) + " for kind", Optional: !required}
	content, err := os.ReadFile("/proc/sys/fs/inotify/" + name)
	if err != nil {
		check.Found, check.Remedy = "unknown", "cat /proc/sys/fs/inotify/"+name
		return check
	}
	check.Found = strings.TrimSpace(string(content))
	if found, err := strconv.Atoi(check.Found); err != nil || found < needed {
		check.Remedy = fmt.Sprintf("sudo sysctl fs.inotify.%s=%d (for CLUSTER=kind)", name, needed)
	}
	return check
}

func checkDocker(ctx context.Context, required bool) Check {
	check := Check{Name: "docker", Found: "none", Needed: "only for CLUSTER=" + classroom.Kind, Optional: !required}
	if _, err := exec.LookPath("docker"); err != nil {
		check.Remedy = "install a docker engine if you want CLUSTER=kind; everything else works without"
		return check
	}
	out, err := exec.CommandContext(ctx, "docker", "version", "--format", "{{.Server.Version}}").Output()
	if err != nil {
		check.Found, check.Remedy = "no engine", "start the docker engine if you want CLUSTER=kind; everything else works without"
		return check
	}
	check.Found = strings.TrimSpace(string(out))
	return check
}

func gigabytes(bytes uint64) string { return fmt.Sprintf("%.1f GB", float64(bytes)/1e9) }
