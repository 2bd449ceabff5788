package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/repo"
)

// checkout is a copy of this checkout: tests may change the copy.
type checkout struct{ root string }

// copyCheckout copies this checkout into a folder whose path has a space and an umlaut, as learners' paths may.
func copyCheckout(t *testing.T) checkout {
	t.Helper()
	g := NewWithT(t)
	from, err := repo.Find(".")
	g.Expect(err).NotTo(HaveOccurred())
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = from.Root
	names, err := list.Output()
	g.Expect(err).NotTo(HaveOccurred())
	c := checkout{root: filepath.Join(t.TempDir(), "Schöne neue Wörkshops")}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		copyFile(g, filepath.Join(from.Root, name), filepath.Join(c.root, name))
	}
	tools, err := os.ReadDir(from.Bin())
	g.Expect(err).NotTo(HaveOccurred(), "run `make tools` first")
	for _, tool := range tools {
		if tool.Name() == "workshop" {
			continue // it is built in the copy
		}
		if target, err := os.Readlink(filepath.Join(from.Bin(), tool.Name())); err == nil {
			g.Expect(os.MkdirAll(filepath.Join(c.root, "bin"), 0o755)).To(Succeed())
			g.Expect(os.Symlink(target, filepath.Join(c.root, "bin", tool.Name()))).To(Succeed())
		}
	}
	copyFile(g, filepath.Join(from.Bin(), ".modules"), filepath.Join(c.root, "bin", ".modules"))
	return c
}

// copyFile copies a file. It skips one that git lists but the folder no longer has.
func copyFile(g Gomega, from, to string) {
	content, err := os.ReadFile(from)
	if os.IsNotExist(err) {
		return
	}
	g.Expect(err).NotTo(HaveOccurred())
	info, err := os.Stat(from)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.MkdirAll(filepath.Dir(to), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(to, content, info.Mode().Perm())).To(Succeed())
}

// command returns a command that runs in a folder of the copy, in the plain environment with additional settings.
func (c checkout) command(t *testing.T, dir string, settings []string, name string, args ...string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = filepath.Join(c.root, dir)
	command.Env = append(plainEnvironment(), settings...)
	return command
}

// run runs a command in a folder of the copy, and returns its output and exit status.
func (c checkout) run(t *testing.T, dir string, settings []string, name string, args ...string) (string, int) {
	t.Helper()
	command := c.command(t, dir, settings, name, args...)
	out, _ := command.CombinedOutput()
	return string(out), command.ProcessState.ExitCode()
}

// plainEnvironment returns the environment without the variables that make or a play has set for this test.
func plainEnvironment() []string {
	var plain []string
	for _, entry := range os.Environ() {
		switch name, _, _ := strings.Cut(entry, "="); name {
		case "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "KUBECONFIG", "WORKSHOP_CLUSTER", "WORKSHOP_NAME", "WORKSHOP_YES", "WORKSHOP_OWN", "WORKSHOP_PLAY":
		default:
			plain = append(plain, entry)
		}
	}
	return plain
}

// foreignCluster returns the path of a kubeconfig for a server that responds to every request with its version.
func foreignCluster(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"major":"1","minor":"37","gitVersion":"v1.37.1"}`))
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "config")
	content := "apiVersion: v1\nkind: Config\ncurrent-context: production\n" +
		"clusters: [{name: theirs, cluster: {server: \"" + server.URL + "\"}}]\n" +
		"contexts: [{name: production, context: {cluster: theirs, user: me}}]\nusers: [{name: me, user: {}}]\n"
	NewWithT(t).Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	return path
}
