package behaviours

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest"
)

// runsJob is a correct operator, although its Jobs differ: the API server gives each Job a unique selector, and unique
// labels for its pods.
const runsJob mutation = "runs a Job for each gadget"

// jobOperator describes the operator runsJob.
func jobOperator(operator operatortest.Operator) operatortest.Operator {
	operator.Roles = []string{"testdata/gadget/role-jobs.yaml"}
	operator.Children = append(operator.Children, operatortest.Child{Kind: batchv1.SchemeGroupVersion.WithKind("Job")})
	operator.MaxWrites++
	return operator
}

func (r *gadgetReconciler) runJob(ctx context.Context, gadget *unstructured.Unstructured) error {
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: gadget.GetNamespace(), Name: gadget.GetName(),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(gadget, gadgetKind)},
		},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "gadget", Image: "gadget:1"}},
		}}},
	}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(job), job.DeepCopy())
	if apierrors.IsNotFound(err) {
		err = r.Create(ctx, job)
	}
	if err != nil {
		return err
	}
	return r.keepConfigMap(ctx, gadget)
}

var _ = Describe("the test kit", func() {
	accepts("runs Jobs", twin{runsJob, []behaviour{converges, silent, frugal, update, deletion, neighbours, crash}})
})
