package v1_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("the samples", func() {
	accepted, invalid, refused := samples("."), samples("invalid"), samples("refused-by-webhook")
	It("exist", func() {
		Expect(accepted).NotTo(BeEmpty())
		Expect(invalid).NotTo(BeEmpty())
		Expect(refused).NotTo(BeEmpty())
	})
	for _, namespace := range []string{byWebhooks, byPolicies} {
		// An invalid sample must still be refused after a webhook or a policy has filled in a field.
		for _, file := range slices.Concat(refused, invalid) {
			It("are refused with "+namespace+": "+file, func(ctx SpecContext) {
				message, err := createSample(ctx, namespace, file)
				Expect(message).NotTo(BeEmpty(), "the first line of the file should have the expected message")
				Expect(err).To(MatchError(ContainSubstring(message)))
			}, SpecTimeout(waitTimeout))
		}
		for _, file := range accepted {
			It("are accepted with "+namespace+": "+file, func(ctx SpecContext) {
				_, err := createSample(ctx, namespace, file)
				Expect(err).NotTo(HaveOccurred())
			}, SpecTimeout(waitTimeout))
		}
	}
	for _, file := range refused {
		It("are accepted without admission: "+file, func(ctx SpecContext) {
			_, err := createSample(ctx, byNone, file)
			Expect(err).NotTo(HaveOccurred(), "a sample that the schema refuses belongs in config/samples/invalid")
		}, SpecTimeout(waitTimeout))
	}
})

const sampleFolder = "../../../config/samples"

// samples returns the files in a folder of the samples, except the kustomization.
func samples(folder string) []string {
	files, err := filepath.Glob(filepath.Join(sampleFolder, folder, "*.yaml"))
	if err != nil {
		panic(err) // the pattern is wrong
	}
	var found []string
	for _, file := range files {
		if name := filepath.Base(file); name != "kustomization.yaml" {
			found = append(found, filepath.Join(folder, name))
		}
	}
	return found
}

// createSample creates the object that a file describes, in a dry run. It returns the error from the request, and
// the message that the file's first line expects, or "" if the line expects none.
func createSample(ctx SpecContext, namespace, file string) (string, error) {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(sampleFolder, file))
	Expect(err).NotTo(HaveOccurred())
	converted, err := utilyaml.ToJSON(content)
	Expect(err).NotTo(HaveOccurred())
	object := &unstructured.Unstructured{}
	Expect(object.UnmarshalJSON(converted)).To(Succeed())
	object.SetNamespace(namespace)
	first, _, _ := strings.Cut(string(content), "\n")
	message, found := strings.CutPrefix(first, "# refused: ")
	if !found {
		message = ""
	}
	return message, env.Client.Create(ctx, object, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
}
