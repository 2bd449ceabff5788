package behaviours

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

// Flaws in how an operator changes lists and maps that it shares with others.
const (
	assignsEnv   mutation = "replaces a container's whole list of variables"
	ownsTemplate mutation = "replaces the whole pod template"
)

// Correct operators that resemble these.
const (
	mergesEnv  mutation = "sets its own variable of a container by its name"
	appliesAll mutation = "uses server-side apply for its Deployment"
)

var _ = Describe("the test kit", func() {
	catches("wipes out others' entries in lists",
		mutant{drift, assignsEnv, `spec.template.spec.containers[name="gadget"].env[name="SOMEONE_ELSE"].name of Deployment gadget, which someone else applied with the value "SOMEONE_ELSE", is gone`},
		mutant{stale, assignsEnv, `env[name="SOMEONE_ELSE"]`},
		mutant{drift, ownsTemplate, `spec.template.metadata.annotations.someone-else.example.com/annotation of Deployment gadget, which someone else applied`},
	)
})

// sharesLists declares a spec that tries a correct operator whose child has lists that others may change.
func sharesLists(text string, sound mutation, change func(*operatortest.Operator)) {
	pooledIt("an operator whose child has lists that others may change is accepted: "+text, func(ctx context.Context, g Gomega) {
		operator := gadgetOperator(sound)
		change(&operator)
		g.Expect(checkLeftOut(operator.LeftOut)).To(Succeed())
		runner, err := trial.NewRunner(ctx, operator, cluster)
		g.Expect(err).NotTo(HaveOccurred())
		defer runner.Close()
		g.Expect(drift.try(ctx, runner)).To(Succeed())
		runner.OnlyTrial = "stale/others-wrote-to-the-children-and-the-operator-sees-only-that-the-spec-has-changed"
		g.Expect(stale.try(ctx, runner)).To(Succeed())
		g.Expect(runner.Trials(stale.name)).To(HaveLen(1))
	})
}

var _ = Describe("the test kit", func() {
	sharesLists("one that "+string(mergesEnv), mergesEnv, func(*operatortest.Operator) {})
	sharesLists("one that "+string(appliesAll), appliesAll, shareSidecar)
	sharesLists("one that owns the list, declared in LeftOut", assignsEnv, func(operator *operatortest.Operator) {
		operator.LeftOut = map[string]string{trial.AppliedEnv: "the variables are the operator's alone"}
	})
})

// shareSidecar declares that others add a sidecar and a volume.
func shareSidecar(operator *operatortest.Operator) {
	operator.Children[1].Applied = map[string]string{
		"a sidecar": `{"spec":{"template":{"spec":{"containers":[{"name":"proxy","image":"proxy:1","ports":[{"containerPort":15001}]}],"volumes":[{"name":"proxy","emptyDir":{}}]}}}}`,
	}
}
