package manager

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// patience bounds each wait within this process.
const patience = 10 * time.Second

// fakeCache is filled when the channel is closed.
type fakeCache struct {
	cache.Cache
	filled chan struct{}
}

func (f fakeCache) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-f.filled:
		return true
	case <-ctx.Done():
		return false
	}
}

func TestEndingCache(t *testing.T) {
	tests := map[string]struct {
		happens func(fill, endProcess, giveUp func())
		want    bool
	}{
		"the cache is filled":               {happens: func(fill, _, _ func()) { fill() }, want: true},
		"the process ends":                  {happens: func(_, endProcess, _ func()) { endProcess() }, want: true},
		"whoever waits waits no longer":     {happens: func(_, _, giveUp func()) { giveUp() }, want: false},
		"the process ends, and the waiting": {happens: func(_, endProcess, giveUp func()) { endProcess(); giveUp() }, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			process, endProcess := context.WithCancel(t.Context())
			waiting, giveUp := context.WithCancel(t.Context())
			defer giveUp()
			defer endProcess()
			filled := make(chan struct{})
			returned := make(chan bool, 1)
			go func() {
				returned <- endingCache{Cache: fakeCache{filled: filled}, process: process}.WaitForCacheSync(waiting)
			}()
			g.Consistently(returned).WithTimeout(50 * time.Millisecond).ShouldNot(gomega.Receive())

			test.happens(func() { close(filled) }, endProcess, giveUp)
			g.Eventually(returned).WithTimeout(patience).Should(gomega.Receive(gomega.Equal(test.want)), "see WaitForCacheSync in cache.go")
		})
	}
}

func TestCachesFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its clock goes on only when everybody waits
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
