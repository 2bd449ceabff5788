package deployment

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestScaffoldMarkers checks the comments at which `kubebuilder create` (v4) inserts code. Without them, kubebuilder
// skips or rejects the file.
func TestScaffoldMarkers(t *testing.T) {
	markers := map[string][]string{
		"cmd/main.go":                       {"imports", "scheme", "builder"},
		"internal/controller/suite_test.go": {"imports"},
		"config/crd/kustomization.yaml":     {"crdkustomizeresource", "crdkustomizewebhookpatch"},
		"config/samples/kustomization.yaml": {"manifestskustomizesamples"},
	}
	for _, stage := range []string{"03-kubebuilder-guestbook", "04-operatorsdk-memcached", "05-webhook-password"} {
		for file, names := range markers {
			expectMarkers(t, names, stage, file)
		}
	}
	expectMarkers(t, []string{"e2e-metrics-webhooks-readiness", "e2e-webhooks-checks"}, "03-kubebuilder-guestbook", "test/e2e/e2e_test.go")
}

// expectMarkers expects that a stage's file contains the markers with these names and no others, each once and in this
// order.
func expectMarkers(t *testing.T, names []string, stage, file string) {
	var found []string
	for line := range strings.Lines(read(t, stage, file)) {
		if _, name, isMarker := strings.Cut(strings.TrimSpace(line), " +kubebuilder:scaffold:"); isMarker {
			found = append(found, name)
		}
	}
	NewWithT(t).Expect(found).To(Equal(names), "%s/%s must have exactly these comments +kubebuilder:scaffold:…, in this order", stage, file)
}
