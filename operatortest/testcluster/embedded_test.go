package testcluster

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestWithAdmission(t *testing.T) {
	g := NewWithT(t)
	asked := map[string]string{"enable-admission-plugins": "AlwaysPullImages", "audit-log-path": "-"}
	g.Expect(withAdmission(nil)).To(Equal(map[string]string{"enable-admission-plugins": ownersAdmission}))
	g.Expect(withAdmission(asked)).To(Equal(map[string]string{
		"enable-admission-plugins": "AlwaysPullImages," + ownersAdmission, "audit-log-path": "-",
	}))
	g.Expect(asked).To(HaveKeyWithValue("enable-admission-plugins", "AlwaysPullImages"), "the suite's own map must stay as it is")
}
