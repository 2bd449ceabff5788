//workshop:given 3.3b

package v1

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAddToScheme(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(AddToScheme(scheme)).To(Succeed())
	for kind, object := range map[string]runtime.Object{"Guestbook": &Guestbook{}, "GuestbookList": &GuestbookList{}} {
		kinds, _, err := scheme.ObjectKinds(object)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kinds).To(ConsistOf(schema.GroupVersionKind{Group: "webapp.my.domain", Version: "v1", Kind: kind}))
	}
	g.Expect(scheme.Recognizes(SchemeGroupVersion.WithKind("WatchEvent"))).To(BeTrue(), "clients need this kind to watch Guestbooks")
}

func TestGuestbookInJSON(t *testing.T) {
	tests := map[string]struct {
		guestbook Guestbook
		want      string
	}{
		"fields that are not set are left to the API server": {
			guestbook: Guestbook{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: GuestbookSpec{ConfigMapName: "page-settings"}},
			want:      `{"metadata":{"name":"web"},"spec":{"configMapName":"page-settings"}}`,
		},
		"a required name is sent even if it is empty, so that the API server refuses it": {
			want: `{"spec":{"configMapName":""}}`,
		},
		"all fields": {
			guestbook: Guestbook{
				Spec: GuestbookSpec{Size: 2, ConfigMapName: "page-settings", Alias: AliasPhone},
				Status: GuestbookStatus{Active: "a", Standby: []string{"b"}, Replicas: 3, ReadyReplicas: 2, Selector: "x=y", ObservedGeneration: 3,
					Conditions: []metav1.Condition{{Type: ConditionReady, Status: metav1.ConditionTrue, Reason: ReasonAvailable, Message: "m"}}},
			},
			want: `{"spec":{"size":2,"configMapName":"page-settings","alias":"Phone"},
				"status":{"active":"a","standby":["b"],"replicas":3,"readyReplicas":2,"selector":"x=y","observedGeneration":3,
				"conditions":[{"type":"Ready","status":"True","reason":"Available","message":"m","lastTransitionTime":null}]}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(json.Marshal(test.guestbook)).To(MatchJSON(test.want))
			copied := test.guestbook.DeepCopy()
			g.Expect(copied).To(HaveValue(Equal(test.guestbook)))
			for i := range copied.Status.Standby {
				copied.Status.Standby[i] = "changed"
				g.Expect(test.guestbook.Status.Standby[i]).NotTo(Equal("changed"), "a copy must not share memory with the original")
			}
		})
	}
}
