package doctor

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"example.com/operator-workshop/internal/providers"
	"example.com/operator-workshop/internal/repo"
)

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

// packageCommand returns the command that installs a tool: on macOS, the one for Apple's command line tools, and
// elsewhere one for a package manager on the PATH. If it finds no package manager that it knows, it returns advice.
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

// atLeast reports whether a dotted version number is the required one or higher. It ignores text after a number, such
// as "rc1".
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

func checkDocker(ctx context.Context, required bool) Check {
	check := Check{Name: "docker", Found: "none", Needed: "for CLUSTER=" + providers.Kind + " and docker-build", Optional: !required}
	if _, err := exec.LookPath("docker"); err != nil {
		check.Remedy = "install a Docker engine if you want CLUSTER=kind or `make stage-N docker-build`; everything else works without it"
		return check
	}
	out, err := exec.CommandContext(ctx, "docker", "version", "--format", "{{.Server.Version}}").Output()
	if err != nil {
		check.Found, check.Remedy = "no engine", "start the Docker engine if you want CLUSTER=kind or `make stage-N docker-build`; everything else works without it"
		return check
	}
	check.Found = strings.TrimSpace(string(out))
	return check
}
