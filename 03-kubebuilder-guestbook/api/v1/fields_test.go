package v1

import (
	"encoding/json"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

func TestGuestbookHasTheFieldsOfItsSample(t *testing.T) {
	g := NewWithT(t)
	sample, err := os.ReadFile("../../config/samples/webapp_v1_guestbook_full.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	guestbook := &Guestbook{}
	g.Expect(yaml.UnmarshalStrict(sample, guestbook)).To(Succeed(), "GuestbookSpec in guestbook_types.go must have every field of the sample, under its JSON name")
	g.Expect(json.Marshal(guestbook.Spec)).To(MatchJSON(`{"size":2,"configMapName":"page-settings","alias":"Phone"}`))
}

func TestGuestbookHasAStatus(t *testing.T) {
	g := NewWithT(t)
	const full = `{"active":"a","standby":["b"],"replicas":3,"readyReplicas":2,"selector":"x=y","observedGeneration":3}`
	status := &GuestbookStatus{}
	g.Expect(yaml.UnmarshalStrict([]byte(full), status)).To(Succeed(), "see GuestbookStatus in guestbook_types.go")
	g.Expect(json.Marshal(status)).To(MatchJSON(full))
	g.Expect(json.Marshal(GuestbookStatus{})).To(MatchJSON(`{}`), "fields without a value must be left out")
	copied := status.DeepCopy()
	g.Expect(yaml.Unmarshal([]byte(`{"standby":["changed"]}`), copied)).To(Succeed())
	g.Expect(json.Marshal(status)).To(MatchJSON(full), "a copy must not share memory with the original: run make generate, which writes DeepCopy")
}
