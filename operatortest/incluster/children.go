package incluster

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// DescribeChildren defines the specs in which someone else changes or deletes the samples' children, or takes the name of
// a child, and the spec in which a resource is deleted. Without o.Collision, it leaves out those about the name and the
// deletion.
func DescribeChildren(o Operator) {
	for _, child := range o.Children {
		ginkgo.It("recreates "+child.Name+" when someone deletes it", func(ctx ginkgo.SpecContext) {
			o.bringsBack(ctx, child.Name)
			o.WaitUntilConverged(ctx)
		}, ginkgo.SpecTimeout(Timeout))

		for _, what := range slices.Sorted(maps.Keys(child.Drift)) {
			ginkgo.It("undoes a change of "+child.Name+": "+what, func(ctx ginkgo.SpecContext) {
				o.undoes(ctx, child.Name, child.Drift[what])
				o.WaitUntilConverged(ctx)
			}, ginkgo.SpecTimeout(Timeout))
		}
	}
	if o.Collision != nil {
		describeCollision(o)
	}
}

// bringsBack deletes a child and waits for a new one with the same name.
func (o Operator) bringsBack(ctx context.Context, child string) {
	ginkgo.GinkgoHelper()
	before := o.uid(ctx, child)
	gomega.Expect(before).NotTo(gomega.BeEmpty(), "%s must exist", child)
	Kubectl(ctx, "delete", child, "--namespace="+o.Trial, "--wait=false")
	gomega.Eventually(o.uid).WithContext(ctx).WithArguments(child).ShouldNot(gomega.BeElementOf("", before),
		"there must be a new %s: the operator has to watch its children, and needs the permission to create them", child)
}

// undoes changes a field of a child and waits until the operator has undone that.
func (o Operator) undoes(ctx context.Context, child string, drift Drift) {
	ginkgo.GinkgoHelper()
	before := Field(ctx, o.Trial, child, drift.Field)
	patched := Kubectl(ctx, "patch", child, "--namespace="+o.Trial, "--type=merge", "--patch="+drift.Patch, "--output=jsonpath="+drift.Field)
	gomega.Expect(patched).NotTo(gomega.Equal(before), "the patch %s must change %s", drift.Patch, drift.Field)
	undone, wanted := gomega.Equal(before), "its old value again"
	if drift.Renewed {
		undone, wanted = gomega.Not(gomega.Equal(patched)), "a new value"
	}
	gomega.Eventually(Field).WithContext(ctx).WithArguments(o.Trial, child, drift.Field).Should(undone,
		"%s of %s must have %s: the operator has to compare every field that it sets", drift.Field, child, wanted)
}

// uid returns the object's UID, or "" if there is no such object.
func (o Operator) uid(ctx context.Context, object string) string {
	ginkgo.GinkgoHelper()
	return Kubectl(ctx, "get", object, "--namespace="+o.Trial, "--ignore-not-found", "--output=jsonpath={.metadata.uid}")
}

func describeCollision(o Operator) {
	c := *o.Collision
	ginkgo.It("leaves alone an object that has a child's name but belongs to someone else, and reports it", func(ctx ginkgo.SpecContext) {
		Kubectl(ctx, append([]string{"create", "--namespace=" + o.Trial}, c.Foreign...)...)
		before := o.content(ctx, c.Child)
		_, err := KubectlWith(ctx, c.Resource, "create", "--namespace="+o.Trial)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())

		_, name, _ := strings.Cut(c.Child, "/")
		Kubectl(ctx, "wait", c.Name, "--for=condition="+c.Condition+"=false", "--timeout=1m", "--namespace="+o.Trial)
		gomega.Eventually(Field).WithContext(ctx).WithArguments(o.Trial, c.Name, "{.status.conditions[*].message}").
			Should(gomega.ContainSubstring(`"`+name+`"`), "a condition must name the object that is in the way")
		gomega.Eventually(o.warnings).WithContext(ctx).WithArguments(c.Name).Should(gomega.ContainSubstring(name), "a Warning event must name it")
		gomega.Expect(o.content(ctx, c.Child)).To(gomega.Equal(before), "someone else's object must be unchanged")
	}, ginkgo.SpecTimeout(Timeout))

	ginkgo.It("creates the child once the name is free", func(ctx ginkgo.SpecContext) {
		foreign := o.uid(ctx, c.Child)
		Kubectl(ctx, "delete", c.Child, "--namespace="+o.Trial)
		gomega.Eventually(o.uid).WithContext(ctx).WithArguments(c.Child).ShouldNot(gomega.BeElementOf("", foreign), "the resource must get its own %s", c.Child)
		o.WaitUntilConverged(ctx)
	}, ginkgo.SpecTimeout(Timeout))

	ginkgo.It("doesn't hold up the deletion of a resource, whose children are deleted with it", func(ctx ginkgo.SpecContext) {
		began := time.Now()
		Kubectl(ctx, "delete", c.Name, "--namespace="+o.Trial, "--timeout=2m")
		gomega.Eventually(o.uid).WithContext(ctx).WithArguments(c.Child).Should(gomega.BeEmpty(), "%s must be deleted with its owner", c.Child)
		measured("deletion of a resource with its children", began)
	}, ginkgo.SpecTimeout(Timeout))
}

// content returns those fields of someone else's object that the operator must leave alone.
func (o Operator) content(ctx context.Context, object string) string {
	ginkgo.GinkgoHelper()
	return Field(ctx, o.Trial, object, "{.metadata.uid} {.metadata.labels} {.metadata.ownerReferences} {.metadata.finalizers} {.spec} {.data}")
}

// warnings returns the messages of the Warning events about a resource.
func (o Operator) warnings(ctx context.Context, resource string) string {
	ginkgo.GinkgoHelper()
	_, name, _ := strings.Cut(resource, "/")
	return Kubectl(ctx, "get", "events", "--namespace="+o.Trial, "--field-selector=type=Warning,involvedObject.name="+name,
		"--output=jsonpath={.items[*].message}")
}
