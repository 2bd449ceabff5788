package trial

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestIsSuspendedJob(t *testing.T) {
	tests := map[string]struct {
		apiVersion string
		suspend    bool
		want       bool
	}{
		"a suspended Job":           {"batch/v1", true, true},
		"a running Job":             {"batch/v1", false, false},
		"another kind of that name": {"example.com/v1", true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			child := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": test.apiVersion, "kind": "Job", "spec": map[string]any{"suspend": test.suspend},
			}}
			NewWithT(t).Expect(isSuspendedJob(child)).To(Equal(test.want))
		})
	}
}
