package controller_test

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The suite searches for secrets at its end (see expectSecrecy).
var _ = Describe("the search for leaked secrets", func() {
	It("sees every text about a Password", func(ctx SpecContext) {
		namespace := cluster.Namespace(ctx)
		startManager(cluster.Config, testOptions(namespace))
		password := newPassword(namespace, "seen")
		create(ctx, password)
		secret := expectReady(ctx, password)
		expectEvents(ctx, password, "Normal Generated")

		eventually(ctx, func(g Gomega) {
			g.Expect(disclosed.knows(secret.Data["password"])).To(BeTrue(), "see noteSecret")
			g.Expect(disclosed.knows(secret.Data["fingerprint-key"])).To(BeTrue(), "see noteSecret")
			g.Expect(disclosed.about(inMetadata, fmt.Sprintf("%q", secret.UID))).To(Equal(1))
			g.Expect(disclosed.about(inPassword, fmt.Sprintf("%q", password.UID))).To(Equal(2), "the Password must be recorded once without a status, and once with it")
			g.Expect(disclosed.about(inEvent, fmt.Sprintf("%q", password.UID))).To(Equal(1))
			g.Expect(disclosed.about(inLog, "Wrote a new password")).To(BeNumerically(">", 0))
			g.Expect(disclosed.about(inLog, `"level"=5`)).To(BeNumerically(">", 0), "debug logs must be recorded, too")
			g.Expect(disclosed.about(inLog, namespace)).To(BeNumerically(">", 3))
		})
	}, SpecTimeout(specTimeout))
})

func TestSearch(t *testing.T) {
	const value = `9a"<K\:b&Zp~k`
	tests := map[string]struct {
		text string
		want bool
	}{
		"unchanged":               {text: "made " + value + " for it", want: true},
		"at the beginning":        {text: value + " it is", want: true},
		"at the end":              {text: "it is " + value, want: true},
		"quoted by Go":            {text: strconv.Quote("made " + value), want: true},
		"in JSON":                 {text: asJSON(map[string]string{"note": "made " + value}), want: true},
		"as the data of a Secret": {text: asJSON(map[string][]byte{"password": []byte(value)}), want: true},
		"in URL-safe base64":      {text: base64.URLEncoding.EncodeToString([]byte(value)), want: true},
		"as bytes":                {text: fmt.Sprintf("%d", []byte(value)), want: true},
		"as a Go value":           {text: fmt.Sprintf("%v", map[string][]byte{"password": []byte(value)}), want: true},
		"in hexadecimal digits":   {text: fmt.Sprintf("%x", value), want: true},
		"only its beginning":      {text: "made " + value[:12]},
		"another value":           {text: "made 8a\"<K\\:b&Zp~k"},
		"an empty text":           {text: ""},
		"less than a window":      {text: value[:5]},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var found disclosures
			found.keep([]byte(value), "the password of Secret shop/login")
			found.keep([]byte("short"), "a value that may occur anywhere")
			found.note(inEvent, "a short text")
			found.note(inLog, test.text)
			if !test.want {
				g.Expect(found.leaks()).To(BeEmpty())
				return
			}
			g.Expect(found.leaks()).To(ConsistOf(HavePrefix("the password of Secret shop/login is in the log: ")))
			g.Expect(found.leaks()[0]).To(And(ContainSubstring("<here>"), Not(ContainSubstring(value))), "the report must not contain the value")
		})
	}
}
