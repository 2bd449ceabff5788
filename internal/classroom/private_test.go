package classroom_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	gopsnet "github.com/shirou/gopsutil/v4/net"
)

// nobody is a user that owns nothing.
const nobody = 65534

// pages are what the programs of a control plane serve, and what others ask them.
var pages = []string{
	"/", "/api", "/apis", "/api/v1/secrets", "/version", "/openapi/v3", "/metrics", "/flags", "/configz", "/debug/pprof/", "/debug/pprof/heap",
	"/health", "/healthz", "/livez", "/readyz", "/members", "/raft", "/v3/kv/range", "/v2/keys", "/discovery/prometheus",
	"/containerLogs/default/pod/container", "/exec/default/pod/container", "/pods", "/logs/",
}

// healthPages may be answered to everybody: they say "ok".
var healthPages = []string{"/healthz", "/livez", "/readyz"}

func TestAnotherUserGetsNothing(t *testing.T) {
	g := NewWithT(t)
	ctx := testContext(t)
	r := checkout(t)
	g.Expect(os.MkdirAll(r.State(), 0o755)).To(Succeed(), "as earlier versions made it")
	g.Expect(os.Chmod(r.State(), 0o755)).To(Succeed())
	cluster, _ := newCluster(t, r, "mine")
	g.Expect(cluster.Up(ctx)).To(Succeed())
	g.Expect(kubectl(ctx, r, cluster, "create", "secret", "generic", "mine")).To(ContainSubstring("created"))

	t.Run("its files", func(t *testing.T) {
		g := NewWithT(t)
		seen := 0
		g.Expect(filepath.WalkDir(r.State(), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.Type()&fs.ModeSymlink != 0 {
				return err // a link's own mode says nothing
			}
			if entry.Name() == "kube-cache" {
				return fs.SkipDir // kubectl sets the modes there itself; it keeps the API's description, and nothing of the learner's
			}
			seen++
			info, err := entry.Info()
			if err == nil {
				g.Expect(info.Mode().Perm()&0o077).To(BeZero(), "%s has mode %s", path, info.Mode())
			}
			return err
		})).To(Succeed())
		g.Expect(seen).To(BeNumerically(">", 30), "keys, kubeconfigs, locks, logs, etcd's data")
	})

	t.Run("its files, tried by another user", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("only root can act as another user")
		}
		g := NewWithT(t)
		g.Expect(os.Chmod(filepath.Dir(filepath.Dir(r.Root)), 0o755)).To(Succeed(), "a checkout lies where others can go")
		try := func(test, file string) int {
			command := exec.CommandContext(ctx, "/usr/bin/test", test, file)
			command.Dir = "/"
			command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			_ = command.Run() // its status is the answer
			return command.ProcessState.ExitCode()
		}
		g.Expect(try("-r", r.Root)).To(BeZero(), "the other user gets as far as this")
		for _, file := range []string{r.State(), cluster.Kubeconfig(), filepath.Join(r.State(), "mine.lock")} {
			for _, test := range []string{"-r", "-w"} {
				g.Expect(try(test, file)).To(Equal(1), "test %s %s", test, file)
			}
		}
	})

	t.Run("its ports", func(t *testing.T) {
		g := NewWithT(t)
		status, err := cluster.Status(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		listening := 0
		for _, component := range status.Components {
			connections, err := gopsnet.ConnectionsPidWithContext(ctx, "tcp", component.PID)
			g.Expect(err).NotTo(HaveOccurred())
			for _, connection := range connections {
				if connection.Status == "LISTEN" {
					listening++
					g.Expect(connection.Laddr.IP).To(Equal("127.0.0.1"))
					saysNothing(t, component.Name, connection.Laddr.Port)
				}
			}
		}
		g.Expect(listening).To(Equal(5), "etcd has two, the API server, the controller manager and the scheduler one")
	})

	t.Run("etcd without a certificate", func(t *testing.T) {
		g := NewWithT(t)
		etcdctl := func(env ...string) string {
			command := exec.CommandContext(ctx, filepath.Join(r.Bin(), "etcdctl"), "--command-timeout=3s", "get", "/registry/secrets", "--prefix", "--keys-only")
			command.Env = append(os.Environ(), env...)
			out, _ := command.CombinedOutput()
			return string(out)
		}
		g.Expect(etcdctl(cluster.Environment()...)).To(ContainSubstring("/registry/secrets/default/mine"))
		for _, setting := range cluster.Environment() {
			if len(setting) > 18 && setting[:18] == "ETCDCTL_ENDPOINTS=" {
				g.Expect(etcdctl(setting, "ETCDCTL_INSECURE_SKIP_TLS_VERIFY=true")).NotTo(ContainSubstring("/registry"))
			}
		}
	})
}

// saysNothing asks a port without credentials, over TLS and without, for all pages.
func saysNothing(t *testing.T, component string, port uint32) {
	t.Helper()
	g := NewWithT(t)
	stranger := &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, // the stranger trusts everybody
	}
	defer stranger.CloseIdleConnections()
	for _, scheme := range []string{"http", "https"} {
		for _, page := range pages {
			url := fmt.Sprintf("%s://127.0.0.1:%d%s", scheme, port, page)
			response, err := stranger.Get(url)
			if err != nil {
				continue // it hung up
			}
			body, err := io.ReadAll(response.Body)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(response.Body.Close()).To(Succeed())
			if response.StatusCode >= 400 && response.StatusCode < 500 {
				continue
			}
			g.Expect(healthPages).To(ContainElement(page), "%s answers %s with %s: %s", component, url, response.Status, body)
			g.Expect(string(body)).To(Equal("ok"))
		}
	}
}
