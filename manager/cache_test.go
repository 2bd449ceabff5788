package manager

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// timeout bounds each wait within this process.
const timeout = 10 * time.Second

// fakeCache counts as filled once the channel is closed.
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
		"the cache is filled":                            {happens: func(fill, _, _ func()) { fill() }, want: true},
		"the process ends":                               {happens: func(_, endProcess, _ func()) { endProcess() }, want: true},
		"the caller gives up":                            {happens: func(_, _, giveUp func()) { giveUp() }, want: false},
		"the process ends, and then the caller gives up": {happens: func(_, endProcess, giveUp func()) { endProcess(); giveUp() }, want: true},
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
			g.Eventually(returned).WithTimeout(timeout).Should(gomega.Receive(gomega.Equal(test.want)), "see WaitForCacheSync in cache.go")
		})
	}
}
