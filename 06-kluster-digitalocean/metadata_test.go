package main

import (
	"testing"

	. "github.com/onsi/gomega"

	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

func TestWhatIsOnRecord(t *testing.T) {
	tests := map[string]struct {
		annotations           map[string]string
		status                klusterv1alpha1.KlusterStatus
		wantName, wantAccount string
		wantMayHaveCluster    bool
	}{
		"no cluster was requested": {},
		"a cluster was about to be requested": {
			annotations: map[string]string{klusterv1alpha1.CreatePendingAnnotation: "2026-01-01T00:00:00Z", klusterv1alpha1.ExternalAccountAnnotation: "acme"},
			wantAccount: "acme", wantMayHaveCluster: true,
		},
		"the ID is known, and the status was lost": {
			annotations: map[string]string{klusterv1alpha1.ExternalNameAnnotation: "id", klusterv1alpha1.ExternalAccountAnnotation: "acme"},
			wantName:    "id", wantAccount: "acme", wantMayHaveCluster: true,
		},
		"the ID is known, and the annotations were replaced": {
			status:   klusterv1alpha1.KlusterStatus{KlusterID: "id", Account: "acme"},
			wantName: "id", wantAccount: "acme", wantMayHaveCluster: true,
		},
		"an author names another account": {
			annotations: map[string]string{klusterv1alpha1.ExternalAccountAnnotation: "theirs"},
			status:      klusterv1alpha1.KlusterStatus{Account: "acme"},
			wantAccount: "acme",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			kluster := storedKluster()
			kluster.Annotations, kluster.Status = test.annotations, test.status
			g.Expect(externalName(kluster)).To(Equal(test.wantName), "see externalName in metadata.go")
			g.Expect(externalAccount(kluster)).To(Equal(test.wantAccount), "see externalAccount in metadata.go")
			g.Expect(mayHaveCluster(kluster)).To(Equal(test.wantMayHaveCluster), "see mayHaveCluster in metadata.go")
		})
	}
}

func TestIsPaused(t *testing.T) {
	tests := map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"it has no annotation":      {},
		"it is paused":              {annotations: map[string]string{klusterv1alpha1.PausedAnnotation: "true"}, want: true},
		"any other value pauses it": {annotations: map[string]string{klusterv1alpha1.PausedAnnotation: ""}, want: true},
		"it is no longer paused":    {annotations: map[string]string{klusterv1alpha1.PausedAnnotation: "false"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kluster := storedKluster()
			kluster.Annotations = test.annotations
			NewWithT(t).Expect(isPaused(kluster)).To(Equal(test.want), "see isPaused in metadata.go")
		})
	}
}
