package behaviours

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/testcluster"
)

func TestRunTriesOneCheckOfTheSchemaAlone(t *testing.T) {
	g := NewWithT(t)
	hasEverything := interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return nil
	}}
	cluster := &testcluster.Cluster{Admin: fake.NewClientBuilder().WithInterceptorFuncs(hasEverything).Build()}
	operator := operatortest.Operator{CRDs: []string{"absent"}, Samples: "absent-too"}
	id := `schema/has valid definitions in the files in "absent"`

	made, err := Run(t.Context(), operator, cluster, Options{Trial: id})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(made.Behaviours).To(HaveExactElements(HaveField("Trials", HaveExactElements(HaveField("ID", id)))))

	_, err = Run(t.Context(), operator, cluster, Options{Trial: "schema/refuses absent"})
	g.Expect(err).To(MatchError(ContainSubstring(`there is no trial "schema/refuses absent"`)))
}
