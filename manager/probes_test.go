package manager

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"
)

func TestCachesFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its clock advances only when all goroutines wait
		g := gomega.NewWithT(t)
		filled := make(chan struct{})
		check := cachesFilled(fakeCache{filled: filled})
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody)
		began := time.Now()
		g.Expect(check(request)).To(gomega.MatchError("the caches are not filled yet"))
		g.Expect(time.Since(began)).To(gomega.BeNumerically("<", time.Second), "the kubelet gives a probe one second by default")
		close(filled)
		g.Expect(check(request)).To(gomega.Succeed())
	})
}
