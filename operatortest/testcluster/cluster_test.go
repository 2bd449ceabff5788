package testcluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	psnet "github.com/shirou/gopsutil/v4/net"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/operator-workshop/controlplane"
)

var _ = Describe("the cluster", func() {
	It("makes a Deployment available and deletes its pods with it", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace}}
		deployment.Spec = appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: podTemplate(corev1.RestartPolicyAlways),
		}
		Expect(cluster.Client.Create(ctx, deployment)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
			g.Expect(deployment.Status.AvailableReplicas).To(Equal(int32(1)))
		}).WithContext(ctx).Should(Succeed())
		running := &corev1.PodList{}
		Expect(cluster.Client.List(ctx, running, client.InNamespace(namespace))).To(Succeed())
		Expect(running.Items).To(HaveExactElements(HaveField("Status.PodIP", Not(BeEmpty()))), "an operator may need the address of a pod")

		Expect(cluster.Client.Delete(ctx, deployment)).To(Succeed())
		Eventually(func(g Gomega) {
			pods := &corev1.PodList{}
			g.Expect(cluster.Client.List(ctx, pods, client.InNamespace(namespace))).To(Succeed())
			g.Expect(pods.Items).To(BeEmpty())
		}).WithContext(ctx).Should(Succeed())
	}, SpecTimeout(specTimeout))

	It("makes pods behave as the suite's own stages specify", func(ctx SpecContext) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "stuck", Namespace: cluster.Namespace(ctx)}, Spec: podTemplate(corev1.RestartPolicyAlways).Spec}
		pod.Spec.Containers[0].Image = "example.com/stuck:1.0"
		Expect(cluster.Client.Create(ctx, pod)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
			g.Expect(pod.Status.Conditions).To(ContainElement(HaveField("Reason", "Stuck")), "see Cluster.Stages")
		}).WithContext(ctx).Should(Succeed())
		Expect(pod.Status.Phase).To(Equal(corev1.PodRunning))
	}, SpecTimeout(specTimeout))

	It("does not start if a file of stages is missing", func(ctx SpecContext) {
		missing := &Cluster{Stages: []string{"testdata/missing.yaml"}}
		Expect(missing.Start(ctx)).To(MatchError(ContainSubstring("read the stages: open testdata/missing.yaml: no such file or directory")))
	}, SpecTimeout(specTimeout))

	It("runs a Job to its end", func(ctx SpecContext) {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "once", Namespace: cluster.Namespace(ctx)}}
		job.Spec.Template = podTemplate(corev1.RestartPolicyNever)
		Expect(cluster.Client.Create(ctx, job)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(job), job)).To(Succeed())
			g.Expect(job.Status.Succeeded).To(Equal(int32(1)))
		}).WithContext(ctx).Should(Succeed())
	}, SpecTimeout(specTimeout))

	It("collects the children of a custom resource", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		widget := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "test.example.com/v1", "kind": "Widget", "spec": map[string]any{"size": int64(1)},
		}}
		widget.SetName("parent")
		widget.SetNamespace(namespace)
		Expect(cluster.Client.Create(ctx, widget)).To(Succeed())
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: "child", Namespace: namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(widget, widget.GroupVersionKind())},
		}}
		Expect(cluster.Client.Create(ctx, child)).To(Succeed())
		Expect(cluster.Client.Delete(ctx, widget)).To(Succeed())
		Eventually(func() error {
			return cluster.Client.Get(ctx, client.ObjectKeyFromObject(child), child)
		}).WithContext(ctx).Should(Satisfy(apierrors.IsNotFound))
	}, SpecTimeout(specTimeout))

	It("calls a webhook of the test process", func(ctx SpecContext) {
		server := webhook.NewServer(webhook.Options{
			Host: cluster.Serving.Host, Port: cluster.Serving.Port, CertDir: cluster.Serving.CertDir,
		})
		server.Register("/refuse", &webhook.Admission{Handler: admission.HandlerFunc(
			func(context.Context, admission.Request) admission.Response { return admission.Denied("not today") })})
		serving, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- server.Start(serving) }()
		DeferCleanup(func() error { stop(); return <-ended })
		Eventually(func() error { return server.StartedChecker()(&http.Request{}) }).WithContext(ctx).Should(Succeed())

		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			GenerateName: "refused-", Namespace: cluster.Namespace(ctx), Labels: map[string]string{"operatortest": "refuse"},
		}}
		Expect(cluster.Client.Create(ctx, object)).To(MatchError(ContainSubstring("not today")))
	}, SpecTimeout(specTimeout))

	It("listens on 127.0.0.1 only", func() {
		for _, id := range processIDs(Default, cluster.dir) {
			connections, err := psnet.ConnectionsPid("inet", int32(id))
			Expect(err).NotTo(HaveOccurred())
			for _, connection := range connections {
				if connection.Status == "LISTEN" {
					Expect(net.ParseIP(connection.Laddr.IP).IsLoopback()).To(BeTrue(),
						"process %d listens on %s", id, net.JoinHostPort(connection.Laddr.IP, strconv.Itoa(int(connection.Laddr.Port))))
				}
			}
		}
	})

	It("runs kubectl and passes its error on", func(ctx SpecContext) {
		Expect(cluster.Kubectl(ctx, "get", "nodes", "-o", "name")).To(Equal("node/node-0\nnode/node-1\n"))
		_, err := cluster.Kubectl(ctx, "get", "nonsense")
		Expect(err).To(MatchError(ContainSubstring(`the server doesn't have a resource type "nonsense"`)))
	}, SpecTimeout(specTimeout))
})

var _ = Describe("a spec's namespace", func() {
	It("reports a custom resource that a finalizer holds", func(ctx SpecContext) {
		widget := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "test.example.com/v1", "kind": "Widget", "spec": map[string]any{"size": int64(1)},
		}}
		widget.SetName("held")
		widget.SetNamespace(cluster.Namespace(ctx))
		widget.SetFinalizers([]string{"test.example.com/forgotten"})
		Expect(cluster.Client.Create(ctx, widget)).To(Succeed())
		Expect(cluster.deleteAll(ctx, widget.GroupVersionKind(), widget.GetNamespace())).To(Succeed())
		Expect(cluster.expectNone(ctx, widget.GroupVersionKind(), widget.GetNamespace())).To(MatchError(
			`Widget held is still there, held by its finalizers ["test.example.com/forgotten"]`))

		Expect(cluster.Client.Patch(ctx, widget, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
	}, SpecTimeout(specTimeout))
})

var _ = Describe("an existing cluster", func() {
	It("keeps its own definitions and loses those of the tests", func(ctx SpecContext) {
		GinkgoT().Setenv(ExistingVariable, "true")
		GinkgoT().Setenv(KubeconfigVariable, cluster.Kubeconfig)
		before, err := definitionNames(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(before).To(ContainElement("widgets.test.example.com"), "one of the definitions must already exist")
		widgets := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.test.example.com"}}
		convert := func(ctx context.Context, conversion string) {
			GinkgoHelper()
			Expect(cluster.Admin.Patch(ctx, widgets, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"conversion":`+conversion+`}}`)))).To(Succeed())
		}
		convert(ctx, `{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://operator.example.com/convert"}}}`)
		DeferCleanup(func(ctx SpecContext) { convert(ctx, `{"strategy":"None","webhook":null}`) })
		own := widgets.Spec.Conversion.DeepCopy()
		guest := &Cluster{CRDs: []string{"testdata/crd", "testdata/broken/crd"}}
		Expect(guest.Start(ctx)).To(Succeed())
		Expect(cluster.Admin.Get(ctx, client.ObjectKeyFromObject(widgets), widgets)).To(Succeed())
		Expect(widgets.Spec.Conversion).To(Equal(own), "the cluster's own operator must still convert its resources")
		Expect(definitionNames(ctx)).To(ConsistOf(append([]string{"gizmos.test.example.com"}, before...)))
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: guest.Namespace(ctx)}}
		Expect(guest.Stop()).To(Succeed())
		Expect(definitionNames(ctx)).To(ConsistOf(before))
		Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)).To(Satisfy(apierrors.IsNotFound))
	}, SpecTimeout(specTimeout))
})

var _ = Describe("a control plane in a scratch folder", func() {
	It("is shared by clusters with the same definitions and options, and by no others", func(ctx SpecContext) {
		folder, end, err := controlplane.Scratch()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(end)
		GinkgoT().Setenv(ScratchVariable, folder)
		start := func(started *Cluster) (uid types.UID) {
			GinkgoHelper()
			Expect(started.Start(ctx)).To(Succeed())
			system := &corev1.Namespace{}
			Expect(started.Admin.Get(ctx, client.ObjectKey{Name: "kube-system"}, system)).To(Succeed())
			return system.UID
		}
		first := &Cluster{CRDs: []string{"testdata/crd"}}
		uid := start(first)
		left, err := first.CreateNamespace(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(first.Stop()).To(Succeed())

		second := &Cluster{CRDs: []string{"testdata/crd"}}
		Expect(start(second)).To(Equal(uid))
		Expect(second.Admin.Get(ctx, client.ObjectKeyFromObject(left), left)).To(Succeed())
		Expect(second.kinds).NotTo(BeEmpty())
		Expect(second.Stop()).To(Succeed())

		other := &Cluster{CRDs: []string{"testdata/crd", "testdata/broken/crd"}}
		Expect(start(other)).NotTo(Equal(uid))
		Expect(os.ReadDir(folder)).To(HaveLen(1), "the control plane that is no longer needed must be removed")
		Expect(other.Stop()).To(Succeed())

		converting := &Cluster{CRDs: []string{"testdata/crd"}, Converts: true}
		start(converting)
		Expect(converting.Stop()).To(Succeed())
		Expect(converting.Admin.List(ctx, &corev1.NamespaceList{})).NotTo(Succeed(), "the API server of a cluster with conversions must end when the cluster is stopped")
	}, SpecTimeout(2*specTimeout))
})

func definitionNames(ctx context.Context) ([]string, error) {
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := cluster.Admin.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list definitions: %w", err)
	}
	names := make([]string, len(list.Items))
	for i, definition := range list.Items {
		names[i] = definition.Name
	}
	return names, nil
}

func podTemplate(restart corev1.RestartPolicy) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			RestartPolicy: restart,
			Containers:    []corev1.Container{{Name: "main", Image: "example.com/web:1.0"}},
		},
	}
}
