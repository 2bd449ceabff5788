package v1_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celenvironment "k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
	"example.com/operator-workshop/05-webhook-password/internal/generator"
	webhookv1 "example.com/operator-workshop/05-webhook-password/internal/webhook/v1"
)

// evaluated is a policy of config/policies. The tests evaluate its expressions themselves, with the API server's own
// library, because sending about 20,000 requests to an API server would take too long.
type evaluated struct {
	conditions, expressions, messages []cel.Program
	variables                         map[string]cel.Program
	order                             []string
}

// load compiles the policy in a file.
func load(g Gomega, file string) evaluated {
	content, err := os.ReadFile("../../../config/policies/" + file)
	g.Expect(err).NotTo(HaveOccurred())
	first, _, _ := strings.Cut(string(content), "\n---\n")
	decoded, err := runtime.Decode(strictDecoder(newScheme()), []byte(first))
	g.Expect(err).NotTo(HaveOccurred())
	spec := decoded.(*admissionregistrationv1.ValidatingAdmissionPolicy).Spec

	env, err := celenvironment.MustBaseEnvSet(celenvironment.DefaultCompatibilityVersion()).StoredExpressionsEnv().Extend(
		cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType),
		cel.Variable("request", cel.DynType), cel.Variable("variables", cel.DynType),
	)
	g.Expect(err).NotTo(HaveOccurred())
	compile := func(expression string) cel.Program {
		ast, issues := env.Compile(expression)
		g.Expect(issues.Err()).NotTo(HaveOccurred(), expression)
		program, err := env.Program(ast)
		g.Expect(err).NotTo(HaveOccurred(), expression)
		return program
	}
	result := evaluated{variables: map[string]cel.Program{}}
	for _, condition := range spec.MatchConditions {
		result.conditions = append(result.conditions, compile(condition.Expression))
	}
	for _, variable := range spec.Variables {
		result.order = append(result.order, variable.Name)
		result.variables[variable.Name] = compile(variable.Expression)
	}
	for _, validation := range spec.Validations {
		result.expressions = append(result.expressions, compile(validation.Expression))
		result.messages = append(result.messages, compile(validation.MessageExpression))
	}
	return result
}

// create evaluates the policy for the creation of a Password, and returns the messages of the validations that fail.
func (e *evaluated) create(g Gomega, password *secretv1.Password) []string {
	return e.decide(g, "CREATE", nil, password)
}

func (e *evaluated) decide(g Gomega, operation string, before any, password *secretv1.Password) []string {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(password)
	g.Expect(err).NotTo(HaveOccurred())
	variables := map[string]any{}
	input := map[string]any{"object": object, "oldObject": before, "request": map[string]any{"operation": operation}, "variables": variables}
	evaluate := func(program cel.Program) any {
		result, _, err := program.Eval(input)
		g.Expect(err).NotTo(HaveOccurred(), "an expression fails for %s", generator.Describe(password.Spec.Policy))
		return result.Value()
	}
	for _, condition := range e.conditions {
		if evaluate(condition) != true {
			return nil
		}
	}
	for _, name := range e.order {
		variables[name] = evaluate(e.variables[name])
	}
	var messages []string
	for i, expression := range e.expressions {
		if evaluate(expression) != true {
			messages = append(messages, fmt.Sprint(evaluate(e.messages[i])))
		}
	}
	return messages
}

// TestPoliciesAndWebhookAgreeOnStrength compares config/policies/password_strength.yaml with the webhook, for every
// password policy of up to 24 characters. TestBits checks that no possible policy above that length causes a warning.
func TestPoliciesAndWebhookAgreeOnStrength(t *testing.T) {
	g := NewWithT(t)
	strength := load(g, "password_strength.yaml")
	compared := 0
	for length := int32(8); length <= 24; length++ {
		for digits := range length + 1 {
			for symbols := range length - digits + 1 {
				compared += compare(policy(length, digits, symbols), func(password *secretv1.Password) {
					g.Expect(strength.create(g, password)).To(Equal(generator.Warnings(password.Spec.Policy)), generator.Describe(password.Spec.Policy))
				})
			}
		}
	}
	t.Logf("%d policies compared", compared)
}

// TestPoliciesAndWebhookAgreeOnPossibility compares config/policies/possible_policy.yaml with the webhook around every
// limit.
func TestPoliciesAndWebhookAgreeOnPossibility(t *testing.T) {
	g := NewWithT(t)
	possible := load(g, "possible_policy.yaml")
	compared := 0
	for length := int32(8); length <= 128; length++ {
		for _, digits := range []int32{0, 1, 9, 10, 11, 128} {
			for _, symbols := range []int32{0, 1, 29, 30, 31, 128} {
				if digits+symbols > length {
					continue
				}
				compared += compare(policy(length, digits, symbols), func(password *secretv1.Password) {
					var wanted []string
					for _, problem := range generator.Check(password.Spec.Policy, field.NewPath("spec", "policy")) {
						wanted = append(wanted, problem.Error())
					}
					g.Expect(possible.create(g, password)).To(Equal(wanted), generator.Describe(password.Spec.Policy))
				})
			}
		}
	}
	t.Logf("%d policies compared", compared)
}

// TestPoliciesAndWebhookAgreeOnNames compares config/policies/fixed_secret_name.yaml with the webhook, also for names
// that stay empty. The API server can't be used for this, because a policy or the webhook fills in the name first.
func TestPoliciesAndWebhookAgreeOnNames(t *testing.T) {
	g := NewWithT(t)
	fixed := load(g, "fixed_secret_name.yaml")
	for _, before := range []string{"", "itself", "login"} {
		for _, after := range []string{"", "itself", "login", "other"} {
			old, changed := password("itself", secretName(before)), password("itself", secretName(after))
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(old)
			g.Expect(err).NotTo(HaveOccurred())
			messages := fixed.decide(g, "UPDATE", object, changed)
			_, err = (&webhookv1.PasswordCustomValidator{}).ValidateUpdate(t.Context(), old, changed)
			if err == nil {
				g.Expect(messages).To(BeEmpty(), "a change from %q to %q must be allowed", before, after)
				continue
			}
			g.Expect(messages).To(HaveLen(1), "a change from %q to %q must be refused", before, after)
			g.Expect(err.Error()).To(ContainSubstring(messages[0]), "from %q to %q: the policy's message should be the webhook's", before, after)
		}
	}
}

// TestEveryPolicyIsInForce checks that each policy has a binding, and is in the kustomization.
func TestEveryPolicyIsInForce(t *testing.T) {
	g := NewWithT(t)
	const folder = "../../../config/policies/"
	kustomization := struct{ Resources []string }{}
	content, err := os.ReadFile(folder + "kustomization.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(yaml.Unmarshal(content, &kustomization)).To(Succeed())
	files, err := filepath.Glob(folder + "*_*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).NotTo(BeEmpty())
	for _, file := range files {
		content, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		var policies, bound []string
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			object := struct {
				Kind     string
				Metadata struct{ Name string }
				Spec     struct{ PolicyName string }
			}{}
			g.Expect(yaml.Unmarshal([]byte(document), &object)).To(Succeed(), file)
			if strings.HasSuffix(object.Kind, "Binding") {
				bound = append(bound, object.Spec.PolicyName)
				continue
			}
			policies = append(policies, object.Metadata.Name)
		}
		g.Expect(policies).NotTo(BeEmpty(), file)
		g.Expect(bound).To(ConsistOf(policies), "a policy without a binding does nothing: each in %s needs one", filepath.Base(file))
		g.Expect(kustomization.Resources).To(ContainElement(filepath.Base(file)), "config/policies/kustomization.yaml installs only the files among its resources")
	}
}

// compare calls the function for each variant of the policy, with or without lower and once. It returns the number of
// variants.
func compare(numbers change, with func(*secretv1.Password)) int {
	variants := [][]change{{numbers}, {numbers, lower}, {numbers, once}, {numbers, lower, once}}
	for _, changes := range variants {
		with(password("new", changes...))
	}
	return len(variants)
}
