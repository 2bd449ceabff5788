package greeting

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/operatortest/testcluster"
)

const (
	// happensWithin is enough time to garbage-collect a child, to delete a namespace, or to make pods ready.
	happensWithin = 30 * time.Second
	// quietTime is how long a test watches for something that must not happen.
	quietTime    = 2 * time.Second
	pollInterval = 50 * time.Millisecond
)

var crds = []string{filepath.Join("config", "crd")}

// startEnvtest starts etcd and an API server, and nothing else.
func startEnvtest(t *testing.T) client.Client {
	g := NewWithT(t)
	assets, err := controlplane.FindAssets()
	g.Expect(err).NotTo(HaveOccurred())
	environment := &envtest.Environment{BinaryAssetsDirectory: assets, CRDDirectoryPaths: crds, ErrorIfCRDPathMissing: true}
	t.Cleanup(func() { g.Expect(environment.Stop()).To(Succeed()) })
	config, err := environment.Start()
	g.Expect(err).NotTo(HaveOccurred())
	c, err := client.New(config, client.Options{Scheme: newScheme()})
	g.Expect(err).NotTo(HaveOccurred())
	return c
}

// startTestcluster starts etcd, an API server, Kubernetes' controllers and simulated nodes.
func startTestcluster(t *testing.T) client.Client {
	g := NewWithT(t)
	cluster := &testcluster.Cluster{CRDs: crds, Scheme: newScheme()}
	t.Cleanup(func() { g.Expect(cluster.Stop()).To(Succeed()) })
	g.Expect(cluster.Start(t.Context())).To(Succeed())
	return cluster.Client
}

func TestAPIServerChecksGreetings(t *testing.T) {
	g := NewWithT(t)
	c := startEnvtest(t)

	greeting := newGreeting("default")
	greeting.Spec.Language = ""
	g.Expect(c.Create(t.Context(), greeting)).To(Succeed())
	g.Expect(greeting.Spec.Language).To(Equal("en"), "the schema's default must be filled in")

	greeting.Spec.Language = "tlh"
	g.Expect(c.Update(t.Context(), greeting)).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
}

// TestWhatEnvtestLacks asks two control planes the same questions.
func TestWhatEnvtestLacks(t *testing.T) {
	planes := map[string]struct {
		start   func(*testing.T) client.Client
		happens bool
	}{
		"envtest":     {startEnvtest, false},
		"testcluster": {startTestcluster, true},
	}
	questions := map[string]func(ctx context.Context, g Gomega, c client.Client) func(ctx context.Context) (bool, error){
		"a child is deleted with its owner": deleteOwner,
		"a deleted namespace disappears":    deleteNamespace,
		"a Deployment's pods become ready":  createDeployment,
	}
	for plane, test := range planes {
		t.Run(plane, func(t *testing.T) {
			c := test.start(t)
			t.Run("asks", func(t *testing.T) {
				for question, ask := range questions {
					t.Run(question, func(t *testing.T) {
						t.Parallel()
						g := NewWithT(t)
						happened := ask(t.Context(), g, c)
						if test.happens {
							g.Eventually(happened).WithContext(t.Context()).WithTimeout(happensWithin).WithPolling(pollInterval).Should(BeTrue())
							t.Log("yes")
						} else {
							g.Consistently(happened).WithContext(t.Context()).WithTimeout(quietTime).WithPolling(pollInterval).Should(BeFalse())
							t.Log("no")
						}
					})
				}
			})
		})
	}
}

// deleteOwner deletes the owner of a ConfigMap, and returns a function that reports whether the ConfigMap is gone, too.
func deleteOwner(ctx context.Context, g Gomega, c client.Client) func(ctx context.Context) (bool, error) {
	owner := newGreeting("default")
	child := newConfigMap(owner)
	g.Expect(c.Create(ctx, owner)).To(Succeed())
	g.Expect(controllerutil.SetControllerReference(owner, child, c.Scheme())).To(Succeed())
	g.Expect(c.Create(ctx, child)).To(Succeed())
	g.Expect(c.Delete(ctx, owner)).To(Succeed())
	return gone(c, child)
}

func deleteNamespace(ctx context.Context, g Gomega, c client.Client) func(ctx context.Context) (bool, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "short-lived"}}
	g.Expect(c.Create(ctx, namespace)).To(Succeed())
	g.Expect(c.Delete(ctx, namespace)).To(Succeed())
	return gone(c, namespace)
}

func createDeployment(ctx context.Context, g Gomega, c client.Client) func(ctx context.Context) (bool, error) {
	labels := map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx:1.29"}}},
			},
		},
	}
	g.Expect(c.Create(ctx, deployment)).To(Succeed())
	return func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)
		return deployment.Status.ReadyReplicas == 1, err
	}
}

// gone returns a function that reports whether the API server no longer has the object.
func gone(c client.Client, object client.Object) func(ctx context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
}
