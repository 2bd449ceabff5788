package controlplane_test

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
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/controlplane/install"
)

func TestUsersAndCertificates(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := testContext(t)
	plane, _ := open(t, filepath.Join(t.TempDir(), "users"), controlplane.Options{})
	_, err := plane.Kubeconfig(controlplane.Administrator, "")
	g.Expect(err).To(MatchError(controlplane.ErrNotFound))
	g.Expect(plane.Up(ctx)).To(Succeed())
	keep(ctx, g, plane)

	student := controlplane.User{Name: "ada", Groups: []string{"students"}}
	content, err := plane.Kubeconfig(student, "")
	g.Expect(err).NotTo(HaveOccurred())
	ada := clientFrom(g, content)

	t.Run("a user has the rights of their name and groups, and no others", func(t *testing.T) {
		g := NewWithT(t)
		_, err := ada.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		g.Expect(err).To(Satisfy(apierrors.IsForbidden))
		g.Expect(err).To(MatchError(ContainSubstring(`User "ada"`)))
		_, err = clientOf(g, plane).RbacV1().RoleBindings("default").Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "students"},
			Subjects:   []rbacv1.Subject{{Kind: "Group", Name: "students", APIGroup: rbacv1.GroupName}},
			RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: "view", APIGroup: rbacv1.GroupName},
		}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Eventually(ctx, func() error {
			_, err := ada.CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{})
			return err
		}).Should(Succeed())
	})

	t.Run("a kubeconfig for another address verifies the server by its name", func(t *testing.T) {
		g := NewWithT(t)
		config, err := install.Config(plane)
		g.Expect(err).NotTo(HaveOccurred())
		port := config.Host[len("https://127.0.0.1:"):]
		content, err := plane.Kubeconfig(controlplane.Administrator, "https://127.0.0.2:"+port)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(content)).To(ContainSubstring("tls-server-name: kubernetes.default.svc"))
	})

	t.Run("no user can reach etcd", func(t *testing.T) {
		g := NewWithT(t)
		variables, err := plane.EtcdEnvironment()
		g.Expect(err).NotTo(HaveOccurred())
		etcdctl := func(env ...string) string {
			command := exec.CommandContext(ctx, filepath.Join(plane.Assets(), "etcdctl"), "--command-timeout=3s", "get", "/registry/configmaps", "--prefix", "--keys-only")
			command.Env = append(append(os.Environ(), variables...), env...)
			out, _ := command.CombinedOutput() // the output is checked below
			return string(out)
		}
		g.Expect(etcdctl()).To(ContainSubstring("/registry/configmaps/default/kept"))
		keys := filepath.Join(plane.Dir(), "pki-1")
		g.Expect(etcdctl("ETCDCTL_CERT="+filepath.Join(keys, "admin.crt"), "ETCDCTL_KEY="+filepath.Join(keys, "admin.key"))).NotTo(ContainSubstring("/registry"), "the administrator's certificate must not work either")
	})

	t.Run("renewing the certificates invalidates old kubeconfigs and keeps the data", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(plane.RenewCertificates(ctx)).To(Succeed())
		_, err := ada.CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{})
		g.Expect(err).To(MatchError(ContainSubstring("certificate")), "the old kubeconfig must no longer work, because it trusts another authority")
		g.Expect(kept(ctx, g, plane)).To(BeTrue())
		content, err := plane.Kubeconfig(student, "")
		g.Expect(err).NotTo(HaveOccurred())
		_, err = clientFrom(g, content).CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred(), "a new kubeconfig must work")
		g.Expect(exists(plane.Dir(), "pki-1")).To(BeFalse())
		g.Eventually(ctx, func(g Gomega) {
			published, err := clientOf(g, plane).CoreV1().ConfigMaps("default").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			root, err := os.ReadFile(filepath.Join(plane.Dir(), "pki-2", "ca.crt"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(published.Data["ca.crt"]).To(Equal(string(root)), "pods must get the new authority")
		}).WithTimeout(limit).Should(Succeed())
	})
}

// stranger is a user ID and group ID that owns none of a control plane's files.
const stranger = 65534

// pages are paths at which etcd, kwok or a component of Kubernetes might respond.
var pages = []string{
	"/", "/api", "/apis", "/api/v1/secrets", "/version", "/openapi/v3", "/metrics", "/flags", "/configz", "/debug/pprof/", "/debug/pprof/heap",
	"/health", "/healthz", "/livez", "/readyz", "/members", "/raft", "/v3/kv/range", "/v2/keys", "/discovery/prometheus",
	"/containerLogs/default/pod/container", "/exec/default/pod/container", "/pods", "/logs/",
}

// healthPages may be served without credentials: they say only "ok".
var healthPages = []string{"/healthz", "/livez", "/readyz"}

func TestAnotherUserGetsNothing(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := testContext(t)
	dir := filepath.Join(t.TempDir(), "mine")
	g.Expect(os.Mkdir(dir, 0o755)).To(Succeed())
	plane, _ := open(t, dir, controlplane.Options{})
	g.Expect(plane.Up(ctx)).To(Succeed())
	_, err := clientOf(g, plane).CoreV1().Secrets("default").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	t.Run("its files give other users no permissions", func(t *testing.T) {
		g := NewWithT(t)
		seen := 0
		g.Expect(filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			seen++
			info, err := entry.Info()
			if err == nil {
				g.Expect(info.Mode().Perm()&0o077).To(BeZero(), "%s has mode %s", path, info.Mode())
			}
			return err
		})).To(Succeed())
		g.Expect(seen).To(BeNumerically(">", 30), "there must be keys, kubeconfigs, locks, logs and etcd's data")
	})

	t.Run("another user can't open its files", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("only root can act as another user")
		}
		g := NewWithT(t)
		g.Expect(os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o755)).To(Succeed())
		g.Expect(os.Chmod(filepath.Dir(dir), 0o755)).To(Succeed())
		try := func(test, file string) int {
			command := exec.CommandContext(ctx, "/usr/bin/test", test, file)
			command.Dir = "/"
			command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
			_ = command.Run() // the exit status is the answer
			return command.ProcessState.ExitCode()
		}
		g.Expect(try("-r", filepath.Dir(dir))).To(BeZero(), "the other user must be able to enter the parent folder")
		for _, file := range []string{dir, plane.KubeconfigPath(), filepath.Join(dir, "lock"), filepath.Join(dir, "run", "etcd")} {
			for _, test := range []string{"-r", "-w"} {
				g.Expect(try(test, file)).To(Equal(1), "test %s %s", test, file)
			}
		}
	})

	t.Run("its ports refuse clients without credentials", func(t *testing.T) {
		g := NewWithT(t)
		listening := 0
		for name, pid := range pids(ctx, g, plane) {
			connections, err := gopsnet.ConnectionsPidWithContext(ctx, "tcp", int32(pid))
			g.Expect(err).NotTo(HaveOccurred())
			for _, connection := range connections {
				if connection.Status == "LISTEN" {
					listening++
					g.Expect(connection.Laddr.IP).To(Equal("127.0.0.1"))
					saysNothing(t, name, connection.Laddr.Port)
				}
			}
		}
		g.Expect(listening).To(Equal(5), "there must be five ports: two of etcd, and one each of the API server, the controller manager and the scheduler")
	})
}

// saysNothing requests each path in pages from a port, without credentials, with and without TLS. The port must refuse
// them all, except that it may answer health checks with "ok".
func saysNothing(t *testing.T, component string, port uint32) {
	t.Helper()
	g := NewWithT(t)
	stranger := &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, // this client doesn't verify the server
	}
	defer stranger.CloseIdleConnections()
	for _, scheme := range []string{"http", "https"} {
		for _, page := range pages {
			url := fmt.Sprintf("%s://127.0.0.1:%d%s", scheme, port, page)
			response, err := stranger.Get(url)
			if err != nil {
				continue // the server hung up
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
