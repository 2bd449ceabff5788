// Package managertest helps to test a program that runs a controller-runtime manager. It starts the program in a
// process of its own, with a fake API server that has no objects.
package managertest

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
)

const (
	// Timeout bounds each wait for a server or a process on this machine.
	Timeout = 20 * time.Second
	// asProcess is set in the environment of the test program if the program must run main instead of tests.
	asProcess = "MANAGERTEST_RUN_MAIN"
)

// Main is for TestMain. It runs the tests, or main if [StartProcess] started this process.
func Main(m *testing.M, main func()) {
	if os.Getenv(asProcess) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// StartProcess runs main in a process of its own, which is killed when the test ends. Call [Isolate] first.
func StartProcess(t *testing.T, args ...string) *gexec.Session {
	command := exec.Command(os.Args[0], args...)
	command.Env = append(os.Environ(), asProcess+"=yes")
	process, err := gexec.Start(command, io.Discard, io.Discard)
	g := gomega.NewWithT(t)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	t.Cleanup(func() { g.Eventually(process.Kill()).WithTimeout(Timeout).Should(gexec.Exit()) })
	return process
}

// Isolate clears the given environment variables and KUBECONFIG, and hides the pod's cluster and the user's home
// directory. The test gets its own home directory, with a kubeconfig that names an address on which nothing listens.
func Isolate(t *testing.T, variables ...string) {
	for _, variable := range append(variables, "KUBERNETES_SERVICE_HOST", "KUBECONFIG") {
		t.Setenv(variable, "")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	g := gomega.NewWithT(t)
	g.Expect(os.Mkdir(filepath.Join(home, ".kube"), 0o700)).To(gomega.Succeed())
	g.Expect(os.Rename(Kubeconfig(t, FreeAddress(t)), filepath.Join(home, ".kube", "config"))).To(gomega.Succeed())
}

// Kubeconfig writes a kubeconfig that names the API server at an address, and returns its path.
func Kubeconfig(t *testing.T, address string) string {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
		"users: [{name: u, user: {}}]\nclusters: [{name: c, cluster: {server: 'http://" + address + "'}}]\n"
	gomega.NewWithT(t).Expect(os.WriteFile(file, []byte(content), 0o600)).To(gomega.Succeed())
	return file
}

// OccupiedAddress returns an address that has a listener until the test ends.
func OccupiedAddress(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred())
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// FreeAddress returns an address on which nothing was listening a moment ago.
func FreeAddress(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}

// Status returns the HTTP status of a GET request for the URL.
func Status(url string) (int, error) {
	response, err := http.Get(url)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return response.StatusCode, nil
}
