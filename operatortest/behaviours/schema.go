package behaviours

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/manifest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/testcluster"
)

// fieldOwner is the name under which the kit applies definitions.
const fieldOwner = client.FieldOwner("operatortest")

// DescribeSchema generates the specs of the behaviour "schema": the definitions are valid, every sample is accepted,
// and every invalid sample is refused for the reason that it names. Call it where Ginkgo allows a Describe; the suite
// must start the cluster in its BeforeSuite. Each spec has the label "schema".
func DescribeSchema(operator operatortest.Operator, cluster *testcluster.Cluster) {
	// The specs take turns in one namespace, because each namespace creates a lot of work for Kubernetes.
	ginkgo.Describe("the schema", ginkgo.Label(schemaName), ginkgo.Ordered, ginkgo.ContinueOnFailure, func() {
		checks := &schemaChecks{Cluster: cluster}
		checks.cleanUp = func(object *unstructured.Unstructured) {
			ginkgo.DeferCleanup(func(ctx context.Context) error { return testcluster.RemoveObject(ctx, cluster.Admin, object) })
		}
		ginkgo.BeforeAll(func(ctx ginkgo.SpecContext) { checks.namespace = cluster.Namespace(ctx) })
		for _, check := range checks.of(operator) {
			ginkgo.It(check.Name, func(ctx ginkgo.SpecContext) { gomega.Expect(check.try(ctx)).To(gomega.Succeed()) })
		}
	})
}

// schemaChecks are checks that share a namespace.
type schemaChecks struct {
	*testcluster.Cluster
	namespace string
	// cleanUp makes sure that an object is removed after the check.
	cleanUp func(*unstructured.Unstructured)
}

type schemaCheck struct {
	Name string
	try  func(context.Context) error
}

// of returns a check for each file, and a failing one for each path at which it finds no file.
func (c *schemaChecks) of(operator operatortest.Operator) []schemaCheck {
	var checks []schemaCheck
	add := func(verb, path string, try func(ctx context.Context, file string) error) {
		if path == "" {
			return
		}
		files, err := filesOf(path)
		if err != nil {
			checks = append(checks, schemaCheck{fmt.Sprintf("%s the files in %q", verb, path), func(context.Context) error { return err }})
		}
		for _, file := range files {
			checks = append(checks, schemaCheck{verb + " " + filepath.ToSlash(file), func(ctx context.Context) error { return try(ctx, file) }})
		}
	}
	for _, path := range operator.CRDs {
		add("has valid definitions in", path, c.checkDefinitions)
	}
	add("accepts", operator.Samples, c.checkSample)
	add("refuses", operator.InvalidSamples, c.checkInvalidSample)
	return checks
}

func filesOf(path string) ([]string, error) {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return []string{path}, nil
	}
	return manifest.Files(path)
}

// checkDefinitions returns an error if the API server refuses a definition in the file, for example because of an
// unknown field, or if the installed definition's conditions report a problem, such as a schema that is not structural.
func (c *schemaChecks) checkDefinitions(ctx context.Context, file string) error {
	objects, err := manifest.Read(file)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := c.redirect(ctx, object); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		// Go types drop unknown fields, so only a raw object shows a misspelt field. Apply is always strict.
		raw := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
		if err := c.Admin.Apply(ctx, raw, fieldOwner, client.ForceOwnership, client.DryRunAll); err != nil {
			return fmt.Errorf("%s: the API server refuses %s: %w", file, object.GetName(), err)
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Admin.Get(ctx, client.ObjectKeyFromObject(object), definition); err != nil {
			return fmt.Errorf("get the definition %s: %w", object.GetName(), err)
		}
		if err := checkConditions(definition); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// redirect gives a definition's conversion webhook the address that it has in the installed definition. If that is a
// URL, the API server would refuse the file's Service alongside it.
func (c *schemaChecks) redirect(ctx context.Context, object *unstructured.Unstructured) error {
	path := []string{"spec", "conversion", "webhook", "clientConfig"}
	if _, found, _ := unstructured.NestedMap(object.Object, path...); !found {
		return nil
	}
	installed := &unstructured.Unstructured{}
	installed.SetGroupVersionKind(object.GroupVersionKind())
	if err := c.Admin.Get(ctx, client.ObjectKeyFromObject(object), installed); err != nil {
		return fmt.Errorf("get the definition %s: %w", object.GetName(), err)
	}
	config, found, err := unstructured.NestedMap(installed.Object, path...)
	if err != nil || !found {
		return err
	}
	return unstructured.SetNestedMap(object.Object, config, path...)
}

// checkConditions returns an error if the API server's conditions report a problem with a definition.
func checkConditions(definition *apiextensionsv1.CustomResourceDefinition) error {
	wanted := map[apiextensionsv1.CustomResourceDefinitionConditionType]apiextensionsv1.ConditionStatus{
		apiextensionsv1.NamesAccepted:       apiextensionsv1.ConditionTrue,
		apiextensionsv1.Established:         apiextensionsv1.ConditionTrue,
		apiextensionsv1.NonStructuralSchema: apiextensionsv1.ConditionFalse,
	}
	found := map[apiextensionsv1.CustomResourceDefinitionConditionType]apiextensionsv1.CustomResourceDefinitionCondition{
		// The API server omits this condition while it does not apply.
		apiextensionsv1.NonStructuralSchema: {Status: apiextensionsv1.ConditionFalse},
	}
	for _, condition := range definition.Status.Conditions {
		found[condition.Type] = condition
	}
	for kind, status := range wanted {
		if got := found[kind]; got.Status != status {
			return fmt.Errorf("%s: condition %s is %q, not %q: %s", definition.Name, kind, got.Status, status, got.Message)
		}
	}
	return nil
}

// checkSample returns an error if the API server refuses an object in the file, in a dry run or when it is created.
func (c *schemaChecks) checkSample(ctx context.Context, file string) error {
	objects, err := manifest.Read(file)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := c.place(object); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := c.Admin.Create(ctx, object.DeepCopy(), trial.Strict, client.DryRunAll); err != nil {
			return fmt.Errorf("%s must be accepted, but the API server refuses it: %w", file, manifest.Explain(err, object))
		}
		if err := c.create(ctx, object); err != nil {
			return fmt.Errorf("%s passes a dry run, but the API server refuses it: %w", file, err)
		}
	}
	return nil
}

// checkInvalidSample returns an error if the last object in the file is accepted, or refused for a reason that the file
// doesn't name. The objects before it must be accepted. If the last object has the kind and name of an earlier one, it
// changes that one: a file can show a change that must be refused.
func (c *schemaChecks) checkInvalidSample(ctx context.Context, file string) error {
	message, err := manifest.Refusal(file)
	if err != nil {
		return err
	}
	objects, err := manifest.Read(file)
	if err != nil {
		return err
	}
	last := len(objects) - 1
	before := map[string]*unstructured.Unstructured{}
	for i, object := range objects {
		if err := c.place(object); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if i == last {
			break
		}
		if err := c.create(ctx, object); err != nil {
			return fmt.Errorf("%s: only its last object may be refused: %w", file, err)
		}
		before[identity(object)] = object
	}
	if earlier, found := before[identity(objects[last])]; found {
		objects[last].SetResourceVersion(earlier.GetResourceVersion())
		err = c.Admin.Update(ctx, objects[last], trial.Strict)
	} else {
		err = c.create(ctx, objects[last])
	}
	if err == nil {
		return fmt.Errorf("%s must be refused with %q, but the API server accepts it: is the rule missing from the definition?", file, message)
	}
	if !strings.Contains(err.Error(), message) {
		return fmt.Errorf("%s must be refused with %q, but the API server says: %w", file, message, err)
	}
	return nil
}

// identity distinguishes the objects in a file.
func identity(object *unstructured.Unstructured) string {
	return object.GroupVersionKind().GroupKind().String() + "/" + object.GetName()
}

// place replaces the placeholders in an object, and puts a namespaced object into the namespace of the checks.
func (c *schemaChecks) place(object *unstructured.Unstructured) error {
	manifest.FillObject(object, c.namespace)
	namespaced, err := c.Admin.IsObjectNamespaced(object)
	if err != nil {
		return fmt.Errorf("find the kind %s: %w", object.GetKind(), err)
	}
	if namespaced {
		object.SetNamespace(c.namespace)
	}
	return nil
}

// create creates the object, and arranges for its removal after the check.
func (c *schemaChecks) create(ctx context.Context, object *unstructured.Unstructured) error {
	if err := c.Admin.Create(ctx, object, trial.Strict); err != nil {
		return err
	}
	c.cleanUp(object)
	return nil
}
