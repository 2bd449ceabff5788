package behaviours

import (
	"context"
	"errors"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/report"
)

// Flaws that show when writes are refused, when pods can't run, or when the spec names an object that is missing.
const (
	saysNothing   mutation = "retries refused writes, and reports nothing"
	claimsRefused mutation = "says that a gadget is ready although its ConfigMap was refused"
	forgoes       mutation = "reports a refused ConfigMap, and does not retry"
	leavesFormer  mutation = "leaves the ConfigMap with a former name behind after another one was refused"
	endsOnRefusal mutation = "exits when a write is refused"
	hammers       mutation = "retries refused writes without a pause"
	claimsPods    mutation = "doesn't wait for its pods before it says that a gadget is ready"
	countsPods    mutation = "counts pods that do not run"
	condemns      mutation = "gives up on a gadget whose image can't be pulled"
	hidesMissing  mutation = "waits for a Secret, and reports nothing"
)

// Correct operators that resemble these.
const (
	warnsOnly   mutation = "reports a refused ConfigMap only with a Warning event"
	runsPods    mutation = "waits for its pods"
	needsSecret mutation = "reports the Secret that it waits for"
	makesNamed  mutation = "gives its ConfigMap the name of a Secret that it does not need"
)

// misoperated adapts the reference operator's description to these operators, and to resurrects.
func misoperated(mutation mutation, operator operatortest.Operator) operatortest.Operator {
	switch mutation {
	case runsPods, claimsPods, countsPods, condemns:
		operator = deployingOperator(operator)
		operator.Roles = []string{"testdata/gadget/role-pods.yaml"}
	case hidesMissing, needsSecret, makesNamed:
		operator.Roles = []string{"testdata/gadget/role-secrets.yaml"}
		operator.Prepare = func(ctx context.Context, writer client.Client, namespace string) error {
			for _, name := range []string{"settings", "options", "tuning"} {
				if err := writer.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}); err != nil {
					return err
				}
			}
			return nil
		}
	case resurrects:
		operator.Roles = []string{"testdata/gadget/role-apply.yaml"}
	}
	return operator
}

// reportRefused reports that the API server refuses a child, and returns the error, so that the operator retries. Other
// errors are only returned. If the API server refuses the child because the namespace is terminating, reportRefused
// reports nothing, and returns nil. Some flaws change what reportRefused does.
func (r *gadgetReconciler) reportRefused(ctx context.Context, gadget *unstructured.Unstructured, refused error) error {
	if !apierrors.IsForbidden(refused) && !apierrors.IsInvalid(refused) || r.flaw == saysNothing {
		return refused
	}
	if apierrors.HasStatusCause(refused, corev1.NamespaceTerminatingCause) {
		return nil
	}
	switch r.flaw {
	case claimsRefused:
		return errors.Join(r.writeStatus(ctx, gadget, ""), refused)
	case forgoes:
		return r.writeStatus(ctx, gadget, refused.Error())
	case warnsOnly:
		if _, again := r.memory.LoadOrStore(gadget.GetUID(), true); !again {
			r.recorder.Eventf(gadget, nil, corev1.EventTypeWarning, "Refused", "Reconcile", "%s", refused)
		}
		return refused
	}
	if err := r.writeStatus(ctx, gadget, refused.Error()); err != nil {
		return err
	}
	for i := 0; r.flaw == hammers && i < 10*watchedLooks && apierrors.IsForbidden(refused); i++ {
		_, refused = r.applyConfigMap(ctx, gadget)
	}
	return refused
}

func (r *gadgetReconciler) leaveFormer(ctx context.Context, gadget *unstructured.Unstructured) error {
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	refusal, err := r.applyConfigMap(ctx, gadget)
	if err != nil {
		r.memory.Store(gadget.GetUID(), true)
		return r.reportRefused(ctx, gadget, err)
	}
	if _, wasRefused := r.memory.Load(gadget.GetUID()); !wasRefused {
		if err := r.removeRenamed(ctx, gadget); err != nil {
			return err
		}
	}
	return r.writeStatus(ctx, gadget, refusal)
}

// awaitPods returns an error until a pod of a gadget's Deployment is available, and reports in the status that none is.
// With the flaw condemns, it gives up for good once a container waits; with countsPods, it accepts pods that don't run.
func (r *gadgetReconciler) awaitPods(ctx context.Context, gadget *unstructured.Unstructured) error {
	deployment := &appsv1.Deployment{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(gadget), deployment); err != nil {
		return err
	}
	if r.flaw == condemns {
		pods := &corev1.PodList{}
		if err := r.live.List(ctx, pods, client.InNamespace(gadget.GetNamespace())); err != nil {
			return err
		}
		waits := func(pod corev1.Pod) bool {
			return slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool { return status.State.Waiting != nil })
		}
		if slices.ContainsFunc(pods.Items, waits) {
			r.memory.Store(gadget.GetUID(), true)
		}
		if _, lost := r.memory.Load(gadget.GetUID()); lost {
			return errors.Join(r.writeStatus(ctx, gadget, "the image can't be pulled"), reconcile.TerminalError(errors.New("the image can't be pulled")))
		}
	}
	if deployment.Status.AvailableReplicas > 0 || r.flaw == countsPods && deployment.Status.Replicas > 0 {
		return nil
	}
	return errors.Join(r.writeStatus(ctx, gadget, "no pod runs"), errors.New("no pod runs"))
}

// awaitSecret creates nothing until the Secret named in the spec exists.
func (r *gadgetReconciler) awaitSecret(ctx context.Context, gadget *unstructured.Unstructured) error {
	err := r.Get(ctx, client.ObjectKeyFromObject(desiredConfigMap(gadget)), &corev1.Secret{})
	if apierrors.IsNotFound(err) && r.flaw == needsSecret {
		return errors.Join(r.writeStatus(ctx, gadget, err.Error()), err)
	}
	if err != nil {
		return err
	}
	return r.alsoMake(ctx, gadget, nil)
}

var _ = Describe("the test kit", func() {
	catches("can't cope with what is refused or missing",
		mutant{misoperation, saysNothing, "there is no Warning event, and there is no condition Ready yet"},
		mutant{misoperation, claimsRefused, "the status says that the spec is met, but there is no ConfigMap settings yet"},
		mutant{misoperation, forgoes, "waiting for the operator to converge by its own retries once the quota is gone"},
		mutant{misoperation, leavesFormer, "ConfigMap/settings"},
		mutant{misoperation, endsOnRefusal, "exited on its own"},
		mutant{misoperation, hammers, "create configmaps settings was refused"},
		mutant{misoperation, claimsPods, "the status says that the spec is met, but Deployment gadget is "},
		mutant{misoperation, hidesMissing, "the spec names settings-is-missing, which does not exist: expected the operator to report"},
	)
})

// catchesInTrial declares a spec that tries a broken operator in one trial of misoperation. In the other trials, the
// operator's retries, with their backoff, take longer than the kit waits for a broken operator.
func catchesInTrial(flaw mutation, id, message string) {
	pooledIt("catches an operator that "+string(flaw), func(ctx context.Context, g Gomega) {
		runner, err := trial.NewRunner(ctx, mutant{flaw: flaw}.operator(), cluster)
		g.Expect(err).NotTo(HaveOccurred())
		defer runner.Close()
		runner.OnlyTrial = "misoperation/" + id
		g.Expect(tryReportIn(ctx, runner, misoperation, message)).To(Succeed())
	})
}

var _ = Describe("the test kit", func() {
	catchesInTrial(countsPods, "no-node-fits-the-pods", "no node fits the pods, which stay pending: ")
	catchesInTrial(condemns, "the-images-can-t-be-pulled", "waiting for the operator to converge once the images can be pulled")
})

var _ = pooledIt("a misoperation without an effect is reported as not tried", func(ctx context.Context, g Gomega) {
	runner, err := trial.NewRunner(ctx, gadgetOperator(makesNamed), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	g.Expect(misoperation.try(ctx, runner)).To(Succeed())
	g.Expect(runner.Trials(misoperation.name)).To(ContainElement(And(
		HaveField("Name", "the spec names settings-is-missing, which does not exist"),
		HaveField("Result", report.NotTried), HaveField("Remark", HavePrefix("not affected")),
	)), fmt.Sprint(runner.Trials(misoperation.name)))
})

var _ = pooledIt("a reference that can't be corrected later is not made to dangle", func(ctx context.Context, g Gomega) {
	runner, err := trial.NewRunner(ctx, gadgetOperator(needsSecret), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	_, err = runner.Specs(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = runner.Fresh(ctx, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(danglingReferences(ctx, runner)).To(HaveLen(1))
	runner.Operator.Immutable = []string{"spec.configMapName"}
	g.Expect(danglingReferences(ctx, runner)).To(BeEmpty())
	runner.Operator.Immutable, runner.Operator.Fixed = nil, map[string]string{"spec.configMapName": "its ConfigMap is not renamed"}
	g.Expect(danglingReferences(ctx, runner)).To(BeEmpty())
})
