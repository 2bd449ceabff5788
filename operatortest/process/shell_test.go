package process_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/internal/procgroup"
	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/process"
	"example.com/operator-workshop/operatortest/testcluster"
	"example.com/operator-workshop/operatortest/traffic"
)

const (
	user = "shell-operator"
	// timeout bounds each wait for the operator.
	timeout = time.Minute
)

// role contains the permissions that the operator in testdata needs.
var role = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create"}}}

func TestAnOperatorInShell(t *testing.T) {
	g := NewWithT(t)
	cluster := &testcluster.Cluster{}
	t.Cleanup(func() { g.Expect(cluster.Stop()).To(Succeed()) })
	g.Expect(cluster.Start(t.Context())).To(Succeed())
	created := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shell-"}}
	g.Expect(cluster.Client.Create(t.Context(), created)).To(Succeed())
	t.Cleanup(func() { g.Expect(cluster.Client.Delete(context.Background(), created)).To(Succeed()) })
	namespace := created.Name
	for _, object := range []client.Object{
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user, Namespace: namespace}, Rules: role},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user, Namespace: namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		},
		configMap(namespace, "first"),
	} {
		g.Expect(cluster.Client.Create(t.Context(), object)).To(Succeed())
	}
	assets, err := controlplane.FindAssets()
	g.Expect(err).NotTo(HaveOccurred())
	command := process.Command{
		Args: []string{"testdata/shell-operator.sh"},
		Env:  []string{"PATH=" + assets + string(os.PathListSeparator) + os.Getenv("PATH")},
		Logs: t.TempDir(),
	}
	tap := traffic.New()
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	ctx, cancel := context.WithCancelCause(t.Context())
	result := make(chan error, 1)
	go func() { result <- command.Run(ctx, tap.Config(config), operatortest.RunOptions{Namespace: namespace}) }()

	copied := func(g Gomega, name, original string) {
		found := &corev1.ConfigMap{}
		g.Expect(cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, found)).To(Succeed())
		g.Expect(found.Data).To(HaveKeyWithValue("original", original))
	}
	g.Eventually(copied).WithArguments("first-copy", "configmap/first").WithTimeout(timeout).Should(Succeed())
	g.Expect(cluster.Client.Create(t.Context(), configMap(namespace, "second"))).To(Succeed())
	g.Eventually(copied).WithArguments("second-copy", "configmap/second").WithTimeout(timeout).Should(Succeed(), "the watch must show a ConfigMap that is created later")
	g.Eventually(tap.Requests).WithTimeout(timeout).Should(ContainElements(
		request("list", "", http.StatusOK), request("watch", "", http.StatusOK),
		request("get", "first-copy", http.StatusNotFound), request("create", "first-copy", http.StatusCreated),
		request("get", "second-copy", http.StatusNotFound), request("create", "second-copy", http.StatusCreated),
	))

	tap.Kill()
	cancel(traffic.ErrKilled)
	g.Eventually(result).WithTimeout(timeout).Should(Receive(MatchError(traffic.ErrKilled)))
	g.Expect(procgroup.Lives(groupIn(g, command.Logs))).To(BeFalse())
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"copy": "wanted"}}}
}

// request matches a request for ConfigMaps.
func request(verb, name string, status int) OmegaMatcher {
	return And(HaveField("Verb", verb), HaveField("Resource", "configmaps"), HaveField("Name", name), HaveField("Status", status))
}

// groupIn returns the ID of the operator's process group: the first number in the only log in the folder.
func groupIn(g Gomega, logs string) int {
	files, err := filepath.Glob(filepath.Join(logs, "*.log"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(HaveLen(1))
	content, err := os.ReadFile(files[0])
	g.Expect(err).NotTo(HaveOccurred())
	group, err := strconv.Atoi(regexp.MustCompile("[0-9]+").FindString(string(content)))
	g.Expect(err).NotTo(HaveOccurred())
	return group
}
